"""The table that changes make, and the list of them."""

from __future__ import annotations

import random

from headrace.common.types import Row, RowKind
from headrace.sql_client.rows import ChangelogRows, CurrentRows

KINDS = {each.short_string(): each for each in RowKind}


def changes(*texts: str) -> list[Row]:
    """Make rows of texts such as `+I a 1`."""
    return [Row.of_kind(KINDS[text.split()[0]], *text.split()[1:]) for text in texts]


def shown(rows: CurrentRows | ChangelogRows) -> list[str]:
    return [" ".join(row) for row in rows.slice(0, 1_000_000)]


def test_an_updated_row_keeps_its_place() -> None:
    rows = CurrentRows(100)
    rows.add(changes("+I a 1", "+I b 1", "-U a 1", "+U a 2"))
    assert shown(rows) == ["a 2", "b 1"]
    rows.add(changes("-D b 1", "+I c 1"))
    assert shown(rows) == ["a 2", "c 1"]
    assert rows.received == 6


def test_an_update_that_is_filtered_out_removes_the_row() -> None:
    rows = CurrentRows(100)
    rows.add(changes("+I a 1", "+I b 1", "-U a 1"))
    assert shown(rows) == ["b 1"]
    rows.add(changes("+I c 1"))
    assert shown(rows) == ["b 1", "c 1"]


def test_equal_rows_are_removed_one_at_a_time() -> None:
    rows = CurrentRows(100)
    rows.add(changes("+I a", "+I a", "-D a", "-D x"))
    assert shown(rows) == ["a"]


def test_the_oldest_rows_are_dropped() -> None:
    for kind in (CurrentRows, ChangelogRows):
        rows = kind(2)
        rows.add(changes("+I a", "+I b", "+I c"))
        assert shown(rows) == ["b", "c"]
    assert len(rows) == 2
    table = CurrentRows(1)
    table.add(changes("+I a", "-U a", "+U b", "+I c", "-D b"))
    assert shown(table) == ["c"]


def test_random_changes_leave_the_rows_that_were_not_removed() -> None:
    random.seed(7)
    rows, expected = CurrentRows(10_000), []
    for _ in range(3_000):
        if expected and random.random() < 0.45:
            gone = expected.pop(random.randrange(len(expected)))
            if random.random() < 0.5:
                rows.add(changes(f"-D {gone}"))
                continue
            rows.add(changes(f"-U {gone}", f"+U {gone}x"))
            expected.append(f"{gone}x")
        else:
            expected.append(str(random.randrange(20)))
            rows.add(changes(f"+I {expected[-1]}"))
    assert sorted(shown(rows)) == sorted(expected)
    assert len(rows) == len(expected)

"""The table that a notebook shows: the rows a changelog leads to, or its last changes."""

from __future__ import annotations

from headrace.common.types import Row, RowKind
from headrace.notebook.changing_table import ChangingTable
from headrace.types import logical as t


def _row(kind: RowKind, *values: object) -> Row:
    row = Row(*values)
    row.set_row_kind(kind)
    return row


def _table(**settings: bool) -> ChangingTable:
    return ChangingTable(["name", "n"], [t.VarCharType(), t.BigIntType()], limit=2, **settings)


def test_an_update_replaces_the_row_it_retracts() -> None:
    table = _table()
    table.apply(_row(RowKind.INSERT, "ann", 1))
    table.apply(_row(RowKind.INSERT, "bob", 1))
    table.apply(_row(RowKind.UPDATE_BEFORE, "ann", 1))
    table.apply(_row(RowKind.UPDATE_AFTER, "ann", 2))
    assert sorted(table.rows) == [("ann", 2), ("bob", 1)]
    assert table.changes == 4


def test_equal_rows_are_counted() -> None:
    table = _table()
    for kind in (RowKind.INSERT, RowKind.INSERT, RowKind.DELETE):
        table.apply(_row(kind, "ann", 1))
    assert table.rows == [("ann", 1)]
    table.apply(_row(RowKind.DELETE, "ann", 1))
    assert table.rows == []


def test_rows_with_values_that_have_no_hash_are_retracted() -> None:
    table = ChangingTable(["all"], [t.ArrayType(t.BigIntType())], limit=2)
    table.apply(_row(RowKind.INSERT, [1, 2]))
    table.apply(_row(RowKind.DELETE, [1, 2]))
    assert table.rows == []


def test_a_changelog_keeps_the_last_changes() -> None:
    table = _table(is_changelog=True)
    table.apply(_row(RowKind.INSERT, "ann", 1))
    table.apply(_row(RowKind.UPDATE_BEFORE, "ann", 1))
    table.apply(_row(RowKind.UPDATE_AFTER, "ann", 2))
    assert table.rows == [("-U", "ann", 1), ("+U", "ann", 2)]
    assert table.to_text("running") == "3 changes, 2 shown; running"


def test_html_escapes_what_rows_contain_and_says_how_many_there_are() -> None:
    table = _table()
    for name in ("<b>", "bob", "cid"):
        table.apply(_row(RowKind.INSERT, name, None))
    text = table.to_html("finished")
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "&lt;NULL&gt;" in text
    assert "cid" not in text
    assert "3 rows, 2 shown; finished" in text


def test_values_of_a_stream_are_one_column() -> None:
    table = ChangingTable(["value"], None, limit=5)
    table.apply(("ann", 1))
    assert table.rows == [(("ann", 1),)]

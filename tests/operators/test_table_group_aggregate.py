"""GROUP BY: Flink's changes in mini-batch form, and the same table whatever the epochs and hosts."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.declarations import AggSpec, GroupAggregateDeclaration
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness, materialized

USER = StepColumn("user", "STRING", pa.string())
AMOUNT = StepColumn("amount", "BIGINT", pa.int64())
TAG = StepColumn("tag", "STRING", pa.string())
INPUT = (USER, AMOUNT, TAG)


def result(name: str, kind: pa.DataType | None = None) -> StepColumn:
    return StepColumn(name, "BIGINT", kind or pa.int64())


def aggregate(*calls: AggSpec, **node: Any) -> GroupAggregateDeclaration:
    output = (USER, *(call.result for call in calls))
    return GroupAggregateDeclaration(output, keys=("user",), calls=calls, **node)


COUNT = AggSpec("COUNT", (), result("n"))
SUM = AggSpec("SUM", ("amount",), result("s"))


def harness(
    declaration: GroupAggregateDeclaration, directory: Path, *, retracts: bool = True, **how: Any
) -> Harness:
    return Harness(declaration, [INPUT], [retracts], directory, **how)


def rows(*changes: tuple[Any, ...]) -> list[Change]:
    return [(mark, user, amount, tag) for mark, user, amount, tag in ((*each, "t")[:4] for each in changes)]


def test_a_new_key_is_inserted_a_changed_one_updated_and_an_emptied_one_deleted(tmp_path: Path):
    job = harness(aggregate(COUNT, SUM), tmp_path)
    assert job.run(rows(("+I", "ann", 1), ("+I", "ann", 2))) == [("+I", "ann", 2, 3)]
    assert job.run(rows(("+I", "ann", 4))) == [("-U", "ann", 2, 3), ("+U", "ann", 3, 7)]
    assert job.run(rows(("-D", "ann", 1), ("-D", "ann", 2))) == [("-U", "ann", 3, 7), ("+U", "ann", 1, 4)]
    assert job.run(rows(("-D", "ann", 4))) == [("-D", "ann", 1, 4)]
    assert job.state_rows == 0
    assert job.run(rows(("+I", "ann", 5))) == [("+I", "ann", 1, 5)]


def test_an_equal_result_is_not_emitted_again(tmp_path: Path):
    job = harness(aggregate(SUM), tmp_path)
    job.run(rows(("+I", "ann", 3)))
    assert job.run(rows(("+I", "ann", 0))) == []
    assert job.run(rows(("-U", "ann", 3), ("+U", "ann", 3))) == []


def test_with_a_time_to_live_an_equal_result_is_emitted_again(tmp_path: Path):
    job = harness(aggregate(SUM, ttl_ms=100), tmp_path)
    job.run(rows(("+I", "ann", 3)), now_ms=1_000)
    assert job.run(rows(("+I", "ann", 0)), now_ms=1_050) == [("-U", "ann", 3), ("+U", "ann", 3)]


def test_after_its_time_to_live_a_key_is_new(tmp_path: Path):
    job = harness(aggregate(SUM, ttl_ms=100), tmp_path)
    job.run(rows(("+I", "ann", 3)), now_ms=1_000)
    assert job.run(rows(("+I", "ann", 4)), now_ms=1_099) == [("-U", "ann", 3), ("+U", "ann", 7)]
    assert job.run(rows(("+I", "ann", 1)), now_ms=1_199) == [("+I", "ann", 1)]
    job.run([], now_ms=2_000)
    assert job.state_rows == 0


def test_values_end_with_their_time_to_live_too(tmp_path: Path):
    distinct = AggSpec("COUNT", ("amount",), result("d"), distinct=True)
    job = harness(aggregate(distinct, ttl_ms=100), tmp_path)
    job.run(rows(("+I", "ann", 3), ("+I", "bob", 3)), now_ms=1_000)
    job.run(rows(("+I", "ann", 4)), now_ms=1_050)
    # As in Flink each value has a time of its own: one that has ended is new to a key that has not.
    assert job.run(rows(("+I", "ann", 3)), now_ms=1_100) == [("-U", "ann", 2), ("+U", "ann", 3)]
    assert job.state_rows == 3  # ann with both values
    job.run([], now_ms=2_000)
    assert job.state_rows == 0


def test_a_value_that_has_ended_is_not_the_lowest_of_those_that_are_left(tmp_path: Path):
    least = AggSpec("MIN", ("amount",), result("l"))
    job = harness(aggregate(least, ttl_ms=100), tmp_path)
    job.run(rows(("+I", "ann", 2)), now_ms=1_000)
    job.run(rows(("+I", "ann", 1), ("+I", "ann", 5)), now_ms=1_060)
    assert job.run(rows(("-D", "ann", 1)), now_ms=1_100) == [("-U", "ann", 1), ("+U", "ann", 5)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 2), st.integers(0, 120)), max_size=10),
    st.booleans(),
)
def test_a_key_lives_as_long_as_it_is_written(history: list[tuple[str, int, int]], forgets: bool):
    """A row at a time, against a model: the sum of a key, and when it was last written."""
    with tempfile.TemporaryDirectory() as directory:
        job = harness(aggregate(SUM, ttl_ms=100), Path(directory), forgets=forgets, retracts=False)
        kept: dict[str, tuple[int, int]] = {}
        now = 1_000
        for user, amount, later in history:
            now += later
            before, written = kept.get(user, (0, -1))
            is_alive = user in kept and now < written + 100
            total = before + amount if is_alive else amount
            kept[user] = (total, now)
            expected = [("-U", user, before), ("+U", user, total)] if is_alive else [("+I", user, total)]
            assert job.run(rows(("+I", user, amount)), now_ms=now) == expected


def test_without_update_before_only_the_new_row_comes(tmp_path: Path):
    job = harness(aggregate(COUNT, emits_update_before=False), tmp_path)
    job.run(rows(("+I", "ann", 1)))
    assert job.run(rows(("+I", "ann", 1))) == [("+U", "ann", 2)]


def test_retractions_of_a_missing_key_are_ignored(tmp_path: Path):
    job = harness(aggregate(COUNT, SUM), tmp_path)
    assert job.run(rows(("-D", "ann", 1))) == []
    assert job.run(rows(("+I", "ann", 2))) == [("+I", "ann", 1, 2)]


def test_nulls_are_a_key_and_count_for_nothing_else(tmp_path: Path):
    count_amount = AggSpec("COUNT", ("amount",), result("c"))
    job = harness(aggregate(COUNT, count_amount, SUM), tmp_path)
    assert job.run(rows(("+I", None, None), ("+I", None, None))) == [("+I", None, 2, 0, None)]
    assert job.run(rows(("+I", None, 7))) == [("-U", None, 2, 0, None), ("+U", None, 3, 1, 7)]
    assert job.run(rows(("-D", None, 7))) == [("-U", None, 3, 1, 7), ("+U", None, 2, 0, None)]


def test_an_average_of_whole_numbers_is_cut_off_towards_zero(tmp_path: Path):
    average = AggSpec("AVG", ("amount",), result("a"))
    job = harness(aggregate(average), tmp_path, retracts=False)
    changes = rows(("+I", "ann", 1), ("+I", "ann", 2), ("+I", "bob", -1), ("+I", "bob", -2))
    assert set(job.run(changes)) == {("+I", "ann", 1), ("+I", "bob", -1)}


def test_a_filter_is_per_call(tmp_path: Path):
    keep = StepColumn("keep", "BOOLEAN", pa.bool_())
    declaration = aggregate(COUNT, AggSpec("COUNT", (), result("k"), filter="keep"))
    job = Harness(declaration, [(*INPUT, keep)], [True], tmp_path)
    changes = [("+I", "ann", 1, "t", True), ("+I", "ann", 1, "t", False), ("+I", "ann", 1, "t", None)]
    assert job.run(changes) == [("+I", "ann", 3, 1)]


def test_the_next_lowest_value_is_emitted_after_a_retraction(tmp_path: Path):
    low, high = AggSpec("MIN", ("tag",), result("l", pa.string())), AggSpec("MAX", ("amount",), result("h"))
    job = harness(aggregate(low, high), tmp_path)
    assert job.run(rows(("+I", "ann", 1, "b"), ("+I", "ann", 5, "a"))) == [("+I", "ann", "a", 5)]
    assert job.run(rows(("-D", "ann", 5, "a"))) == [("-U", "ann", "a", 5), ("+U", "ann", "b", 1)]
    assert job.run(rows(("+I", "ann", 9, "c"), ("-D", "ann", 1, "b"))) == [
        ("-U", "ann", "b", 1),
        ("+U", "ann", "c", 9),
    ]


def of_tags(function: str, kind: pa.DataType, **call: Any) -> AggSpec:
    return AggSpec(function, ("tag",), result(function.lower(), kind), **call)


BAG = pa.map_(pa.string(), pa.int32())
TAGS = (
    of_tags("LISTAGG", pa.string(), separator="+"),
    of_tags("COLLECT", BAG),
    of_tags("ARRAY_AGG", pa.list_(pa.string())),
    of_tags("FIRST_VALUE", pa.string()),
    of_tags("LAST_VALUE", pa.string()),
)


@pytest.mark.parametrize("retracts", [False, True])
def test_values_are_listed_in_the_order_they_came(tmp_path: Path, retracts: bool):
    job = harness(aggregate(*TAGS), tmp_path, retracts=retracts)
    assert job.run(rows(("+I", "ann", 1, "x"), ("+I", "ann", 1, None))) == [
        ("+I", "ann", "x", [("x", 1)], ["x", None], "x", "x")
    ]
    (_, after) = job.run(rows(("+I", "ann", 1, "y"), ("+I", "ann", 1, "x")))
    assert after == ("+U", "ann", "x+y+x", [("x", 2), ("y", 1)], ["x", None, "y", "x"], "x", "x")


def test_a_value_that_is_taken_back_goes_where_it_came_first(tmp_path: Path):
    job = harness(aggregate(*TAGS), tmp_path)
    job.run(rows(("+I", "ann", 1, "x"), ("+I", "ann", 1, "y"), ("+I", "ann", 1, "x")))
    (_, after) = job.run(rows(("-D", "ann", 1, "x")))
    assert after == ("+U", "ann", "y+x", [("y", 1), ("x", 1)], ["y", "x"], "y", "x")
    (_, after) = job.run(rows(("-U", "ann", 1, "y"), ("+U", "ann", 1, None)))
    assert after == ("+U", "ann", "x", [("x", 1)], ["x", None], "x", "x")
    (_, after) = job.run(rows(("-D", "ann", 1, "x")))
    assert after == ("+U", "ann", None, [], [None], None, None)


def test_distinct_values_are_listed_once(tmp_path: Path):
    calls = (
        of_tags("LISTAGG", pa.string(), distinct=True),
        of_tags("COLLECT", BAG, distinct=True),
        of_tags("ARRAY_AGG", pa.list_(pa.string()), distinct=True),
    )
    job = harness(aggregate(*calls), tmp_path)
    job.run(rows(("+I", "ann", 1, "x"), ("+I", "ann", 1, "x")))
    (_, after) = job.run(rows(("+I", "ann", 1, "y")))
    assert after == ("+U", "ann", "x,y", [("x", 1), ("y", 1)], ["x", "y"])
    assert job.run(rows(("-D", "ann", 1, "x"))) == []
    (_, after) = job.run(rows(("-D", "ann", 1, "x"), ("+I", "ann", 1, None), ("+I", "ann", 1, None)))
    assert after == ("+U", "ann", "y", [("y", 1)], ["y", None])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.booleans(), st.sampled_from(["x", "y", "z", None])), max_size=5), max_size=5
    ),
    st.booleans(),
)
def test_lists_hold_what_is_there_whatever_the_epochs(epochs: list[list[tuple[bool, Any]]], forgets: bool):
    with tempfile.TemporaryDirectory() as directory:
        job = harness(aggregate(*TAGS), Path(directory), forgets=forgets)
        there: list[Any] = []
        table: Counter[Any] = Counter()
        for epoch in epochs:
            changes = []
            for comes, tag in epoch:
                if comes or tag not in there:
                    there.append(tag)
                    changes.append(("+I", "ann", 1, tag))
                else:
                    there.remove(tag)
                    changes.append(("-D", "ann", 1, tag))
            for mark, user, *values in job.run(rows(*changes)):
                table[repr((user, values))] += 1 if mark in ("+I", "+U") else -1
        tags = [tag for tag in there if tag is not None]
        bag = [(tag, tags.count(tag)) for tag in dict.fromkeys(tags)]
        edges = (tags[0], tags[-1]) if tags else (None, None)
        expected = ("ann", ["+".join(tags) or None, bag, there, *edges])
        assert +table == (Counter([repr(expected)]) if there else Counter())


@pytest.mark.parametrize(
    ("function", "expected"),
    [("VAR_POP", 2.0), ("VAR_SAMP", 3.0), ("STDDEV_POP", 2.0**0.5), ("STDDEV_SAMP", 3.0**0.5)],
)
def test_variance_uses_the_values_that_are_left(tmp_path: Path, function: str, expected: float):
    job = harness(aggregate(AggSpec(function, ("amount",), result("v", pa.float64()))), tmp_path)
    assert len(job.run(rows(("+I", "ann", 1), ("+I", "ann", 4), ("+I", "ann", 9)))) == 1
    (_, after) = job.run(rows(("-D", "ann", 9), ("+I", "ann", 4)))
    assert after[:2] == ("+U", "ann")
    assert after[2] == pytest.approx(expected)


@pytest.mark.parametrize(("function", "expected"), [("VAR_POP", 2.25), ("STDDEV_SAMP", 4.5**0.5)])
def test_the_spread_of_distinct_values_counts_each_once(tmp_path: Path, function: str, expected: float):
    job = harness(
        aggregate(AggSpec(function, ("amount",), result("v", pa.float64()), distinct=True)), tmp_path
    )
    job.run(rows(("+I", "ann", 1), ("+I", "ann", 4), ("+I", "ann", 4), ("+I", "ann", 9)))
    (_, after) = job.run(rows(("-D", "ann", 9), ("-D", "ann", 4)))
    assert after[:2] == ("+U", "ann")
    assert after[2] == pytest.approx(expected)


def test_a_job_without_keys_has_one_row(tmp_path: Path):
    declaration = GroupAggregateDeclaration((COUNT.result,), keys=(), calls=(COUNT,))
    job = harness(declaration, tmp_path)
    assert job.run([]) == []
    assert job.run(rows(("+I", "ann", 1), ("+I", "bob", 1))) == [("+I", 2)]
    assert job.run(rows(("-D", "bob", 1))) == [("-U", 2), ("+U", 1)]


# -- against a model -------------------------------------------------------------------------------------------

CALLS = (
    COUNT,
    SUM,
    AggSpec("AVG", ("amount",), result("a")),
    AggSpec("MIN", ("amount",), result("l")),
    AggSpec("MAX", ("tag",), result("h", pa.string())),
    AggSpec("COUNT", ("tag",), result("d"), distinct=True),
    AggSpec("SUM", ("amount",), result("ds"), distinct=True),
)


def expected_row(user: Any, held: list[tuple[Any, Any]]) -> tuple[Any, ...]:
    amounts = [amount for amount, _ in held if amount is not None]
    tags = [tag for _, tag in held if tag is not None]
    average = int(abs(sum(amounts)) // len(amounts)) * (1 if sum(amounts) >= 0 else -1) if amounts else None
    return (
        user,
        len(held),
        sum(amounts) if amounts else None,
        average,
        min(amounts, default=None),
        max(tags, default=None),
        len(set(tags)),
        sum(set(amounts)) if amounts else None,
    )


@st.composite
def changelogs(draw: st.DrawFn) -> list[list[Change]]:
    """Return epochs of a changelog: every row that goes had come."""
    there: list[tuple[Any, ...]] = []
    epochs = []
    for _ in range(draw(st.integers(1, 5))):
        epoch: list[Change] = []
        for _ in range(draw(st.integers(0, 8))):
            if there and draw(st.booleans()):
                epoch.append(("-D", *there.pop(draw(st.integers(0, len(there) - 1)))))
            else:
                row = (
                    draw(st.sampled_from(["ann", "bob", None])),
                    draw(st.none() | st.integers(-5, 5)),
                    draw(st.sampled_from(["x", "y", "z", None])),
                )
                there.append(row)
                epoch.append(("+I", *row))
        epochs.append(epoch)
    return epochs


@settings(max_examples=40, deadline=None)
@given(changelogs(), st.integers(1, 3), st.booleans(), st.booleans())
def test_the_result_is_that_of_the_rows_that_are_there(
    epochs: list[list[Change]], parallelism: int, forgets: bool, moves: bool
):
    with tempfile.TemporaryDirectory() as directory:
        job = harness(aggregate(*CALLS), Path(directory), parallelism=parallelism, forgets=forgets)
        there: Counter[tuple[Any, ...]] = Counter()
        changes: list[Change] = []
        for number, epoch in enumerate(epochs):
            changes += job.run(epoch)
            for mark, *row in epoch:
                there[tuple(row)] += 1 if mark == "+I" else -1
            if moves and number == 1:
                job.rescale(parallelism + 1)
            if moves and number == 2:
                job.compact()
        by_user: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
        for (user, amount, tag), count in there.items():
            by_user[user] += [(amount, tag)] * count
        expected = Counter(expected_row(user, held) for user, held in by_user.items() if held)
        assert materialized(changes) == expected


FLAGGED = (USER, AMOUNT, StepColumn("small", "BOOLEAN", pa.bool_()), StepColumn("odd", "BOOLEAN", pa.bool_()))
#: Name -> which rows count.
FILTERS = {
    "small": lambda amount: amount < 4,
    "odd": lambda amount: amount % 2 == 1,
    None: lambda amount: True,
}


@settings(max_examples=25, deadline=None)
@given(
    epochs=st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 8), st.booleans()), max_size=8), max_size=6
    ),
    retracts=st.booleans(),
    filters=st.sampled_from([("small", "odd"), ("small", None), (None, "odd", "small"), ("odd",)]),
)
def test_calls_with_one_argument_and_several_filters_share_its_values(
    epochs: list[list[tuple[str, int, bool]]], retracts: bool, filters: tuple[str | None, ...]
):
    calls = [
        AggSpec(function, ("amount",), result(f"{function}_{each}"), distinct=True, filter=each)
        for each in filters
        for function in (("COUNT", "SUM", "MAX") if retracts else ("COUNT", "SUM"))
    ]
    there: Counter[tuple[str, int]] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        job = Harness(aggregate(*calls), [FLAGGED], [retracts], Path(directory))
        emitted = []
        for epoch in epochs:
            changes: list[Change] = []
            for user, amount, comes in epoch:
                is_there = there[user, amount] > 0
                mark = "+I" if comes or not retracts or not is_there else "-D"
                there[user, amount] += 1 if mark == "+I" else -1
                changes.append((mark, user, amount, FILTERS["small"](amount), FILTERS["odd"](amount)))
            emitted += job.run(changes)
    expected = Counter()
    for user in {name for (name, _), count in there.items() if count > 0}:
        row: list[Any] = [user]
        for call in calls:
            values = {
                a for (name, a), n in there.items() if name == user and n > 0 and FILTERS[call.filter](a)
            }
            whole = {
                "COUNT": len(values),
                "SUM": sum(values) if values else None,
                "MAX": max(values, default=None),
            }
            row.append(whole[call.function])
        expected[tuple(row)] += 1
    assert materialized(emitted) == expected


def test_of_values_without_retractions_only_new_ones_are_written(tmp_path: Path):
    distinct = AggSpec("COUNT", ("amount",), result("d"), distinct=True)
    job = harness(aggregate(distinct), tmp_path, retracts=False)
    job.run(rows(("+I", "ann", 3), ("+I", "ann", 4)))
    assert job.state_rows == 3  # ann with both values
    assert job.run(rows(("+I", "ann", 3), ("+I", "ann", 4))) == []
    assert job.changed_rows == 1  # ann, who has more rows

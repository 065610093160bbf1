"""Which rows each operator emits: the table of Flink's changelog mode inference."""

from __future__ import annotations

import pytest

from headrace.common.changelog import ALL, INSERT_ONLY, UPSERT, ChangelogMode
from headrace.common.types import RowKind
from headrace.errors import SqlValidationError
from headrace.planner.expressions import Call, InputRef, SortKey
from headrace.planner.logical import (
    Distinct,
    JoinKind,
    Limit,
    Project,
    SetKind,
    SetOperation,
    Sort,
    Union,
    Watermark,
)
from tests.unit.planner.trees import (
    TIMESTAMP,
    Modes,
    changelogs,
    count_by,
    join,
    numbered,
    plan,
    project,
    ref,
    sum_by,
    table,
    timed,
    tumble,
    where,
)


def test_a_mode_is_written_as_explain_prints_it():
    assert str(ALL) == "[I,UB,UA,D]"
    assert str(UPSERT) == "[I,UA,D]"
    assert str(ChangelogMode.of()) == "[NONE]"
    assert ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER).with_update_before().has_update_before


@pytest.mark.parametrize(
    ("query", "operator", "retract", "upsert"),
    [
        (table(), "TableSourceScan", "[I]", "[I]"),
        (where(table(), "GREATER_THAN", 1, 5), "Calc", "[I]", "[I]"),
        (count_by(table(), 0), "GroupAggregate", "[I,UB,UA]", "[I,UA]"),
        (Distinct(project(table(), 0)), "GroupAggregate", "[I,UB,UA]", "[I,UA]"),
        (join(table(), table("b")), "Join", "[I]", "[I]"),
        (join(table(), table("b"), JoinKind.LEFT), "Join", "[I,UB,UA,D]", "[I,UA,D]"),
        (join(table(), table("b"), JoinKind.SEMI), "Join", "[I]", "[I]"),
        (join(table(), table("b"), JoinKind.ANTI), "Join", "[I,UB,UA,D]", "[I,UA,D]"),
        (join(count_by(table(), 0), table("b")), "Join", "[I,UB,UA]", "[I,UA]"),
        (Union((table(), table("b"))), "Union", "[I]", "[I]"),
        (Limit(table(), 0, 3), "Limit", "[I]", "[I]"),
        (Limit(Sort(table(), (SortKey(ref(table(), 1)),)), 0, 3), "SortLimit", "[I,UB,UA,D]", "[I,UA,D]"),
        (where(numbered(table(), [0], 1), "LESS_THAN_OR_EQUAL", 3, 2), "Rank", "[I,UB,UA,D]", "[I,UA,D]"),
        (where(numbered(timed(), [0], 2), "EQUALS", 3, 1), "Deduplicate", "[I]", "[I]"),
        (
            where(numbered(timed(), [0], 2, ascending=False), "EQUALS", 3, 1),
            "Deduplicate",
            "[I,UB,UA,D]",
            "[I,UA,D]",
        ),
        (count_by(tumble(timed()), 3, 4, 0), "WindowAggregate", "[I]", "[I]"),
    ],
)
def test_what_an_operator_emits_to_a_sink_that_retracts_and_one_that_upserts(
    query, operator, retract, upsert
):
    assert changelogs(plan(query))[operator] == retract
    assert changelogs(plan(query, accepts=UPSERT))[operator] == upsert


def test_the_first_row_by_processing_time_is_final():
    proctime = Project(
        table(), (*(ref(table(), at) for at in range(2)), Call("PROCTIME", (), TIMESTAMP)), ("u", "p", "t")
    )
    first = where(numbered(proctime, [0], 2), "EQUALS", 3, 1)

    assert changelogs(plan(first))["Deduplicate"] == "[I]"


def test_an_aggregation_of_changes_deletes_groups_and_wants_the_row_before():
    upper = count_by(count_by(table(), 0), 1)
    made = plan(upper, accepts=UPSERT)

    modes = [str(made.changelogs[node]) for node in made.nodes if node.label == "GroupAggregate"]

    assert modes == ["[I,UB,UA]", "[I,UA,D]"]


def test_a_condition_on_a_result_needs_the_row_before_because_an_update_may_leave_it():
    big = where(count_by(table(), 0), "GREATER_THAN", 1, 5)

    assert changelogs(plan(big, accepts=UPSERT))["GroupAggregate"] == "[I,UB,UA]"


def test_a_shared_operator_emits_what_the_more_demanding_sink_needs():
    shared = count_by(table(), 0)
    made = plan(shared, count_by(shared, 1), accepts=UPSERT)

    aggregates = [node for node in made.nodes if node.label == "GroupAggregate"]

    assert len(aggregates) == 2
    assert str(made.changelogs[aggregates[0]]) == "[I,UB,UA]"


def test_a_table_with_keys_and_no_rows_before_is_made_a_full_changelog():
    scan = table("people", key=("user",))
    made = plan(count_by(scan, 1), sources=Modes(people=UPSERT))

    assert changelogs(made) == {
        "TableSourceScan": "[I,UA,D]",
        "ChangelogNormalize": "[I,UB,UA,D]",
        "Calc": "[I,UB,UA,D]",
        "GroupAggregate": "[I,UB,UA,D]",
        "Sink": "[NONE]",
    }


@pytest.mark.parametrize("query", [count_by(table(), 0), join(table(), table("b"), JoinKind.LEFT)])
def test_a_sink_that_only_appends_refuses_changes_and_says_who_makes_them(query):
    with pytest.raises(
        SqlValidationError, match=r"table sink 'out' does not support update.* which (Group|Join)"
    ):
        plan(query, accepts=INSERT_ONLY)


def test_an_upsert_sink_whose_key_is_not_the_querys_materializes():
    totals = sum_by(table(), 1, 0)

    assert not plan(totals, accepts=UPSERT, keys=(0,)).sinks[0].materializes
    assert plan(totals, accepts=UPSERT, keys=(1,)).sinks[0].materializes
    # When the total changes, the row of the old one has to go.
    assert plan(totals, accepts=UPSERT, keys=(0, 1)).sinks[0].materializes


def test_window_operators_refuse_rows_that_are_taken_back():
    timed = Watermark(table(), 2, InputRef(2, table().schema[2].type))
    updating = where(numbered(timed, [0], 1), "LESS_THAN_OR_EQUAL", 3, 2)
    windowed = tumble(updating, time=2)
    top = where(numbered(windowed, [4, 5], 1), "LESS_THAN_OR_EQUAL", 7, 3)

    with pytest.raises(SqlValidationError, match="WindowRank does not support update and delete changes"):
        plan(top)


def test_set_operations_are_aggregations_and_joins():
    both = SetOperation(SetKind.INTERSECT, False, table(), table("b"))

    assert list(changelogs(plan(both))) == ["TableSourceScan", "Join", "GroupAggregate", "Sink"]


@pytest.mark.parametrize("kind", [SetKind.INTERSECT, SetKind.EXCEPT])
def test_set_operations_with_all_count_rows_and_give_each_as_often(kind):
    made = plan(SetOperation(kind, True, table(), table("b")))

    assert changelogs(made)["GroupAggregate"] == "[I,UB,UA]"
    assert changelogs(made)["Correlate"] == "[I,UB,UA]"
    assert (
        plan(SetOperation(kind, True, table(), table("b")), accepts=UPSERT, keys=(0,)).sinks[0].materializes
    )

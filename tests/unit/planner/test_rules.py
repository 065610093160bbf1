"""Rules: the tree before, the tree after."""

from __future__ import annotations

import pytest

from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.planner.explain import explain_logical
from headrace.planner.expressions import AggregateCall, Call, InputRef, Literal, SortKey
from headrace.planner.logical import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Sort,
    Union,
    Watermark,
    WindowTable,
)
from headrace.planner.optimize import optimize_logical
from headrace.planner.rules.merge_calcs import merge_filters, merge_projects
from headrace.planner.rules.push_filters import push_filter, push_join_condition
from headrace.planner.rules.set_operations import replace_distinct
from headrace.planner.windows import WindowFunctionSpec, WindowKind
from headrace.types import DataTypes
from tests.unit.planner.trees import (
    BIGINT,
    BOOLEAN,
    both,
    compare,
    count_by,
    join,
    lines,
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


def drawn(node) -> list[str]:
    """The tree without the word Logical and without the catalog, a node a line."""
    text = explain_logical(node).replace("Logical", "").replace("default_catalog, default_database, ", "")
    return [line.strip() for line in text.splitlines()]


def test_two_filters_become_one():
    node = where(where(table(), "GREATER_THAN", 1, 5), "EQUALS", 0, "ann")

    assert drawn(merge_filters(node)) == [
        "Filter(condition=[((price > 5) AND (user = 'ann'))])",
        "+- Scan(table=[[bids]])",
    ]


def test_two_projections_become_one():
    doubled = Project(table(), (Call("TIMES", (ref(table(), 1), Literal(2, BIGINT)), BIGINT),), ("double",))
    node = Project(doubled, (Call("PLUS", (ref(doubled, 0), Literal(1, BIGINT)), BIGINT),), ("more",))

    assert drawn(merge_projects(node)) == [
        "Project(select=[((price * 2) + 1) AS more])",
        "+- Scan(table=[[bids]])",
    ]


def test_a_projection_that_differs_from_call_to_call_stays():
    random = Project(table(), (Call("RAND", (), DataTypes.DOUBLE()),), ("r",))

    assert merge_projects(project(random, 0)) is None
    assert push_filter(where(random, "GREATER_THAN", 0, 1)) is None


def test_a_filter_goes_below_a_projection():
    node = where(project(table(), 1), "GREATER_THAN", 0, 5)

    assert drawn(push_filter(node)) == [
        "Project(select=[price])",
        "+- Filter(condition=[(price > 5)])",
        "+- Scan(table=[[bids]])",
    ]


def test_a_filter_goes_into_every_branch_of_a_union():
    node = where(Union((table(), table("b"))), "EQUALS", 0, "ann")

    assert drawn(push_filter(node)) == [
        "Union()",
        ":- Filter(condition=[(user = 'ann')])",
        ":  +- Scan(table=[[bids]])",
        "+- Filter(condition=[(user = 'ann')])",
        "+- Scan(table=[[b]])",
    ]


def test_a_filter_on_keys_goes_below_the_aggregation_and_one_on_results_stays():
    grouped = count_by(table(), 0)
    node = Filter(
        grouped,
        both(compare("EQUALS", ref(grouped, 0), "ann"), compare("GREATER_THAN", ref(grouped, 1), 5)),
    )

    assert drawn(push_filter(node)) == [
        "Filter(condition=[(n > 5)])",
        "+- Aggregate(groupBy=[user], select=[user, COUNT(*) AS n])",
        "+- Filter(condition=[(user = 'ann')])",
        "+- Scan(table=[[bids]])",
    ]


def test_a_filter_never_passes_a_watermark():
    node = where(timed(), "EQUALS", 0, "ann")

    assert isinstance(node.input, Watermark)
    assert push_filter(node) is None


@pytest.mark.parametrize(
    ("kind", "left", "right", "stays"),
    [
        (JoinKind.INNER, True, True, False),
        (JoinKind.LEFT, True, False, True),
        (JoinKind.RIGHT, False, True, True),
        (JoinKind.FULL, False, False, True),
    ],
)
def test_a_filter_over_a_join_goes_to_the_side_that_cannot_come_empty(kind, left, right, stays):
    joined = join(table(), table("b"), kind)
    node = Filter(
        joined, both(compare("EQUALS", ref(joined, 0), "l"), compare("EQUALS", ref(joined, 3), "r"))
    )

    after = push_filter(node) or node

    below = after.input if isinstance(after, Filter) else after
    assert isinstance(after, Filter) == stays
    assert isinstance(below, Join)
    assert isinstance(below.left, Filter) == left
    assert isinstance(below.right, Filter) == right


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (JoinKind.INNER, True, True),
        (JoinKind.LEFT, False, True),
        (JoinKind.RIGHT, True, False),
        (JoinKind.FULL, False, False),
        (JoinKind.SEMI, True, True),
        (JoinKind.ANTI, False, True),
    ],
)
def test_join_conditions_on_one_side_are_pushed_to_it_if_rows_may_be_dropped(kind, left, right):
    one, other = table(), table("b")
    condition = both(
        compare("EQUALS", ref(one, 0), InputRef(3, other.schema[0].type)),
        compare("GREATER_THAN", ref(one, 1), 1),
        compare("GREATER_THAN", InputRef(4, BIGINT), 2),
    )

    after = push_join_condition(Join(one, other, kind, condition)) or Join(one, other, kind, condition)

    assert isinstance(after.left, Filter) == left
    assert isinstance(after.right, Filter) == right


def test_distinct_groups_by_every_column():
    assert drawn(replace_distinct(Distinct(project(table(), 0, 1)))) == [
        "Aggregate(groupBy=[user, price], select=[user, price])",
        "+- Project(select=[user, price])",
        "+- Scan(table=[[bids]])",
    ]


def test_unused_columns_do_not_reach_a_join():
    node = project(join(table(), table("b")), 1)

    assert drawn(optimize_logical(node)) == [
        "Project(select=[price])",
        "+- Join(condition=[(user = user)], joinType=[inner])",
        ":- Project(select=[user, price])",
        ":  +- Scan(table=[[bids]])",
        "+- Project(select=[user])",
        "+- Scan(table=[[b]])",
    ]


def test_unused_results_are_not_aggregated():
    calls = (
        AggregateCall("COUNT", (), DataTypes.BIGINT(False)),
        AggregateCall("MAX", (ref(table(), 2),), table().schema[2].type),
    )
    node = project(Aggregate(table(), (0,), calls, ("user", "n", "last")), 1, 0)

    assert drawn(optimize_logical(node)) == [
        "Project(select=[n, user])",
        "+- Aggregate(groupBy=[user], select=[user, COUNT(*) AS n])",
        "+- Project(select=[user])",
        "+- Scan(table=[[bids]])",
    ]


def test_a_row_number_with_a_limit_is_a_rank_and_an_unused_number_is_left_out():
    top = where(numbered(table(), [0], 1, ascending=False), "LESS_THAN", 3, 4)

    with_number, without = plan(top), plan(project(top, 0, 1))

    assert "rankRange=[rankStart=1, rankEnd=3]" in lines(with_number)[1]
    assert "select=[user, price, ts, rn]" in lines(with_number)[1]
    assert "select=[user, price]" in lines(without)[1]


def test_a_row_number_between_two_numbers_is_a_rank_with_a_start():
    over = numbered(table(), [0], 1)
    node = Filter(
        over,
        both(compare("GREATER_THAN", ref(over, 3), 2), compare("LESS_THAN_OR_EQUAL", ref(over, 3), 5)),
    )

    assert "rankStart=3, rankEnd=5" in lines(plan(node))[1]


def test_a_row_number_without_an_end_is_refused():
    with pytest.raises(SqlValidationError, match="which rows to keep"):
        plan(where(numbered(table(), [0], 1), "GREATER_THAN", 3, 2))


def test_a_row_number_without_a_limit_numbers_all_rows():
    assert "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" in lines(plan(numbered(table(), [0], 1)))[1]


def test_the_first_row_by_time_is_a_deduplication():
    first = where(numbered(timed(), [0], 2), "EQUALS", 3, 1)

    assert lines(plan(project(first, 0, 2)))[1] == "Deduplicate(keep=[FirstRow], key=[user], order=[ROWTIME])"


def test_a_row_number_within_windows_is_a_window_rank():
    windowed = tumble(timed())
    top = where(numbered(windowed, [3, 4, 0], 1), "LESS_THAN_OR_EQUAL", 6, 3)

    assert "WindowRank(window=[window_start, window_end]" in " ".join(lines(plan(top)))


def test_a_window_aggregation_takes_rows_before_they_are_put_into_windows():
    windowed = where(tumble(timed()), "GREATER_THAN", 1, 5)

    made = lines(plan(count_by(windowed, 3, 4, 0)))

    assert made[1] == "Calc(select=[window_start, window_end, user, n])"
    assert made[2] == (
        "WindowAggregate(groupBy=[user], window=[TUMBLE(time_col=$time, size=10 s)], "
        "select=[user, COUNT(*) AS n], properties=[window_start, window_end])"
    )
    assert made[3] == "Calc(select=[user, ts AS $time], where=[(price > 5)])"


def test_sessions_are_kept_apart_by_what_rows_are_grouped_by():
    def sessions(*partition: int) -> WindowTable:
        return WindowTable(timed(), WindowFunctionSpec(WindowKind.SESSION, 5_000, 5_000), 2, partition)

    made = lines(plan(count_by(sessions(0), 3, 4, 0)))

    assert made[2].startswith("WindowAggregate(groupBy=[user], window=[SESSION(time_col=$time, gap=5 s)]")
    # Otherwise rows get their sessions first: as groups, or without some rows, they would be other ones.
    for rows in (sessions(), where(sessions(0), "GREATER_THAN", 1, 5)):
        made = " ".join(lines(plan(count_by(rows, 3, 4, 0))))
        assert "window=[SESSION(time_col=attached, gap=5 s)]" in made
        assert "WindowTableFunction(window=[SESSION(time_col=ts, gap=5 s)]" in made
    # Whole partitions may be left out before.
    assert "where=[(user = 'ann')]" in " ".join(
        lines(plan(count_by(where(sessions(0), "EQUALS", 0, "ann"), 3, 4, 0)))
    )


def test_a_window_aggregation_of_a_window_aggregation_is_over_attached_windows():
    first = count_by(tumble(timed()), 3, 4, 0)
    second = sum_by(first, 3, 0, 1)

    assert "time_col=attached" in " ".join(lines(plan(second)))


def test_a_join_on_both_ends_of_windows_is_a_window_join():
    one, other = tumble(timed()), tumble(timed("b"))

    same_window = join(one, other, on=[(3, 3), (4, 4), (0, 0)])

    assert any(
        line.startswith("WindowJoin(leftWindow=[window_start, window_end]")
        for line in lines(plan(same_window))
    )
    assert any(line.startswith("Join(") for line in lines(plan(join(one, other))))


def test_a_join_of_different_windows_is_refused():
    one, other = tumble(timed()), tumble(timed("b"), 5_000)

    with pytest.raises(UnsupportedFeatureError, match="both sides need the same windows"):
        plan(join(one, other, on=[(3, 3), (4, 4)]))


def test_a_computed_join_key_becomes_a_column_and_goes_again():
    one, other = table(), table("b")
    doubled = Call("TIMES", (ref(one, 1), Literal(2, BIGINT)), BIGINT)
    condition = both(
        compare("EQUALS", doubled, InputRef(4, BIGINT)),
        compare("LESS_THAN", ref(one, 1), InputRef(4, BIGINT)),
    )

    made = lines(plan(project(Join(one, other, JoinKind.INNER, condition), 0, 4)))

    assert "where=[$k0 = price AND (price < price)]" in " ".join(made)
    assert made[1] == "Calc(select=[user, price])"


def test_grouping_sets_are_one_aggregation_with_the_set_as_a_key():
    grouping = AggregateCall("GROUPING", (ref(table(), 0),), BIGINT)
    node = Aggregate(
        table(),
        (0, 1),
        (AggregateCall("COUNT", (), DataTypes.BIGINT(False)), grouping),
        ("user", "price", "n", "g"),
        ((0, 1), (0,), ()),
    )

    made = " ".join(lines(plan(node)))

    assert "Expand(sets=[{user, price}, {user}, {}])" in made
    assert "CASE(($e = 0), 0, ($e = 1), 0, ($e = 2), 1, 0) AS g" in made


def test_grouping_sets_over_windows_are_one_window_aggregation():
    windowed = tumble(timed())
    node = Aggregate(
        windowed,
        (3, 4, 0),
        (AggregateCall("COUNT", (), DataTypes.BIGINT(False)),),
        ("window_start", "window_end", "user", "n"),
        ((3, 4, 0), (3, 4)),
    )

    made = lines(plan(node))

    assert made[1] == "Calc(select=[window_start, window_end, $g0 AS user, $a0 AS n])"
    assert "WindowAggregate(groupBy=[$g0, $e], window=[TUMBLE(time_col=attached, size=10 s)]" in made[2]
    assert made[3] == "Expand(sets=[{user}, {}])"


def test_order_by_without_limit_is_refused():
    with pytest.raises(SqlValidationError, match="ORDER BY without LIMIT is not possible"):
        plan(Sort(table(), (SortKey(ref(table(), 1)),)))


def test_limit_keeps_the_order_below_a_projection():
    node = Limit(project(Sort(table(), (SortKey(ref(table(), 1), False, False),)), 0), 2, 3)

    assert lines(plan(node))[2].startswith("SortLimit(orderBy=[price DESC], offset=[2], fetch=[3]")


def test_equal_sub_plans_of_two_sinks_run_once():
    made = plan(count_by(table(), 0), project(count_by(table(), 0), 1))

    assert [node.label for node in made.nodes].count("GroupAggregate") == 1


def test_the_boolean_type_of_a_condition_is_kept():
    assert where(table(), "EQUALS", 1, 1).condition.type == BOOLEAN

"""The logical tree's schemas, and where time attributes and windows go in it."""

from __future__ import annotations

from headrace.catalog import CatalogTable, ObjectIdentifier, PhysicalColumn
from headrace.planner.expressions import (
    TRUE,
    AggregateCall,
    Call,
    InputRef,
    conjunction,
    conjuncts,
    references,
    shift,
    substitute,
)
from headrace.planner.logical import (
    Aggregate,
    Field,
    Join,
    JoinKind,
    Project,
    Scan,
    TimeKind,
    Watermark,
    WindowTable,
    window_columns,
)
from headrace.planner.windows import WindowFunctionSpec, WindowKind
from headrace.types import DataTypes as T

BIDS = Scan(
    CatalogTable(
        (
            PhysicalColumn("auction", T.BIGINT(False)),
            PhysicalColumn("price", T.BIGINT()),
            PhysicalColumn("ts", T.TIMESTAMP(3)),
        )
    ),
    ObjectIdentifier("c", "d", "bids"),
)
TIMED = Watermark(BIDS, 2, InputRef(2, T.TIMESTAMP(3)))
TUMBLE = WindowTable(TIMED, WindowFunctionSpec(WindowKind.TUMBLE, 10_000, 10_000), 2)
COUNT = AggregateCall("COUNT", (), T.BIGINT(False))


def test_a_watermark_makes_a_time_attribute_and_a_window_moves_it_to_window_time() -> None:
    assert TIMED.schema[2] == Field("ts", T.TIMESTAMP(3), TimeKind.ROWTIME)
    assert TUMBLE.schema[2:] == (
        Field("ts", T.TIMESTAMP(3)),
        Field("window_start", T.TIMESTAMP(3, False)),
        Field("window_end", T.TIMESTAMP(3, False)),
        Field("window_time", T.TIMESTAMP(3, False), TimeKind.ROWTIME),
    )


def test_a_projection_keeps_a_time_attribute_only_as_a_plain_column() -> None:
    ts = InputRef(2, T.TIMESTAMP(3))
    cast = Call("CAST", (ts,), T.TIMESTAMP(3))
    proctime = Call("PROCTIME", (), T.TIMESTAMP_LTZ(3, False))
    schema = Project(TIMED, (ts, cast, proctime), ("a", "b", "c")).schema
    assert [one.time for one in schema] == [TimeKind.ROWTIME, None, TimeKind.PROCTIME]


def test_only_an_aggregation_by_window_start_and_end_keeps_window_time() -> None:
    whole = Aggregate(TUMBLE, (3, 4, 5), (COUNT,), ("s", "e", "t", "n"))
    assert whole.schema[2].time is TimeKind.ROWTIME
    half = Aggregate(TUMBLE, (3, 5), (COUNT,), ("s", "t", "n"))
    assert half.schema[1].time is None


def test_windows_are_followed_through_projections_and_aggregations() -> None:
    aggregate = Aggregate(TUMBLE, (0, 3, 4), (COUNT,), ("auction", "s", "e", "n"))
    end, start = InputRef(2, T.TIMESTAMP(3, False)), InputRef(1, T.TIMESTAMP(3, False))
    found = window_columns(Project(aggregate, (end, start, end), ("e", "s", "e2")))
    assert found is not None
    assert (found.start, found.end, found.time) == ({1}, {0, 2}, set())
    assert window_columns(Project(aggregate, (end,), ("e",))) is None


def test_a_key_that_some_grouping_set_leaves_out_is_nullable() -> None:
    sets = Aggregate(BIDS, (0, 1), (COUNT,), ("a", "p", "n"), grouping_sets=((0, 1), (1,)))
    assert [one.type for one in sets.schema] == [T.BIGINT(), T.BIGINT(), T.BIGINT(False)]


def test_the_side_that_may_be_missing_is_nullable_in_a_join() -> None:
    left = Join(BIDS, BIDS, JoinKind.LEFT, TRUE)
    assert [left.schema[0].type, left.schema[3].type] == [T.BIGINT(False), T.BIGINT()]
    assert Join(BIDS, BIDS, JoinKind.SEMI, TRUE).schema == BIDS.schema


def test_conditions_are_taken_apart_and_put_together() -> None:
    one, other = InputRef(0, T.BOOLEAN()), InputRef(1, T.BOOLEAN(False))
    both = conjunction([one, other])
    assert both.type == T.BOOLEAN()
    assert conjuncts(both) == [one, other]
    assert references(both) == {0, 1}
    assert references(shift(both, 2)) == {2, 3}
    assert substitute(both, {0: other}) == Call("AND", (other, other), T.BOOLEAN())

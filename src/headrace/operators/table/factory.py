"""From the declaration of a stateful node to the operator that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.associations import JoinAssociationsOperator
from headrace.operators.table.base import TableOperator
from headrace.operators.table.declarations import (
    ChangelogNormalizeDeclaration,
    DeduplicateDeclaration,
    EpochSortDeclaration,
    GroupAggregateDeclaration,
    JoinAssociationsDeclaration,
    JoinDeclaration,
    Order,
    RankDeclaration,
    RowWindowsDeclaration,
    StatefulNode,
    WindowAggregateDeclaration,
    WindowJoinDeclaration,
    WindowKind,
)
from headrace.operators.table.epoch_sort import EpochSortOperator
from headrace.operators.table.first_by_time import FirstByTimeOperator
from headrace.operators.table.first_rows import FirstRowsOperator
from headrace.operators.table.group_aggregate import GroupAggregateOperator
from headrace.operators.table.interval_join import IntervalAssociationsOperator, IntervalJoinOperator
from headrace.operators.table.join import JoinOperator
from headrace.operators.table.latest import LatestRowOperator
from headrace.operators.table.match_declarations import MatchRecognizeDeclaration
from headrace.operators.table.match_recognize import MatchRecognizeOperator
from headrace.operators.table.over import OverOperator
from headrace.operators.table.over_sorted import SortedOverOperator
from headrace.operators.table.process import ProcessTableOperator
from headrace.operators.table.process_declarations import ProcessTableDeclaration
from headrace.operators.table.rank import Ranking, RankOperator, tells_places
from headrace.operators.table.row_by_row import RowByRowOperator, emits_every_change, without_event
from headrace.operators.table.row_windows import RowWindowsOperator
from headrace.operators.table.session_aggregate import SessionAggregateOperator
from headrace.operators.table.session_rows import SessionRowsOperator
from headrace.operators.table.sink_conflicts import SinkConflictOperator
from headrace.operators.table.sink_declarations import (
    SinkConflictDeclaration,
    SinkUpsertMaterializeDeclaration,
)
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import Schema
from headrace.operators.table.temporal_join import TemporalJoinOperator
from headrace.operators.table.timed_declarations import (
    OverAggregateDeclaration,
    SessionRowsDeclaration,
    TableIntervalJoinDeclaration,
    TemporalJoinDeclaration,
)
from headrace.operators.table.window_aggregate import WindowAggregateOperator
from headrace.operators.table.window_rows import (
    WindowAssociationsOperator,
    WindowJoinOperator,
    WindowRankOperator,
)

_Schemas = Sequence[Schema]


def build_operator(
    declaration: StatefulNode, schemas: Sequence[Schema], retracts: Sequence[bool]
) -> TableOperator:
    """Make the operator of a node.

    Args:
        declaration: What it is.
        schemas: The columns of each input.
        retracts: For each input whether its rows may be retracted.

    Raises:
        UnsupportedFeatureError: There is no operator for it yet.
    """
    if emits_every_change(declaration):
        by_epoch = replace(declaration, output=without_event(declaration.output), row_by_row=False)
        operator = build_operator(by_epoch, [without_event(schema) for schema in schemas], retracts)
        return RowByRowOperator(operator, declaration)
    declaration = replace(declaration, output=as_spark_gives(declaration.output))
    if isinstance(declaration, GroupAggregateDeclaration | WindowAggregateDeclaration):
        results = as_spark_gives([call.result for call in declaration.calls])
        calls = zip(declaration.calls, results, strict=True)
        declaration = replace(
            declaration, calls=tuple(replace(call, result=result) for call, result in calls)
        )
    if isinstance(declaration, OverAggregateDeclaration):
        results = as_spark_gives([over.call.result for over in declaration.calls])
        overs = zip(declaration.calls, results, strict=True)
        made = tuple(replace(over, call=replace(over.call, result=result)) for over, result in overs)
        declaration = replace(declaration, calls=made)
    inputs = [as_spark_gives(schema) for schema in schemas]
    for kind, build in _BUILDERS.items():
        if isinstance(declaration, kind):
            return build(declaration, inputs, retracts)
    raise UnsupportedFeatureError.not_yet(
        f"{declaration.node_kind} in a streaming query", "run the query in BATCH mode"
    )


def _window_aggregate(
    declaration: WindowAggregateDeclaration, inputs: _Schemas, retracts: Sequence[bool]
) -> TableOperator:
    if declaration.window is not None and declaration.window.kind is WindowKind.SESSION:
        return SessionAggregateOperator(declaration, inputs[0], retracts=retracts[0])
    return WindowAggregateOperator(declaration, inputs[0], retracts=retracts[0])


def _associations(
    declaration: JoinAssociationsDeclaration, inputs: _Schemas, retracts: Sequence[bool]
) -> TableOperator:
    if declaration.interval_ms is not None:
        return IntervalAssociationsOperator(declaration)
    if declaration.goes_by_watermark:
        return WindowAssociationsOperator(declaration, inputs, retracts=any(retracts))
    return JoinAssociationsOperator(declaration)


def _rank(declaration: RankDeclaration, inputs: _Schemas, retracts: Sequence[bool]) -> TableOperator:
    if declaration.window_end is not None:
        return WindowRankOperator(declaration, inputs[0], retracts=retracts[0])
    if not retracts[0] and declaration.last is not None and not declaration.ttl_ms:
        return FirstRowsOperator(declaration, inputs[0], by_place=tells_places(declaration))
    return RankOperator.of_rank(declaration, inputs[0], retracts=retracts[0])


def _over(declaration: OverAggregateDeclaration, inputs: _Schemas, retracts: Sequence[bool]) -> TableOperator:
    if declaration.order is not None:
        return SortedOverOperator(declaration, inputs[0], retracts=retracts[0])
    return OverOperator(declaration, inputs[0], retracts=retracts[0])


def _deduplicate(
    declaration: DeduplicateDeclaration, inputs: _Schemas, retracts: Sequence[bool]
) -> TableOperator:
    if declaration.window_end is not None:
        return WindowRankOperator(declaration, inputs[0], retracts=retracts[0])
    if declaration.waits:
        return FirstByTimeOperator(declaration, inputs[0])
    if not retracts[0]:
        return LatestRowOperator(
            declaration, inputs[0], declaration.keys, time=declaration.time, keep_last=declaration.keep_last
        )
    # Rows that may be taken back: all are kept, and the next one takes the place of one that goes.
    order = (Order(declaration.time, ascending=not declaration.keep_last),) if declaration.time else ()
    ranking = Ranking(order, last=1, newest_first=declaration.keep_last)
    return RankOperator(declaration, inputs[0], declaration.keys, ranking, retracts=True, by_place=True)


#: How the operator of each node is made, of its declaration, the columns of its inputs, and whether these retract.
_BUILDERS: dict[type[StatefulNode], Callable[[Any, _Schemas, Sequence[bool]], TableOperator]] = {
    GroupAggregateDeclaration: lambda node, inputs, retracts: GroupAggregateOperator(
        node, inputs[0], retracts=retracts[0]
    ),
    WindowAggregateDeclaration: _window_aggregate,
    JoinDeclaration: JoinOperator,
    JoinAssociationsDeclaration: _associations,
    WindowJoinDeclaration: lambda node, inputs, retracts: WindowJoinOperator(
        node, *inputs, retracts=any(retracts)
    ),
    TableIntervalJoinDeclaration: lambda node, inputs, retracts: IntervalJoinOperator(
        node, *inputs, retracts=any(retracts)
    ),
    TemporalJoinDeclaration: TemporalJoinOperator,
    ProcessTableDeclaration: lambda node, inputs, retracts: ProcessTableOperator(
        node, inputs[0], retracts=retracts[0]
    ),
    RankDeclaration: _rank,
    DeduplicateDeclaration: _deduplicate,
    OverAggregateDeclaration: _over,
    SessionRowsDeclaration: lambda node, inputs, retracts: SessionRowsOperator(node, inputs[0]),
    MatchRecognizeDeclaration: lambda node, inputs, retracts: MatchRecognizeOperator(node, inputs[0]),
    RowWindowsDeclaration: lambda node, inputs, retracts: RowWindowsOperator(
        node, inputs[0], retracts=retracts[0]
    ),
    EpochSortDeclaration: lambda node, inputs, retracts: EpochSortOperator(
        node, inputs[0], retracts=retracts[0]
    ),
    SinkUpsertMaterializeDeclaration: lambda node, inputs, retracts: RankOperator.of_sink(
        node, inputs[0], retracts=retracts[0]
    ),
    SinkConflictDeclaration: lambda node, inputs, retracts: SinkConflictOperator(
        node, inputs[0], retracts=retracts[0]
    ),
    ChangelogNormalizeDeclaration: lambda node, inputs, retracts: LatestRowOperator(
        node, inputs[0], node.keys, has_kinds=retracts[0]
    ),
}

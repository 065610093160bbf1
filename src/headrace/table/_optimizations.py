"""Options about how changes are gathered: checked together, and told by EXPLAIN where they were set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from headrace.config import Configuration
from headrace.config.option import ConfigOption
from headrace.config.options import table as options
from headrace.config.options.table import AggregationPhases
from headrace.errors import SqlValidationError
from headrace.graph.table_job import TableNode
from headrace.operators.table.declarations import (
    GroupAggregateDeclaration,
    StatefulNode,
    WindowAggregateDeclaration,
)
from headrace.operators.table.row_by_row import emits_every_change
from headrace.planner.explain import aggregate_text
from headrace.planner.physical import GroupAggregate, PhysicalNode
from headrace.planner.rules.split_distinct import BUCKET_COLUMN, NOT_SPLIT, SplitAggregation, not_split

__all__ = ["Optimizations"]


@dataclass(frozen=True)
class Optimizations:
    """What the options come to.

    Args:
        mini_batch: Whether rows of an epoch change state together; None: they do, and nobody has asked for it.
        phases: In how many phases rows are aggregated.
        is_phases_set: Whether somebody has asked for that.
        splitting: How aggregations with DISTINCT are split.
    """

    mini_batch: bool | None = None
    phases: AggregationPhases = AggregationPhases.AUTO
    is_phases_set: bool = False
    splitting: SplitAggregation = NOT_SPLIT

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """Read the options.

        Raises:
            SqlValidationError: If one of them cannot have an effect because of another.
        """
        get, contains = configuration.get, configuration.contains
        mini_batch = get(options.MINI_BATCH) if contains(options.MINI_BATCH) else None
        bounds: tuple[ConfigOption[Any], ...] = (options.MINI_BATCH_LATENCY, options.MINI_BATCH_SIZE)
        for each in bounds:
            if contains(each) and get(each) != each.default and not mini_batch:
                raise SqlValidationError(
                    f"{each.key} has no effect unless {options.MINI_BATCH.key} is true",
                    hint=f"set {options.MINI_BATCH.key} to true, or bound epochs with headrace.epoch.max-records and "
                    "headrace.epoch.target-duration",
                )
        phases = get(options.AGG_PHASE)
        if mini_batch is False and phases is AggregationPhases.TWO_PHASE:
            raise SqlValidationError(
                f"{options.AGG_PHASE.key} is TWO_PHASE, but {options.MINI_BATCH.key} is false: every row makes its own "
                "changes, so rows cannot be aggregated before they are exchanged",
                hint=f"set {options.AGG_PHASE.key} to AUTO, or {options.MINI_BATCH.key} to true",
            )
        return cls(mini_batch, phases, contains(options.AGG_PHASE), _splitting(configuration, mini_batch))

    @property
    def row_by_row(self) -> bool:
        """Whether every row makes its own changes."""
        return self.mini_batch is False

    @property
    def one_phase(self) -> bool:
        """Whether rows are exchanged before they are aggregated."""
        return self.phases is AggregationPhases.ONE_PHASE

    def applied_to(self, nodes: Sequence[TableNode], planned: Sequence[PhysicalNode] = ()) -> list[str]:
        """Return what EXPLAIN says about options that were set: a line each, with the operators they are about."""
        kept = [(node.name, node.declaration) for node in nodes if isinstance(node.declaration, StatefulNode)]
        lines = []
        if self.mini_batch is not None:
            by_row = _named(name for name, node in kept if emits_every_change(node))
            by_epoch = _named(name for name, node in kept if not node.goes_by_watermark)
            lines.append(
                f"every row makes its own changes: {by_row}"
                if self.row_by_row
                else f"mini-batch, an epoch changes each key once: {by_epoch}"
            )
        aggregates = [
            name
            for name, node in kept
            if isinstance(node, GroupAggregateDeclaration | WindowAggregateDeclaration)
        ]
        if self.is_phases_set:
            in_two = not (self.one_phase or self.row_by_row)
            how = (
                "in two phases, before and after the exchange"
                if in_two
                else "in one phase, after the exchange"
            )
            lines.append(f"aggregated {how}: {_named(aggregates)}")
        return lines + (self._split(kept, planned) if self.splitting.buckets else [])

    def _split(self, kept: Sequence[tuple[str, StatefulNode]], planned: Sequence[PhysicalNode]) -> list[str]:
        split = _named(
            name
            for name, node in kept
            if isinstance(node, GroupAggregateDeclaration) and BUCKET_COLUMN in node.keys
        )
        lines = [f"DISTINCT split into {self.splitting.buckets} buckets: {split}"]
        aggregates = (node for node in planned if isinstance(node, GroupAggregate))
        for node in aggregates:
            if BUCKET_COLUMN not in node.names and any(call.distinct for call in node.calls):
                lines.append(f"DISTINCT not split, because {not_split(node)}: {_distinct_calls(node)}")
        return lines


def _splitting(configuration: Configuration, mini_batch: bool | None) -> SplitAggregation:
    enabled, buckets = options.DISTINCT_SPLIT, options.DISTINCT_BUCKETS
    if configuration.get(enabled):
        if mini_batch is False:
            raise SqlValidationError(
                f"{enabled.key} is true, but {options.MINI_BATCH.key} is false: every row would update its group twice",
                hint=f"set {options.MINI_BATCH.key} to true",
            )
        return SplitAggregation(configuration.get(buckets))
    if configuration.contains(buckets) and configuration.get(buckets) != buckets.default:
        raise SqlValidationError(
            f"{buckets.key} has no effect unless {enabled.key} is true", hint=f"set {enabled.key} to true"
        )
    return NOT_SPLIT


def _distinct_calls(node: GroupAggregate) -> str:
    return ", ".join(aggregate_text(call, node.input.names) for call in node.calls if call.distinct)


def _named(names: Iterable[str]) -> str:
    return ", ".join(names) or "no operator"

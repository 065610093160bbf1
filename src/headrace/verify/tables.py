"""Verification of jobs with tables: they run on Spark with their own sources; the final rows are compared.

    scenario -> SparkExecutor, with captured sinks -> +I, -U, +U, -D of each epoch -> the rows that are left

How many changes lead to a row depends on where epochs are cut, since an epoch is a mini-batch. What is left does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.common.types import Row, RowKind
from headrace.config.configuration import Configuration
from headrace.connectors.base import Boundedness
from headrace.errors import JobDefinitionError
from headrace.graph.job_graph import JobGraph
from headrace.operators.io import SourceDeclaration
from headrace.operators.table.declarations import SinkMode, TableSinkDeclaration
from headrace.runtime.run.job_run import EpochSummary

if TYPE_CHECKING:
    from headrace.spark.executor import SparkJob

_TAKES_AWAY = frozenset({RowKind.UPDATE_BEFORE, RowKind.DELETE})


def refuse_unbounded(job: JobGraph) -> None:
    """Refuse sources that never end: no two runs would have the same input.

    Raises:
        JobDefinitionError: For the first of them.
    """
    for vertex in job.vertices:
        declaration = vertex.head.declaration
        if isinstance(declaration, SourceDeclaration):
            if declaration.source.boundedness is not Boundedness.BOUNDED:
                raise JobDefinitionError(
                    f"source '{vertex.head.name}' has no end, so there is no output to compare",
                    hint="give the tables bounded input: files, a datagen table with number-of-rows, from_elements()",
                )


def submit_on_spark(
    job: JobGraph, configuration: Configuration, on_epoch: Callable[[EpochSummary], object]
) -> SparkJob:
    """Start a job; `on_epoch` is called in the job's thread."""
    from headrace.spark.executor import Listeners, SparkExecutor

    listeners = Listeners(epoch_completed=lambda _, summary: on_epoch(summary))
    return SparkExecutor(listeners=[listeners]).submit(job, configuration)


def rows_left(rows: Iterable[Row], declaration: TableSinkDeclaration) -> list[tuple[Any, ...]]:
    """Return what a changelog comes to: the last row of each key, or all rows that were not taken away again.

    Args:
        rows: In the order in which the sink got them.
        declaration: Of the sink.
    """
    if declaration.mode is SinkMode.UPSERT and declaration.keys:
        names = [column.name for column in declaration.schema]
        return _last_of_keys(rows, [names.index(key) for key in declaration.keys])
    added: list[Row] = []
    taken: Counter[Any] = Counter()
    for row in rows:
        if row.get_row_kind() in _TAKES_AWAY:
            taken[_form(row)] += 1
        else:
            added.append(row)
    left = []
    for row in added:
        if taken[_form(row)] > 0:
            taken[_form(row)] -= 1
        else:
            left.append(tuple(row))
    # A row that is taken away and was never there is a fault, too.
    return left + [("retracted, but never emitted", each) for each in taken.elements()]


def _last_of_keys(rows: Iterable[Row], places: Sequence[int]) -> list[tuple[Any, ...]]:
    last: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        key = repr([row[place] for place in places])
        last.pop(key, None)
        if row.get_row_kind() not in _TAKES_AWAY:
            last[key] = tuple(row)
    return list(last.values())


def _form(row: Row) -> str:
    return repr(tuple(row))

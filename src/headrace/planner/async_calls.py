"""Sets how the asynchronous functions and lookups of a job are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.connectors.lookup_tables import LookupSettings
from headrace.graph.table_job import TableNode
from headrace.operators.table.declarations import SparkQueryDeclaration
from headrace.operators.table.opened_functions import (
    AsyncSettings,
    OpenedAsyncFunction,
    OpenedAsyncTableFunction,
)
from headrace.operators.table.steps import PythonCall, PythonCalls
from headrace.planner.opened_lookups import OpenedLookup

__all__ = ["with_settings"]


def with_settings(
    nodes: Sequence[TableNode], scalars: AsyncSettings, tables: AsyncSettings, lookups: LookupSettings
) -> None:
    """Give the asynchronous functions of values and of rows, and the lookups, of a job their settings."""
    for call in _calls(nodes):
        if isinstance(call.function, OpenedAsyncTableFunction):
            call.function.settings = tables
        elif isinstance(call.function, OpenedAsyncFunction):
            call.function.settings = scalars
        elif isinstance(call.function, OpenedLookup):
            call.function.settings = lookups


def _calls(nodes: Iterable[TableNode]) -> Iterator[PythonCall]:
    for node in nodes:
        declaration = node.declaration
        if isinstance(declaration, SparkQueryDeclaration):
            yield from declaration.functions
        fragments = [each.fragment for each in node.inputs]
        fragments += [each for each in [getattr(declaration, "fragment", None)] if each is not None]
        for fragment in fragments:
            for step in fragment.steps:
                if isinstance(step, PythonCalls):
                    yield from step.calls

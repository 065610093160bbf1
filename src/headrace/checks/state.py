"""Finds state that would not be restored, and state that grows forever."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from headrace.checks.findings import CheckFinding
from headrace.checks.source_code import FunctionBody, bodies_of, resolve
from headrace.checks.view import ReviewedJob, ReviewedOperator
from headrace.operators.checkpointed import as_checkpointed
from headrace.operators.io import SourceDeclaration
from headrace.operators.keyed import ReduceDeclaration
from headrace.operators.table.declarations import (
    ChangelogNormalizeDeclaration,
    DeduplicateDeclaration,
    GroupAggregateDeclaration,
    JoinDeclaration,
    RankDeclaration,
    StatefulNode,
)
from headrace.operators.table.sink_declarations import SinkUpsertMaterializeDeclaration
from headrace.operators.window.declaration import WindowDeclaration
from headrace.state.descriptors import StateDescriptor
from headrace.windowing.assigners import GlobalWindows
from headrace.windowing.triggers import PurgingTrigger

__all__ = ["check_growth", "check_uid"]

_GROWING_NODES: Final = (
    GroupAggregateDeclaration,
    JoinDeclaration,
    RankDeclaration,
    DeduplicateDeclaration,
    ChangelogNormalizeDeclaration,
    SinkUpsertMaterializeDeclaration,
)
#: Methods by which a function releases state.
_REMOVALS: Final = frozenset({"enable_time_to_live", "clear", "remove", "delete"})


def check_uid(job: ReviewedJob, operator: ReviewedOperator) -> Iterator[CheckFinding]:
    """Find operators with state whose ids follow from the shape of the program."""
    node = operator.node
    if not job.is_restorable or operator.is_table or node.uid is not None or node.uid_hash is not None:
        return
    if isinstance(node.declaration, SourceDeclaration):
        yield operator.finding("HR101", "the source's positions are kept under a generated id")
    elif node.declaration.is_keyed:
        yield operator.finding("HR101", "keyed state is kept under a generated id")
    elif any(as_checkpointed(each) is not None for each in operator.functions()):
        yield operator.finding("HR101", "operator state is kept under a generated id")


def check_growth(_: ReviewedJob, operator: ReviewedOperator) -> Iterator[CheckFinding]:
    """Find keyed state of endless input that nothing ever removes."""
    if not operator.is_endless or not getattr(operator.declaration, "is_keyed", False):
        return
    declaration = operator.declaration
    if isinstance(declaration, StatefulNode):
        has_keys = bool(getattr(declaration, "keys", True))  # GROUP BY nothing is one row
        # Keys whose first row was emitted are kept, whatever the watermark is.
        keeps_keys = isinstance(declaration, DeduplicateDeclaration) and declaration.waits
        is_timeless = keeps_keys or not declaration.goes_by_watermark
        is_growing = isinstance(declaration, _GROWING_NODES) and has_keys and is_timeless
        if is_growing and not declaration.ttl_ms:
            yield operator.finding("HR501", "rows of all keys are kept: table.exec.state.ttl is not set")
    elif isinstance(declaration, ReduceDeclaration):
        yield operator.finding("HR501", "a rolling aggregation keeps a value for every key forever")
    elif isinstance(declaration, WindowDeclaration):
        is_global = isinstance(declaration.assigner, GlobalWindows)
        if is_global and not isinstance(declaration.trigger, PurgingTrigger) and declaration.evictor is None:
            yield operator.finding("HR501", "the global window's trigger does not purge")
    else:
        yield from _kept_by_function(operator)


def _kept_by_function(operator: ReviewedOperator) -> Iterator[CheckFinding]:
    calls = list(_calls(operator))
    if any(isinstance(call.func, ast.Attribute) and call.func.attr in _REMOVALS for _, call in calls):
        return  # when the function removes state, and for which keys, cannot be seen here
    for body, call in calls:
        target = resolve(call.func, body)
        if isinstance(target, type) and issubclass(target, StateDescriptor):
            name = ast.unparse(call.args[0]) if call.args else target.__name__
            message = f"state {name} has no time to live, and nothing clears it"
            yield operator.finding("HR501", message, body.place(call))


def _calls(operator: ReviewedOperator) -> Iterator[tuple[FunctionBody, ast.Call]]:
    for function in operator.functions():
        for body in bodies_of(function):
            for node in ast.walk(body.tree):
                if isinstance(node, ast.Call):
                    yield body, node

"""Calls whose results differ from one try at an epoch to the next, and variables that are not state."""

from __future__ import annotations

import ast
import builtins
import datetime
import os
import random
import secrets
import time
import uuid
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from types import ModuleType
from typing import Any, Final

from headrace.checks.findings import CheckFinding
from headrace.checks.source_code import MISSING, FunctionBody, bodies_of, resolve
from headrace.checks.view import ReviewedJob, ReviewedOperator

__all__ = ["check_determinism", "unstable_calls"]

_UNSTABLE: Final = frozenset(
    {
        *(
            time.time,
            time.time_ns,
            time.monotonic,
            time.monotonic_ns,
            time.perf_counter,
            time.perf_counter_ns,
        ),
        *(uuid.uuid1, uuid.uuid4, os.urandom, os.getpid, builtins.hash, builtins.id),
        *(secrets.token_bytes, secrets.token_hex, secrets.token_urlsafe, secrets.choice, secrets.randbelow),
    }
)
#: Those that take the time now, if they are called with no more arguments than this.
_UNSTABLE_WITHOUT: Final = {
    time.localtime: 0,
    time.gmtime: 0,
    time.ctime: 0,
    time.asctime: 0,
    time.strftime: 1,
}
#: Class methods are new objects with every look, so they are known by owner and name.
_UNSTABLE_METHODS: Final = frozenset(
    {
        *((datetime.datetime, name) for name in ("now", "utcnow", "today")),
        (datetime.date, "today"),
    }
)
_CHANGES: Final = frozenset(
    {
        "append",
        "add",
        "update",
        "extend",
        "insert",
        "pop",
        "popitem",
        "clear",
        "remove",
        "discard",
        "setdefault",
    }
)


def check_determinism(_: ReviewedJob, operator: ReviewedOperator) -> Iterator[CheckFinding]:
    """Find calls of clocks and random numbers in keyed functions, and global variables that functions change."""
    is_keyed = bool(getattr(operator.declaration, "is_keyed", False))
    for function in operator.functions():
        for body in bodies_of(function):
            if is_keyed:
                for call, name in unstable_calls(body):
                    message = f"{_name(body)} calls {name}()"
                    yield operator.finding("HR401", message, body.place(call))
            for node, name in _changed_globals(body):
                message = f"{_name(body)} changes the global variable {name}"
                yield operator.finding("HR402", message, body.place(node))


def unstable_calls(body: FunctionBody) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls of a function that give other results when it is called again."""
    for node in ast.walk(body.tree):
        if isinstance(node, ast.Call) and _is_unstable(node, body):
            yield node, ast.unparse(node.func)


def _is_unstable(node: ast.Call, body: FunctionBody) -> bool:
    target = resolve(node.func, body)
    if target is MISSING:
        return False
    if isinstance(node.func, ast.Attribute):
        owner = resolve(node.func.value, body)
        if any(owner is known and node.func.attr == name for known, name in _UNSTABLE_METHODS):
            return True
        if isinstance(owner, ModuleType) and owner.__name__ in {"numpy.random", "secrets"}:
            return (
                node.func.attr not in {"default_rng", "Generator", "RandomState", "SeedSequence"}
                or not node.args
            )
    if _is_called_without_time(node, target):
        return True
    if target in (random.Random, random.SystemRandom):  # without a seed, the system's
        return not node.args and not node.keywords
    if getattr(target, "__self__", None) is _shared_generator() and getattr(target, "__name__", "") != "seed":
        return True
    return _is_known(target)


def _is_called_without_time(node: ast.Call, target: Any) -> bool:
    most = next((count for known, count in _UNSTABLE_WITHOUT.items() if known is target), None)
    return most is not None and len(node.args) <= most


def _is_known(target: Any) -> bool:
    try:
        return target in _UNSTABLE
    except TypeError:
        return False


def _shared_generator() -> Any:
    """Return the generator behind `random.random` and its sisters."""
    return random.random.__self__  # type: ignore[attr-defined]  # a builtin method knows its object


def _changed_globals(body: FunctionBody) -> Iterator[tuple[ast.AST, str]]:
    declared = {name for node in ast.walk(body.tree) if isinstance(node, ast.Global) for name in node.names}
    for node in ast.walk(body.tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id in declared:
                    yield node, target.id
                elif isinstance(target, ast.Subscript) and _is_global_container(target.value, body):
                    yield node, ast.unparse(target.value)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES
        ):
            if _is_global_container(node.func.value, body):
                yield node, ast.unparse(node.func.value)


def _is_global_container(node: ast.expr, body: FunctionBody) -> bool:
    """Whether an expression names a list, dict or set of a module."""
    if not isinstance(node, ast.Name) or node.id not in body.function.__globals__:
        return False
    value = resolve(node, body)
    return isinstance(value, MutableSequence | MutableMapping | MutableSet)


def _name(body: FunctionBody) -> str:
    name = body.function.__qualname__
    return "the lambda" if name.endswith("<lambda>") else f"{name.replace('<locals>.', '')}()"

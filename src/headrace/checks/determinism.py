"""Calls whose results differ from one try at an epoch to the next, and variables that are no state."""

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
from types import FunctionType, ModuleType
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
#: Calls that give the same as long as the process lives.
_OF_THE_PROCESS: Final = frozenset({"hash", "id", "os.getpid"})
_CONTAINERS: Final = (MutableSequence, MutableMapping, MutableSet)
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
    """Find calls of clocks and random numbers in keyed functions, and outer variables that functions change."""
    is_keyed = bool(getattr(operator.declaration, "is_keyed", False))
    for function in operator.functions():
        shared = _shared_containers(function)
        for body in bodies_of(function):
            if is_keyed:
                for call, name in unstable_calls(body):
                    message = f"{_name(body)} calls {name}()"
                    if name in _OF_THE_PROCESS:
                        message += ", which gives something else in another process"
                    yield operator.finding("HR401", message, body.place(call))
            for node, name in _changed_outside(body, shared):
                message = f"{_name(body)} changes the {name}"
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


def _changed_outside(body: FunctionBody, shared: frozenset[str]) -> list[tuple[ast.stmt | ast.expr, str]]:
    """Return where a function changes a variable that is neither its own nor a field of its object, and which."""
    kinds = {
        name: "global variable" if isinstance(node, ast.Global) else "outer variable"
        for node in ast.walk(body.tree)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    found: list[tuple[ast.stmt | ast.expr, str]] = []
    for node in ast.walk(body.tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id in kinds:
                    found.append((node, f"{kinds[target.id]} {target.id}"))
                elif isinstance(target, ast.Attribute) and isinstance(resolve(target.value, body), type):
                    found.append((node, f"class attribute {ast.unparse(target)}"))
                elif isinstance(target, ast.Subscript) and (
                    name := _outer_container(target.value, body, shared)
                ):
                    found.append((node, name))
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES
        ):
            if name := _outer_container(node.func.value, body, shared):
                found.append((node, name))
    return sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset))


def _outer_container(node: ast.expr, body: FunctionBody, shared: frozenset[str]) -> str | None:
    """Name the list, dict or set outside of a function that an expression stands for; None if it is something else."""
    code = body.function.__code__
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id in code.co_varnames[:1]:
            return f"class attribute {node.attr}" if node.attr in shared else None
        if not isinstance(resolve(node.value, body), type):
            return None
        kind = "class attribute"
    elif isinstance(node, ast.Name) and node.id in code.co_freevars:
        kind = "outer variable"
    elif isinstance(node, ast.Name) and node.id in body.function.__globals__:
        kind = "global variable"
    else:
        return None
    return f"{kind} {ast.unparse(node)}" if isinstance(resolve(node, body), _CONTAINERS) else None


def _shared_containers(function: Any) -> frozenset[str]:
    """Return the lists, dicts and sets of a function object's class that no method replaces by those of the object."""
    if isinstance(function, FunctionType):
        return frozenset()
    found = {
        name
        for owner in type(function).__mro__
        for name, value in vars(owner).items()
        if isinstance(value, _CONTAINERS)
    }
    own = {
        node.attr
        for body in bodies_of(function)
        for node in ast.walk(body.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return (
        frozenset(found - own - vars(function).keys())
        if hasattr(function, "__dict__")
        else frozenset(found - own)
    )


def _name(body: FunctionBody) -> str:
    name = body.function.__qualname__
    return "the lambda" if name.endswith("<lambda>") else f"{name.replace('<locals>.', '')}()"

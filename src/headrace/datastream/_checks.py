"""Checks of what a program hands to the API, with messages that name the call and the user's function.

All raise before anything is submitted; what gets past them is what the operators' declarations may assume.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from headrace.common.typeinfo import TypeInformation
from headrace.config.options.execution import UPPER_BOUND_MAX_PARALLELISM
from headrace.datastream import functions
from headrace.datastream.functions import Function, KeySelector, Partitioner
from headrace.errors import (
    JobDefinitionError,
    TypeInferenceError,
    describe_function,
    shorten,
)

_UID_HASH = re.compile(r"[0-9A-Fa-f]{32}")


def kind_and_value(given: object) -> str:
    """Show what came instead of what was expected.

    Example:
        >>> kind_and_value(3)
        'int 3'
    """
    return f"{type(given).__name__} {shorten(given)}"


def check_function(call: str, given: Any, *classes: type[Function], arguments: tuple[str, ...] = ()) -> None:
    """Accept an instance of a function class or, if arguments are named, a callable that takes them.

    Args:
        call: The method of the API, for messages.
        given: What the user passed.
        classes: The function classes that fit.
        arguments: What a plain callable is called with; empty if only instances fit.

    Raises:
        JobDefinitionError: If it is neither.
    """
    if isinstance(given, classes):
        return
    names = " or ".join(each.__name__ for each in classes)
    wanted = f"a callable or {names}" if arguments else f"an instance of {names}"
    if isinstance(given, type) and issubclass(given, Function):
        raise JobDefinitionError(
            f"{call}(): expected {wanted}, got the class {given.__name__}",
            hint=f"pass an instance: {given.__name__}()",
        )
    if isinstance(given, Function):
        bases = (each for each in type(given).__mro__ if each.__module__.startswith(functions.__name__))
        base = next(bases).__name__
        raise JobDefinitionError(
            f"{call}(): expected {wanted}, got {type(given).__qualname__}, which is a {base}",
        )
    if not (arguments and callable(given)):
        raise JobDefinitionError(f"{call}(): expected {wanted}, got {kind_and_value(given)}")
    _check_arity(call, given, arguments)


def check_key_selector(call: str, given: Any) -> None:
    """Accept a KeySelector or a callable of one record."""
    check_function(call, given, KeySelector, arguments=("value",))


def check_partitioner(call: str, given: Any) -> None:
    """Accept a Partitioner or a callable of a key and the number of partitions."""
    check_function(call, given, Partitioner, arguments=("key", "num_partitions"))


def _check_arity(call: str, function: Any, arguments: tuple[str, ...]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # written in C, without a signature
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise JobDefinitionError(
            f"{call}(): {describe_function(function)} is called with ({', '.join(arguments)}), "
            f"but takes {signature}"
        ) from error


def check_type(call: str, given: Any) -> TypeInformation | None:
    """Accept a type, or None for a type that is not declared."""
    if given is None or isinstance(given, TypeInformation):
        return given
    raise TypeInferenceError(
        f"{call}(): expected a type, got {kind_and_value(given)}",
        hint="use one of headrace.common.Types, such as Types.STRING()",
    )


def check_parallelism(call: str, given: Any) -> int:
    """Accept a number of subtasks."""
    return _check_number(call, "parallelism", given, 1, UPPER_BOUND_MAX_PARALLELISM)


def check_max_parallelism(call: str, given: Any) -> int:
    """Accept a number of key groups."""
    return _check_number(call, "max parallelism", given, 1, UPPER_BOUND_MAX_PARALLELISM)


def check_buffer_timeout(call: str, given: Any) -> int:
    """Accept milliseconds, or -1 for no timeout."""
    return _check_number(call, "timeout", given, -1, None)


def _check_number(call: str, what: str, given: Any, least: int, most: int | None) -> int:
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number or given < least or (most is not None and given > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise JobDefinitionError(
            f"{call}(): the {what} must be a whole number {limits}, got {shorten(given)}"
        )
    return int(given)


def check_text(call: str, what: str, given: Any) -> str:
    """Accept a string that says something."""
    if not isinstance(given, str) or not given.strip():
        raise JobDefinitionError(
            f"{call}(): the {what} must be a string that is not empty, got {shorten(given)}"
        )
    return given


def check_uid_hash(given: Any) -> str:
    """Accept the 32 hex digits of an operator id."""
    if not isinstance(given, str) or not _UID_HASH.fullmatch(given):
        raise JobDefinitionError(
            f"set_uid_hash(): expected 32 hex digits, got {shorten(given)}",
            hint="take it from the logs or the REST API; to name an operator, call uid() instead",
        )
    return given.lower()

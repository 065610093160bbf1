"""Errors of functions and connectors, completed with the operator and the subtask they happened in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.errors import HeadraceError, UserFunctionError, shorten
from headrace.operators.context import OperatorContext


def located(
    error: Exception, context: OperatorContext, record: Any = None, what: str | None = None
) -> HeadraceError:
    """Return the error to raise `from` another one.

    Args:
        error: What a function or connector raised.
        context: The operator's.
        record: The record it was called with.
        what: The call that failed, such as ``open()``, if it was not made for a record.

    Raises:
        HeadraceError: ``error`` itself, if it is one: it would become its own cause.
    """
    place = context.place
    if isinstance(error, UserFunctionError) and error.operator is None:
        error.job, error.operator, error.subtask = place.job_name, place.operator_name, place.subtask
        if error.record is None and record is not None:
            error.record = shorten(record)
    if isinstance(error, HeadraceError):
        raise error
    name = place.operator_name if what is None else f"{place.operator_name} {what}"
    return UserFunctionError.from_exception(
        error,
        record=record,
        job=place.job_name,
        operator=name,
        subtask=place.subtask,
        attempt=context.attempt,
    )


@contextmanager
def locating(context: OperatorContext) -> Iterator[None]:
    """Complete errors of the block with the operator and the subtask."""
    try:
        yield
    except Exception as error:
        raise located(error, context) from error

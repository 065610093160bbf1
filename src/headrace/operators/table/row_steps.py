"""Steps that are done with rows, one by one, between columns: functions of the user's, and lists that become rows.

Only values that are the same in Python, in Arrow and for Spark go this way; of other types, Spark calls the functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.common.types import make_row
from headrace.operators.table.arrow_expression import Columns, NotComputedError
from headrace.operators.table.steps import Explode, PythonCall, PythonCalls, Step

__all__ = ["Caller", "arguments_of", "column_of", "done_with_rows", "row_step"]

#: Calls a function with the columns of so many rows; returns the column of its results.
Caller = Callable[[PythonCall, Columns, int], pa.Array]

_EXPLODE: Final = re.compile(r"explode\(`((?:[^`]|``)*)`\)")


def row_step(step: Step, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType] | None:
    """Return the columns after a step that is done with rows; None if it is no such step, or Spark has to do it."""
    if isinstance(step, PythonCalls):
        if not all(_can_call(call, types) for call in step.calls):
            return None
        return {**types, **{call.result.name: call.result.arrow for call in step.calls}}
    if isinstance(step, Explode):
        kind = types.get(_exploded(step) or "")
        if kind is None or not pa.types.is_list(kind) or len(step.names) != 1:
            return None
        return {**types, step.names[0]: kind.value_type}
    return None


def done_with_rows(
    step: PythonCalls | Explode, columns: Columns, rows: int, caller: Caller | None
) -> tuple[dict[str, pa.Array], int]:
    """Do a step; returns the columns after it, and how many rows they have."""
    if isinstance(step, Explode):
        return _one_by_one(step, columns)
    assert caller is not None
    # A function that is called later may see what an earlier one has made.
    made = dict(columns)
    for call in step.calls:
        made[call.result.name] = caller(call, made, rows)
    return made, rows


def arguments_of(column: pa.Array) -> list[Any]:
    """Return the values of a column as functions get them."""
    if not pa.types.is_struct(column.type):
        values: list[Any] = column.to_pylist()
        return values
    names = tuple(field.name for field in column.type)
    fields = zip(*(field.to_pylist() for field in column.flatten()), strict=True)
    return [make_row(names, values, 0) for values in fields]


def column_of(results: list[Any], kind: pa.DataType) -> pa.Array:
    """Return what a function has returned for each row as a column.

    Raises:
        NotComputedError: Spark has to say what is wrong.
    """
    try:
        if not pa.types.is_list(kind):
            return pa.array(results, kind)
        rows = [row for each in results for row in each]
        ends = np.cumsum([0, *map(len, results)])
        fields = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(kind.value_type)]
        made = pa.StructArray.from_arrays(fields, fields=list(kind.value_type))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), made, type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise NotComputedError(str(error)) from error


def _one_by_one(step: Explode, columns: Columns) -> tuple[dict[str, pa.Array], int]:
    name = _exploded(step)
    assert name is not None
    lists = columns[name]
    counts = lists.value_lengths().fill_null(0).to_numpy()
    elements = lists.flatten()
    if step.is_outer and (counts == 0).any():
        # A row without elements stays, with a NULL.
        kept = np.maximum(counts, 1)
        places = np.zeros(int(kept.sum()), np.int64)
        is_real = np.repeat(counts > 0, kept)
        places[is_real] = np.arange(len(elements))
        elements = elements.take(pa.array(places, mask=~is_real))
        counts = kept
    rows = pa.array(np.repeat(np.arange(len(lists)), counts))
    made = {each: column.take(rows) for each, column in columns.items() if each != name}
    return {**made, step.names[0]: elements}, len(rows)


def _exploded(step: Explode) -> str | None:
    """Return the column whose elements become rows; None if something is computed first."""
    found = _EXPLODE.fullmatch(step.generator)
    return None if found is None else found[1].replace("``", "`")


def _can_call(call: PythonCall, types: Mapping[str, pa.DataType]) -> bool:
    given = [types.get(name) for name in call.arguments]
    if call.is_pandas or not all(map(_is_given, given)):
        return False
    kind = call.result.arrow
    if call.gives_rows:
        return pa.types.is_list(kind) and all(_is_returned(each.type) for each in kind.value_type)
    return _is_returned(kind)


def _is_given(kind: pa.DataType | None) -> bool:
    if kind is None:
        return False
    if pa.types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    return _is_plain(kind) or kind == pa.timestamp("us") or pa.types.is_decimal128(kind)


def _is_returned(kind: pa.DataType) -> bool:
    return _is_plain(kind) and not pa.types.is_date32(kind)


def _is_plain(kind: pa.DataType) -> bool:
    is_ = pa.types
    checks = (is_.is_signed_integer, is_.is_boolean, is_.is_float32, is_.is_float64, is_.is_date32)
    return kind == pa.string() or any(check(kind) for check in checks)

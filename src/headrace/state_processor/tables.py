"""Rows of state as tables: for pandas with the Python objects themselves, for Arrow with types where there are any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import pandas as pd
import pyarrow as pa

from headrace.state_processor.rows import StateRow

_COLUMNS = tuple(each.name for each in fields(StateRow))
#: Left out where no row has anything in it.
_OPTIONAL = ("namespace", "map_key", "time_ms", "key", "key_group")


def data_frame(rows: Iterable[StateRow]) -> pd.DataFrame:
    """Return rows as a data frame, whose columns hold objects."""
    columns = _columns(rows)
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def arrow_table(rows: Iterable[StateRow]) -> pa.Table:
    """Return rows as an Arrow table."""
    return pa.table({name: _array(values) for name, values in _columns(rows).items()})


def _columns(rows: Iterable[StateRow]) -> dict[str, list[Any]]:
    found = [[getattr(row, name) for name in _COLUMNS] for row in rows]
    columns = {name: [row[index] for row in found] for index, name in enumerate(_COLUMNS)}
    for name in _OPTIONAL:
        if all(value is None for value in columns[name]) and found:
            del columns[name]
    return columns


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else repr(value) for value in values], pa.string())

"""How the entries of one key group are written in a state file: msgpack, never pickle.

State files are read by whoever looks at a checkpoint, and unpickling runs whatever code the bytes name. So only the
values of user state are pickled, and a section holds them as bytes that nobody but the restored job decodes.

    section:  { names of states -> (storage keys, values) }  { names of tables -> columns as raw bytes }
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.state.columns import Cells, ColumnType
from headrace.state.row_sets import RowSet

#: Storage keys and the new value bytes of each (None: removed). No key stands twice.
Section = tuple[list[bytes], list[bytes | None]]


class _Column(msgspec.Struct, array_like=True):
    """The arrays of `Cells`."""

    valid: bytes
    values: bytes | None
    lengths: bytes | None
    data: bytes | None


class _Table(msgspec.Struct, array_like=True):
    """The arrays of a `RowSet`."""

    keys: bytes
    owners: bytes | None
    removed: bytes
    columns: dict[str, _Column]
    #: An Arrow schema in Arrow's own encoding.
    types: bytes


class _Sections(msgspec.Struct, array_like=True):
    entries: dict[str, Section]
    tables: dict[str, _Table]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Sections)


def encode_sections(sections: Mapping[str, Section]) -> bytes:
    """Return the bytes of a key group: its entries by the name of the state."""
    entries: dict[str, Section] = {}
    tables: dict[str, _Table] = {}
    for name, section in sections.items():
        rows = rows_in(section)
        if rows is None:
            entries[name] = section
        else:
            tables[name] = _table(rows)
    return _encoder.encode(_Sections(entries, tables))


def decode_sections(data: bytes) -> dict[str, Section]:
    """Return what `encode_sections` was given.

    Raises:
        ValueError: If the bytes are something else.
    """
    decoded = _decoder.decode(data)
    tables = {name: _rows(table) for name, table in decoded.tables.items()}
    return {**decoded.entries, **cast("dict[str, Section]", tables)}


def rows_in(section: object) -> RowSet | None:
    """Return the rows of a section of columnar state, which stand in files where others have entries; else None."""
    return section if isinstance(section, RowSet) else None


def _table(rows: RowSet) -> _Table:
    return _Table(
        rows.keys.tobytes(),
        None if rows.owners is None else rows.owners.tobytes(),
        rows.removed.tobytes(),
        {name: _column(cells) for name, cells in rows.columns.items()},
        _encoded_types(tuple(rows.types.items())),
    )


def _column(cells: Cells) -> _Column:
    return _Column(cells.valid.tobytes(), *map(_bytes_of, (cells.values, cells.lengths, cells.data)))


def _bytes_of(array: npt.NDArray[Any] | None) -> bytes | None:
    return None if array is None else array.tobytes()


def _rows(table: _Table) -> RowSet:
    types = _decoded_types(table.types)
    removed = np.frombuffer(table.removed, np.bool_)
    return RowSet(
        _keys(table.keys, len(removed)),
        None if table.owners is None else _keys(table.owners, len(removed)),
        removed,
        {name: _cells(column, ColumnType(name, types[name])) for name, column in table.columns.items()},
        types,
    )


def _keys(data: bytes, rows: int) -> npt.NDArray[np.int64]:
    """Return the numbers of keys: those of different tables may have more or fewer of them."""
    numbers = np.frombuffer(data, np.int64)
    return numbers.reshape(rows, -1) if rows else numbers.reshape(0, 2)


def _cells(column: _Column, kind: ColumnType) -> Cells:
    valid = np.frombuffer(column.valid, np.bool_)
    if column.values is not None:
        return Cells(valid, np.frombuffer(column.values, kind.raw))
    assert column.lengths is not None
    assert column.data is not None
    return Cells(valid, None, np.frombuffer(column.lengths, np.int64), np.frombuffer(column.data, np.uint8))


# Every key group of a table has the same types.
@lru_cache(maxsize=64)
def _encoded_types(types: tuple[tuple[str, pa.DataType], ...]) -> bytes:
    return pa.schema(types).serialize().to_pybytes()  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _decoded_types(data: bytes) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(data))}

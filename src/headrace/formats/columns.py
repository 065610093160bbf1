"""Rows and Arrow's columns: what Parquet and ORC files hold, as the records of a stream and back.

Reading takes the columns that are asked for, by name, and brings each to the type that is asked for if nothing is
lost by it (an INT column as BIGINT). A column that a file does not have is null, as in Flink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.common.arrow_values import python_values
from headrace.common.types import Row, rows_of
from headrace.errors import FormatError, JobDefinitionError
from headrace.types import ArrayType, DataType, MapType, RowField, RowType, create_arrow_schema


def check_row_type(given: object, who: str) -> RowType:
    """Accept the type of a row.

    Raises:
        JobDefinitionError: It is something else.
    """
    if not isinstance(given, RowType) or not given.fields:
        raise JobDefinitionError(
            f"{who}: expected the type of a row with at least one field; got {given!r}",
            hint='for example DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])',
        )
    return given


@dataclass(frozen=True)
class RowColumns:
    """The columns of a row type."""

    row_type: RowType
    is_case_sensitive: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(self.row_type.field_names())

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return create_arrow_schema(self.row_type.field_names(), self.row_type.field_types())

    def names_in(self, file_schema: pa.Schema) -> list[str | None]:
        """Return what the fields are called in a file; None for those it does not have.

        Raises:
            FormatError: Two columns of the file differ in case only, and case does not count.
        """
        if self.is_case_sensitive:
            return [name if name in file_schema.names else None for name in self.names]
        found = []
        for name in self.names:
            same = [each for each in file_schema.names if each.lower() == name.lower()]
            if len(same) > 1:
                raise FormatError(f"field {name!r} matches several columns: {', '.join(same)}")
            found.append(same[0] if same else None)
        return found

    def rows_in(self, batch: pa.RecordBatch, names: Sequence[str | None]) -> ArrowRows:
        """Return the rows of a batch whose columns have these names, as `names_in` gave them.

        Raises:
            FormatError: A column is of another type than is asked for.
            ArrowInvalid: A column has bytes that are not values of its type, such as a string that is not UTF-8.
        """
        batch.validate(full=True)
        arrays = [
            pa.nulls(batch.num_rows, wanted.type) if name is None else _as_wanted(batch.column(name), wanted)
            for wanted, name in zip(self.schema, names, strict=True)
        ]
        return ArrowRows(self.row_type.fields, arrays)

    def batch(self, rows: Sequence[Any], who: str) -> pa.RecordBatch:
        """Return rows (or tuples, lists, dictionaries by name) as columns.

        Raises:
            FormatError: A row has other fields, or a value does not fit its type.
        """
        names = self.names
        columns: list[Sequence[Any]] = list(zip(*(_values(row, names, who) for row in rows), strict=True))
        arrays = []
        for field, wanted, values in zip(self.row_type, self.schema, columns, strict=True):
            convert = arrow_converter(field.data_type)
            given = values if convert is None else [convert(value) for value in values]
            arrays.append(_array(given, wanted, rows, who))
        return pa.record_batch(arrays, schema=self.schema)


class ArrowRows:
    """Rows that are still columns of Arrow."""

    def __init__(self, fields: Sequence[RowField], arrays: Sequence[pa.Array]) -> None:
        self._fields = fields
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays[0])

    @property
    def arrays(self) -> Sequence[pa.Array]:
        return self._arrays

    def __getitem__(self, part: slice) -> ArrowRows:
        start, stop, _ = part.indices(len(self))
        return ArrowRows(self._fields, [array.slice(start, stop - start) for array in self._arrays])

    def select(self, indexes: Sequence[int]) -> ArrowRows:
        """Keep some of the columns."""
        return ArrowRows([self._fields[i] for i in indexes], [self._arrays[i] for i in indexes])

    def rows(self) -> list[Row]:
        names = tuple(field.name for field in self._fields)
        return rows_of(names, [python_values(array) for array in self._arrays])


def _values(row: Any, names: tuple[str, ...], who: str) -> Sequence[Any]:
    if isinstance(row, dict):
        return [row.get(name) for name in names]
    if isinstance(row, Row | tuple | list) and len(row) == len(names):
        return list(row)
    raise FormatError(f"{who}: expected a row of {len(names)} fields ({', '.join(names)})", example=row)


def _array(values: Sequence[Any], wanted: pa.Field, rows: Sequence[Any], who: str) -> pa.Array:
    try:
        array = pa.array(values, type=wanted.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        bad = next((row for row, value in zip(rows, values, strict=True) if not _fits(value, wanted)), None)
        raise FormatError(
            f"{who}: field {wanted.name!r} must be {wanted.type}: {error}", example=bad
        ) from None
    if not wanted.nullable and array.null_count:
        bad = next(row for row, value in zip(rows, values, strict=True) if value is None)
        raise FormatError(f"{who}: field {wanted.name!r} must not be null", example=bad)
    return array


def _fits(value: Any, wanted: pa.Field) -> bool:
    try:
        pa.array([value], type=wanted.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
        return False
    return True


def _as_wanted(column: pa.Array, wanted: pa.Field) -> pa.Array:
    if column.type == wanted.type:
        return column
    if _kind(column.type) == _kind(wanted.type):
        try:
            return column.cast(wanted.type)
        except pa.ArrowInvalid as error:
            raise FormatError(f"cannot convert column {wanted.name!r} to {wanted.type}: {error}") from None
    raise FormatError(
        f"column {wanted.name!r} has type {column.type} in the file, but {wanted.type} was requested",
        hint="request the type the file has, and convert with map()",
    )


_KINDS: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("integer", pa.types.is_integer),
    ("number", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    ("text", pa.types.is_string),
    ("text", pa.types.is_large_string),
    ("text", pa.types.is_dictionary),
    ("bytes", pa.types.is_binary),
    ("bytes", pa.types.is_large_binary),
    ("bytes", pa.types.is_fixed_size_binary),
    ("time", pa.types.is_time),
    ("timestamp", pa.types.is_timestamp),
    ("list", pa.types.is_list),
    ("map", pa.types.is_map),
    ("row", pa.types.is_struct),
)


def _kind(arrow: pa.DataType) -> object:
    """Return what types that can be brought to each other have in common."""
    return next((name for name, is_kind in _KINDS if is_kind(arrow)), arrow)


_Convert = Callable[[Any], Any]


def arrow_converter(data_type: DataType) -> _Convert | None:
    """Return what makes of rows and dictionaries what Arrow takes; None where there are none."""
    if isinstance(data_type, RowType):
        names = tuple(data_type.field_names())
        inner = [arrow_converter(each) or _same for each in data_type.field_types()]
        return _unless_none(
            lambda value: {
                name: convert(each)
                for name, convert, each in zip(names, inner, _values(value, names, "row"), strict=True)
            }
        )
    found = _inside(data_type)
    return found if found or not isinstance(data_type, MapType) else _unless_none(lambda m: list(m.items()))


def _inside(data_type: DataType) -> _Convert | None:
    if isinstance(data_type, ArrayType):
        element = arrow_converter(data_type.element_type)
        return element and _unless_none(lambda values: [element(value) for value in values])
    if isinstance(data_type, MapType):
        key, value = arrow_converter(data_type.key_type), arrow_converter(data_type.value_type)
        if key or value:
            of_key, of_value = key or _same, value or _same
            return _unless_none(lambda entries: [(of_key(k), of_value(v)) for k, v in entries.items()])
    return None


def _unless_none(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value

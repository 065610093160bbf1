"""Rows that a program holds, on their way into tables and back: types that are found, values that are checked."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from headrace.common.arrow_values import arrow_form
from headrace.common.types import Row, RowKind
from headrace.errors import JobDefinitionError, shorten
from headrace.planner.logical import Schema
from headrace.types import DataType, DataTypes, RowField, RowType
from headrace.types.arrow import from_arrow_type, to_arrow_type
from headrace.types.logical import BigIntType, DoubleType, NullType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["pandas_of", "rows_and_types", "rows_of_pandas"]

#: What Arrow says about values that are not of a type; its own errors are among these.
_MISFIT: Final = (TypeError, ValueError, OverflowError)


def rows_and_types(
    elements: Sequence[Any], schema: Any, *, is_checked: bool = True
) -> tuple[list[tuple[Any, ...]], list[str], list[DataType]]:
    """Return rows as tuples, and names and types of their columns.

    Raises:
        JobDefinitionError: If there is nothing to find types from, or an element does not fit.
    """
    if isinstance(schema, DataType) and not isinstance(schema, RowType):
        schema = RowType([RowField("f0", schema)])
    types: list[DataType] | None = None
    if isinstance(schema, RowType):
        names, types = schema.field_names(), schema.field_types()
        rows = [_values(each, names) for each in elements]
    else:
        if not elements:
            raise JobDefinitionError(
                "from_elements(): there are no elements, so the types of their columns are not known",
                hint="pass a schema: DataTypes.ROW([DataTypes.FIELD('id', DataTypes.BIGINT())])",
            )
        names = list(schema) if schema is not None else _names(elements[0])
        rows = [_values(each, names) for each in elements]
    for row in rows:
        if len(row) != len(names):
            raise JobDefinitionError(
                f"from_elements(): expected {len(names)} values ({', '.join(names)}); got {shorten(row)}"
            )
    if types is None:
        types = [_common(row[at] for row in rows) for at in range(len(names))]
    columns = [
        _column(rows, at, name, kind) for at, (name, kind) in enumerate(zip(names, types, strict=True))
    ]
    if is_checked:
        _check(columns, names, types)
    return list(zip(*columns, strict=True)), names, types


def _column(rows: Sequence[Sequence[Any]], at: int, name: str, kind: DataType) -> list[Any]:
    """Return the values of a column as Arrow takes them: rows inside of them are dictionaries."""
    values = [row[at] for row in rows]
    convert = arrow_form(to_arrow_type(kind))
    if convert is None:
        return values
    formed = []
    for value in values:
        try:
            formed.append(convert(value))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise _misfit(name, kind, value) from error
    return formed


def _misfit(name: str, kind: DataType, value: Any) -> JobDefinitionError:
    return JobDefinitionError(
        f"from_elements(): cannot convert {shorten(value)} to {kind.summary()} (column {name!r})",
        hint="give the column another type in the schema, or convert the values",
    )


def _names(element: Any) -> list[str]:
    if isinstance(element, dict):
        return list(element)
    if isinstance(element, Row) and element._fields is not None:
        return list(element._fields)
    width = len(element) if isinstance(element, list | tuple | Row) else 1
    return [f"_{at + 1}" for at in range(width)]


def _values(element: Any, names: Sequence[str]) -> tuple[Any, ...]:
    if isinstance(element, dict):
        return tuple(element.get(name) for name in names)
    return tuple(element) if isinstance(element, list | tuple | Row) else (element,)


def _common(values: Iterable[Any]) -> DataType:
    """Find the type that all values of a column have; whole numbers among fractions are fractions."""
    found: DataType = NullType()
    for value in values:
        if value is None:
            continue
        kind = _type_of(value)
        if isinstance(found, NullType) or found == kind:
            found = kind
        elif {type(found), type(kind)} == {BigIntType, DoubleType}:
            found = DataTypes.DOUBLE()
        else:
            raise JobDefinitionError(
                f"from_elements(): a column has {found.summary()} and {kind.summary()}: {shorten(value)}",
                hint="pass a schema",
            )
    return DataTypes.STRING() if isinstance(found, NullType) else found


def _type_of(value: Any) -> DataType:
    match value:
        case bool():
            return DataTypes.BOOLEAN()
        case int():
            return DataTypes.BIGINT()
        case float():
            return DataTypes.DOUBLE()
        case str():
            return DataTypes.STRING()
        case bytes() | bytearray():
            return DataTypes.BYTES()
        case Decimal():
            return DataTypes.DECIMAL(38, 18)
        case datetime.datetime():
            return DataTypes.TIMESTAMP(6) if value.tzinfo is None else DataTypes.TIMESTAMP_LTZ(6)
        case datetime.date():
            return DataTypes.DATE()
        case datetime.time():
            return DataTypes.TIME()
        case list():
            return DataTypes.ARRAY(_common(value))
        case dict():
            return DataTypes.MAP(_common(value.keys()), _common(value.values()))
        case Row() | tuple():
            names = _names(value)
            pairs = zip(names, value, strict=True)
            return DataTypes.ROW([DataTypes.FIELD(name, _common([each])) for name, each in pairs])
    raise JobDefinitionError(
        f"from_elements(): cannot infer a type for {shorten(value)}", hint="pass a schema"
    )


def _check(columns: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[DataType]) -> None:
    import pyarrow as pa

    for values, name, kind in zip(columns, names, types, strict=True):
        if not kind.is_nullable and None in values:
            raise JobDefinitionError(
                f"from_elements(): column {name!r} is {kind.summary()}, but contains None"
            )
        arrow = to_arrow_type(kind)
        try:
            pa.array(values, arrow)
        except _MISFIT as error:
            wrong = next((value for value in values if not _fits(value, arrow)), None)
            raise _misfit(name, kind, wrong) from error


def _fits(value: Any, arrow: Any) -> bool:
    import pyarrow as pa

    try:
        pa.array([value], arrow)
    except _MISFIT:
        return False
    return True


def rows_of_pandas(pdf: pd.DataFrame, schema: Any) -> tuple[list[tuple[Any, ...]], list[str], list[DataType]]:
    """Return the rows of a DataFrame, and names and types of their columns."""
    import pyarrow as pa

    if not hasattr(pdf, "columns"):
        raise JobDefinitionError(f"from_pandas(): expected a DataFrame; got {shorten(pdf)}")
    try:
        table = pa.Table.from_pandas(pdf, preserve_index=False)
    except _MISFIT as error:
        raise JobDefinitionError(
            f"from_pandas(): {'; '.join(map(str, error.args))}", hint="give the column one type: astype()"
        ) from error
    columns = [_plain(column) for column in table.columns]
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    names = list(table.column_names)
    if isinstance(schema, list | tuple) and all(isinstance(each, DataType) for each in schema):
        _check_width(names, schema)
        schema = RowType([RowField(name, each) for name, each in zip(names, schema, strict=True)])
    if isinstance(schema, RowType):
        return rows_and_types(rows, schema)
    if schema is not None:
        _check_width(names, schema)
        names = list(schema)
    return rows, names, [from_arrow_type(column.type) for column in columns]


def _plain(column: Any) -> Any:
    """Take categories for their values, and as much of a time as Spark keeps: microseconds."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


def _check_width(names: Sequence[str], schema: Sequence[Any]) -> None:
    if len(schema) != len(names):
        raise JobDefinitionError(
            f"from_pandas(): the schema has {len(schema)} columns, the DataFrame {len(names)}: {', '.join(names)}"
        )


def pandas_of(rows: Iterable[Row], schema: Schema, *, is_insert_only: bool) -> pd.DataFrame:
    """Return the table that a changelog comes to, as a DataFrame."""
    import pyarrow as pa

    if is_insert_only:
        kept = [tuple(row) for row in rows]
    else:
        kept = materialized(rows)
    columns = [_arrow_column([row[at] for row in kept], field.type) for at, field in enumerate(schema)]
    table = pa.table(columns, names=[field.name for field in schema])
    made: pd.DataFrame
    try:
        # As most DataFrames have them, so that they can be compared.
        made = table.to_pandas(coerce_temporal_nanoseconds=True, maps_as_pydicts="lossy")
    except pa.ArrowInvalid:  # a year that nanoseconds do not reach
        made = table.to_pandas(maps_as_pydicts="lossy")
    return made


def _arrow_column(values: list[Any], data_type: DataType) -> pa.Array:
    import pyarrow as pa

    kind = to_arrow_type(data_type)
    convert = arrow_form(kind)
    return pa.array(values if convert is None else map(convert, values), kind)


def materialized(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return the rows that are left when all changes have been made."""
    counts: Counter[Any] = Counter()
    values: dict[Any, tuple[Any, ...]] = {}
    for row in rows:
        key = repr(tuple(row))
        values[key] = tuple(row)
        counts[key] += 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    return [values[key] for key, count in counts.items() for _ in range(count)]

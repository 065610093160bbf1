"""Functions that make expressions: `col`, `lit`, `call` and those of SQL that belong to no column."""

from __future__ import annotations

from typing import Any, Final

from headrace.table._expression_text import texts, with_flink_text, with_text
from headrace.table._pieces import ColumnPiece, ColumnsPiece, FunctionPiece
from headrace.table._units import JsonOnNull, TimePointUnit
from headrace.table.expression import Expression, function, literal, pieced, separated
from headrace.types import DataType

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "descriptor",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
    "lag",
    "lead",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "map_from_arrays",
    "negative",
    "not_",
    "null_of",
    "object_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
    "with_columns",
    "without_columns",
]

#: Bounds of the rows that an aggregation over a window looks at.
UNBOUNDED_ROW: Final[Expression[Any]] = with_text(Expression(("UNBOUNDED ROWS",)), "UNBOUNDED_ROW")
UNBOUNDED_RANGE: Final[Expression[Any]] = with_text(Expression(("UNBOUNDED RANGE",)), "UNBOUNDED_RANGE")
CURRENT_ROW: Final[Expression[Any]] = with_text(Expression(("CURRENT ROW",)), "CURRENT_ROW")
CURRENT_RANGE: Final[Expression[Any]] = with_text(Expression(("CURRENT RANGE",)), "CURRENT_RANGE")


def col(name: str) -> Expression[Any]:
    """Return a column of a table by its name.

    Example:
        >>> col("price") * 2
        <Expression (`price` * 2)>
    """
    return with_text(Expression((ColumnPiece(name),)), name)


def lit(v: Any, data_type: DataType | None = None) -> Expression[Any]:
    """Return a constant.

    Args:
        v: A number, text, truth value, date, time, list or dict of them; or None.
        data_type: Its type; what SQL takes it for if None.

    Example:
        >>> lit("it's"), lit(1.5), lit(5).seconds
        (<Expression 'it''s'>, <Expression 1.5E0>, <Expression INTERVAL '5' SECOND>)
    """
    return literal(v, data_type)


def range_(start: str | int, end: str | int) -> Expression[Any]:
    """Return the columns from one to another, for `with_columns` and `without_columns`."""
    return Expression((ColumnsPiece((start, end)),))


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[bool]:
    """Whether all are true."""
    result: Expression[bool] = literal(predicate0) & predicate1
    for each in predicates:
        result = result & each
    return result


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[bool]:
    """Whether one of them is true."""
    result: Expression[bool] = literal(predicate0) | predicate1
    for each in predicates:
        result = result | each
    return result


def not_(expression: Expression[bool]) -> Expression[bool]:
    """Whether it is false."""
    return Expression(("(NOT ", *expression._pieces, ")"))


def current_database() -> Expression[Any]:
    """Return the name of the current database."""
    return function("CURRENT_DATABASE")


def current_date() -> Expression[Any]:
    """Return the date, in the time zone of the session."""
    return Expression(("CURRENT_DATE",))


def current_time() -> Expression[Any]:
    """Return the time of day, in the time zone of the session."""
    return Expression(("CURRENT_TIME",))


def current_timestamp() -> Expression[Any]:
    """Return the current time as TIMESTAMP_LTZ(3)."""
    return Expression(("CURRENT_TIMESTAMP",))


def current_watermark(rowtimeAttribute: Any) -> Expression[Any]:
    """Return the current watermark."""
    return function("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression[Any]:
    """Return the time of day, in the time zone of the session."""
    return Expression(("LOCALTIME",))


def local_timestamp() -> Expression[Any]:
    """Return date and time, in the time zone of the session."""
    return Expression(("LOCALTIMESTAMP",))


def to_date(date_str: Any, format: Any = None) -> Expression[Any]:
    """Convert a text to a date."""
    return function("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression[Any]:
    """Convert a text to a timestamp."""
    return function("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression[Any]:
    """Convert a number of seconds or milliseconds, or a text, to a timestamp with local time zone."""
    return function("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression[bool]:
    """Whether two stretches of time have a moment in common."""
    left = separated([left_time_point, left_temporal])
    right = separated([right_time_point, right_temporal])
    return pieced("((", *left, ") OVERLAPS (", *right, "))")


def date_format(timestamp: Any, format: Any) -> Expression[Any]:
    """Write date and time as text."""
    return function("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression[Any]:
    """Return how many units lie between two points in time."""
    unit = time_point_unit.name
    return pieced(f"TIMESTAMPDIFF({unit}, ", literal(time_point1), ", ", literal(time_point2), ")")


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression[Any]:
    """Move date and time, as text, from one time zone to another."""
    return function("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression[Any]:
    """Write seconds since 1970 as text."""
    return function("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression[Any]:
    """Return seconds since 1970: now, or of a text."""
    return function("UNIX_TIMESTAMP", *([] if date_str is None else [date_str, format]))


def array(head: Any, *tail: Any) -> Expression[Any]:
    """Return an array of values."""
    return literal([head, *tail])


def row(head: Any, *tail: Any) -> Expression[Any]:
    """Return a row of values."""
    return function("ROW", head, *tail)


def map_(key: Any, value: Any, *tail: Any) -> Expression[Any]:
    """Return a map of keys and values, in turn."""
    return pieced("MAP[", *separated((key, value, *tail)), "]")


def map_from_arrays(key: Any, value: Any) -> Expression[Any]:
    """Return a map of an array of keys and one of values."""
    return function("MAP_FROM_ARRAYS", key, value)


def descriptor(*column_names: str) -> Expression[Any]:
    """Name columns, as an argument of a function."""
    return function("DESCRIPTOR", *(col(name) for name in column_names))


def object_of(class_name: str, *args: Any) -> Expression[Any]:
    """Return an object with fields; the binder says whether there are such."""
    return function("OBJECT_OF", class_name, *args)


def row_interval(rows: int) -> Expression[Any]:
    """Return a number of rows, for windows that count."""
    return with_text(Expression((f"{rows} ROWS",), value=rows), str(rows))


def pi() -> Expression[Any]:
    """Return the number pi."""
    return function("PI")


def e() -> Expression[Any]:
    """Return the number e."""
    return function("E")


def rand(seed: Any = None) -> Expression[Any]:
    """Return a random number from 0 to 1."""
    return function("RAND", *([] if seed is None else [seed]))


def rand_integer(bound: Any, seed: Any = None) -> Expression[Any]:
    """Return a random whole number from 0 to before the bound."""
    return function("RAND_INTEGER", *([bound] if seed is None else [seed, bound]))


def atan2(y: Any, x: Any) -> Expression[Any]:
    """Return the angle of a point."""
    return function("ATAN2", y, x)


def negative(v: Any) -> Expression[Any]:
    """Return the number with the other sign."""
    return -literal(v)


def concat(first: Any, *others: Any) -> Expression[Any]:
    """Return texts, one after the other."""
    return function("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression[Any]:
    """Return texts, with a separator between them; NULLs are left out."""
    return function("CONCAT_WS", separator, first, *others)


def uuid() -> Expression[Any]:
    """Return a random UUID."""
    return function("UUID")


def null_of(data_type: DataType) -> Expression[Any]:
    """Return NULL of a type."""
    return literal(None, data_type)


def log(v: Any, base: Any = None) -> Expression[Any]:
    """Return the natural logarithm, or that to a base."""
    return literal(v).log(base)


def source_watermark() -> Expression[Any]:
    """Take the watermark from the stream that a table is made of."""
    return function("SOURCE_WATERMARK")


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression[Any]:
    """Return one value where a condition is true, another one where it is not."""
    return literal(condition).then(if_true, if_false)


def coalesce(*args: Any) -> Expression[Any]:
    """Return the first value that is not NULL."""
    return pieced("COALESCE(", *separated(args), ")")


def with_all_columns() -> Expression[Any]:
    """Return all columns of the table."""
    return Expression((ColumnsPiece(None),))


def with_columns(head: Any, *tails: Any) -> Expression[Any]:
    """Return some columns of the table, by name, by position from 1, or by `range_`."""
    return Expression((ColumnsPiece((head, *tails)),))


def without_columns(head: Any, *tails: Any) -> Expression[Any]:
    """Return all columns of the table but some."""
    return Expression((ColumnsPiece((head, *tails), is_inverted=True),))


def json(value: Any) -> Expression[Any]:
    """Take a text for JSON where another function would quote it."""
    return function("JSON", value)


def json_string(value: Any) -> Expression[Any]:
    """Write a value as JSON."""
    return function("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression[Any]:
    """Write keys and values, in turn, as a JSON object."""
    parts: list[Any] = []
    for at in range(0, len(args), 2):
        parts += [", KEY ", literal(args[at]), " VALUE ", literal(args[at + 1])]
    inner = [parts[0].removeprefix(", "), *parts[1:]] if parts else []
    return pieced("JSON_OBJECT(", *inner, f" {on_null.name} ON NULL)")


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression[Any]:
    """Write keys and values of the group as a JSON object."""
    end = f" {on_null.name} ON NULL)"
    return pieced("JSON_OBJECTAGG(KEY ", literal(key_expr), " VALUE ", literal(value_expr), end)


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression[Any]:
    """Write values as a JSON array."""
    return pieced("JSON_ARRAY(", *separated(args), f" {on_null.name} ON NULL)")


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression[Any]:
    """Write the values of the group as a JSON array."""
    return pieced("JSON_ARRAYAGG(", literal(item_expr), f" {on_null.name} ON NULL)")


def lag(expr: Any, offset: int = 1, default: Any = None) -> Expression[Any]:
    """Return the value of an earlier row of the window."""
    return function("LAG", expr, offset, default)


def lead(expr: Any, offset: int = 1, default: Any = None) -> Expression[Any]:
    """Return the value of a later row of the window."""
    return function("LEAD", expr, offset, default)


def call(f: Any, *args: Any) -> Expression[Any]:
    """Call a function: one of SQL or of the catalog by its name, or a Python function that `udf` made.

    Example:
        >>> call("UPPER", col("name"))
        <Expression UPPER(`name`)>
    """
    if isinstance(f, str):
        return with_text(pieced(f"{f}(", *separated(args), ")"), f"{f}({', '.join(texts(args))})")
    return call_object(f, args)


def call_object(f: Any, args: Any) -> Expression[Any]:
    """Call a Python function that has no name in a catalog."""
    called: Expression[Any] = Expression((FunctionPiece(f), *pieced("(", *separated(args), ")")._pieces))
    return with_text(called, f"{getattr(f, '_name', f)}({', '.join(texts(args))})")


def call_sql(sql_expression: str) -> Expression[Any]:
    """Return an expression that is written in SQL."""
    return with_text(Expression((f"({sql_expression})",)), f"[{sql_expression}]")


#: Functions whose result has a text of its own, or which call Python functions.
_OTHERS: Final = {"call", "call_sql", "col", "lit", "null_of", "row_interval"}
with_flink_text(
    globals(), [name for name in __all__ if name.islower() and name not in _OTHERS], is_method=False
)

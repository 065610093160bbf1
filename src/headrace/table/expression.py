"""Expressions of the Table API: an interface to SQL text, which the SQL binder parses, checks and types.

`col("price") * 2` is kept as the pieces of ``(`price` * 2)``. Pieces that are not known before the expression is
used, such as the name a Python function goes by, are put in by `Expression._sql`. Families of functions that are plain
calls are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from headrace.common.types import Row
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.table._bitmap_functions import BitmapFunctions
from headrace.table._collection_functions import CollectionFunctions
from headrace.table._expression_text import FLINK_NAMES, argument_text, with_flink_text, with_text
from headrace.table._intervals import Intervals, interval_sql, interval_text
from headrace.table._math_functions import MathFunctions
from headrace.table._pieces import (
    SHOWN,
    ColumnPiece,
    FlattenPiece,
    InlineTable,
    Names,
    OverReference,
    Piece,
    WindowPropertyPiece,
    written,
)
from headrace.table._text_functions import TextFunctions
from headrace.table._units import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from headrace.types import DataType, DataTypes

__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]

T = TypeVar("T")

_STRING: Final = DataTypes.STRING()


def _aggregation(name: str, doc: str) -> Any:
    return property(lambda self: _aggregate(name, self), doc=doc)


def _test(condition: str) -> Any:
    return property(
        lambda self: Expression(("(", *self._pieces, f" {condition})")),
        doc=f"Whether the value {condition.replace('IS', 'is', 1)}.",
    )


def _conversion(target: str, doc: str) -> Any:
    return property(lambda self: Expression(("CAST(", *self._pieces, f" AS {target})")), doc=doc)


def _window_property(name: str, doc: str) -> Any:
    return property(lambda self: Expression((WindowPropertyPiece(self._named(name), name),)), doc=doc)


class Expression(MathFunctions, TextFunctions, CollectionFunctions, BitmapFunctions, Intervals, Generic[T]):
    """A value of each row of a table. Made by `col`, `lit`, `call` and by what is done to another one.

    Example:
        >>> from headrace.table.expressions import col
        >>> (col("price") * 2 > 10) & col("name").upper_case.like("A%")
        <Expression (((`price` * 2) > 10) AND (UPPER(`name`) LIKE 'A%'))>
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        *,
        aliases: Sequence[str] = (),
        value: Any = None,
        order: str | None = None,
        is_distinct: bool = False,
    ) -> None:
        self._pieces = tuple(pieces)
        #: The names the value goes by in the result.
        self._aliases = tuple(aliases)
        #: What a literal was made of: intervals are made of it.
        self._value = value
        #: "ASC" or "DESC" for a sort order.
        self._order = order
        #: Whether an aggregation of it takes each value once.
        self._is_distinct = is_distinct
        #: How Flink writes the call that made it; None shows the SQL.
        self._text: str | None = None

    def _sql(self, names: Names) -> str:
        """Write the expression, without its alias."""
        return "".join(names.write(piece) for piece in self._pieces)

    def _call(self, name: str, *arguments: Any) -> Expression[Any]:
        return function(name, self, *arguments)

    def _interval(self, unit: str) -> Expression[Any]:
        found: Expression[Any] = Expression((interval_sql(self._value, unit, str(self)),))
        return with_text(found, interval_text(self._value, unit))

    @property
    def _column(self) -> str | None:
        """The name, if the expression is a column and nothing else."""
        match self._pieces:
            case (ColumnPiece(name),):
                return name
            case _:
                return None

    @property
    def _time_attribute(self) -> tuple[str, str] | None:
        """The name, and ``rowtime`` or ``proctime``, if the expression asks for a time attribute."""
        match self._pieces:
            case (WindowPropertyPiece(name, "rowtime" | "proctime" as kind),):
                return name, kind
            case _:
                return None

    # ------------------------------------------------------------------------------ arithmetic and logic

    def __abs__(self) -> Expression[Any]:
        return function("ABS", self)

    def __eq__(self, other: object) -> Expression[bool]:  # type: ignore[override]  # as in PyFlink
        return _infix(self, "=", other)

    def __ne__(self, other: object) -> Expression[bool]:  # type: ignore[override]  # as in PyFlink
        return _infix(self, "<>", other)

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Expression[bool]:
        return _infix(self, "<", other)

    def __gt__(self, other: Any) -> Expression[bool]:
        return _infix(self, ">", other)

    def __le__(self, other: Any) -> Expression[bool]:
        return _infix(self, "<=", other)

    def __ge__(self, other: Any) -> Expression[bool]:
        return _infix(self, ">=", other)

    def __and__(self, other: Any) -> Expression[bool]:
        return _infix(self, "AND", other)

    def __or__(self, other: Any) -> Expression[bool]:
        return _infix(self, "OR", other)

    def __invert__(self) -> Expression[bool]:
        # As in PyFlink: NULL is not true either, where NOT of SQL would be NULL.
        result: Expression[bool] = self.is_not_true
        return result

    def __rand__(self, other: Any) -> Expression[bool]:
        return _infix(other, "AND", self)

    def __ror__(self, other: Any) -> Expression[bool]:
        return _infix(other, "OR", self)

    def __add__(self, other: Any) -> Expression[Any]:
        return _infix(self, "+", other)

    def __sub__(self, other: Any) -> Expression[Any]:
        return _infix(self, "-", other)

    def __mul__(self, other: Any) -> Expression[Any]:
        return _infix(self, "*", other)

    def __truediv__(self, other: Any) -> Expression[Any]:
        return _infix(self, "/", other)

    def __mod__(self, other: Any) -> Expression[Any]:
        return _infix(self, "%", other)

    def __pow__(self, other: Any) -> Expression[Any]:
        return function("POWER", self, other)

    def __neg__(self) -> Expression[Any]:
        return Expression(("(- ", *self._pieces, ")"))

    def __radd__(self, other: Any) -> Expression[Any]:
        return _infix(other, "+", self)

    def __rsub__(self, other: Any) -> Expression[Any]:
        return _infix(other, "-", self)

    def __rmul__(self, other: Any) -> Expression[Any]:
        return _infix(other, "*", self)

    def __rtruediv__(self, other: Any) -> Expression[Any]:
        return _infix(other, "/", self)

    def __rmod__(self, other: Any) -> Expression[Any]:
        return _infix(other, "%", self)

    def __rpow__(self, other: Any) -> Expression[Any]:
        return function("POWER", other, self)

    def __getitem__(self, index: Any) -> Expression[Any]:
        return self.at(index)

    def __getattr__(self, name: str) -> Expression[Any]:
        # Only asked for names that are not methods: fields of rows.
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)

    def __bool__(self) -> bool:
        raise SqlValidationError(
            "an expression has no truth value before the query runs",
            hint="use & | ~ in place of and, or, not; and between() in place of a < x < b",
        )

    def _shown_sql(self) -> str:
        return self._sql(SHOWN) + (f" AS {', '.join(self._aliases)}" if self._aliases else "")

    def __str__(self) -> str:
        return self._shown_sql() if self._text is None else self._text

    def __repr__(self) -> str:
        return f"<Expression {self._shown_sql()}>"

    # -------------------------------------------------------------- functions without arguments

    to_date = _conversion("DATE", "The text, yyyy-MM-dd, as a date.")

    to_timestamp = _conversion("TIMESTAMP(3)", "The text, yyyy-MM-dd HH:mm:ss, as a timestamp.")

    to_time = _conversion("TIME", "The text, HH:mm:ss, as a time of day.")

    @property
    def flatten(self) -> Expression[Any]:
        """The fields of a row as columns of their own, `row$field`; another value stays as it is."""
        return Expression((FlattenPiece(self),))

    is_null = _test("IS NULL")

    is_not_null = _test("IS NOT NULL")

    is_true = _test("IS TRUE")

    is_false = _test("IS FALSE")

    is_not_true = _test("IS NOT TRUE")

    is_not_false = _test("IS NOT FALSE")

    # ----------------------------------------------------------------------------- aggregations

    @property
    def distinct(self) -> Expression[Any]:
        """Aggregate each value only once: ``col("a").count.distinct`` or before it."""
        match self._pieces:
            case (str(name), *rest) if name.endswith("(") and name[:-1].isidentifier():
                return Expression((f"{name}DISTINCT ", *rest))
            case _:
                return Expression(self._pieces, is_distinct=True)

    sum = _aggregation("SUM", "The sum of the group; NULL if it has no value.")

    min = _aggregation("MIN", "The least value of the group.")

    max = _aggregation("MAX", "The greatest value of the group.")

    count = _aggregation("COUNT", "How many values of the group are not NULL.")

    avg = _aggregation("AVG", "The mean of the group.")

    first_value = _aggregation("FIRST_VALUE", "The first value of the group.")

    last_value = _aggregation("LAST_VALUE", "The last value of the group.")

    stddev_pop = _aggregation("STDDEV_POP", "The standard deviation of the group.")

    stddev_samp = _aggregation("STDDEV_SAMP", "The standard deviation, estimated from a sample.")

    var_pop = _aggregation("VAR_POP", "The variance of the group.")

    var_samp = _aggregation("VAR_SAMP", "The variance, estimated from a sample.")

    collect = _aggregation("COLLECT", "The values of the group, as a multiset.")

    array_agg = _aggregation("ARRAY_AGG", "The values of the group, as an array.")

    @property
    def sum0(self) -> Expression[Any]:
        """The sum of the group; 0 if it has no value."""
        return function("COALESCE", _aggregate("SUM", self), 0)

    # --------------------------------------------------------------------------- order, windows

    @property
    def asc(self) -> Expression[Any]:
        """Sort by it, the least first."""
        return Expression(self._pieces, order="ASC")

    @property
    def desc(self) -> Expression[Any]:
        """Sort by it, the greatest first."""
        return Expression(self._pieces, order="DESC")

    start = _window_property("start", "The start of the group window that this names.")

    end = _window_property("end", "The end of the group window that this names.")

    rowtime = _window_property("rowtime", "The time, a time attribute of the group window that this names.")

    proctime = _window_property("proctime", "The processing time of the group window that this names.")

    def _named(self, asked: str) -> str:
        name = self._column
        if name is None:
            raise SqlValidationError(f"{asked} can only be called on the alias of a window, not on {self}")
        return name

    # ----------------------------------------------------------------- functions with arguments

    def if_null(self, null_replacement: Any) -> Expression[Any]:
        """The value, or another one in place of NULL."""
        return function("IFNULL", self, null_replacement)

    def object_update(self, *kv: Any) -> Expression[Any]:
        """The object with fields changed."""
        return function("OBJECT_UPDATE", self, *kv)

    def log(self, base: Any = None) -> Expression[Any]:
        """The natural logarithm, or that to a base."""
        return function("LN", self) if base is None else function("LOG", base, self)

    def truncate(self, n: Any = 0) -> Expression[Any]:
        """The number, truncated after this many digits after the decimal point."""
        return function("TRUNCATE", self, n)

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression[bool]:
        """Whether the value lies between two others, or is one of them."""
        return pieced("(", self, " BETWEEN ", literal(lower_bound), " AND ", literal(upper_bound), ")")

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression[bool]:
        """Whether the value lies outside two others."""
        return pieced("(", self, " NOT BETWEEN ", literal(lower_bound), " AND ", literal(upper_bound), ")")

    def then(self, if_true: Any, if_false: Any) -> Expression[Any]:
        """One value where this is true, another one where it is not."""
        return pieced("CASE WHEN ", self, " THEN ", literal(if_true), " ELSE ", literal(if_false), " END")

    def list_agg(self, separator: str | None = None) -> Expression[Any]:
        """The texts of the group in one, with separators between them."""
        return _aggregate("LISTAGG", self, *([] if separator is None else [separator]))

    def percentile(self, percentage: Any, frequency: Any = None) -> Expression[Any]:
        """The value below which so much of the group lies."""
        return _aggregate("PERCENTILE", self, percentage, *([] if frequency is None else [frequency]))

    def alias(self, name: str, *extra_names: str) -> Expression[Any]:
        """Name the value; name the columns of a table function."""
        return Expression(self._pieces, aliases=(name, *extra_names), value=self._value)

    def as_argument(self, name: str) -> Expression[Any]:
        """Give an argument of a function its name."""
        return pieced(f"{name} => ", self)

    def cast(self, data_type: DataType) -> Expression[Any]:
        """The value as another type; fails if it cannot be converted."""
        return pieced("CAST(", self, f" AS {data_type.summary_without_null()})")

    def try_cast(self, data_type: DataType) -> Expression[Any]:
        """The value as another type; NULL if it cannot be converted."""
        return pieced("TRY_CAST(", self, f" AS {data_type.summary_without_null()})")

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression[bool]:
        """Whether the value is one of some others, or in the only column of a table."""
        if hasattr(first_element_or_table, "_as_input"):
            return Expression(
                ("(", *self._pieces, " IN (SELECT * FROM ", InlineTable(first_element_or_table), "))")
            )
        options = [
            piece for each in (first_element_or_table, *remaining_elements) for piece in (", ", literal(each))
        ]
        return pieced("(", self, " IN (", *options[1:], "))")

    def trim_leading(self, character: Any = None) -> Expression[Any]:
        """The text without a character at its start; blanks if none is given."""
        return pieced("TRIM(LEADING ", literal(" " if character is None else character), " FROM ", self, ")")

    def trim_trailing(self, character: Any = None) -> Expression[Any]:
        """The text without a character at its end; blanks if none is given."""
        return pieced("TRIM(TRAILING ", literal(" " if character is None else character), " FROM ", self, ")")

    def trim(self, character: Any = None) -> Expression[Any]:
        """The text without a character at both ends; blanks if none is given."""
        return pieced("TRIM(BOTH ", literal(" " if character is None else character), " FROM ", self, ")")

    def like(self, pattern: Any = None, escape: Any = None) -> Expression[bool]:
        """Whether the text fits a pattern with % and _."""
        escaped: list[str | Expression[Any]] = [] if escape is None else [" ESCAPE ", literal(escape)]
        return pieced("(", self, " LIKE ", literal(pattern), *escaped, ")")

    def similar(self, pattern: Any = None) -> Expression[bool]:
        """Whether the text fits a regular expression of SQL."""
        return pieced("(", self, " SIMILAR TO ", literal(pattern), ")")

    def position(self, haystack: Any = None) -> Expression[Any]:
        """The first position of this text in another one, counted from 1; 0 if it is not found."""
        return pieced("POSITION(", self, " IN ", literal(haystack), ")")

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression[Any]:
        """The text with another one written over it."""
        rest: list[str | Expression[Any]] = [] if length is None else [" FOR ", literal(length)]
        return pieced(
            "OVERLAY(", self, " PLACING ", literal(new_string), " FROM ", literal(starting), *rest, ")"
        )

    def over(self, alias: Any) -> Expression[Any]:
        """Aggregate over the rows of a window that `over_window` names."""
        name = alias._column if isinstance(alias, Expression) else str(alias)
        return Expression((*self._pieces, " OVER ", OverReference(name or "")))

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression[Any]:
        """A part of a date or time."""
        return pieced(f"EXTRACT({time_interval_unit.name} FROM ", self, ")")

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """The greatest whole number, or unit of time, that is not greater."""
        unit = "" if time_interval_unit is None else f" TO {time_interval_unit.name}"
        return pieced("FLOOR(", self, f"{unit})")

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """The least whole number, or unit of time, that is not less."""
        unit = "" if time_interval_unit is None else f" TO {time_interval_unit.name}"
        return pieced("CEIL(", self, f"{unit})")

    def get(self, name_or_index: str | int) -> Expression[Any]:
        """A field of a row."""
        if isinstance(name_or_index, int):
            raise UnsupportedFeatureError.not_yet("a field of a row by its position", "get it by its name")
        return Expression((*self._pieces, ".", ColumnPiece(name_or_index)))

    def at(self, index: Any) -> Expression[Any]:
        """An element of an array, from 1, or the value of a map's key."""
        return pieced(self, "[", literal(index), "]")

    def is_json(self, json_type: JsonType | None = None) -> Expression[bool]:
        """Whether the text is JSON."""
        return pieced("(", self, " IS JSON" + ("" if json_type is None else f" {json_type.name}") + ")")

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression[bool]:
        """Whether a path leads somewhere in the JSON."""
        end = "" if on_error is None else f" {on_error.name} ON ERROR"
        return pieced("JSON_EXISTS(", self, ", ", literal(path), f"{end})")

    def json_value(
        self,
        path: str,
        returning_type: DataType = _STRING,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression[Any]:
        """The scalar that a path leads to in the JSON."""
        return pieced(
            "JSON_VALUE(",
            self,
            ", ",
            literal(path),
            f" RETURNING {returning_type.summary_without_null()}",
            *_json_otherwise(on_empty, default_on_empty, "EMPTY"),
            *_json_otherwise(on_error, default_on_error, "ERROR"),
            ")",
        )

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression[Any]:
        """The JSON that a path leads to in the JSON."""
        wrapper = wrapping_behavior.name.replace("_ARRAY", " ARRAY").replace(
            "CONDITIONAL", "WITH CONDITIONAL"
        )
        wrapper = wrapper.replace("UNWITH CONDITIONAL", "WITH UNCONDITIONAL")
        empty, error = (each.name.replace("_", " ") for each in (on_empty, on_error))
        end = f" {wrapper} WRAPPER {empty} ON EMPTY {error} ON ERROR)"
        return pieced("JSON_QUERY(", self, ", ", literal(path), end)


def _infix(left: Any, operator: str, right: Any) -> Expression[Any]:
    return pieced("(", literal(left), f" {operator} ", literal(right), ")")


def function(name: str, *arguments: Any) -> Expression[Any]:
    """Call a SQL function. Trailing arguments that are None are left out."""
    given = list(arguments)
    while len(given) > 1 and given[-1] is None:
        given.pop()
    return pieced(f"{name}(", *separated(given), ")")


def _aggregate(name: str, value: Expression[Any], *arguments: Any) -> Expression[Any]:
    call = function(name, value, *arguments)
    return call.distinct if value._is_distinct else call


def _json_otherwise(behavior: JsonValueOnEmptyOrError, default: Any, case: str) -> list[Any]:
    if behavior is JsonValueOnEmptyOrError.DEFAULT:
        return [" DEFAULT ", literal(default), f" ON {case}"]
    return [f" {behavior.name} ON {case}"]


def separated(values: Iterable[Any]) -> list[str | Expression[Any]]:
    """Return values as SQL, with commas between them."""
    parts = [piece for each in values for piece in (", ", literal(each))]
    return parts[1:]


def pieced(*parts: str | Expression[Any]) -> Expression[Any]:
    """Put an expression together of SQL and other expressions."""
    pieces: list[Piece] = []
    for part in parts:
        pieces += part._pieces if isinstance(part, Expression) else (part,)
    return Expression(pieces)


def literal(value: Any, data_type: DataType | None = None) -> Expression[Any]:
    """Write a value of Python as SQL; expressions stay what they are.

    Raises:
        SqlValidationError: If SQL has no way to write it.
    """
    if isinstance(value, Expression):
        return value
    return with_text(_constant(value, data_type), argument_text(value))


def _constant(value: Any, data_type: DataType | None) -> Expression[Any]:
    if data_type is not None:
        return Expression((f"CAST({written(value)} AS {data_type.summary_without_null()})",), value=value)
    match value:
        case list() | tuple():
            return pieced("ARRAY[", *separated(value), "]")
        case dict():
            entries = [part for entry in value.items() for part in entry]
            return pieced("MAP[", *separated(entries), "]")
        case Row():
            return function("ROW", *value)
    return Expression((written(value),), value=value)


def _public_calls() -> list[str]:
    """Return the names of what expressions are made with; units of intervals have a text of their own."""
    return [
        name
        for name in dir(Expression)
        if (not name.startswith("_") or name in FLINK_NAMES) and name not in vars(Intervals)
    ]


with_flink_text(Expression, _public_calls(), is_method=True)

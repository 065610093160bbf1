"""Stateless work as steps of Spark SQL: what lies on the edges of a table job.

A `Stream` is the output of a node of the job and what has been done to it since; nodes of the plan that keep no
state add steps to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.errors import InvariantViolation
from headrace.operators.table.steps import (
    Explode,
    Fragment,
    PythonCall,
    PythonCalls,
    Select,
    Step,
    StepColumn,
    Where,
)
from headrace.planner import physical as p
from headrace.planner.emit import emit
from headrace.planner.expressions import Call, Expression, InputRef, Literal, UserCall, rewrite, walk
from headrace.planner.logical import Schema
from headrace.planner.user_functions import callable_of, is_pandas
from headrace.planner.windows import WindowFunctionSpec, WindowKind, window_ends_sql, window_start_sql
from headrace.types import logical as t
from headrace.types.arrow import to_arrow_type

__all__ = [
    "Stream",
    "calc",
    "column",
    "columns_of",
    "expand",
    "filtered",
    "millis",
    "unnest",
    "watermark_millis",
    "window_millis",
    "windows",
    "with_python",
]

BIGINT: Final = t.BigIntType(False)
_EPOCH: Final = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


@dataclass(frozen=True)
class Stream:
    """Rows on their way from a node of the job."""

    #: The producer's position among the nodes of the job.
    node: int
    steps: tuple[Step, ...]
    columns: tuple[StepColumn, ...]

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [each.name for each in self.columns]

    @property
    def fragment(self) -> Fragment:
        """What is done to the producer's rows."""
        return Fragment(self.steps, self.columns)

    def then(self, step: Step, columns: Iterable[StepColumn] | None = None) -> Stream:
        """Return the stream with one step more."""
        return replace(
            self,
            steps=(*self.steps, step),
            columns=self.columns if columns is None else tuple(columns),
        )

    def select(self, items: Sequence[tuple[str, StepColumn]]) -> Stream:
        """Return new columns, computed by Spark SQL from those that are there."""
        if [(t.quote_name(each.name), each) for each in self.columns] == list(items):
            return self
        return self.then(Select(tuple((sql, each.name) for sql, each in items)), (each for _, each in items))

    def chosen(self, columns: Iterable[int]) -> list[tuple[str, StepColumn]]:
        """Return columns as items of a selection."""
        return [(t.quote_name(self.columns[at].name), self.columns[at]) for at in columns]

    def sql(self, expression: Expression) -> str:
        """Write an expression over the columns of the stream as Spark SQL."""
        return emit(expression, [t.quote_name(name) for name in self.names])


def column(name: str, data_type: t.DataType) -> StepColumn:
    """Return a column of a type of ours, with the types it has in Spark and in Arrow."""
    return StepColumn(name, data_type.spark_name(), to_arrow_type(data_type))


def columns_of(schema: Schema) -> tuple[StepColumn, ...]:
    """Return the columns of a plan's node, with names that differ: Spark takes capitals and small letters alike."""
    taken: set[str] = set()
    made: list[StepColumn] = []
    for field in schema:
        name, number = field.name, 0
        while name.lower() in taken:
            name, number = f"{field.name}_{number}", number + 1
        taken.add(name.lower())
        made.append(column(name, field.type))
    return tuple(made)


def millis(sql: str, data_type: t.DataType, *, is_utc: bool) -> str:
    """Write a timestamp as milliseconds since 1970 on the clock on the wall.

    Args:
        sql: The timestamp.
        data_type: TIMESTAMP or TIMESTAMP_LTZ.
        is_utc: Whether Spark's session is at UTC, where no zone has to be taken out again.
    """
    is_local = isinstance(data_type, t.LocalZonedTimestampType)
    if is_utc:
        return f"unix_millis({sql})" if is_local else f"unix_millis(CAST({sql} AS TIMESTAMP))"
    wall = f"CAST({sql} AS TIMESTAMP_NTZ)" if is_local else sql
    days = f"datediff(CAST({wall} AS DATE), DATE '1970-01-01') * 86400000L"
    day = f"hour({wall}) * 3600000L + minute({wall}) * 60000L"
    return f"({days} + {day} + CAST(extract(SECOND FROM {wall}) * 1000 AS BIGINT))"


def window_millis(sql: str, data_type: t.DataType, window: WindowFunctionSpec, *, is_utc: bool) -> str:
    """Write a timestamp as milliseconds that are in the same windows as it is.

    Windows of whole seconds do not ask for more than the second, which Spark has without its calendar: five times as
    fast, for every row.
    """
    exact = millis(sql, data_type, is_utc=is_utc)
    bounds = (window.size_ms, window.step_ms, window.offset_ms)
    if window.kind is WindowKind.SESSION or any(each % 1000 for each in bounds):
        return exact
    is_local = isinstance(data_type, t.LocalZonedTimestampType)
    if is_local and is_utc:
        return exact  # needs no calendar
    wall = f"CAST({sql} AS TIMESTAMP_NTZ)" if is_local else sql
    # Spark cuts off towards 1970, from both sides.
    return f"CASE WHEN {wall} < {_EPOCH} THEN {exact} ELSE unix_timestamp({wall}) * 1000L END"


def watermark_millis(stream: Stream, expression: Expression, *, is_utc: bool) -> tuple[str, str]:
    """Write a watermark as what must be the highest among rows, and the milliseconds that belong to that (``{}``)."""
    match expression:
        case InputRef() | Call(function="MINUS", operands=(InputRef(), Literal())):
            # The later the column, the later the watermark: only that of the highest is worth computing.
            (column,) = (each for each in walk(expression) if isinstance(each, InputRef))
            sql = emit(expression, ["{}"] * len(stream.columns))
            return stream.sql(column), millis(sql, expression.type, is_utc=is_utc)
        case _:
            return millis(stream.sql(expression), expression.type, is_utc=is_utc), "{}"


def from_millis(sql: str) -> str:
    """Write milliseconds since 1970, on the clock on the wall, as a TIMESTAMP."""
    return f"timestampadd(MILLISECOND, {sql}, {_EPOCH})"


# --- nodes of the plan that keep no state ---------------------------------------------------------


def calc(stream: Stream, node: p.Calc) -> Stream:
    """Filter rows, then compute columns."""
    if node.condition is not None:
        stream, (condition,) = with_python([node.condition], stream)
        stream = stream.then(Where(stream.sql(condition)))
    stream, expressions = with_python(node.expressions, stream)
    items = zip(map(stream.sql, expressions), columns_of(node.schema), strict=True)
    return stream.select(list(items))


def with_python(expressions: Iterable[Expression], stream: Stream) -> tuple[Stream, list[Expression]]:
    """Call Python functions first, innermost first; their results are columns that the expressions then read."""
    expressions = list(expressions)
    while True:
        calls = _innermost(expressions)
        if not calls:
            return stream, expressions
        stream, results = _called(calls, stream)

        def replaced(part: Expression, results: dict[UserCall, InputRef] = results) -> Expression | None:
            return results.get(part) if isinstance(part, UserCall) else None

        expressions = [rewrite(each, replaced) for each in expressions]


def _innermost(expressions: Iterable[Expression]) -> list[UserCall]:
    found: dict[UserCall, None] = {}
    for expression in expressions:
        for part in walk(expression):
            inner = (each for operand in getattr(part, "operands", ()) for each in walk(operand))
            if isinstance(part, UserCall) and not any(isinstance(each, UserCall) for each in inner):
                found[part] = None
    return list(found)


def _called(calls: Sequence[UserCall], stream: Stream) -> tuple[Stream, dict[UserCall, InputRef]]:
    width = len(stream.columns)
    arguments: list[tuple[str, StepColumn]] = []
    made: list[PythonCall] = []
    for call in calls:
        names = []
        for operand in call.operands:
            argument = column(f"__arg{width}_{len(arguments)}", operand.type)
            arguments.append((stream.sql(operand), argument))
            names.append(argument.name)
        made.append(
            PythonCall(
                callable_of(call.function),
                tuple(names),
                column(f"__udf{width}_{len(made)}", call.type),
                is_pandas(call.function),
                call.function.is_deterministic,
            )
        )
    if arguments:
        stream = stream.select([*stream.chosen(range(width)), *arguments])
    first = len(stream.columns)
    stream = stream.then(PythonCalls(tuple(made)), (*stream.columns, *(each.result for each in made)))
    return stream, {call: InputRef(first + at, call.type) for at, call in enumerate(calls)}


def expand(stream: Stream, node: p.Expand) -> Stream:
    """Give each row once per grouping set."""
    columns = columns_of(node.schema)
    width = len(stream.columns)
    number = columns[-1]
    numbers = ", ".join(f"{at}L" for at in range(len(node.sets)))
    stream = stream.then(Explode(f"explode(array({numbers}))", (number.name,)), (*stream.columns, number))
    items = stream.chosen(range(width))
    for key, copy in zip(node.columns, columns[width:-1], strict=True):
        has = [str(at) for at, one in enumerate(node.sets) if key in one]
        condition = f"{t.quote_name(number.name)} IN ({', '.join(has)})" if has else "false"
        items.append((f"CASE WHEN {condition} THEN {t.quote_name(stream.columns[key].name)} END", copy))
    return stream.select([*items, *stream.chosen([width])])


def unnest(stream: Stream, node: p.Unnest) -> Stream:
    """Give each row once per element of a collection."""
    stream, (collection,) = with_python([node.collection], stream)
    width = len(node.input.schema)
    columns = columns_of(node.schema)
    made = [column("__position", BIGINT)] if node.with_ordinality else []
    values: list[str]
    elements, kind = as_collection(stream.sql(collection), node.collection.type)
    if node.condition is not None:
        elements = filtered(
            elements, kind, node.condition, [t.quote_name(name) for name in stream.names[:width]]
        )
    match kind:
        case t.MapType(key_type=key, value_type=value):
            made += [column("__key", key), column("__value", value)]
            values = ["`__key`", "`__value`"]
        case t.ArrayType(element_type=t.RowType() as row):
            made.append(column("__element", row))
            values = [f"`__element`.{t.quote_name(name)}" for name in row.field_names()]
        case t.ArrayType(element_type=element):
            made.append(column("__element", element))
            values = ["`__element`"]
        case other:
            raise InvariantViolation(f"UNNEST of a {other.summary_without_null()}")
    if node.with_ordinality:
        values.append("CAST(`__position` + 1 AS INT)")
    generator = "posexplode" if node.with_ordinality else "explode"
    stream = stream.then(
        Explode(f"{generator}({elements})", tuple(each.name for each in made), node.is_outer),
        (*stream.columns, *made),
    )
    kept = [(t.quote_name(old.name), new) for old, new in zip(stream.columns[:width], columns, strict=False)]
    return stream.select([*kept, *zip(values, columns[width:], strict=True)])


def filtered(sql: str, data_type: t.DataType, condition: Expression, columns: Sequence[str]) -> str:
    """Write an array without the rows that do not satisfy a condition over columns and their fields."""
    assert isinstance(data_type, t.ArrayType)
    assert isinstance(data_type.element_type, t.RowType)
    fields = [f"e.{t.quote_name(name)}" for name in data_type.element_type.field_names()]
    return f"filter({sql}, e -> {emit(condition, [*columns, *fields])})"


def as_collection(sql: str, data_type: t.DataType) -> tuple[str, t.DataType]:
    """Write a collection so that Spark can explode it: a MULTISET, a map to counts, as the ARRAY of its elements."""
    if not isinstance(data_type, t.MultisetType):
        return sql, data_type
    each = "e -> array_repeat(e.key, e.value)"
    return f"flatten(transform(map_entries({sql}), {each}))", t.ArrayType(data_type.element_type)


def windows(stream: Stream, node: p.WindowTableFunction, *, is_utc: bool) -> Stream:
    """Give each row once per window it is in."""
    width = len(stream.columns)
    columns = columns_of(node.schema)
    time = stream.columns[node.time_index]
    kind = node.input.schema[node.time_index].type
    ms = window_millis(t.quote_name(time.name), kind, node.window, is_utc=is_utc)
    stream = stream.select([*stream.chosen(range(width)), (ms, column("__time", BIGINT))])
    stream = stream.then(
        Explode(f"explode({window_ends_sql(node.window, '`__time`')})", ("__end",)),
        (*stream.columns, column("__end", BIGINT)),
    )
    start, last = (
        from_millis(window_start_sql(node.window, "`__time`", "`__end`")),
        from_millis("`__end` - 1"),
    )
    if isinstance(node.schema[-1].type, t.LocalZonedTimestampType):
        last = f"CAST({last} AS TIMESTAMP)"
    kept = [(t.quote_name(old.name), new) for old, new in zip(stream.columns[:width], columns, strict=False)]
    bounds = (start, from_millis("`__end`"), last)
    return stream.select([*kept, *zip(bounds, columns[width:], strict=True)])

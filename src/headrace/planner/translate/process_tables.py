"""Process table functions: rows of all tables as one stream, with the number of the table in each row."""

from __future__ import annotations

from headrace.catalog.process_functions import ArgumentTrait
from headrace.operators.table import declarations as d
from headrace.operators.table import process_declarations as process
from headrace.operators.table import steps
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.expressions import InputRef
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.process_tables import TableInCall
from headrace.planner.translate.context import Translation, names_of, order_of, zoned
from headrace.types import logical as t
from headrace.types.logical import quote_name

__all__ = ["from_changelog", "process_table", "to_changelog"]

_TABLE = f.column("__table", t.IntType(False))
_TIME = f.column("__time", BIGINT)


def to_changelog(stream: Stream, node: p.ToChangelog) -> Stream:
    """Make a column of what rows do to the table."""
    columns = f.columns_of(node.schema)
    code = f.column("__op", node.schema[0].type)
    coded = stream.then(
        steps.KindsToColumn(code.name, tuple((kind.value, text) for kind, text in node.codes)),
        (code, *stream.columns),
    )
    old = [each.name for each in coded.columns]
    return coded.select([(quote_name(name), column) for name, column in zip(old, columns, strict=True)])


def from_changelog(stream: Stream, node: p.FromChangelog) -> Stream:
    """Have a column say what rows do to the table."""
    left = tuple(each for at, each in enumerate(stream.columns) if at != node.index)
    codes = tuple((text, kind.value) for text, kind in node.codes)
    made = stream.then(steps.ColumnToKinds(stream.columns[node.index].name, codes), left)
    columns = f.columns_of(node.schema)
    return made.select([(quote_name(old.name), new) for old, new in zip(left, columns, strict=True)])


def process_table(to: Translation, node: p.ProcessTable) -> Stream:
    """Call the function for the rows of its tables."""
    call = node.call
    tables = [
        tuple(f.column(f"__t{number}_{at}", field.type) for at, field in enumerate(each.schema))
        for number, each in enumerate(node.tables)
    ]
    keys = _keys(to, node, tables)
    has_time = call.has_time or any(each.order_by for each in call.tables)
    inputs = [
        (0, _as_input(to, node, number, stream, tables, keys, has_time))
        for number, each in enumerate(node.tables)
        for stream in to.streams[each]
    ]
    output = list(f.columns_of(node.schema))
    rowtime = output[-1]
    if call.has_time:
        output[-1] = f.column("__rowtime", BIGINT)
    result = call.function.result_type
    declaration = process.ProcessTableDeclaration(
        tuple(output),
        names_of(keys),
        call.implementation,
        tuple(_table(to, each, at, node, tables[at]) for at, each in enumerate(call.tables)),
        arguments=call.arguments,
        table=_TABLE.name,
        time=_TIME.name if has_time else None,
        has_time=call.has_time,
        result_width=len(result.fields) if isinstance(result, t.RowType) else 1,
        is_single=not isinstance(result, t.RowType),
        zone=to.settings.zone_of(node.schema[-1].type) if call.has_time else None,
        mode=to.plan.changelogs[node],
        **to.traits(node),
    )
    stream = to.add(declaration, node, inputs, output, uid=call.uid)
    if not call.has_time:
        return stream
    items = stream.chosen(range(len(output) - 1))
    time = zoned(f.from_millis("`__rowtime`"), node.schema[-1].type)
    return stream.select([*items, (time, rowtime)])


def _keys(to: Translation, node: p.ProcessTable, tables: list[steps.Schema]) -> tuple[steps.StepColumn, ...]:
    """Return the columns that rows of a key have in common; without keys, those that rows are spread by."""
    first = node.call.tables[0]
    if first.spec.is_set:
        schema = node.tables[0].schema
        return tuple(f.column(f"__k{at}", schema[index].type) for at, index in enumerate(first.partition_by))
    if not to.plan.changelogs[node.tables[0]].is_insert_only:
        # What happens to a row must stay in order.
        return ()
    plain = (t.ArrayType, t.MapType, t.MultisetType, t.RowType)
    schema = node.tables[0].schema
    return tuple(
        column for column, field in zip(tables[0], schema, strict=True) if not isinstance(field.type, plain)
    )


def _as_input(
    to: Translation,
    node: p.ProcessTable,
    number: int,
    stream: Stream,
    tables: list[steps.Schema],
    keys: tuple[steps.StepColumn, ...],
    has_time: bool,
) -> Stream:
    """Return the rows of a table as the operator takes rows of all tables."""
    table = node.call.tables[number]
    items = [(f"{number}", _TABLE)]
    if table.spec.is_set:
        for index, key in zip(table.partition_by, keys, strict=True):
            items.append((f"CAST({quote_name(stream.columns[index].name)} AS {key.spark_type})", key))
    for at, columns in enumerate(tables):
        for column, own in zip(columns, stream.columns if at == number else columns, strict=True):
            sql = quote_name(own.name) if at == number else f"CAST(NULL AS {column.spark_type})"
            items.append((sql, column))
    if has_time:
        timed = _time_index(table)
        # A table that is not sorted, beside one that is, has no time to go by.
        ms = "0L"
        if timed is not None:
            ms = to.millis(stream, InputRef(timed, node.tables[number].schema[timed].type))
        items.append((ms, _TIME))
    return stream.select(items)


def _time_index(table: TableInCall) -> int | None:
    if table.time_index is not None or not table.order_by:
        return table.time_index
    first = table.order_by[0].expression
    assert isinstance(first, InputRef)
    return first.index


def _table(
    to: Translation, table: TableInCall, number: int, node: p.ProcessTable, columns: steps.Schema
) -> process.ProcessedTable:
    below = node.tables[number]
    order: tuple[d.Order, ...] | None = order_of(table.order_by, columns) if table.order_by else None
    return process.ProcessedTable(
        table.spec.name,
        below.names,
        names_of(columns),
        table.partition_by,
        order,
        table.time_index,
        table.spec.has(ArgumentTrait.PASS_COLUMNS_THROUGH),
        to.plan.changelogs[below],
    )

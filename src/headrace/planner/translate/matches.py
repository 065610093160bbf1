"""MATCH_RECOGNIZE: an operator that looks for a pattern in the rows of each key."""

from __future__ import annotations

from headrace.operators.table.match_declarations import MatchRecognizeDeclaration
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.expressions import InputRef
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import TimeKind
from headrace.planner.translate.context import Translation, names_of, order_of, zoned
from headrace.types.logical import quote_name

__all__ = ["match_recognize"]


def match_recognize(to: Translation, node: p.Match) -> Stream:
    """Have a row come out for each match."""
    output = f.columns_of(node.schema)
    columns = f.columns_of(node.input.schema)
    by = node.order[0].expression
    assert isinstance(by, InputRef)
    time = f.column("__time", BIGINT) if node.time is TimeKind.ROWTIME else None
    inputs = (
        to.renamed_inputs(node, columns) if time is None else to.with_millis(node, columns, by.index, time)
    )
    # The time of a match is counted in ms, as all event time is.
    given = tuple(
        f.column(column.name, BIGINT) if field.time is TimeKind.ROWTIME else column
        for column, field in zip(output, node.schema, strict=True)
    )
    declaration = MatchRecognizeDeclaration(
        given,
        names_of(columns[key] for key in node.partition),
        node.pattern,
        None if time is None else time.name,
        order_of(node.order[1:], columns),
        **to.traits(node),
    )
    stream = to.add(declaration, node, inputs, given)
    items = []
    for field, column in zip(node.schema, output, strict=True):
        sql = quote_name(column.name)
        items.append(
            (zoned(f.from_millis(sql), field.type) if field.time is TimeKind.ROWTIME else sql, column)
        )
    return stream.select(items)

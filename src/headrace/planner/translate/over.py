"""OVER: rows with the results of functions over the rows before them."""

from __future__ import annotations

from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table import timed_declarations as timed
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.expressions import Expression, FrameUnit, InputRef, Literal, WindowCall
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import TimeKind
from headrace.planner.translate.aggregates import separator_of
from headrace.planner.translate.context import Translation, names_of, order_of
from headrace.planner.user_functions import aggregate_of
from headrace.types.logical import quote_name

__all__ = ["over_aggregate"]


def over_aggregate(to: Translation, node: p.OverAggregate) -> Stream:
    """Have each row come out with the results of its functions."""
    output = f.columns_of(node.schema)
    below = len(node.input.schema)
    columns, results = output[:below], output[below:]
    keys = names_of(columns[key] for key in node.partition)
    calls = [_call(call, columns, result) for call, result in zip(node.calls, results, strict=True)]
    if node.time is not TimeKind.ROWTIME:
        order = None if node.time is TimeKind.PROCTIME else order_of([node.order], columns)[0]
        made = timed.OverAggregateDeclaration(output, keys, tuple(calls), order=order, **to.traits(node))
        return to.add(made, node, to.renamed_inputs(node, columns), output)
    by = node.order.expression
    assert isinstance(by, InputRef)
    time = f.column("__time", BIGINT)
    inputs = to.with_millis(node, columns, by.index, time)
    made = timed.OverAggregateDeclaration(
        (*columns, time, *results), keys, tuple(calls), time=time.name, **to.traits(node)
    )
    stream = to.add(made, node, inputs, made.output)
    return stream.select([(quote_name(each.name), each) for each in output])


def _call(call: WindowCall, columns: steps.Schema, result: steps.StepColumn) -> timed.OverCall:
    assert call.frame is not None
    values = (
        call.arguments[:1] if call.function == "LISTAGG" and call.user_function is None else call.arguments
    )
    offset = 1
    if call.function == "LAG":
        if len(call.arguments) > 1:
            assert isinstance(call.arguments[1], Literal)
            offset = call.arguments[1].value
        values = (*call.arguments[:1], *call.arguments[2:])
    arguments = tuple(_column(each, columns) for each in values)
    separator = separator_of(call.function, call.arguments)
    user = None if call.user_function is None else aggregate_of(call.user_function)
    spec = d.AggSpec(call.function, arguments, result, call.distinct, separator=separator, user=user)
    preceding = call.frame.preceding
    # Streams count rows and milliseconds: frames over numbers are refused (rules/over.py).
    assert preceding is None or isinstance(preceding, int)
    return timed.OverCall(spec, preceding, call.frame.unit is FrameUnit.RANGE, offset)


def _column(value: Expression, columns: steps.Schema) -> str:
    assert isinstance(value, InputRef)
    return columns[value.index].name

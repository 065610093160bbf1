"""Aggregations, of groups and of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.catalog.functions import UserFunction
from headrace.errors import JobDefinitionError, UnsupportedFeatureError
from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table.user_functions import UserAggregate
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.expressions import AggregateCall, Expression, InputRef, Literal
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.translate.context import Translation, names_of, zoned
from headrace.planner.user_functions import aggregate_of
from headrace.planner.windows import WindowFunctionSpec, WindowKind, WindowProperty
from headrace.types.logical import TimestampType, quote_name

__all__ = ["group_aggregate", "separator_of", "window_aggregate"]

#: What stands for the window in the output of a window aggregation.
_PROPERTIES = {
    WindowProperty.START: "window_start",
    WindowProperty.END: "window_end",
    WindowProperty.ROWTIME: "window_time",
    WindowProperty.PROCTIME: "window_time",
}


def group_aggregate(to: Translation, node: p.GroupAggregate) -> Stream:
    """Aggregate groups, forever or as long as state lives."""
    output = f.columns_of(node.schema)
    keys, calls = names_of(output[: len(node.keys)]), output[len(node.keys) :]
    streams, specs = _aggregated(to, node, node.keys, keys, node.calls, calls)
    declaration = d.GroupAggregateDeclaration(output, keys, specs, **to.traits(node, node.ttl_ms))
    return to.add(declaration, node, [(0, stream) for stream in streams], output)


def window_aggregate(to: Translation, node: p.WindowAggregate) -> Stream:
    """Aggregate windows, which fire when time has passed them."""
    if node.window.counts_rows:
        return _row_windows(to, node)
    output = f.columns_of(node.schema)
    width = len(node.keys)
    keys, calls = names_of(output[:width]), output[width : width + len(node.calls)]
    below = node.input.schema
    extra: list[tuple[Expression, str]] = []
    if node.attached is not None:
        pair = zip(node.attached, ("__start", "__end"), strict=True)
        extra = [(InputRef(at, below[at].type), name) for at, name in pair]
    elif not node.is_proctime:
        assert node.time_index is not None
        extra = [(InputRef(node.time_index, below[node.time_index].type), "__time")]
    # Where rows have their windows already, these must come out as they are.
    window = node.window if node.attached is None else None
    streams, specs = _aggregated(to, node, node.keys, keys, node.calls, calls, extra, window)
    # Windows are on the clock on the wall; where the event time has a zone, window_time gets it back after.
    bounds = output[width + len(node.calls) :]
    made = (
        *output[: width + len(node.calls)],
        *(f.column(each.name, TimestampType(3)) for each in bounds),
    )
    declaration = d.WindowAggregateDeclaration(
        made,
        None if node.attached is not None else _window(to, node.window, node.is_proctime),
        keys,
        specs,
        start="__start" if node.attached is not None else None,
        end="__end" if node.attached is not None else None,
        properties=tuple(_PROPERTIES[each] for each in node.properties),
        **to.traits(node, 0),
    )
    stream = to.add(declaration, node, [(0, each) for each in streams], made)
    types = [field.type for field in node.schema]
    items = [
        (zoned(quote_name(one.name), kind), column)
        for one, column, kind in zip(made, output, types, strict=True)
    ]
    return stream.select(items)


def _row_windows(to: Translation, node: p.WindowAggregate) -> Stream:
    """Find the rows of windows that are full, and aggregate each window by itself."""
    output = f.columns_of(node.schema)
    width = len(node.keys)
    keys, calls = names_of(output[:width]), output[width:]
    streams, specs = _aggregated(to, node, node.keys, keys, node.calls, calls)
    number = f.column("__window", BIGINT)
    traits = to.traits(node, 0)
    rows = d.RowWindowsDeclaration(
        (*streams[0].columns, number),
        keys=keys,
        size=node.window.size_ms,
        slide=node.window.step_ms,
        number=number.name,
        **traits,
    )
    windows = to.add(rows, node, [(0, each) for each in streams], rows.output)
    made = (*output[:width], number, *calls)
    aggregate = d.GroupAggregateDeclaration(made, (*keys, number.name), specs, keeps_groups=False, **traits)
    stream = to.add(aggregate, node, [(0, windows)], made)
    return stream.select([(quote_name(each.name), each) for each in output])


def _aggregated(
    to: Translation,
    node: p.OneInput,
    keys: Sequence[int],
    key_names: Sequence[str],
    calls: Sequence[AggregateCall],
    results: Sequence[steps.StepColumn],
    extra: Sequence[tuple[Expression, str]] = (),
    window: WindowFunctionSpec | None = None,
) -> tuple[list[Stream], tuple[d.AggSpec, ...]]:
    """Compute keys, arguments and conditions of aggregations before the exchange.

    Args:
        extra: Timestamps that go along as milliseconds, with their names.
        window: What they are for, if nothing but their window is asked of them.
    """
    specs: list[d.AggSpec] = []
    wanted: list[tuple[Expression, str]] = []

    def named(expression: Expression) -> str:
        for known, name in wanted:
            if known == expression:
                return name
        wanted.append((expression, f"__a{len(wanted)}"))
        return wanted[-1][1]

    for call, result in zip(calls, results, strict=True):
        separator = _separator(call)
        is_list = call.function == "LISTAGG" and call.user_function is None
        values = call.arguments[:1] if is_list else call.arguments
        user = None if call.user_function is None else _user_function(to, node, call.user_function)
        arguments = tuple(named(each) for each in values)
        condition = None if call.filter is None else named(call.filter)
        specs.append(d.AggSpec(call.function, arguments, result, call.distinct, condition, separator, user))
    streams = []
    for rows in to.streams[node.input]:
        stream, computed = f.with_python([each for each, _ in wanted], rows)
        items = [
            (quote_name(stream.columns[key].name), replace(stream.columns[key], name=name))
            for key, name in zip(keys, key_names, strict=True)
        ]
        items += [
            (stream.sql(value), f.column(name, each.type))
            for value, (each, name) in zip(computed, wanted, strict=True)
        ]
        items += [(to.millis(stream, each, window), f.column(name, BIGINT)) for each, name in extra]
        streams.append(stream.select(items))
    return streams, tuple(specs)


def _user_function(to: Translation, node: p.OneInput, function: UserFunction) -> UserAggregate:
    """Return a function of the user's; refuse one that cannot do what the query needs of it."""
    made = aggregate_of(function)
    if not to.plan.changelogs[node.input].is_insert_only and not made.can_retract:
        raise JobDefinitionError(
            f"{made.name} does not implement retract(), but rows that it aggregates may be retracted",
            hint="implement retract(accumulator, ...), which undoes accumulate()",
        )
    window = node.window if isinstance(node, p.WindowAggregate) else None
    is_session = window is not None and window.kind is WindowKind.SESSION
    if is_session and not made.can_merge and not made.is_pandas:
        raise JobDefinitionError(
            f"{made.name} does not implement merge(), but sessions may be merged",
            hint="implement merge(accumulator, accumulators), which adds other accumulators to the first",
        )
    return made


def _window(to: Translation, window: WindowFunctionSpec, is_proctime: bool) -> d.TableWindowSpec:
    """Return the windows as operators know them."""
    is_session = window.kind is WindowKind.SESSION
    return d.TableWindowSpec(
        window.kind,
        None if is_proctime else "__time",
        size_ms=0 if is_session else window.size_ms,
        slide_ms=window.step_ms if window.kind in (WindowKind.HOP, WindowKind.CUMULATE) else 0,
        gap_ms=window.size_ms if is_session else 0,
        offset_ms=window.offset_ms,
        zone=to.settings.zone if is_proctime and not to.settings.is_utc else None,
    )


def _separator(call: AggregateCall) -> str:
    """Return what stands between the values of LISTAGG; refuse what no operator honours."""
    if call.order_by:
        raise UnsupportedFeatureError.not_yet(
            f"ORDER BY in {call.function}", "leave it out: values come in the order of their rows"
        )
    return separator_of(call.function, call.arguments)


def separator_of(function: str, arguments: Sequence[Expression]) -> str:
    """Return what stands between the values of LISTAGG."""
    if function != "LISTAGG" or len(arguments) == 1:
        return ","
    given = arguments[1]
    if not isinstance(given, Literal) or given.value is None:
        raise UnsupportedFeatureError.not_yet(
            "LISTAGG in streaming mode with a separator that is not a constant",
            "write the separator as a string",
        )
    return str(given.value)

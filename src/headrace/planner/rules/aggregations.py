"""Aggregations: over groups forever, over windows until they are over, over several groupings at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.planner import expressions as e
from headrace.planner.logical import (
    Aggregate,
    Field,
    Filter,
    GroupWindowAggregate,
    LogicalNode,
    Project,
    TimeKind,
    WindowColumns,
    WindowTable,
    window_columns,
)
from headrace.planner.physical import Expand, GroupAggregate, PhysicalNode, WindowAggregate
from headrace.planner.rules.nodes import Convert, calc, columns_of, exchanged, placed_error
from headrace.planner.windows import WindowFunctionSpec, WindowKind, WindowProperty
from headrace.types.logical import BigIntType, BooleanType, TimestampType

__all__ = ["convert_aggregate", "convert_group_window"]

#: Functions that ask which grouping set a row belongs to.
_GROUPING = ("GROUPING", "GROUPING_ID", "GROUP_ID")


def convert_aggregate(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn GROUP BY into an operator: over windows, if start and end of a window are among the keys."""
    if not isinstance(node, Aggregate):
        return None
    if node.grouping_sets is not None:
        return _over_grouping_sets(node, convert)
    windows = window_columns(node.input)
    if windows is not None and windows.holds(node.group_keys):
        return _over_windows(node, windows, convert)
    below = convert(node.input)
    return _grouped(node, below)


def _grouped(node: Aggregate, below: PhysicalNode) -> PhysicalNode:
    return GroupAggregate(
        schema=node.schema,
        input=exchanged(below, node.group_keys),
        keys=node.group_keys,
        calls=node.calls,
        ttl_ms=node.ttl_ms,
    )


# --- windows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Windowed:
    """The rows of a window aggregation, and where in them everything is."""

    rows: PhysicalNode
    #: Where the columns of the aggregation's input are; those of the window are not there.
    places: dict[int, int]
    time_index: int | None
    attached: tuple[int, int] | None = None


def _check_slices(window: WindowFunctionSpec) -> None:
    """Refuse windows that are not a whole number of slices: rows may lie in them, but are not aggregated by slice."""
    if window.kind is WindowKind.HOP and window.size_ms % window.step_ms:
        raise placed_error(
            None,
            "to aggregate rows in windows of HOP, their size must be a multiple of the slide",
            "the slide comes before the size: HOP(TABLE t, DESCRIPTOR(time), slide, size)",
        )


def _over_windows(node: Aggregate, windows: WindowColumns, convert: Convert) -> PhysicalNode:
    _check_slices(windows.window)
    used = set(node.group_keys) | {index for call in node.calls for index in _used(call)}
    asked = windows.start | windows.end | windows.time
    from_rows = {index for call in node.calls for index in _used(call)} & asked
    keys = [key for key in node.group_keys if key not in asked]
    found = None if from_rows else _without_window_table(node.input, keys, used - asked, convert)
    if found is None:
        below = convert(node.input)
        bounds = (min(windows.start), min(windows.end))
        found = _Windowed(below, {at: at for at in range(len(below.schema))}, None, bounds)
    properties: list[WindowProperty] = []
    for key in node.group_keys:
        what = _property(key, windows)
        if what is not None and what not in properties:
            properties.append(what)
    schema = found.rows.schema
    mapping: dict[int, e.Expression] = {
        old: e.InputRef(new, schema[new].type) for old, new in found.places.items()
    }
    calls = tuple(_moved(call, mapping) for call in node.calls)
    width = len(keys)
    key_fields = [schema[found.places[key]] for key in keys]
    made = WindowAggregate(
        schema=(
            *(Field(field.name, field.type) for field in key_fields),
            *(
                Field(name, call.type)
                for name, call in zip(node.names[len(node.group_keys) :], calls, strict=True)
            ),
            *(_property_field(each, windows) for each in properties),
        ),
        input=exchanged(found.rows, [found.places[key] for key in keys]),
        window=windows.window,
        keys=tuple(found.places[key] for key in keys),
        calls=calls,
        properties=tuple(properties),
        time_index=found.time_index,
        attached=found.attached,
        is_proctime=windows.time_kind is TimeKind.PROCTIME,
    )
    # Back to the order of GROUP BY: keys and window columns as they were written, then the results.
    order = []
    for key in node.group_keys:
        what = _property(key, windows)
        order.append(keys.index(key) if what is None else width + len(calls) + properties.index(what))
    order += range(width, width + len(calls))
    names = [field.name for field in node.schema]
    return calc(made, columns_of(made, order), names, times=[field.time for field in node.schema])


def _property(column: int, windows: WindowColumns) -> WindowProperty | None:
    if column in windows.start:
        return WindowProperty.START
    if column in windows.end:
        return WindowProperty.END
    if column in windows.time:
        return WindowProperty.PROCTIME if windows.time_kind is TimeKind.PROCTIME else WindowProperty.ROWTIME
    return None


def _property_field(what: WindowProperty, windows: WindowColumns) -> Field:
    time = windows.time_kind if what in (WindowProperty.ROWTIME, WindowProperty.PROCTIME) else None
    return Field(f"window_{what.value.lower()}", TimestampType(3, False), time)


def _without_window_table(
    node: LogicalNode, keys: Sequence[int], used: set[int], convert: Convert
) -> _Windowed | None:
    """Give rows to the aggregation before they are put into windows: it does that itself, slice by slice.

    That works if nothing between the window function and the aggregation looks at the window.
    """
    expressions: Sequence[e.Expression] | None = None
    conditions: list[e.Expression] = []
    match node:
        case WindowTable() as table:
            pass
        case Filter(WindowTable() as table, condition):
            conditions = e.conjuncts(condition)
        case Project(WindowTable() as table, expressions):
            pass
        case Project(Filter(WindowTable() as table, condition), expressions):
            conditions = e.conjuncts(condition)
        case _:
            return None
    width = len(table.input.schema)
    if expressions is None:
        expressions = columns_as_expressions(table)
    if table.window.kind is WindowKind.SESSION and not _are_whole(
        table, [expressions[key] for key in keys], conditions
    ):
        return None
    kept = sorted(used)
    computed = [expressions[index] for index in kept]
    if any(index >= width for each in [*computed, *conditions] for index in e.references(each)):
        return None
    below = convert(table.input)
    time = e.InputRef(table.time_index, below.schema[table.time_index].type)
    names = [node.schema[index].name for index in kept]
    rows = calc(
        below,
        [*computed, time],
        [*names, "$time"],
        e.conjunction(conditions) if conditions else None,
    )
    return _Windowed(rows, {old: new for new, old in enumerate(kept)}, len(kept))


def _are_whole(table: WindowTable, keys: Sequence[e.Expression], conditions: Sequence[e.Expression]) -> bool:
    """Whether groups are what sessions are kept apart by, and have all rows: then they find sessions themselves."""
    grouped = {key.index if isinstance(key, e.InputRef) else None for key in keys}
    return grouped == set(table.partition_by) and not conditions


def columns_as_expressions(node: LogicalNode) -> list[e.Expression]:
    """Return the columns of a node as expressions over it."""
    return [e.InputRef(index, field.type) for index, field in enumerate(node.schema)]


def convert_group_window(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn a window of GROUP BY, such as TUMBLE(ts, ...), into an operator."""
    if not isinstance(node, GroupWindowAggregate):
        return None
    below = convert(node.input)
    return WindowAggregate(
        schema=node.schema,
        input=exchanged(below, node.group_keys),
        window=node.window,
        keys=node.group_keys,
        calls=node.calls,
        properties=node.properties,
        time_index=node.time_index,
        is_proctime=node.input.schema[node.time_index].time is TimeKind.PROCTIME,
        is_legacy=True,
    )


# --- grouping sets --------------------------------------------------------------------------------


def _over_grouping_sets(node: Aggregate, convert: Convert) -> PhysicalNode:
    """Aggregate each row once per set, in one operator: the set's number is one more key."""
    assert node.grouping_sets is not None
    windows = window_columns(node.input)
    is_windowed = windows is not None and all(windows.holds(one) for one in node.grouping_sets)
    asked = windows.start | windows.end | windows.time if windows is not None and is_windowed else frozenset()
    keys = tuple(key for key in node.group_keys if key not in asked)
    sets = tuple(tuple(key for key in one if key not in asked) for one in node.grouping_sets)
    below = convert(node.input)
    width = len(below.schema)
    number = Field("$e", BigIntType(False))
    copies = tuple(Field(f"$g{at}", below.schema[key].type.nullable()) for at, key in enumerate(keys))
    expanded = Expand(schema=(*below.schema, *copies, number), input=below, columns=keys, sets=sets)
    real = tuple(call for call in node.calls if call.function not in _GROUPING)
    columns = tuple(range(width, width + len(keys) + 1))
    results = tuple(Field(f"$a{at}", call.type) for at, call in enumerate(real))
    grouped: PhysicalNode
    properties: list[WindowProperty] = []
    if windows is not None and is_windowed:
        _check_slices(windows.window)
        found = [_property(key, windows) for key in node.group_keys]
        properties = list(dict.fromkeys(each for each in found if each is not None))
        grouped = WindowAggregate(
            schema=(*copies, number, *results, *(_property_field(each, windows) for each in properties)),
            input=exchanged(expanded, columns),
            window=windows.window,
            keys=columns,
            calls=real,
            properties=tuple(properties),
            time_index=None,
            attached=(min(windows.start), min(windows.end)),
            is_proctime=windows.time_kind is TimeKind.PROCTIME,
        )
    else:
        grouped = GroupAggregate(
            schema=(*copies, number, *results),
            input=exchanged(expanded, columns),
            keys=columns,
            calls=real,
            ttl_ms=node.ttl_ms,
        )
    set_number = e.InputRef(len(keys), number.type)
    made = iter(columns_of(grouped, range(len(keys) + 1, len(keys) + 1 + len(real))))
    bounds = len(keys) + 1 + len(real)
    chosen: list[e.Expression] = []
    for key in node.group_keys:
        what = _property(key, windows) if windows is not None and is_windowed else None
        place = keys.index(key) if what is None else bounds + properties.index(what)
        chosen += columns_of(grouped, [place])
    for call in node.calls:
        chosen.append(_which_set(call, node, set_number) if call.function in _GROUPING else next(made))
    names = [field.name for field in node.schema]
    return calc(grouped, chosen, names, times=[field.time for field in node.schema])


def _which_set(call: e.AggregateCall, node: Aggregate, set_number: e.Expression) -> e.Expression:
    """Write GROUPING and GROUPING_ID: a bit per column, 1 where the set has not got it."""
    assert node.grouping_sets is not None
    asked = [index for each in call.arguments for index in e.references(each)]
    operands: list[e.Expression] = []
    for at, one in enumerate(node.grouping_sets):
        bits = 0
        for column in asked:
            bits = bits * 2 + (column not in one)
        is_set = e.Call("EQUALS", (set_number, e.Literal(at, set_number.type)), BooleanType(False))
        operands += [is_set, e.Literal(bits, call.type)]
    return e.Call("CASE", (*operands, e.Literal(0, call.type)), call.type)


def _moved(call: e.AggregateCall, mapping: dict[int, e.Expression]) -> e.AggregateCall:
    return replace(
        call,
        arguments=tuple(e.substitute(each, mapping) for each in call.arguments),
        filter=None if call.filter is None else e.substitute(call.filter, mapping),
    )


def _used(call: e.AggregateCall) -> set[int]:
    parts = [*call.arguments, *([call.filter] if call.filter is not None else [])]
    return {index for each in parts for index in e.references(each)}

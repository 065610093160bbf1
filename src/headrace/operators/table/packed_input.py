"""Rows on their way from one Python stage to a stateful node of the next, in columns all the way.

    rows (Arrow) --fragment--> --input's columns, or groups--> --key--> a packet per subtask   ...exchange...   rows

To Spark, a packet is bytes that it ships to a subtask. Converting columns to Spark's rows and back would cost more
than most operators do. Only expressions that workers can compute are supported (`arrow_sql.py`); `PackedInput.of`
returns None for everything else.

Rows are grouped twice, as in Spark: within each task, and after the exchange for all tasks (`GroupMerge`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import ColumnExpression, Columns, SharedColumns
from headrace.operators.table.arrow_lists import LISTED, joined, listed, numbers_of
from headrace.operators.table.arrow_sql import Aggregate, aggregate, expression, understood
from headrace.operators.table.base import HASHES, ROW_HASHES, SESSION, WITH_SEQUENCE, InputSpec, share_keys
from headrace.operators.table.changelog import DELETE, UPDATE_BEFORE
from headrace.operators.table.key_numbers import (
    KeyNumbers,
    NumberedKeys,
    can_be_key,
    is_digest,
    is_fixed,
)
from headrace.operators.table.pair_conditions import whole_numbers
from headrace.operators.table.row_steps import Caller, done_with_rows, row_step
from headrace.operators.table.session_numbers import session_numbers, session_times
from headrace.operators.table.steps import KIND, Explode, PythonCalls, Schema, Select, Step, Where
from headrace.state.columns import Ints
from headrace.state.hashed import together
from headrace.state.key_secret import KeySecret

__all__ = ["GroupMerge", "PackedInput", "Packet"]

#: Room for the rows of a task in numbers that say in which order rows came, as in Spark's.
_ROW_BITS = 33
#: Bytes that a packet has, about.
_PACKET_BYTES = 8 << 20
_GROUP = "__group"
#: A column that says nothing but how many rows there are.
_ROWS = "__rows"
#: What a packet says about itself: the vertex it is for, and which of its inputs.
_TARGET, _SIDE = b"target", b"side"


@dataclass(frozen=True)
class Packet:
    """Rows of one input for one subtask, as bytes."""

    side: int
    subtask: int
    data: pa.Buffer


@dataclass(frozen=True)
class GroupMerge:
    """How groups of several tasks become one.

    Args:
        words: The columns that tell groups apart: whole numbers, or times.
        aggregates: The function for each column that is combined.
    """

    words: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]

    def merged(self, rows: pa.Table) -> pa.Table:
        """Return each group once."""
        rows = rows.combine_chunks()
        order, begins = together(np.column_stack([w for name in self.words for w in _words(rows, name)]))
        if begins.all():
            return rows
        groups = np.empty(len(order), np.int64)
        groups[order] = np.cumsum(begins) - 1
        names = {name for name, _ in self.aggregates}
        lists = {name for name, function in self.aggregates if function == LISTED}
        taken = {
            name: numbers_of(_whole(rows.column(name))) if name in lists else rows.column(name)
            for name in names
        }
        values = pa.table({_GROUP: groups, **taken})
        summed = values.group_by(_GROUP, use_threads=False).aggregate(list(self.aggregates))
        # Groups come in the order in which they are first seen.
        _, firsts = np.unique(groups, return_index=True)
        firsts = pa.array(firsts[summed.column(_GROUP).to_numpy()])
        found = {name: _whole(summed.column(f"{name}_{function}")) for name, function in self.aggregates}
        found |= {name: joined(found[name], _whole(rows.column(name))) for name in lists}
        return pa.table(
            {
                name: found[name] if name in found else rows.column(name).take(firsts)
                for name in rows.column_names
            }
        )


def _words(rows: pa.Table, name: str) -> list[Ints]:
    """Return a column as numbers that say whether values are the same."""
    column = rows.column(name).combine_chunks()
    words = (
        [np.where(_is_null(column), 0, whole_numbers(column))]
        if column.null_count
        else [whole_numbers(column)]
    )
    if column.null_count:
        words.append(_is_null(column).astype(np.int64))
    return [word.astype(np.int64, copy=False) for word in words]


def _is_null(column: pa.Array) -> Ints:
    is_null: Ints = column.is_null().to_numpy(zero_copy_only=False)
    return is_null


@dataclass(frozen=True)
class PackedInput:
    """What happens to the rows that go along an edge.

    Args:
        source: The columns that rows come with, `KIND` among them if they have one.
        steps: The stateless work between both stages.
        schema: What comes out of it, as Spark would give it.
        specs: The inputs that are made of it; none if a sink takes rows as they are.
        is_utc: Whether the session's time zone is UTC.
        parallelism: How many subtasks the node has.
        max_parallelism: How many key groups.
        secret: What goes into keys.
        goes_by_keys: Whether a sink wants -D for rows that updates replace.
        target: The vertex that gets them.
        is_discarded: Whether that is a sink that keeps nothing: then rows are made, and no packets of them.
    """

    source: tuple[tuple[str, pa.DataType], ...]
    steps: tuple[Step, ...]
    schema: Schema
    specs: tuple[InputSpec, ...]
    is_utc: bool
    parallelism: int
    max_parallelism: int
    secret: KeySecret = field(repr=False)
    goes_by_keys: bool = False
    target: str = ""
    is_discarded: bool = False

    @property
    def is_understood(self) -> bool:
        """Whether workers can compute all of it."""
        return self._program is not None

    @property
    def merges(self) -> dict[int, GroupMerge]:
        """How groups are combined after the exchange, by input; rows as they are need none."""
        program = self._program
        assert program is not None
        return {each.spec.side: each.merge for each in program.inputs if each.merge is not None}

    @property
    def is_grouped(self) -> bool:
        """Whether rows are combined before they are sent."""
        return any(spec.group_by is not None for spec in self.specs)

    @property
    def calls_functions(self) -> bool:
        """Whether functions of the user's are called on the way."""
        return any(isinstance(step, PythonCalls) for step in self.steps)

    def packets(
        self, tables: Iterable[pa.Table], partition: int, caller: Caller | None = None
    ) -> Iterator[Packet]:
        """Make packets of the rows of a task.

        Args:
            tables: The rows.
            partition: The number of the task among those of its stage, for the order in which rows came.
            caller: Calls functions with the rows, if there are any to call.

        Raises:
            NotComputedError: Spark has to do it.
        """
        program = self._program
        assert program is not None
        sequence = partition << _ROW_BITS
        waiting: list[pa.Table] = []
        for table in tables:
            rows = program.stateless(table, caller)
            if self.is_discarded:
                continue
            if not self.specs:
                yield from program.as_they_are(rows)
            elif self.is_grouped:
                waiting.append(rows)
            elif rows.num_rows:
                yield from program.packets(rows, sequence)
            sequence += rows.num_rows
        if waiting:
            rows = pa.concat_tables(waiting).combine_chunks()
            if rows.num_rows:
                yield from program.packets(rows, sequence)

    def rows(self, table: pa.Table, caller: Caller | None = None) -> pa.Table:
        """Do the stateless work alone.

        Raises:
            NotComputedError: Spark has to do it.
        """
        assert self._program is not None
        return self._program.stateless(table, caller)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_program"}

    @cached_property
    def _program(self) -> _Program | None:
        return _Program.of(self)


@dataclass(frozen=True)
class _Input:
    """How one input is made of rows."""

    spec: InputSpec
    where: ColumnExpression | None
    derived: Mapping[str, ColumnExpression]
    items: Mapping[str, ColumnExpression]
    aggregates: Mapping[str, Aggregate]
    #: The columns of rows, or of groups, that are sent; besides the hashes.
    columns: tuple[str, ...]
    #: Whether `ROW_HASHES` are made of `HASHES` and the other columns.
    is_within: bool
    merge: GroupMerge | None


class _Program:
    """A `PackedInput` at work."""

    def __init__(
        self, packed: PackedInput, steps: list[object], inputs: list[_Input], used: list[str]
    ) -> None:
        self._packed = packed
        self._steps = steps
        self.inputs = inputs
        self._used = used
        self._keys = KeyNumbers(packed.secret)
        groups = np.arange(packed.max_parallelism)
        self._subtasks = (groups * packed.parallelism // packed.max_parallelism).astype(np.uint16)

    @classmethod
    def of(cls, packed: PackedInput) -> _Program | None:
        """Understand an edge; None if Spark has to do a part of it."""
        types: dict[str, pa.DataType] = dict(packed.source)
        steps: list[object] = []
        for step in packed.steps:
            if isinstance(step, Where):
                condition = expression(step.condition, types, is_utc=packed.is_utc)
                if condition is None or condition.kind != pa.bool_():
                    return None
                steps.append(condition)
            elif isinstance(step, Select):
                made = understood(step.items, types, is_utc=packed.is_utc)
                if made is None:
                    return None
                if KIND in types:
                    made |= understood([(f"`{KIND}`", KIND)], types, is_utc=packed.is_utc) or {}
                types = {name: each.kind for name, each in made.items()}
                steps.append(made)
            elif (made_of := row_step(step, types)) is not None:
                types = made_of
                steps.append(step)
            else:
                return None
        if any(types.get(column.name) != column.arrow for column in packed.schema):
            return None
        shares = len(packed.specs) > 1 and _share_digests(packed.specs, types)
        inputs = [_input_of(spec, types, is_utc=packed.is_utc, shares=shares) for spec in packed.specs]
        if any(each is None for each in inputs) or not all(
            _is_sent(kind, is_utc=packed.is_utc) for kind in types.values()
        ):
            return None
        return cls(packed, steps, [each for each in inputs if each is not None], list(types))

    def stateless(self, table: pa.Table, caller: Caller | None = None) -> pa.Table:
        """Do the fragment's work."""
        given = {name: _typed(_whole(table.column(name)), kind) for name, kind in self._packed.source}
        columns, count = SharedColumns(given), table.num_rows
        for step in self._steps:
            if isinstance(step, ColumnExpression):
                kept, count = _kept(columns, step.of(columns, count), count)
                columns = SharedColumns(kept)
            elif isinstance(step, PythonCalls | Explode):
                made, count = done_with_rows(step, columns, count, caller)
                columns = SharedColumns(made)
            else:
                assert isinstance(step, dict)
                columns = SharedColumns({name: each.of(columns, count) for name, each in step.items()})
        # Rows without any column could not be counted.
        return pa.table({name: columns[name] for name in self._used} or {_ROWS: pa.nulls(count)})

    def as_they_are(self, rows: pa.Table) -> Iterator[Packet]:
        """Send rows to whoever gets them."""
        kinds = [KIND] if KIND in rows.column_names else []
        rows = rows.select([*(column.name for column in self._packed.schema), *kinds])
        if kinds and self._packed.goes_by_keys:
            marks = _whole(rows.column(KIND)).to_numpy()
            marks = np.where(marks == UPDATE_BEFORE, DELETE, marks).astype(np.int8)
            rows = rows.set_column(rows.num_columns - 1, KIND, pa.array(marks))
        at_once = _rows_of_packet(rows)
        for place in range(0, rows.num_rows, at_once):
            yield Packet(0, 0, _bytes_of(rows.slice(place, at_once), self._packed.target, 0))

    def packets(self, rows: pa.Table, sequence: int) -> Iterator[Packet]:
        """Send rows to the subtasks that own their keys."""
        shared: dict[str, pa.Array] = {name: _whole(rows.column(name)) for name in rows.column_names}
        keys: dict[tuple[str, ...], NumberedKeys] = {}
        if self._packed.is_grouped:
            for each in self.inputs:
                self._number(each.spec, shared, keys)
        for each in self.inputs:
            columns, count = dict(shared), rows.num_rows
            if each.where is not None:
                columns, count = _kept(columns, each.where.of(columns, count), count)
            for name, made in each.derived.items():
                columns[name] = made.of(columns, count)
            if each.spec.group_by is not None:
                columns, count = _grouped(each, columns, count, keys.get(each.spec.keys))
            else:
                for name, made in each.items.items():
                    columns[name] = made.of(columns, count)
                if WITH_SEQUENCE in each.spec.items:
                    columns[WITH_SEQUENCE[1]] = pa.array(np.arange(sequence, sequence + count))
            if count:
                yield from self._sent(each, columns, count, keys.get(each.spec.keys))

    def _number(
        self, spec: InputSpec, columns: dict[str, pa.Array], keys: dict[tuple[str, ...], NumberedKeys]
    ) -> None:
        """Look at texts once: they are numbers to all groups that they are in."""
        is_known = set(spec.keys) <= set(columns) & set(spec.group_by or ())
        if spec.keys not in keys and is_known and is_digest([columns[name].type for name in spec.keys]):
            keys[spec.keys] = self._keys.numbered([columns[name] for name in spec.keys])
            columns[_code_of(spec.keys)] = pa.array(keys[spec.keys].codes)
        for name in set(spec.group_by or ()) & set(columns):
            if name not in spec.keys and not is_fixed(columns[name].type):
                columns[_encoded(name)] = columns[name].dictionary_encode()

    def _sent(
        self, each: _Input, columns: Columns, count: int, numbered: NumberedKeys | None
    ) -> Iterator[Packet]:
        spec = each.spec
        if numbered is not None:
            numbers = numbered.numbers[columns[_code_of(spec.keys)].to_numpy()]
        else:
            numbers = self._keys.of([columns[key] for key in spec.keys], count)
        made = {name: pa.array(numbers[:, at]) for at, name in enumerate(HASHES)}
        made |= {name: _decoded(columns[name]) for name in each.columns}
        if spec.row_keys is not None:
            if each.is_within:
                others = [columns[name] for name in spec.row_keys[len(spec.keys) :]]
                row_numbers = self._keys.within(numbers, others)
            else:
                row_numbers = self._keys.of([columns[name] for name in spec.row_keys], count)
            made |= {name: pa.array(row_numbers[:, at]) for at, name in enumerate(ROW_HASHES)}
        table = pa.table(made)
        subtasks = self._subtasks[numbers[:, 0] % self._packed.max_parallelism]
        order = np.argsort(subtasks, kind="stable")
        bounds = np.searchsorted(subtasks[order], np.arange(self._packed.parallelism + 1))
        ordered = table if bounds[1] == count else table.take(pa.array(order))
        at_once = _rows_of_packet(table)
        for subtask in range(self._packed.parallelism):
            start, end = int(bounds[subtask]), int(bounds[subtask + 1])
            for place in range(start, end, at_once):
                rows = ordered.slice(place, min(at_once, end - place))
                yield Packet(spec.side, subtask, _bytes_of(rows, self._packed.target, spec.side))


def _input_of(
    spec: InputSpec, types: Mapping[str, pa.DataType], *, is_utc: bool, shares: bool
) -> _Input | None:
    """Understand an input; None if Spark has to make it."""
    where = None if spec.where is None else expression(spec.where, types, is_utc=is_utc)
    derived = understood([(sql, name) for sql, name in spec.derived], types, is_utc=is_utc)
    if (spec.where is not None and where is None) or derived is None:
        return None
    types = {**types, **{name: each.kind for name, each in derived.items()}}
    keys = [types.get(name) for name in (*spec.keys, *(spec.row_keys or ()))]
    if None in keys or not can_be_key([types[name] for name in spec.keys]):
        return None
    if spec.row_keys is not None and not can_be_key([types[name] for name in spec.row_keys]):
        return None
    if spec.group_by is None:
        return _rows_input(spec, types, where, derived, is_utc=is_utc)
    return _groups_input(spec, types, where, derived, is_utc=is_utc, shares=shares)


def _rows_input(
    spec: InputSpec,
    types: Mapping[str, pa.DataType],
    where: ColumnExpression | None,
    derived: Mapping[str, ColumnExpression],
    *,
    is_utc: bool,
) -> _Input | None:
    items = understood([each for each in spec.items if each != WITH_SEQUENCE], types, is_utc=is_utc)
    if items is None:
        return None
    columns = tuple(dict.fromkeys([*types, *(name for _, name in spec.items)]))
    return _Input(spec, where, derived, items, {}, columns, is_within=False, merge=None)


def _groups_input(
    spec: InputSpec,
    types: Mapping[str, pa.DataType],
    where: ColumnExpression | None,
    derived: Mapping[str, ColumnExpression],
    *,
    is_utc: bool,
    shares: bool,
) -> _Input | None:
    assert spec.group_by is not None
    if not all(name in types and can_be_key([types[name]]) for name in spec.group_by):
        return None
    if spec.session is not None and (types.get(spec.session.time) != pa.int64() or spec.row_keys is not None):
        return None
    found = {name: aggregate(sql, types, is_utc=is_utc) for sql, name in spec.items}
    aggregates = {name: each for name, each in found.items() if each is not None}
    if len(aggregates) < len(spec.items):
        return None
    others = [name for name in spec.group_by if name not in spec.keys]
    if spec.row_keys is None and not all(is_fixed(types[name]) for name in others):
        return None
    words = ROW_HASHES if spec.row_keys is not None else (*HASHES, *others)
    is_within = shares and spec.row_keys is not None
    groups = spec.group_by if not is_within else tuple(others)
    if (
        spec.session is not None
    ):  # the operator puts sessions together, those of this epoch with those that it has
        columns = (*groups, SESSION, *aggregates)
        return _Input(spec, where, derived, {}, aggregates, columns, is_within=False, merge=None)
    merge = GroupMerge(words, tuple((name, each.function) for name, each in aggregates.items()))
    return _Input(spec, where, derived, {}, aggregates, (*groups, *aggregates), is_within, merge)


def _share_digests(specs: Sequence[InputSpec], types: Mapping[str, pa.DataType]) -> bool:
    """Whether `ROW_HASHES` go by the hashes of a key that all inputs share, as in `with_shared_keys`."""
    keys = specs[0].keys
    is_known = all(key in types for key in keys)
    return share_keys(specs) and is_known and is_digest([types[key] for key in keys])


def _is_sent(kind: pa.DataType, *, is_utc: bool) -> bool:
    """Whether values come out of Spark's exchange as they go in: moments have the session's zone there."""
    is_ = pa.types
    if kind == pa.timestamp("us", "UTC"):
        return is_utc
    plain = (is_.is_signed_integer, is_.is_boolean, is_.is_floating, is_.is_date32, is_.is_decimal128)
    return kind in (pa.string(), pa.binary(), pa.timestamp("us")) or any(check(kind) for check in plain)


def _grouped(
    each: _Input, columns: Mapping[str, pa.Array], count: int, numbered: NumberedKeys | None
) -> tuple[dict[str, pa.Array], int]:
    """Put the rows of each group together."""
    groups = list(each.spec.group_by or ())
    if numbered is not None:
        code = _code_of(each.spec.keys)
        groups = [code, *(name for name in groups if name not in each.spec.keys)]
    values = {name: made.argument.of(columns, count) for name, made in each.aggregates.items()}
    entries = {name: values[name] for name, made in each.aggregates.items() if made.is_listed}
    values |= {name: numbers_of(entry) for name, entry in entries.items()}
    # Arrow groups by numbers; a text is the number that its dictionary has for it.
    grouping = {name: columns.get(_encoded(name), columns[name]) for name in groups}
    numbers = {name: _indices(column) for name, column in grouping.items()}
    wanted = [(name, made.function) for name, made in each.aggregates.items()]
    session = each.spec.session
    if session is not None:
        values[SESSION] = columns[session.time]
        numbers = {
            SESSION: session_numbers(list(numbers.values()), values[SESSION], session.gap_ms),
            **numbers,
        }
        wanted += [(SESSION, "min"), (SESSION, "max")]
    if not numbers:
        numbers = {_GROUP: pa.array(np.zeros(count, np.int8))}
    renamed = {name: f"\0g{at}" for at, name in enumerate(numbers)}
    table = pa.table({**{renamed[name]: array for name, array in numbers.items()}, **values})
    summed = table.group_by(list(renamed.values()), use_threads=False).aggregate(wanted)
    found = {}
    for name in groups:
        column = _whole(summed.column(renamed[name]))
        if pa.types.is_dictionary(grouping[name].type):
            column = pa.DictionaryArray.from_arrays(column, grouping[name].dictionary)
        found[name] = column
    for name, made in each.aggregates.items():
        column = _whole(summed.column(f"{name}_{made.function}"))
        if name in entries:
            column = listed(column, entries[name], made.kind)
        found[name] = pc.fill_null(column, 0) if made.is_zero and column.null_count else column
    if session is not None:
        first, last = (_whole(summed.column(f"{SESSION}_{end}")) for end in ("min", "max"))
        found[SESSION] = session_times(first, last, session.gap_ms)
    if numbered is not None:
        for name, column in zip(each.spec.keys, numbered.columns, strict=True):
            if not each.is_within:
                found[name] = column.take(found[code])
    return found, summed.num_rows


def _encoded(name: str) -> str:
    """Return where the dictionary of a column is; no column of a query is called that."""
    return f"\0{name}"


def _code_of(keys: Sequence[str]) -> str:
    """Return where the numbers of keys are."""
    return "\0" + "\0".join(keys)


def _indices(column: pa.Array) -> pa.Array:
    return column.indices if pa.types.is_dictionary(column.type) else column


def _kept(columns: Mapping[str, pa.Array], holds: pa.Array, count: int) -> tuple[dict[str, pa.Array], int]:
    """Return the rows for which a condition holds."""
    if not holds.null_count and pc.all(holds).as_py() is not False:
        return dict(columns), count
    kept = {name: column.filter(holds) for name, column in columns.items()}
    return kept, pc.sum(holds).as_py() or 0


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _rows_of_packet(rows: pa.Table) -> int:
    return max(1, int(rows.num_rows) * _PACKET_BYTES // max(1, int(rows.nbytes)))


def _bytes_of(table: pa.Table, target: str, side: int) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    table = table.replace_schema_metadata({_TARGET: target.encode(), _SIDE: str(side).encode()})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def rows_of(data: pa.Buffer | bytes) -> pa.Table:
    """Return the rows of a packet."""
    return pa.ipc.open_stream(data).read_all().replace_schema_metadata(None)


def rows_for(target: str, packets: Iterable[bytes]) -> Iterator[tuple[int, pa.Table]]:
    """Return the rows of packets, each with its input; of those for a vertex: others may come along."""
    for data in packets:
        with pa.ipc.open_stream(data) as stream:
            metadata = stream.schema.metadata
            if metadata[_TARGET] == target.encode():
                yield int(metadata[_SIDE]), stream.read_all().replace_schema_metadata(None)


def merged_inputs(
    packets: Mapping[int, Sequence[pa.Table]], merges: Mapping[int, GroupMerge]
) -> dict[int, pa.Table]:
    """Put packets together, by input."""
    inputs = {}
    for side, tables in packets.items():
        rows = pa.concat_tables(tables)
        inputs[side] = merges[side].merged(rows) if side in merges else rows
    return inputs

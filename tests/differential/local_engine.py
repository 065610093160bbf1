"""Table jobs without Spark's epochs: planned as ever, sqlite for what is stateless, the harness for nodes with state.

Time goes as in an epoch of Spark (`runtime/task/table_time.py`): operators get an epoch's rows, then the watermark that
scans had reached with the epoch before; where a scan is known to end with its rows, the end of time comes with them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from headrace.common.types import RowKind
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.table_job import fragment_of
from headrace.operators.table.arrow_expression import Columns
from headrace.operators.table.base import EpochTime
from headrace.operators.table.declarations import (
    JoinDeclaration,
    StatefulNode,
    TableScanDeclaration,
    TableSinkDeclaration,
    WindowJoinDeclaration,
)
from headrace.operators.table.packed_input import GroupMerge, PackedInput, merged_inputs, rows_of
from headrace.operators.table.row_steps import arguments_of, column_of
from headrace.operators.table.steps import (
    KIND,
    ColumnToKinds,
    Explode,
    Fragment,
    KindsToColumn,
    PythonCall,
    PythonCalls,
    RowIds,
    Schema,
    Select,
    Step,
    Where,
    at_watermark,
)
from headrace.operators.table.timed_declarations import TableIntervalJoinDeclaration
from headrace.runtime.task.packing import Packing
from headrace.runtime.task.table_task import has_kinds, operator_of
from headrace.state.key_secret import KeySecret
from tests.operators.table_harness import (
    GROUPS,
    Change,
    Harness,
    as_binary,
    as_type,
    connect,
    in_sqlite,
    key_of,
)


@dataclass
class _Time:
    before: int = MIN_WATERMARK
    after: int = MIN_WATERMARK
    is_final: bool = False
    #: How far rows that come out may be behind.
    held_ms: int = 0

    @property
    def behind(self) -> int:
        return self.after if self.after in (MIN_WATERMARK, MAX_WATERMARK) else self.after - self.held_ms


class LocalEngine:
    """Runs the epochs of one table job.

    Args:
        job: The job; its scans are found by the rows they are given.
        directory: For state.
        parallelism: Of nodes with keys.
        forgets: Whether each epoch starts on a host without a copy of state.
        packs: Whether rows go to nodes in packets where workers can make them.
    """

    def __init__(
        self, job: JobGraph, directory: Path, *, parallelism: int, forgets: bool, packs: bool = False
    ) -> None:
        self._job = job
        self._times = {vertex.vertex_id: _Time() for vertex in job.vertices}
        #: How far event time has advanced in the rows of scans.
        self._seen = {vertex.vertex_id: MIN_WATERMARK for vertex in job.vertices if vertex.is_source}
        self._nodes = {
            vertex.vertex_id: self._harness(vertex, directory, parallelism, forgets)
            for vertex in job.vertices
            if isinstance(vertex.head.declaration, StatefulNode)
        }
        #: The nodes all of whose inputs come in packets: keys of both kinds are not the same here.
        self.packed = _packed_nodes(job, list(self._nodes)) if packs else {}
        #: What each sink has got.
        self.written: dict[str, list[Change]] = {
            vertex.vertex_id: []
            for vertex in job.vertices
            if isinstance(vertex.head.declaration, TableSinkDeclaration)
        }

    def _harness(self, vertex: JobVertex, directory: Path, parallelism: int, forgets: bool) -> Harness:
        declaration = vertex.head.declaration
        assert isinstance(declaration, StatefulNode)
        schemas: dict[int, Schema] = {}
        retracts: dict[int, bool] = {}
        for edge in self._job.inputs_of(vertex.vertex_id):
            side = edge.target_input
            schemas[side] = fragment_of(edge).schema
            retracts[side] = retracts.get(side, False) or has_kinds(self._job, edge)
        place = directory / vertex.vertex_id
        place.mkdir()
        return Harness(
            declaration,
            [schemas[side] for side in sorted(schemas)],
            [retracts[side] for side in sorted(schemas)],
            place,
            parallelism=min(parallelism, vertex.parallelism),
            forgets=forgets,
        )

    def run(self, rows: Mapping[str, Sequence[Change]], ends: Mapping[str, bool], now_ms: int = 0) -> None:
        """Run an epoch.

        Args:
            rows: What each scan reads, by its vertex.
            ends: Whether each scan is known to end with them.
            now_ms: What the clock says.
        """
        out: dict[str, list[Change]] = {}
        seen = dict(self._seen)
        # After the last epoch nothing reads state.
        keeps_state = not all(ends.values())
        for vertex in self._job.vertices:
            name, declaration = vertex.vertex_id, vertex.head.declaration
            time = self._times[name]
            if isinstance(declaration, TableScanDeclaration):
                time.after = MAX_WATERMARK if ends[name] else max(time.after, self._seen[name])
                time.is_final = ends[name]
                out[name], seen[name] = self._scanned(declaration, rows[name], seen[name])
                continue
            producers = [self._times[edge.source_vertex] for edge in self._job.inputs_of(name)]
            time.before, time.after = time.after, max(time.after, min(each.behind for each in producers))
            time.is_final = all(each.is_final for each in producers)
            if isinstance(declaration, TableSinkDeclaration):
                self.written[name] += self._input(vertex, 0, out)
                continue
            assert isinstance(declaration, StatefulNode)
            time.held_ms = declaration.holds_back_ms
            sides = sorted({edge.target_input for edge in self._job.inputs_of(name)})
            if name in self.packed:
                tables = self._unpacked(name, out)
                at = EpochTime(time.before, time.after, now_ms, time.is_final, keeps_state=keeps_state)
                made = self._nodes[name].run_tables(tables, at)
            else:
                inputs = [self._input(vertex, side, out) for side in sides]
                made = self._nodes[name].run(
                    *inputs,
                    before=time.before,
                    after=time.after,
                    now_ms=now_ms,
                    is_final=time.is_final,
                    keeps_state=keeps_state,
                )
            out[name] = (
                _pairs(made, declaration)
                if isinstance(
                    declaration, JoinDeclaration | WindowJoinDeclaration | TableIntervalJoinDeclaration
                )
                else made
            )
        self._seen = seen

    @property
    def results(self) -> list[list[Change]]:
        """The changelog of each query."""
        return list(self.written.values())

    @property
    def late(self) -> int:
        """How many rows were dropped because they came late."""
        return sum(node.late for node in self._nodes.values())

    def rescale(self, parallelism: int) -> None:
        """Continue with another parallelism, as from a savepoint."""
        for node in self._nodes.values():
            node.rescale(parallelism)

    def _scanned(
        self, scan: TableScanDeclaration, rows: Sequence[Change], seen: int
    ) -> tuple[list[Change], int]:
        given = [(mark, *as_binary(values)) for mark, *values in rows]
        if scan.fragment is not None:
            given = apply_fragment(given, scan.schema, scan.fragment)
        if scan.watermark is not None:
            highest = scan.watermark.ms.format(f"max({scan.watermark.time})")
            ((_, ms),) = _select(given, [each.name for each in scan.output], [highest]) or [("", None)]
            seen = seen if ms is None else max(seen, ms)
        return given, seen

    def _unpacked(self, vertex_id: str, out: Mapping[str, list[Change]]) -> list[dict[int, pa.Table]]:
        """Return the inputs of each subtask, as two tasks would send them in packets."""
        parallelism = self._nodes[vertex_id].parallelism
        received: list[dict[int, list[pa.Table]]] = [{} for _ in range(parallelism)]
        merges: dict[int, GroupMerge] = {}
        for edge in self._job.inputs_of(vertex_id):
            declaration: Any = self._job.vertex(edge.source_vertex).head.declaration
            packed = replace(
                self.packed[vertex_id][edge.target_input], parallelism=parallelism, max_parallelism=GROUPS
            )
            merges |= packed.merges
            rows = out[edge.source_vertex]
            for task, part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
                table = _as_arrow(part, declaration.output, packed.source)
                for packet in packed.packets([table], task, _called):
                    received[packet.subtask].setdefault(packet.side, []).append(rows_of(packet.data))
        return [merged_inputs(packets, merges) for packets in received]

    def _input(self, vertex: JobVertex, side: int, out: Mapping[str, list[Change]]) -> list[Change]:
        united = []
        for edge in self._job.inputs_of(vertex.vertex_id):
            if edge.target_input == side:
                declaration: Any = self._job.vertex(edge.source_vertex).head.declaration
                fragment = fragment_of(edge)
                time = self._times[edge.source_vertex]
                known = time.after if self._job.vertex(edge.source_vertex).is_source else time.before
                steps = at_watermark(fragment.steps, None if known == MIN_WATERMARK else known)
                fragment = replace(fragment, steps=steps)
                united += apply_fragment(out[edge.source_vertex], declaration.output, fragment)
        return united


def _packed_nodes(job: JobGraph, nodes: Sequence[str]) -> dict[str, dict[int, PackedInput]]:
    packing = Packing(job, {name: operator_of(job, job.vertex(name)) for name in nodes}, KeySecret(b"secret"))
    found = {}
    for name in nodes:
        edges = job.inputs_of(name)
        packed = {edge.target_input: packing.into(name, edge.target_input) for edge in edges}
        scans = [job.vertex(edge.source_vertex).head.declaration for edge in edges]
        # What a scan does to its rows has been done to them here.
        if all(packed.values()) and not any(
            scan.fragment and scan.fragment.steps for scan in scans if isinstance(scan, TableScanDeclaration)
        ):
            found[name] = {side: each for side, each in packed.items() if each is not None}
    return found


def _called(call: PythonCall, columns: Columns, rows: int) -> pa.Array:
    """Call a function with rows, as workers do."""
    values = zip(*(arguments_of(columns[name]) for name in call.arguments), strict=True)
    return column_of([call.function(*each) for each in values], call.result.arrow)


def _as_arrow(rows: Sequence[Change], schema: Schema, source: Sequence[tuple[str, pa.DataType]]) -> pa.Table:
    """Return columns of rows as a python stage has them."""
    places = {column.name: 1 + at for at, column in enumerate(schema)}
    marks = {kind.short_string(): kind.value for kind in RowKind}
    columns = {}
    for name, kind in source:
        if name == KIND:
            columns[name] = pa.array([marks[row[0]] for row in rows], kind)
        else:
            columns[name] = pa.array([as_type(row[places[name]], kind) for row in rows], kind)
    return pa.table(columns)


# -- stateless work --------------------------------------------------------------------------------------------


def apply_fragment(rows: Sequence[Change], schema: Schema, fragment: Fragment) -> list[Change]:
    """Do stateless work on rows; the mark of each stays with it."""
    given = [(mark, *as_binary(values)) for mark, *values in rows]
    names = [column.name for column in schema]
    for step in fragment.steps:
        given, names = _apply_step(given, names, step)
    assert names == [column.name for column in fragment.schema]
    kinds = [column.arrow for column in fragment.schema]
    return [(mark, *map(as_type, values, kinds)) for mark, *values in given]


def _apply_step(rows: Sequence[Change], names: list[str], step: Step) -> tuple[list[Change], list[str]]:
    if isinstance(step, Where):
        return _select(rows, names, ["*"], f"WHERE {in_sqlite(step.condition)}"), names
    if isinstance(step, Select):
        return _select(rows, names, [sql for sql, _ in step.items]), [name for _, name in step.items]
    if isinstance(step, PythonCalls):
        return _with_results(rows, names, step), [*names, *(call.result.name for call in step.calls)]
    if isinstance(step, KindsToColumn):
        texts = dict(step.codes)
        kinds = {kind.short_string(): kind.value for kind in RowKind}
        coded = [("+I", texts[kinds[mark]], *values) for mark, *values in rows if kinds[mark] in texts]
        return coded, [step.name, *names]
    if isinstance(step, ColumnToKinds):
        at, values_of = names.index(step.name) + 1, dict(step.codes)
        marks = [kind.short_string() for kind in RowKind]
        return (
            [(marks[values_of[row[at]]], *row[1:at], *row[at + 1 :]) for row in rows],
            [name for name in names if name != step.name],
        )
    if isinstance(step, RowIds):
        places = [names.index(each) for each in step.columns]
        identified = [(*row, *key_of([row[1 + at] for at in places])) for row in rows]
        return identified, [*names, *step.names]
    assert isinstance(step, Explode), f"no local way for {type(step).__name__}"
    generator = re.fullmatch(r"explode\((.*)\)", step.generator, re.DOTALL)
    assert generator is not None, step.generator
    join = f"{'LEFT ' if step.is_outer else ''}JOIN json_each({in_sqlite(generator[1])}) AS j ON true"
    return _select(rows, names, ["r.*", "j.value"], "", join), [*names, *step.names]


def _with_results(rows: Sequence[Change], names: list[str], step: PythonCalls) -> list[Change]:
    """Give rows the results of python functions, which see the columns of the row alone."""
    made = []
    for row in rows:
        values = dict(zip(names, row[1:], strict=True))
        results = []
        for call in step.calls:
            arguments = [values[name] for name in call.arguments]
            if call.is_pandas:
                results.append(call.function(*(pd.Series([each], dtype=object) for each in arguments))[0])
            else:
                results.append(call.function(*arguments))
        kinds = [call.result.arrow for call in step.calls]
        made.append((*row, *as_binary(list(map(as_type, results, kinds)))))
    return made


def _select(
    rows: Sequence[Change], names: Sequence[str], items: Sequence[str], where: str = "", join: str = ""
) -> list[Change]:
    if not rows:
        return []
    connection = connect()
    row_numbers = itertools.count()
    connection.create_function("monotonically_increasing_id", 0, lambda: next(row_numbers))
    connection.create_function("double", 1, float)
    connection.create_function("array", -1, lambda *values: json.dumps(values))
    connection.create_function("sequence", -1, _sequence)
    columns = ", ".join(f"`{name}`" for name in ("__mark", *names))
    connection.execute(f"CREATE TABLE r ({columns})")
    connection.create_function("size", 1, lambda values: len(json.loads(values)))
    plain = [
        [json.dumps(each, default=float) if isinstance(each, list) else each for each in as_binary(row)]
        for row in rows
    ]
    connection.executemany(f"INSERT INTO r VALUES (?{', ?' * len(names)})", plain)
    if items == ["*"]:
        chosen = "*"
    elif items[:1] == ["r.*"]:
        chosen = ", ".join(items)
    else:
        chosen = ", ".join(["`__mark`", *map(in_sqlite, items)])
    found = connection.execute(f"SELECT {chosen} FROM r {join} {where}").fetchall()
    connection.close()
    return found


def _sequence(first: int | None, last: int | None, step: int = 1) -> str | None:
    if first is None or last is None:
        return None
    return json.dumps(list(range(first, last + (1 if step > 0 else -1), step)))


def _pairs(
    rows: Sequence[Change], join: JoinDeclaration | WindowJoinDeclaration | TableIntervalJoinDeclaration
) -> list[Change]:
    """Check what else must hold of the pairs of an inner join."""
    if join.condition is None:
        return list(rows)
    left, right = len(join.left), len(join.output) - len(join.left)
    names = [*(f"l{at}" for at in range(left)), *(f"r{at}" for at in range(right))]
    given = [(mark, *as_binary(values)) for mark, *values in rows]
    return _select(given, names, ["*"], f"WHERE {in_sqlite(join.condition)}")

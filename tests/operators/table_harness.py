"""Stateful table operators without Spark: sqlite does what Spark SQL would, state goes through real files and copies.

Every epoch may run in another place: with `forgets`, each one starts on a host without a copy of state.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.common.types import RowKind
from headrace.operators.table.base import HASHES, ROW_HASHES, SESSION, EpochTime, InputSpec
from headrace.operators.table.declarations import StatefulNode
from headrace.operators.table.factory import build_operator
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import KIND, Schema
from headrace.state.changes import table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.compaction import compact
from headrace.state.handles import StateChain, StateFile, rescaled_chain
from headrace.state.key_groups import key_group_range, subtask_of

GROUPS = 16
#: A row and what it does: ``("+I", "ann", 3)``.
Change = tuple[Any, ...]
_MARKS = {kind.short_string(): kind.value for kind in RowKind}


class Harness:
    """Runs epochs of one stateful node at some parallelism."""

    def __init__(
        self,
        declaration: StatefulNode,
        schemas: Sequence[Schema],
        retracts: Sequence[bool],
        directory: Path,
        *,
        parallelism: int = 1,
        forgets: bool = False,
    ) -> None:
        self._declaration = declaration
        self._schemas = schemas
        self._retracts = retracts
        self._operator = build_operator(declaration, schemas, retracts)
        self._directory = directory
        self._forgets = forgets
        self._parallelism = parallelism
        self._lineage = "0"
        self._epoch = 0
        self._chains = [StateChain("0") for _ in range(parallelism)]
        self.late = 0
        self.timers: list[int] = []
        self.changed_rows = 0
        #: As kept by two workers of a host, who have the subtasks in turn.
        self._copies: dict[tuple[str, int], TableCopy] = {}

    def run(
        self,
        *inputs: Sequence[Change],
        before: int = 0,
        after: int = 0,
        now_ms: int = 0,
        is_final: bool = False,
        keeps_state: bool = True,
    ) -> list[Change]:
        """Run an epoch; returns what comes out of all subtasks, one after the other."""
        by_subtask: list[dict[int, pa.Table]] = [{} for _ in range(self._parallelism)]
        for spec in self._operator.inputs:
            rows = inputs[spec.source] if spec.source < len(inputs) else []
            if not rows:
                continue
            table = self._as_spark_would(spec, rows)
            owners = np.array(table.column(HASHES[0]).to_pylist(), np.int64) % GROUPS
            subtasks = np.array([subtask_of(int(group), GROUPS, self._parallelism) for group in owners], int)
            for subtask in range(self._parallelism):
                part = table.filter(pa.array(subtasks == subtask))
                if part.num_rows:
                    by_subtask[subtask][spec.side] = part
        time = EpochTime(before, after, now_ms, is_final, keeps_state=keeps_state)
        return self.run_tables(by_subtask, time)

    def run_tables(self, by_subtask: Sequence[Mapping[int, pa.Table]], time: EpochTime) -> list[Change]:
        """Run an epoch with the inputs of each subtask."""
        self._epoch += 1
        self.timers = []
        time = replace(time, epoch=self._epoch)
        return [
            change
            for subtask, tables in enumerate(by_subtask)
            for change in self._run_subtask(subtask, tables, time)
        ]

    @property
    def parallelism(self) -> int:
        """How many subtasks there are."""
        return self._parallelism

    def rescale(self, parallelism: int) -> None:
        """Continue with another parallelism, as from a savepoint."""
        parts = [
            (key_group_range(subtask, GROUPS, self._parallelism), chain.files)
            for subtask, chain in enumerate(self._chains)
        ]
        self._lineage = str(int(self._lineage) + 1)
        self._chains = [
            rescaled_chain(self._lineage, parts, key_group_range(subtask, GROUPS, parallelism), self._epoch)
            for subtask in range(parallelism)
        ]
        self._epoch += 1
        self._parallelism = parallelism

    def compact(self) -> None:
        """Merge all files of each subtask into one."""
        for subtask, chain in enumerate(self._chains):
            if len(chain.files) < 2:
                continue
            path = str(self._directory / f"{self._lineage}-{subtask}-{self._epoch}.merged")
            size = compact(chain.files, path)
            merged = StateFile(path, 0, chain.version, size, is_base=True)
            self._chains[subtask] = chain.compacted(merged)

    @property
    def state_rows(self) -> int:
        """How many rows of state there are."""
        total = 0
        for subtask, chain in enumerate(self._chains):
            copy = self._copy(subtask)
            copy.catch_up(chain, key_group_range(subtask, GROUPS, self._parallelism))
            total += sum(len(table.live) for table in copy.tables.values())
            copy.release()
        return total

    def _run_subtask(self, subtask: int, tables: Mapping[int, pa.Table], time: EpochTime) -> list[Change]:
        chain = self._chains[subtask]
        if self._forgets:
            shutil.rmtree(self._copy_path(subtask), ignore_errors=True)
        copy = self._copy(subtask)
        copy.catch_up(chain, key_group_range(subtask, GROUPS, self._parallelism))
        try:
            output = self._operator.process(tables, copy.tables, time)
        finally:
            copy.release()
        self.late += output.late_rows
        if output.next_timer_ms is not None:
            self.timers.append(output.next_timer_ms)
        self.changed_rows = sum(len(rows) for rows in output.changes.values())
        change = table_change(output.changes, GROUPS)
        if change:
            path = str(self._directory / f"{self._lineage}-{subtask}-{self._epoch}.change")
            size = write_change(path, change)
            self._chains[subtask] = chain.append(StateFile(path, chain.version, self._epoch, size))
        return _changes(output.rows, self._declaration)

    def _copy(self, subtask: int) -> TableCopy:
        path = self._copy_path(subtask)
        worker = (path, self._epoch % 2)
        return self._copies.setdefault(worker, TableCopy(path, self._operator.layouts))

    def _copy_path(self, subtask: int) -> str:
        return str(self._directory / f"copy-{self._lineage}-{subtask}")

    def _as_spark_would(self, spec: InputSpec, rows: Sequence[Change]) -> pa.Table:
        schema = as_spark_gives(self._schemas[spec.source])
        has_kinds = self._retracts[spec.source]
        columns = [column.name for column in schema] + ([KIND] if has_kinds else [])
        kept = {each.name: each.arrow for layout in self._operator.layouts for each in layout.columns}
        types = kept | {column.name: column.arrow for column in schema} | {KIND: pa.int8()}
        given = [(*row[1:], _MARKS[row[0]]) if has_kinds else row[1:] for row in rows]
        names, result = _evaluate(spec, columns, given)
        arrays = {
            name: _array([_decoded(row[i]) for row in result], types.get(name))
            for i, name in enumerate(names)
        }
        if spec.session is not None:
            bounds = [arrays.pop(name).cast(pa.timestamp("us")) for name in _BOUNDS]
            arrays[SESSION] = pa.StructArray.from_arrays(bounds, ["start", "end"])
        for pair, keys in ((HASHES, spec.keys), (ROW_HASHES, spec.row_keys)):
            if keys is None:
                continue
            hashed = [key_of([arrays[key][i].as_py() for key in keys]) for i in range(len(result))]
            for index, name in enumerate(pair):
                arrays[name] = pa.array([each[index] for each in hashed], pa.int64())
        return pa.table(arrays)


def _evaluate(
    spec: InputSpec, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> tuple[list[str], list[Any]]:
    connection = connect()
    row_numbers = itertools.count()
    connection.create_function("monotonically_increasing_id", 0, lambda: next(row_numbers))
    connection.create_function("named_struct", -1, _named_struct)
    connection.create_aggregate("collect_list", 1, _CollectList)
    connection.create_aggregate("first", 2, _First)
    connection.create_aggregate("last", 2, _Last)
    if spec.session is not None:
        columns, rows = [*columns, *_BOUNDS], _in_sessions(spec, columns, rows)
    # A table has a column, even if nobody asks for one: COUNT(*).
    listed = ", ".join(f"`{name}`" for name in columns) or "`nothing`"
    connection.execute(f"CREATE TABLE t ({listed})")
    marks = ", ".join("?" * len(columns)) or "NULL"
    connection.executemany(f"INSERT INTO t VALUES ({marks})", map(as_binary, rows))
    derived = "".join(f", {in_sqlite(sql)} AS `{name}`" for sql, name in spec.derived)
    source = f"(SELECT *{derived} FROM t WHERE {in_sqlite(spec.where or 'true')})"
    items = [f"{in_sqlite(sql)} AS `{name}`" for sql, name in spec.items]
    if spec.group_by is None:
        query = f"SELECT {', '.join(['*', *items])} FROM {source}"
    else:
        by = [*spec.group_by, *(_BOUNDS if spec.session is not None else ())]
        groups = [f"`{name}`" for name in by]
        query = f"SELECT {', '.join([*groups, *items])} FROM {source}"
        query += f" GROUP BY {', '.join(groups)}" if groups else " HAVING count(*) > 0"
    cursor = connection.execute(query)
    names = [description[0] for description in cursor.description]
    result = cursor.fetchall()
    connection.close()
    return names, result


#: Start and end of a row's session, in microseconds.
_BOUNDS = ("__session_start", "__session_end")
#: Begins a text that stands for what sqlite has no type for.
_ENCODED = "\0"


class _CollectList:
    """Spark's collect_list: all values but NULL."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def step(self, value: Any) -> None:
        if value is not None:
            self._values.append(_decoded(value))

    def finalize(self) -> str:
        return _ENCODED + json.dumps(self._values)


class _First:
    """Spark's first(value, true): the first one that is not NULL."""

    def __init__(self) -> None:
        self._value: Any = None

    def step(self, value: Any, _: Any) -> None:
        self._value = value if self._value is None else self._value

    def finalize(self) -> Any:
        return self._value


class _Last(_First):
    def step(self, value: Any, _: Any) -> None:
        self._value = self._value if value is None else value


def _named_struct(*parts: Any) -> str:
    return _ENCODED + json.dumps(dict(zip(parts[::2], map(_decoded, parts[1::2]), strict=True)))


def _decoded(value: Any) -> Any:
    return json.loads(value[1:]) if isinstance(value, str) and value.startswith(_ENCODED) else value


def _in_sessions(
    spec: InputSpec, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Give rows the bounds of their sessions, as Spark's session_window does."""
    assert spec.session is not None
    time, gap = columns.index(spec.session.time), spec.session.gap_ms
    keys = [columns.index(name) for name in spec.group_by or ()]
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        if row[time] is not None:
            groups.setdefault(repr([row[key] for key in keys]), []).append(row)
    made = []
    for group in groups.values():
        session: list[tuple[Any, ...]] = []
        for row in [*sorted(group, key=lambda each: each[time]), None]:
            if session and (row is None or row[time] > session[-1][time] + gap):
                bounds = (session[0][time] * 1000, (session[-1][time] + gap) * 1000)
                made += [(*each, *bounds) for each in session]
                session = []
            if row is not None:
                session.append(row)
    return made


def connect() -> sqlite3.Connection:
    """Return an empty database with functions that Spark has."""
    connection = sqlite3.connect(":memory:")
    for name, function in _FUNCTIONS.items():
        connection.create_function(name, -1, function)
    return connection


def _raise(message: str) -> None:
    raise ValueError(message)


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function answer NULL with NULL."""
    return lambda *values: None if None in values else function(*values)


def _least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


def _rounded(value: Any, scale: int) -> float:
    return float(Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP))


#: Functions of Spark that sqlite has not.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "hash": lambda value: zlib.crc32(repr(value).encode()),
    "pmod": _of_values(lambda value, divisor: value % divisor),
    "unix_millis": _of_values(lambda micros: micros // 1000),
    "timestamp_millis": _of_values(lambda ms: ms * 1000),
    "unix_timestamp": _of_values(lambda micros: micros // 1_000_000),
    "add_millis": _of_values(lambda ms, micros: micros + ms * 1000),
    "least": _least,
    "as_decimal": _of_values(_rounded),
    "char_length": _of_values(len),
    "raise_error": _raise,
}


def in_sqlite(sql: str) -> str:
    """Return Spark SQL as sqlite takes it; times are microseconds there."""
    for pattern, replacement in _IN_SQLITE:
        sql = re.sub(pattern, replacement, sql)
    while cast := _AS_DECIMAL.search(sql):
        start = _opening(sql, cast.start())
        value = sql[start + 1 : cast.start()]
        sql = f"{sql[: start - len('CAST')]}as_decimal({value}, {cast[1]}){sql[cast.end() :]}"
    return sql


_AS_DECIMAL = re.compile(r"(?i) AS DECIMAL\(\d+, ?(\d+)\)\)")


def _opening(sql: str, end: int) -> int:
    """Return where the parenthesis opens that a place is in."""
    depth = 0
    for place in range(end - 1, -1, -1):
        if sql[place] == ")":
            depth += 1
        elif sql[place] == "(":
            if not depth:
                return place
            depth -= 1
    raise ValueError(sql)


def _interval(match: re.Match[str]) -> str:
    days, hours, minutes, seconds = match.groups()
    whole = int(days) * 86400 + int(hours) * 3600 + int(minutes) * 60
    return str(whole * 1_000_000 + round(float(seconds) * 1_000_000))


_IN_SQLITE: tuple[tuple[str, Any], ...] = (
    (r"\b(\d+)L\b", r"\1"),
    (r"(?i)\bAS STRING\)", "AS TEXT)"),
    # Windows of the clock do not go by it, but by the clock of the epoch.
    (r"(?i)\bcurrent_timestamp\(\)", "0"),
    (r"\bTIMESTAMP_NTZ ?'1970-01-01 00:00:00'", "0"),
    (r"\btimestampadd\(MILLISECOND,", "add_millis("),
    (r"INTERVAL '(\d+) (\d+):(\d+):([\d.]+)' DAY TO SECOND", _interval),
    (r"<=>", "IS"),
    (r"(?i)\bIF\(", "iif("),
    (r"(?i) DIV ", " / "),
)


def as_numbers(row: Sequence[Any]) -> list[Any]:
    """Return a row whose times are microseconds."""
    return [
        pa.scalar(value, pa.timestamp("us")).value if isinstance(value, datetime) else value for value in row
    ]


def as_binary(row: Sequence[Any]) -> list[Any]:
    """Return a row as sqlite takes it: decimals are binary numbers, too."""
    return [float(value) if isinstance(value, Decimal) else value for value in as_numbers(row)]


def as_type(value: Any, kind: pa.DataType) -> Any:
    """Return a value of sqlite as one of a type, which sqlite may not have."""
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        return bool(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    if pa.types.is_list(kind):
        return [as_type(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {field.name: as_type(value[field.name], field.type) for field in kind}
    return value


def _array(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is not None:
        return pa.array([as_type(value, kind) for value in values], kind)
    return pa.array(values) if any(value is not None for value in values) else pa.array(values, pa.int64())


def key_of(key: Sequence[Any]) -> tuple[int, int]:
    """Return the two numbers that a key is known by."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], signed=True), int.from_bytes(digest[8:], signed=True)


def _changes(table: pa.Table, declaration: StatefulNode) -> list[Change]:
    names = [column.name for column in declaration.output]
    assert table.column_names == [*names, *([] if declaration.is_insert_only else [KIND])]
    rows = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    if declaration.is_insert_only:
        return [("+I", *row) for row in rows]
    marks = [kind.short_string() for kind in RowKind]
    return [(marks[kind], *row) for kind, row in zip(table.column(KIND).to_pylist(), rows, strict=True)]


def materialized(changes: Sequence[Change]) -> Counter[tuple[Any, ...]]:
    """Return the table that a changelog amounts to; every row that goes must have been there."""
    table: Counter[tuple[Any, ...]] = Counter()
    for mark, *row in changes:
        table[tuple(row)] += 1 if mark in ("+I", "+U") else -1
        assert table[tuple(row)] >= 0, f"{mark}{row} takes away what is not there"
    return +table

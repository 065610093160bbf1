"""Parts of a table job as DataFrames: scans, fragments, and the exchange in front of a stateful node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headrace.common.types import RowKind
from headrace.connectors.base import FileRead, RangeRead, RowsRead, SparkRead
from headrace.operators.table.base import (
    EVENT,
    HASHES,
    ROW_HASHES,
    SESSION,
    SIDE,
    InputSpec,
    quote,
    share_keys,
)
from headrace.operators.table.declarations import (
    JoinDeclaration,
    SinkMode,
    TableSinkDeclaration,
    WindowJoinDeclaration,
)
from headrace.operators.table.packed_input import GroupMerge, Packet, merged_inputs, rows_of
from headrace.operators.table.steps import (
    KIND,
    ColumnToKinds,
    Explode,
    Fragment,
    KindsToColumn,
    PythonCalls,
    RowIds,
    Schema,
    Select,
    Step,
    StepColumn,
    Where,
)
from headrace.operators.table.timed_declarations import TableIntervalJoinDeclaration
from headrace.spark.bad_records import RECORD, BadRecords
from headrace.spark.python_calls import CallSite, result_of
from headrace.spark.row_keys import RowKeys

#: What `SIDE` is in the one row that every subtask gets in every epoch, so that it runs and knows which one it is.
CONTROL = -1
#: What it is in a row that is a packet (`PackedInput`): its first hash leads to the subtask, its second is the input.
PACKED = -2
_PACKET = "__packet"
PACKET_DDL = f"{SIDE} INT, {HASHES[0]} BIGINT, {HASHES[1]} BIGINT, {_PACKET} BINARY"


def ddl(schema: Schema, *, has_kinds: bool) -> str:
    """Return a schema as Spark SQL's DDL."""
    columns = [f"{quote(column.name)} {column.spark_type}" for column in schema]
    return ", ".join([*columns, *([f"{KIND} TINYINT"] if has_kinds else [])])


# -- scans -----------------------------------------------------------------------------------------------------


def read_frame(
    session: SparkSession, read: SparkRead, schema: Schema, errors: Observation | None = None
) -> DataFrame:
    """Return the rows of a scan that Spark reads by itself; ``errors`` counts records that cannot be read."""
    if isinstance(read, RangeRead):
        items = [
            f"CAST({sql} AS {column.spark_type}) AS {quote(column.name)}"
            for sql, column in zip(read.columns, schema, strict=True)
        ]
        return session.range(read.start, read.end).selectExpr(*items)
    if isinstance(read, RowsRead):
        columns = [pa.array([row[i] for row in read.rows], column.arrow) for i, column in enumerate(schema)]
        table = pa.table(columns, names=[column.name for column in schema])
        return session.createDataFrame(table, ddl(schema, has_kinds=False))
    return _read_files(session, read, schema, errors)


def without_statistics(frame: DataFrame) -> DataFrame:
    """Keep Spark from broadcasting rows to be joined because their files are small.

    No hint that users can give says so; the one of adaptive execution does.
    """
    session: Any = frame.sparkSession
    jvm: Any = session._jvm
    plans = jvm.org.apache.spark.sql.catalyst.plans.logical
    strategy = getattr(getattr(plans, "NO_BROADCAST_HASH$"), "MODULE$")
    plan = plans.ResolvedHint(frame._jdf.logicalPlan(), plans.HintInfo(jvm.scala.Some(strategy)))
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def _read_files(
    session: SparkSession, read: FileRead, schema: Schema, errors: Observation | None
) -> DataFrame:
    stored = tuple(column for column in schema if column.name not in read.metadata)
    bad = BadRecords.of(read, stored)
    # Names of directories are read as they are: one of them stands for NULL, whatever the type of the column is.
    named = tuple(
        replace(column, spark_type="string")
        if column.name in read.partition_keys
        else replace(column, spark_type="bigint")
        if _is_interval_as_number(column, read)
        else column
        for column in stored
    )
    reader, columns = session.read.format(read.format).options(**read.options), ddl(named, has_kinds=False)
    if bad is None:
        frame = reader.schema(columns).load(list(read.paths))
    else:
        reader = reader.options(**bad.reader_options).schema(f"{columns}, {RECORD} STRING")
        frame = reader.load(list(read.paths))
        if errors is not None:
            frame = frame.observe(errors, F.count(F.expr(bad.error)).alias("errors"))
        frame = frame.where(bad.kept)
    if bad is None and not read.metadata and not read.partition_keys:
        return frame
    return frame.selectExpr(*(_item(column, read, bad) for column in schema))


def _item(column: StepColumn, read: FileRead, bad: BadRecords | None) -> str:
    """Return a column of files in Spark SQL."""
    name = quote(column.name)
    if column.name in read.metadata:
        return f"CAST({read.metadata[column.name]} AS {column.spark_type}) AS {name}"
    if column.name in read.partition_keys:
        return f"{_partition_value(column, read.no_value)} AS {name}"
    if _is_interval_as_number(column, read):
        day = 86_400_000
        seconds = f"CAST({name} % {day} AS DECIMAL(18, 6)) / 1000"
        return f"make_dt_interval(CAST({name} DIV {day} AS INT), 0, 0, {seconds}) AS {name}"
    return name if bad is None else f"{bad.value_of(column)} AS {name}"


def _is_interval_as_number(column: StepColumn, read: FileRead) -> bool:
    """Whether files have an interval as its milliseconds, as Flink writes it."""
    return read.format in ("json", "csv") and pa.types.is_duration(column.arrow)


def _partition_value(column: StepColumn, no_value: str) -> str:
    """Return what the name of a directory says, as the type of its column; what is none of it fails the job."""
    name = quote(column.name)
    literal = no_value.replace("\\", "\\\\").replace("'", "\\'")
    text = f"nullif({name}, '{literal}')"
    if column.spark_type == "string":
        return text
    told = f"concat('partition column {column.name}: cannot convert ', {text}, ' to {column.spark_type}')"
    return f"coalesce(try_cast({text} AS {column.spark_type}), IF({text} IS NULL, NULL, raise_error({told})))"


# -- fragments -------------------------------------------------------------------------------------------------


def apply_fragment(
    frame: DataFrame,
    fragment: Fragment,
    site: CallSite,
    row_keys: RowKeys,
    *,
    has_kinds: bool,
    carried: Sequence[str] = (),
) -> DataFrame:
    """Do stateless work on rows, functions at a site; ``carried`` columns, which it does not know of, go along."""
    for step in fragment.steps:
        if isinstance(step, KindsToColumn | ColumnToKinds):
            frame = _changed_kinds(frame, step, has_kinds=has_kinds)
            has_kinds = isinstance(step, ColumnToKinds)
        else:
            besides = [*([KIND] if has_kinds else []), *carried]
            frame = _apply_step(frame, step, site, row_keys, besides)
    return frame


def _changed_kinds(frame: DataFrame, step: KindsToColumn | ColumnToKinds, *, has_kinds: bool) -> DataFrame:
    """Make a column of what rows do to the table, or the other way round."""
    if isinstance(step, ColumnToKinds):
        code = F.col(quote(step.name))
        known = ", ".join(sorted(text for text, _ in step.codes))
        shown = F.when(code.isNull(), F.lit("NULL")).otherwise(F.concat(F.lit("'"), code, F.lit("'")))
        message = F.concat(
            F.lit(f"FROM_CHANGELOG: column {step.name} has the operation code "),
            shown,
            F.lit(f", which is not in op_mapping; known codes are: {known}"),
        )
        kind = reduce(
            lambda made, pair: made.when(code == F.lit(pair[0]), F.lit(pair[1])),
            step.codes,
            F.when(F.lit(False), F.lit(0)),
        ).otherwise(F.raise_error(message).cast("int"))
        # A code that is not known fails the job, also where nobody asks for the kind.
        return frame.withColumn(KIND, kind.cast("tinyint")).where(F.col(KIND).isNotNull()).drop(step.name)
    codes = dict(step.codes)
    if not has_kinds:
        insert = codes.get(RowKind.INSERT.value)
        made = frame.where(F.lit(insert is not None))
        return made.select(
            F.lit(insert or "").alias(step.name), *(F.col(quote(each)) for each in frame.columns)
        )
    code = reduce(
        lambda made, pair: made.when(F.col(KIND) == pair[0], F.lit(pair[1])),
        step.codes,
        F.when(F.lit(False), F.lit("")),
    )
    kept = frame.where(F.col(KIND).isin(list(codes)))
    return kept.select(code.alias(step.name), *(F.col(quote(each)) for each in frame.columns if each != KIND))


def _apply_step(
    frame: DataFrame, step: Step, site: CallSite, row_keys: RowKeys, besides: Sequence[str]
) -> DataFrame:
    if isinstance(step, Where):
        return frame.where(step.condition)
    if isinstance(step, Select):
        items = [f"{sql} AS {quote(name)}" for sql, name in step.items]
        return frame.selectExpr(*items, *besides)
    if isinstance(step, Explode):
        return frame.selectExpr("*", _generator(step))
    if isinstance(step, RowIds):
        return row_keys.with_keys(frame, {step.names: step.columns})
    assert isinstance(step, PythonCalls)
    return frame.select("*", *(result_of(call, site) for call in step.calls))


def _generator(step: Explode) -> str:
    function, _, rest = step.generator.partition("(")
    name = f"{function}_outer" if step.is_outer and not function.endswith("_outer") else function
    return f"{name}({rest} AS ({', '.join(map(quote, step.names))})"


def filter_pairs(
    frame: DataFrame, join: JoinDeclaration | WindowJoinDeclaration | TableIntervalJoinDeclaration
) -> DataFrame:
    """Check what else must hold of the pairs of an inner join; the condition names columns by side and position."""
    if join.condition is None:
        return frame
    names = [column.name for column in join.output]
    left = len(join.left)
    by_position = [f"l{i}" if i < left else f"r{i - left}" for i in range(len(names))]
    kinds = [] if join.is_insert_only else [KIND]
    renamed = frame.toDF(*by_position, *kinds).where(join.condition)
    return renamed.toDF(*names, *kinds)


def by_keys(frame: DataFrame) -> DataFrame:
    """Have a row that an update replaces go with -D: where the new one was filtered out, the key is gone."""
    before, gone = RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value
    return frame.withColumn(KIND, F.expr(f"CAST(IF({KIND} = {before}, {gone}, {KIND}) AS TINYINT)"))


def for_sink(frame: DataFrame, sink: TableSinkDeclaration, *, has_kinds: bool) -> DataFrame:
    """Give a sink what it takes: changes by key if it goes by keys, and no NULL where none may be."""
    if has_kinds and sink.mode is SinkMode.UPSERT:
        frame = by_keys(frame)
    for name in sink.not_null:
        if sink.drops_null:
            frame = frame.where(f"{quote(name)} IS NOT NULL")
        else:
            message = (
                f"column {name} must not be NULL (table.exec.sink.not-null-enforcer: DROP skips such rows)"
            )
            failing = F.raise_error(F.lit(message)).cast("boolean")
            frame = frame.where(F.when(F.col(quote(name)).isNull(), failing).otherwise(F.lit(True)))
    return frame


# -- the exchange ----------------------------------------------------------------------------------------------


def sum_up(
    frame: DataFrame, spec: InputSpec, carried: Sequence[str] = (), *, one_phase: bool = False
) -> DataFrame:
    """Make of rows what an input asks for, each key once if it says so.

    Args:
        frame: The rows.
        spec: The input.
        carried: Columns of which the highest value of each key goes along.
        one_phase: Whether rows of a key are brought together before they are aggregated.
    """
    if spec.where is not None:
        frame = frame.where(spec.where)
    if spec.derived:
        frame = frame.selectExpr("*", *(f"{sql} AS {quote(name)}" for sql, name in spec.derived))
    if spec.group_by is not None:
        aggregates = [*spec.items, *((f"max({name})", name) for name in carried)]
        groups = [quote(name) for name in spec.group_by]
        if one_phase and spec.session is None:
            frame = frame.repartition(*map(F.col, groups)) if groups else frame.coalesce(1)
        if spec.session is not None:
            groups.append(f"{spec.session.sql} AS {SESSION}")
        # Without a group Spark makes a row of no rows: all of them are one group, which is not there without rows.
        grouped = frame.groupBy(*map(F.expr, groups or [f"0 AS {_ALL}"]))
        summed = grouped.agg(*(F.expr(f"{sql} AS {quote(name)}") for sql, name in aggregates))
        return summed if groups else summed.drop(_ALL)
    if spec.items:
        return frame.selectExpr("*", *(f"{sql} AS {quote(name)}" for sql, name in spec.items))
    return frame


def with_shared_keys(
    frame: DataFrame, specs: Sequence[InputSpec], row_keys: RowKeys
) -> tuple[DataFrame, list[InputSpec]]:
    """Compute the key of rows once for several inputs that are aggregated by it and more.

    Keys with texts become two numbers before rows are aggregated: they are hashed, compared and sent as such, and only
    the input that wants the columns of the key has them.
    """
    keys = specs[0].keys
    if not share_keys(specs) or not row_keys.has_digest(frame, keys):
        return frame, list(specs)
    made = []
    for spec in specs:
        wanted = spec.group_by or ()
        if spec.row_keys is not None:
            wanted = (*spec.row_keys[len(keys) :], *(name for name in wanted if name == EVENT))
        made.append(replace(spec, group_by=(*HASHES, *dict.fromkeys(wanted))))
    return row_keys.with_keys(frame, {HASHES: keys}), made


@dataclass(frozen=True)
class FramePlace:
    """Where a column of an input is after the exchange.

    Args:
        name: The column's name there.
        column: Its own name.
        kind: The type that operators know it by, where Spark's may differ in names of parts or in the zone; None:
            Spark's.
    """

    name: str
    column: str
    kind: pa.DataType | None = None


#: For each input of a stateful node where the columns of its rows are.
Sides = Mapping[int, Sequence[FramePlace]]


def exchange(
    session: SparkSession,
    row_keys: RowKeys,
    inputs: Sequence[tuple[InputSpec, DataFrame]],
    types: Mapping[int, Mapping[str, pa.DataType]],
    parallelism: int,
    max_parallelism: int,
    packets: Sequence[DataFrame] = (),
) -> tuple[DataFrame, Sides]:
    """Bring rows to the subtasks of a stateful node, as `sum_up` has made them.

    Columns of the same type are the same column after it, whatever input they are of: every one costs every row its
    way through Spark's shuffle and to python, even where it is NULL. Each subtask gets a `CONTROL` row besides.

    Args:
        session: Where the rows are.
        row_keys: Computes the keys of rows.
        inputs: The rows of each input.
        types: The types that the node knows columns by, by input.
        parallelism: How many subtasks it has.
        max_parallelism: How many key groups.
        packets: Rows that come packed.
    """
    parts, sides = [_control(session, parallelism, max_parallelism), *packets], {}
    for spec, frame in inputs:
        part, sides[spec.side] = _placed(frame, spec, row_keys, types[spec.source])
        parts.append(part)
    united = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    group = f"pmod({HASHES[0]}, {max_parallelism}L)"
    subtask = F.expr(f"CAST({group} * {parallelism} DIV {max_parallelism} AS INT)")
    return united.repartitionById(parallelism, subtask), sides


#: The group of an aggregation without groups.
_ALL = "__all"


def packet_rows(
    packet: Packet, parallelism: int, max_parallelism: int, reader: int | None = None
) -> pa.RecordBatch:
    """Return a packet as a row that the exchange brings to its subtask; ``reader``: see `packets_for`."""
    bounds = np.array([0, packet.data.size], np.int32)
    columns = {
        SIDE: pa.array([PACKED if reader is None else reader], pa.int32()),
        HASHES[0]: pa.array([_first_group(packet.subtask, parallelism, max_parallelism)], pa.int64()),
        HASHES[1]: pa.array([packet.side], pa.int64()),
        _PACKET: pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bounds), packet.data]),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def packets_for(frame: DataFrame, reader: int) -> DataFrame:
    """Return the packets for one of several readers, which stand among those for the others."""
    own = frame.where(f"{SIDE} = {reader}")
    return own.selectExpr(f"{PACKED} AS {SIDE}", *HASHES, _PACKET)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows of packets."""
    for batch in batches:
        for packet in batch.column(_PACKET):
            yield from rows_of(packet.as_buffer()).to_batches()


def _first_group(subtask: int, parallelism: int, max_parallelism: int) -> int:
    return (subtask * max_parallelism + parallelism - 1) // parallelism


def split_sides(
    batches: Sequence[pa.RecordBatch], sides: Sides, merges: Mapping[int, GroupMerge]
) -> tuple[int | None, dict[int, pa.Table]]:
    """Return which subtask got these rows, and the rows of each input that has some; undoes `exchange`."""
    subtask = None
    found: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        numbers = batch.column(SIDE).to_numpy()
        # A task that writes to the exchange has rows of one input: they stand together, and nothing has to be copied.
        borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in pairwise(borders):
            rows = batch.slice(start, end - start)
            if end > start:
                found.setdefault(int(numbers[start]), []).append(rows)
    if CONTROL in found:
        subtask = found.pop(CONTROL)[0].column(HASHES[1])[0].as_py()
    packets: dict[int, list[pa.Table]] = {}
    for part in found.pop(PACKED, ()):
        for side, packet in zip(part.column(HASHES[1]).to_pylist(), part.column(_PACKET), strict=True):
            packets.setdefault(side, []).append(rows_of(packet.as_buffer()))
    inputs = merged_inputs(packets, merges)
    for side, parts in found.items():
        rows = pa.Table.from_batches(parts)
        inputs[side] = pa.table(
            {
                **{name: rows.column(name) for name in HASHES},
                **{place.column: _column(rows, place) for place in sides[side]},
            }
        )
    return subtask, inputs


def _column(rows: pa.Table, place: FramePlace) -> pa.ChunkedArray:
    column = rows.column(place.name)
    return column if place.kind is None else column.cast(place.kind)


def _control(session: SparkSession, parallelism: int, max_parallelism: int) -> DataFrame:
    """Return a row for every subtask: its first hash is the subtask's first key group, its second says which it is."""
    first = f"(id * {max_parallelism} + {parallelism - 1}) DIV {parallelism}"
    items = [f"{CONTROL} AS {SIDE}", f"{first} AS {HASHES[0]}", f"id AS {HASHES[1]}"]
    return session.range(0, parallelism, 1, 1).selectExpr(*items)


def _placed(
    frame: DataFrame, spec: InputSpec, row_keys: RowKeys, types: Mapping[str, pa.DataType]
) -> tuple[DataFrame, Sequence[FramePlace]]:
    """Say of rows which input they are of and where they go; return where each of their columns is after it."""
    items = [f"{spec.side} AS {SIDE}"]
    has_hashes = HASHES[0] in frame.columns
    columns = [
        (field.name, field.dataType.simpleString()) for field in frame.schema if field.name not in HASHES
    ]
    columns += [(name, "bigint") for name in ROW_HASHES if spec.row_keys is not None]
    seen: Counter[str] = Counter()
    places = []
    for name, kind in columns:
        place = f"{kind} {seen[kind]}"
        seen[kind] += 1
        if name not in ROW_HASHES:
            items.append(f"{quote(name)} AS {quote(place)}")
        known = types.get(name)
        places.append(
            FramePlace(place, name, known if known is not None and _comes_otherwise(known) else None)
        )
    if has_hashes:
        items += HASHES
        if spec.row_keys is None:
            return frame.selectExpr(*items), places
        values, names = spec.row_keys[len(spec.keys) :], (places[-2].name, places[-1].name)
        return row_keys.with_values(frame, names, HASHES, values, items), places
    keys = {HASHES: spec.keys}
    if spec.row_keys is not None:
        keys[places[-2].name, places[-1].name] = spec.row_keys
    return row_keys.with_keys(frame, keys, items), places


def _comes_otherwise(kind: pa.DataType) -> bool:
    """Whether Spark names fields otherwise, or has the zone of its session for ours."""
    return pa.types.is_nested(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None)


# -- the border to streams -------------------------------------------------------------------------------------


def as_relation(kept: DataFrame) -> DataFrame:
    """Return rows that Spark keeps as a table that a statement can read in several places.

    Spark gives each place columns of its own, and then does not know a python stage for the one that it keeps.
    """
    session, frame = kept.sparkSession, kept._jdf
    rows = frame.queryExecution().toRdd()
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, frame.schema(), False), session)


def buffer_frame(session: SparkSession, buffers: Any) -> DataFrame:
    """Return the buffers of a Java RDD as rows of one column, without a python stage."""
    encoder = _bytes_encoder(session)
    return DataFrame(session._jsparkSession.createDataset(buffers.rdd(), encoder).toDF(), session)


def buffers_of(frame: DataFrame, partitions: int) -> Any:
    """Return rows of one column as a Java RDD of buffers, with as many partitions as there are subtasks."""
    session = frame.sparkSession
    encoder = _bytes_encoder(session)
    made = getattr(frame._jdf, "as")(encoder).javaRDD()
    missing = partitions - made.getNumPartitions()
    return made.union(empty_buffers(session.sparkContext, missing)) if missing else made


def _bytes_encoder(session: SparkSession) -> Any:
    assert session._jvm is not None
    return session._jvm.org.apache.spark.sql.Encoders.BINARY()


def empty_buffers(context: SparkContext, partitions: int) -> Any:
    """Return a Java RDD of nothing, in partitions."""
    assert context._jvm is not None
    return context._jsc.parallelize(context._jvm.java.util.ArrayList(), partitions)

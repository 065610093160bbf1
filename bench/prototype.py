"""Contender (b): the same work written by hand on Spark, with `mapInArrow` and `repartitionById` and nothing general.

Each python stage passes pickled lists of a thousand records. It knows no state beyond one run, no epochs, no
recovery: it is the ceiling for anything that puts Python records through Spark.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.workloads import enrich, is_wanted, key_of, record_maker, shorten

_BUFFER = 1_000
_COUNT = pa.schema([("records", pa.int64())])
_ROUTED = pa.schema([("target", pa.int32()), ("payload", pa.binary())])


def stateless(spark: SparkSession, records: int, keys: int, parallelism: int) -> float:
    """Return records per second of map, filter, map."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make = record_maker(keys)
        count = 0
        for start, end in _ranges(batches):
            for low in range(start, end, _BUFFER):
                kept = []
                for index in range(low, min(low + _BUFFER, end)):
                    record = enrich(make(index))
                    if is_wanted(record):
                        kept.append(shorten(record))
                count += len(kept)
        yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64())], schema=_COUNT)

    def job() -> None:
        _slices(spark, records, parallelism).mapInArrow(run, "records long").collect()

    return _rate(job, records)


def keyed_count(spark: SparkSession, records: int, keys: int, parallelism: int) -> float:
    """Return records per second of a running count per key."""

    def scatter(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make = record_maker(keys)
        pending: list[list[Any]] = [[] for _ in range(parallelism)]
        for start, end in _ranges(batches):
            for index in range(start, end):
                record = make(index)
                target = crc32(key_of(record).encode()) % parallelism
                waiting = pending[target]
                waiting.append(record)
                if len(waiting) >= _BUFFER:
                    yield _routed(target, waiting)
                    waiting.clear()
        for target, waiting in enumerate(pending):
            if waiting:
                yield _routed(target, waiting)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts: dict[str, int] = {}
        total = 0
        for batch in batches:
            for payload in batch.column(1):
                results = []
                for record in pickle.loads(payload.as_py()):
                    key = key_of(record)
                    new = counts.get(key, 0) + 1
                    counts[key] = new
                    results.append((key, new))
                total += len(results)
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], schema=_COUNT)

    def job() -> None:
        routed = _slices(spark, records, parallelism).mapInArrow(scatter, "target int, payload binary")
        counted = routed.repartitionById(parallelism, "target").mapInArrow(count, "records long").collect()
        assert sum(row.records for row in counted) == records

    return _rate(job, records)


def empty_two_stages(spark: SparkSession, parallelism: int) -> Callable[[], None]:
    """Return a job with two python stages and a shuffle that does nothing: what an empty epoch cannot beat."""

    def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_arrays(
            [pa.array([0], pa.int32()), pa.array([b""], pa.binary())], schema=_ROUTED
        )

    def job() -> None:
        first = _slices(spark, 0, parallelism).mapInArrow(nothing, "target int, payload binary")
        first.repartitionById(parallelism, "target").mapInArrow(
            nothing, "target int, payload binary"
        ).collect()

    return job


def _slices(spark: SparkSession, records: int, parallelism: int) -> Any:
    share = records // parallelism
    rows = [(i * share, records if i == parallelism - 1 else (i + 1) * share) for i in range(parallelism)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, parallelism), "start long, end long")


def _ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _routed(target: int, records: list[Any]) -> pa.RecordBatch:
    arrays = [pa.array([target], pa.int32()), pa.array([pickle.dumps(records, protocol=5)], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=_ROUTED)


def _rate(job: Callable[[], None], records: int) -> float:
    started = time.perf_counter()
    job()
    return records / (time.perf_counter() - started)

"""Event time that a source knows before its rows are read, from the footers of Parquet files.

To find the highest time among all rows costs up to as much as to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.connectors.base import KnownTime, Slice, SparkSource
from headrace.operators.table.arrow_sql import expression
from headrace.operators.table.base import quote
from headrace.operators.table.declarations import TableScanDeclaration, TableWatermarkSpec
from headrace.operators.table.steps import Select, StepColumn
from headrace.runtime.task.packing import UTC_ZONES
from headrace.spark.carried_time import seen_ms

#: A time that is so many microseconds after 1970, by Spark's type.
_TIMES = {
    "timestamp": "timestamp_micros({}L)",
    "timestamp_ntz": "timestampadd(MICROSECOND, {}L, TIMESTAMP_NTZ '1970-01-01 00:00:00')",
}
#: Times as workers see them.
_ARROW_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.int64())


class KnownTimes:
    """How far event time comes in what the subtasks of a scan read in an epoch.

    Args:
        session: Where a watermark is computed.
        watermark: How it is read off a time.
        highest: The highest time of each subtask, as Spark SQL.
    """

    def __init__(
        self, session: SparkSession, watermark: TableWatermarkSpec, highest: Mapping[int, str]
    ) -> None:
        self._session = session
        self._items = {subtask: watermark.ms_of(sql) for subtask, sql in highest.items()}
        self._computed: dict[int, int] | None = None

    def ms(self, subtask: int) -> int:
        """Return the watermark of a subtask."""
        if self._computed is None:
            # From a row that is there: Spark then computes by itself, without a job.
            found = self._session.sql("VALUES (0)").selectExpr(*self._items.values()).head()
            assert found is not None
            self._computed = {each: seen_ms(value) for each, value in zip(self._items, found, strict=True)}
        return self._computed[subtask]


def known_time(
    session: SparkSession, scan: TableScanDeclaration, slices: Mapping[int, Sequence[Slice]]
) -> KnownTimes | None:
    """Return how far event time comes in slices, by subtask; None if it takes a look at rows.

    Args:
        session: Where a watermark is computed.
        scan: Who reads them.
        slices: What each subtask reads.
    """
    name = stored_time(scan)
    column = next((each for each in scan.schema if each.name == name), None)
    if column is None or column.spark_type not in _TIMES or not isinstance(scan.source, SparkSource):
        return None
    assert scan.watermark is not None
    highest = {}
    for subtask, pieces in slices.items():
        times = [_time_of(scan.source, piece, column) for piece in pieces]
        known = [each for each in times if each is not None]
        if len(known) < len(times):
            return None
        micros = max((each.highest for each in known if each.highest is not None), default=None)
        highest[subtask] = time_literal(column.spark_type, micros)
    return KnownTimes(session, scan.watermark, highest) if highest else None


def computed_watermark(
    zone: str, watermark: TableWatermarkSpec, kind: pa.DataType
) -> Callable[[int | None], int] | None:
    """Return what computes a watermark of the highest time without Spark; None if that takes Spark.

    Args:
        zone: The session's time zone.
        watermark: How it is read off a time.
        kind: The type of the time, which comes in microseconds; or BIGINT, of one that is none of the columns.
    """
    if kind not in _ARROW_TIMES:
        return None
    made = expression(watermark.ms_of("`t`"), {"t": kind}, is_utc=zone in UTC_ZONES)
    if made is None:
        return None

    def ms(highest: int | None) -> int:
        return seen_ms(made.of({"t": pa.array([highest], kind)}, 1)[0].as_py())

    return ms


def time_literal(spark_type: str, micros: int | None) -> str:
    """Write a time that is so many microseconds after 1970 as Spark SQL, or NULL."""
    return f"CAST(NULL AS {spark_type})" if micros is None else _TIMES[spark_type].format(micros)


def _time_of(source: SparkSource, piece: Slice, column: StepColumn) -> KnownTime | None:
    is_local = column.spark_type == "timestamp"
    return next(
        (time for time in source.times_in(piece) if (time.column, time.is_local) == (column.name, is_local)),
        None,
    )


def stored_time(scan: TableScanDeclaration) -> str | None:
    """Return the column of the source that event time is read off; None if it is computed."""
    if scan.watermark is None or not scan.watermark.is_of_column:
        return None
    time = scan.watermark.time
    for step in reversed(scan.fragment.steps if scan.fragment is not None else ()):
        if not isinstance(step, Select):
            return None
        time = next((sql for sql, name in step.items if quote(name) == time), "")
    return next((column.name for column in scan.schema if quote(column.name) == time), None)

"""Rows in packets: keys are the same whoever computes them, and queries answer the same with packets and without."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.operators.table.base import HASHES, ROW_HASHES
from headrace.operators.table.key_numbers import KeyNumbers
from headrace.spark.row_keys import RowKeys
from headrace.state.key_secret import KeySecret

SECRET = KeySecret(b"0123456789abcdef")
ROWS = pa.table(
    {
        "n": pa.array([1, -5, None, 2**62, 7, 7], pa.int64()),
        "i": pa.array([1, 2, 3, None, -7, -7], pa.int32()),
        "s": pa.array(["", "a", None, "ü" * 40, "a", "a"], pa.string()),
        "t": pa.array([-31_536_000_000_000, None, *[1_767_323_045_000_006] * 4], pa.timestamp("us")),
    }
)


@pytest.fixture
def session(spark_session: SparkContext) -> SparkSession:
    made = SparkSession(spark_session).newSession()
    made.conf.set("spark.sql.ansi.enabled", "false")
    return made


@pytest.mark.parametrize(
    "names", [(), ("n",), ("i",), ("t",), ("n", "i"), ("t", "n"), ("s",), ("n", "s"), ("i", "n", "t")]
)
def test_workers_and_spark_compute_the_same_keys(session, names):
    keys = RowKeys(session, SECRET)
    frame = session.createDataFrame(ROWS).coalesce(1)
    expected = [tuple(row) for row in keys.with_keys(frame, {HASHES: names}, list(HASHES[:0])).collect()]
    computed = KeyNumbers(SECRET).of([ROWS.column(name).combine_chunks() for name in names], ROWS.num_rows)
    assert [tuple(row) for row in computed.tolist()] == expected


def test_workers_and_spark_compute_the_same_keys_of_values_within_a_key(session):
    keys = RowKeys(session, SECRET)
    frame = keys.with_keys(session.createDataFrame(ROWS).coalesce(1), {HASHES: ("s",)})
    expected = [tuple(row) for row in keys.with_values(frame, ROW_HASHES, HASHES, ("n",), ()).collect()]
    numbers = KeyNumbers(SECRET)
    own = numbers.of([ROWS.column("s").combine_chunks()], ROWS.num_rows)
    assert [
        tuple(row) for row in numbers.within(own, [ROWS.column("n").combine_chunks()]).tolist()
    ] == expected

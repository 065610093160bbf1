"""Rows in packets: keys are the same whoever computes them, and queries answer the same with packets and without."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from bench.nexmark_files import definitions, write_files
from headrace.config.table_options import TableOptions
from headrace.connectors.datagen.columns import GeneratedPiece, can_make
from headrace.connectors.datagen.fields import read_generated
from headrace.connectors.datagen.sql import field_sql
from headrace.operators.table.base import HASHES, ROW_HASHES
from headrace.operators.table.key_numbers import KeyNumbers
from headrace.spark.packet_stages import PacketStages
from headrace.spark.row_keys import RowKeys
from headrace.state.key_secret import KeySecret
from headrace.table import EnvironmentSettings, StreamTableEnvironment
from headrace.types import DataTypes
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import result_of, run_together
from tests.watching import watching

pytestmark = pytest.mark.spark

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


#: A join under a top-1, several DISTINCT arguments under keys of text, a window under a join, rows that are the last.
QUERIES = (
    "SELECT id, itemName, bidder, price FROM (SELECT A.id, A.itemName, B.bidder, B.price, ROW_NUMBER() OVER "
    "(PARTITION BY A.id ORDER BY B.price DESC, B.bidder, B.extra) AS place FROM auction A, bid B "
    "WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires) WHERE place <= 1",
    "SELECT channel, DATE_FORMAT(`dateTime`, 'HH:mm') AS m, COUNT(*) AS n, MAX(price) AS p, "
    "COUNT(DISTINCT bidder) AS b, COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS a "
    "FROM bid GROUP BY channel, DATE_FORMAT(`dateTime`, 'HH:mm')",
    "SELECT B.auction, B.price FROM bid B JOIN (SELECT MAX(price) AS most, window_end FROM TABLE(TUMBLE(TABLE bid, "
    "DESCRIPTOR(`dateTime`), INTERVAL '1' SECOND)) GROUP BY window_start, window_end) M ON B.price = M.most",
    "SELECT P.name, P.state, A.id FROM person P JOIN auction A ON A.seller = P.id WHERE A.category = 10",
)
#: Functions of texts and numbers, sessions, two readers of one window, times that are moved in a join's condition.
COMPUTED = (
    "SELECT auction, 0.908 * price AS price, LOWER(channel) AS c, SPLIT_INDEX(url, '/', 3) AS dir, "
    "REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) AS id FROM bid WHERE MOD(auction, 3) = 1",
    "SELECT bidder, COUNT(*) AS n, SESSION_START(`dateTime`, INTERVAL '0.01' SECOND) AS s FROM bid "
    "GROUP BY bidder, SESSION(`dateTime`, INTERVAL '0.01' SECOND)",
    "WITH counted AS (SELECT auction, COUNT(*) AS n, window_start, window_end FROM TABLE(HOP(TABLE bid, "
    "DESCRIPTOR(`dateTime`), INTERVAL '0.1' SECOND, INTERVAL '0.2' SECOND)) GROUP BY auction, "
    "window_start, window_end) "
    "SELECT C.auction, C.n FROM counted C JOIN (SELECT MAX(n) AS most, window_start, window_end FROM counted "
    "GROUP BY window_start, window_end) M ON C.window_start = M.window_start AND C.window_end = M.window_end "
    "AND C.n >= M.most",
    "SELECT A.id, B.bidder FROM auction A JOIN bid B ON A.id = B.auction "
    "AND B.`dateTime` BETWEEN A.`dateTime` AND A.`dateTime` + INTERVAL '0.05' SECOND",
)


GENERATED = {
    "id": DataTypes.BIGINT(),
    "n": DataTypes.BIGINT(),
    "small": DataTypes.TINYINT(),
    "bounded": DataTypes.INT(),
    "share": DataTypes.DOUBLE(),
    "half": DataTypes.FLOAT(),
    "flag": DataTypes.BOOLEAN(),
    "text": DataTypes.STRING(),
    "varying": DataTypes.VARCHAR(40),
}
GENERATED_OPTIONS = {
    "fields.id.kind": "sequence", "fields.id.start": "-3", "fields.id.end": "10000",
    "fields.bounded.min": "5", "fields.bounded.max": "17", "fields.bounded.null-rate": "0.3",
    "fields.half.min": "-1", "fields.half.max": "1", "fields.text.length": "5",
    "fields.varying.length": "37", "fields.varying.var-len": "true",
}  # fmt: skip


def test_workers_and_spark_make_up_the_same_rows(session):
    options = TableOptions("made", GENERATED_OPTIONS)
    fields = read_generated(options, GENERATED.items()).fields
    assert all(map(can_make, fields))
    items = [f"{field_sql(field)} AS {name}" for field, name in zip(fields, GENERATED, strict=True)]
    expected = session.range(0, 3000).selectExpr(*items).toArrow()
    kinds = tuple((field.name, field.type) for field in expected.schema)
    (made,) = GeneratedPiece(fields, kinds, 0, 3000).read()
    assert made.to_pydict() == expected.to_pydict()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("queries", [QUERIES, COMPUTED], ids=["operators", "expressions"])
def test_queries_over_csv_answer_the_same_with_packets(
    env: EnvironmentFactory, tmp_path: Path, queries: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    write_files(tmp_path / "csv", 4000, "csv")
    batch = StreamTableEnvironment.create(env(), EnvironmentSettings.in_batch_mode())
    stream = StreamTableEnvironment.create(env(max_records=500))
    for each in (batch, stream):
        for statement in definitions(tmp_path / "csv", "csv"):
            each.execute_sql(statement)
    expected = [result_of(rows) for rows in run_together(batch, queries)]
    epochs, in_packets = [], []
    runs = PacketStages.can_run
    monkeypatch.setattr(
        PacketStages,
        "can_run",
        lambda stages: in_packets.append(runs(stages)) or in_packets[-1],
    )
    with watching(on_epoch=lambda graph, summary: epochs.append(summary.epoch)):
        found = [result_of(rows) for rows in run_together(stream, queries)]
    assert found == expected
    assert all(expected)
    assert len(epochs) > 1
    assert all(in_packets), "something was left to Spark SQL"

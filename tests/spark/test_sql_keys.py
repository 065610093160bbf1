"""Keys of SQL: different ones stay apart, whoever chose them and wherever the stream is cut."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from headrace.common.types import RowKind
from headrace.errors import UnsupportedFeatureError
from headrace.spark.row_keys import RowKeys, encoding_sql
from headrace.state.key_secret import KeySecret
from headrace.table import ChangelogMode, Schema, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import result_of, run_together

pytestmark = pytest.mark.spark

#: Two texts for which xxhash64 is the same under both seeds that were once used. One lane of the hash takes eight
#: bytes of each half; what the first half changes there, the second takes back, under either seed.
FORGED = (
    "KJ6jWrwcqqqqqqqqqqqqqqqqqqqqqqqq%q{&zyOwqqqqqqqqqqqqqqqqqqqqqqqq",
    "I8vD9Ywkqqqqqqqqqqqqqqqqqqqqqqqq3,J~3$8%qqqqqqqqqqqqqqqqqqqqqqqq",
)
#: Different values that look the same as text, in neighbouring rows.
ROWS = f"""(VALUES
  (1, '{FORGED[0]}', ARRAY['a, b'], MAP['a', 'b, c -> d'], ROW('1, 2', '3')),
  (2, '{FORGED[1]}', ARRAY['a', 'b'], MAP['a', 'b', 'c', 'd'], ROW('1', '2, 3')),
  (3, 'null', ARRAY['null'], MAP['c', 'd', 'a', 'b'], ROW('null', 'x')),
  (4, CAST(NULL AS STRING), ARRAY[CAST(NULL AS STRING)], MAP['a', CAST(NULL AS STRING)], ROW(CAST(NULL AS STRING), 'x'))
) AS v(id, s, ar, m, r)"""
ALONE = Counter({(id_, id_, 1): 1 for id_ in (1, 2, 3, 4)})
#: The maps of rows 2 and 3 have the same entries.
MAPS = Counter({(1, 1, 1): 1, (2, 3, 2): 1, (4, 4, 1): 1})
PAIRS = Counter({(id_, id_): 1 for id_ in (1, 2, 3, 4)})
WITHOUT_NULL = Counter({(id_, id_): 1 for id_ in (1, 2, 3)})


def group_by(key: str) -> str:
    return f"SELECT MIN(id), MAX(id), COUNT(*) FROM t GROUP BY {key}"


def run_row_by_row(env: EnvironmentFactory, queries: list[str]) -> list[Counter[tuple[Any, ...]]]:
    """Return the results of queries over the rows, of which each has an epoch of its own."""
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=1))
    t_env.execute_sql(f"CREATE TEMPORARY VIEW t AS SELECT * FROM {ROWS}")
    return [result_of(changes) for changes in run_together(t_env, queries)]


@pytest.mark.timeout(300)
def test_groups_of_different_keys_are_not_merged_across_epochs(env: EnvironmentFactory) -> None:
    assert run_row_by_row(env, [group_by("s"), group_by("ar")]) == [ALONE, ALONE]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_operator_merges_different_keys(env: EnvironmentFactory) -> None:
    first = "SELECT id, n FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY id) AS n FROM t) WHERE n <= {}"
    queries = {
        group_by("r"): ALONE,
        group_by("m"): MAPS,
        "SELECT COUNT(DISTINCT s), COUNT(DISTINCT ar) FROM t": Counter({(3, 4): 1}),
        "SELECT l.id, r.id FROM t l JOIN t r ON l.s = r.s": WITHOUT_NULL,
        "SELECT l.id, r.id FROM t l JOIN t r ON l.ar = r.ar": PAIRS,
        "SELECT l.id, r.id FROM t l LEFT JOIN t r ON l.r = r.r AND l.id <= r.id": PAIRS,
        first.format("s", 2): Counter({(id_, 1): 1 for id_ in (1, 2, 3, 4)}),
        first.format("ar", 1): Counter({(id_, 1): 1 for id_ in (1, 2, 3, 4)}),
        "SELECT CARDINALITY(ar), COUNT(*) FROM (SELECT DISTINCT ar FROM t) GROUP BY CARDINALITY(ar)": Counter(
            {(1, 3): 1, (2, 1): 1}
        ),
        "SELECT COUNT(*) FROM (SELECT s FROM t INTERSECT SELECT s FROM t)": Counter({(4,): 1}),
        "SELECT id, id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.r = t.r AND u.id >= t.id)": PAIRS,
    }
    results = run_row_by_row(env, list(queries))
    assert dict(zip(queries, results, strict=True)) == queries


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", ["s", "ar", "r"])
def test_a_keyed_sink_never_replaces_the_row_of_another_key(env: EnvironmentFactory, key: str) -> None:
    """Not by the rows it keeps to materialize upserts, and not by those it makes changelogs of."""
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=1))
    t_env.get_config().set("table.exec.sink.upsert-materialize", "FORCE")
    t_env.execute_sql(f"CREATE TEMPORARY VIEW t AS SELECT * FROM {ROWS}")
    types = {"s": "STRING", "ar": "ARRAY<STRING>", "r": "ROW<x STRING, y STRING>"}
    schema = Schema.new_builder().column("k", f"{types[key]} NOT NULL").column("id", "INT").primary_key("k")
    rows = t_env.sql_query(f"SELECT {key} AS k, id FROM t WHERE s IS NOT NULL OR '{key}' <> 's'")
    written = t_env.to_changelog_stream(rows, schema.build(), ChangelogMode.upsert())
    read = t_env.from_changelog_stream(written, schema.build(), ChangelogMode.upsert())
    with read.execute().collect() as found:
        changes = sorted((row.get_row_kind(), row[1]) for row in found)
    assert changes == [(RowKind.INSERT, id_) for id_ in ((1, 2, 3) if key == "s" else (1, 2, 3, 4))]


# -- the numbers themselves ----------------------------------------------------------------------------------------


@pytest.fixture
def session(spark_session: SparkContext) -> SparkSession:
    made = SparkSession(spark_session).newSession()
    made.conf.set("spark.sql.ansi.enabled", "false")
    return made


def test_the_forged_texts_had_the_same_hashes(session: SparkSession) -> None:
    row = session.createDataFrame([FORGED], "a STRING, b STRING").selectExpr(
        "xxhash64(a) = xxhash64(b) AS first", "xxhash64(1L, a) = xxhash64(1L, b) AS second"
    )
    assert row.first() == (True, True)


_BEFORE = datetime.fromisoformat("1969-12-31 23:59:59.999999")
_LEAVES: list[tuple[t.DataType, st.SearchStrategy[Any]]] = [
    (t.LongType(), st.integers(-2, 2)),
    (t.IntegerType(), st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1])),
    (t.BooleanType(), st.booleans()),
    (t.StringType(), st.text("\0\1a,{}", max_size=3)),
    (t.BinaryType(), st.binary(max_size=2)),
    (t.DoubleType(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 5e-324])),
    (t.FloatType(), st.sampled_from([0.0, -0.0, 1.5, math.nan])),
    (t.DecimalType(10, 2), st.decimals(-2, 2, places=2)),
    (t.DecimalType(38, 4), st.sampled_from([Decimal("0.0000"), Decimal(10**33), Decimal(10**33 + 1)])),
    (t.DateType(), st.dates(date(1969, 12, 30), date(1970, 1, 2))),
    (t.TimestampNTZType(), st.datetimes(_BEFORE, _BEFORE + timedelta(microseconds=2))),
]
Typed = tuple[t.DataType, st.SearchStrategy[Any]]


def _nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def array(of: Typed) -> Typed:
        return t.ArrayType(of[0]), st.none() | st.lists(of[1], max_size=3)

    def row(of: list[Typed]) -> Typed:
        fields = [t.StructField(f"f{at}", kind) for at, (kind, _) in enumerate(of)]
        return t.StructType(fields), st.none() | st.tuples(*(values for _, values in of))

    def mapping(of: Typed) -> Typed:
        entries = st.dictionaries(st.text("ab", max_size=2), of[1], max_size=3)
        return t.MapType(t.StringType(), of[0]), st.none() | entries

    return inner.map(array) | st.lists(inner, min_size=1, max_size=3).map(row) | inner.map(mapping)


TYPED = st.recursive(
    st.sampled_from([(kind, st.none() | values) for kind, values in _LEAVES]), _nested, max_leaves=4
)


def canonical(value: Any) -> Any:
    """Return something that is equal for values that GROUP BY takes for equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return frozenset((key, canonical(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(canonical, value))
    return value


@given(st.lists(TYPED, min_size=1, max_size=2), st.data())
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_encodings_are_equal_if_and_only_if_values_are(session: Any, typed: list[Typed], data: Any) -> None:
    rows = data.draw(st.lists(st.tuples(*(values for _, values in typed)), min_size=2, max_size=40))
    kinds = [kind for kind, _ in typed]
    schema = t.StructType([t.StructField(f"c{at}", kind) for at, kind in enumerate(kinds)])
    frame = session.createDataFrame(rows, schema)
    encoding = encoding_sql([(f"c{at}", kind) for at, kind in enumerate(kinds)])
    keys = RowKeys(session, KeySecret(b"0" * 16))
    made = keys.with_keys(frame.selectExpr("*", f"{encoding} AS e"), {("h1", "h2"): list(schema.names)})
    found = [(bytes(row["e"]), (row["h1"], row["h2"])) for row in made.collect()]
    keys.close()
    wanted = [canonical(row) for row in rows]
    for encoded in zip(*found, strict=True):
        assert [encoded.index(each) for each in encoded] == [wanted.index(each) for each in wanted]


def test_a_pair_of_numbers_and_a_null_have_keys_of_their_own(session: SparkSession) -> None:
    some = [None, 0, 1, -1, 2**63 - 1, -(2**63)]
    rows = [(a, b) for a in some for b in some]
    frame = session.createDataFrame(rows, "a BIGINT, b BIGINT")
    keys = RowKeys(session, KeySecret.new())
    found = keys.with_keys(frame, {("h1", "h2"): ["a", "b"]}).select("h1", "h2").collect()
    again = keys.with_keys(frame, {("h1", "h2"): ["a", "b"]}).select("h1", "h2").collect()
    assert len(set(found)) == len(rows)
    assert found == again


def test_another_secret_gives_other_keys_to_texts(session: SparkSession) -> None:
    frame = session.createDataFrame([("a",)], "s STRING")
    found = {
        RowKeys(session, secret).with_keys(frame, {("h1", "h2"): ["s"]}).first()
        for secret in (KeySecret(b"1" * 16), KeySecret(b"2" * 16), KeySecret(b"1" * 16))
    }
    assert len(found) == 2


def test_plans_do_not_show_the_secret(session: SparkSession) -> None:
    secret = KeySecret(b"never shown text")
    frame = session.createDataFrame([("a", 1)], "s STRING, n BIGINT")
    made = RowKeys(session, secret).with_keys(frame, {("h1", "h2"): ["s"], ("r1", "r2"): ["n"]})
    made.collect()
    plan = made._jdf.queryExecution().toString().lower()
    assert "sha2" in plan
    assert "never shown" not in plan
    assert secret.value.hex() not in plan
    assert "never shown" not in repr(secret)


def test_a_value_that_cannot_be_compared_is_refused_as_a_key(session: SparkSession) -> None:
    frame = session.sql("SELECT parse_json('1') AS v")
    with pytest.raises(UnsupportedFeatureError, match="VARIANT"):
        RowKeys(session, KeySecret.new()).with_keys(frame, {("h1", "h2"): ["v"]})

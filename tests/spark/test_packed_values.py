"""Small tables whose rows the program gives: they go in packets, with functions of the user's on the way.

So do rows that go between streams and tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime

import pandas as pd
import pytest

from headrace.common.time import Instant
from headrace.common.typeinfo import Types
from headrace.common.types import Row
from headrace.errors import HeadraceError
from headrace.spark.packet_stages import PacketStages
from headrace.spark.table_session import TableSession
from headrace.table import AsyncTableFunction, DataTypes, Schema, StreamTableEnvironment
from headrace.table.udf import udaf, udf, udtf
from tests.conftest import EnvironmentFactory
from tests.spark.support import run

pytestmark = pytest.mark.spark


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether each epoch that runs went in packets all the way."""
    found: list[bool] = []
    runs = PacketStages.can_run

    def can_run(stages):
        found.append(runs(stages))
        return found[-1]

    monkeypatch.setattr(PacketStages, "can_run", can_run)
    return found


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whatever asks for a session of Spark SQL."""

    def refused(session: TableSession) -> None:
        raise AssertionError("an epoch in packets needs no session")

    monkeypatch.setattr(TableSession, "spark", property(refused))


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def words(line: Row) -> Iterator[Row]:
    for word in line[0].split():
        yield Row(word, len(word))


@udf(result_type=DataTypes.STRING())
def starred(text: str | None) -> str | None:
    return None if text is None else f"*{text}*"


@pytest.mark.usefixtures("no_session")
def test_functions_are_called_on_the_way_of_packets(env: EnvironmentFactory, packed: list[bool]):
    t_env = StreamTableEnvironment.create(env(parallelism=2))
    lines = t_env.from_elements([("to be or not",), ("",), ("to be",)], ["line"])
    t_env.create_temporary_system_function("starred", starred)
    t_env.create_temporary_view("words", lines.flat_map(words).alias("word", "size"))
    query = "SELECT starred(word) AS word, COUNT(*) AS n, MAX(size) AS size FROM words WHERE word <> 'or' GROUP BY word"
    with t_env.execute_sql(query).collect() as found:
        rows = {tuple(row) for row in found}
    assert rows == {("*to*", 2, 2), ("*be*", 2, 2), ("*not*", 1, 3)}
    assert packed
    assert all(packed)


def test_wrong_results_of_a_function_are_reported_as_by_spark(env: EnvironmentFactory, packed: list[bool]):
    @udf(result_type=DataTypes.INT())
    def large(number: int) -> int:
        return number << 40

    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.create_temporary_system_function("large", large)
    t_env.create_temporary_view("numbers", t_env.from_elements([(1,)], ["n"]))
    with pytest.raises(HeadraceError), t_env.execute_sql("SELECT large(n) FROM numbers").collect() as found:
        list(found)
    assert packed[0]


def test_a_function_that_fails_names_the_record(env: EnvironmentFactory, packed: list[bool]):
    @udf(result_type=DataTypes.BIGINT())
    def failing(number: int) -> int:
        raise ValueError(f"no {number}")

    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.create_temporary_system_function("failing", failing)
    t_env.create_temporary_view("numbers", t_env.from_elements([(41,)], ["n"]))
    with (
        pytest.raises(HeadraceError, match="no 41"),
        t_env.execute_sql("SELECT failing(n) FROM numbers").collect() as found,
    ):
        list(found)
    assert packed == [True]


EVENTS = [
    (1000, "ann", 110.5),
    (4000, "bob", 30.25),
    (3000, "ann", 20.0),
    (2000, "bob", 53.0),
    (9000, "bob", 16.5),
]


@udaf(result_type=DataTypes.FLOAT(), func_type="pandas")
def mean(prices: pd.Series) -> float:
    return float(prices.mean())


@udaf(result_type=DataTypes.INT(), func_type="pandas")
def count(prices: pd.Series) -> int:
    return len(prices)


def at(second: int) -> datetime:
    return datetime.fromisoformat(f"1970-01-01T00:00:{second:02}")


QUERIES = {
    "over": (
        "SELECT name, MAX(price) OVER (PARTITION BY name ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM e",
        {("ann", 110.5), ("bob", 53.0), ("bob", 30.25)},
    ),
    "session": (
        "SELECT name, SUM(price), SESSION_END(ts, INTERVAL '4' SECOND) FROM e "
        "GROUP BY name, SESSION(ts, INTERVAL '4' SECOND)",
        {
            ("ann", 130.5, at(7)),
            ("bob", 83.25, at(8)),
            ("bob", 16.5, at(13)),
        },
    ),
    "functions": (
        "SELECT name, mean(price), num(price) FILTER (WHERE name = 'bob') FROM e "
        "GROUP BY name, TUMBLE(ts, INTERVAL '5' SECOND)",
        {("ann", 65.25, 0), ("bob", 41.625, 2), ("bob", 16.5, 1)},
    ),
}


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("max_records", [2, None], ids=["3 epochs", "1 epoch"])
def test_rows_of_streams_go_in_packets_with_the_time_that_is_read_off_them(
    env: EnvironmentFactory, packed: list[bool], query: str, max_records: int | None
):
    environment = env(parallelism=1, **({} if max_records is None else {"max_records": max_records}))
    t_env = StreamTableEnvironment.create(environment)
    moments = [(Instant.of_epoch_milli(ms), *others) for ms, *others in EVENTS]
    kind = Types.ROW_NAMED(["at", "name", "price"], [Types.INSTANT(), Types.STRING(), Types.FLOAT()])
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "CAST(`at` AS TIMESTAMP(3))")
        .column("name", DataTypes.STRING())
        .column("price", DataTypes.FLOAT())
        .watermark("ts", "ts - INTERVAL '3' SECOND")
        .build()
    )
    t_env.create_temporary_view("e", environment.from_collection(moments, kind), schema)
    t_env.create_temporary_system_function("mean", mean)
    t_env.create_temporary_system_function("num", count)
    text, expected = QUERIES[query]
    with t_env.execute_sql(text).collect() as found:
        assert {tuple(row) for row in found} == expected
    assert packed
    assert all(packed)


@pytest.mark.usefixtures("no_session")
def test_rows_go_to_streams_and_back_in_packets(env: EnvironmentFactory, packed: list[bool]):
    environment = env(parallelism=2, max_records=3)
    t_env = StreamTableEnvironment.create(environment)
    t_env.execute_sql(
        "CREATE TABLE numbers (id BIGINT, word STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '8', "
        "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '8', 'fields.word.length' = '3')"
    )
    counted = t_env.sql_query(
        "SELECT MOD(id, 2) AS odd, SUM(id) AS total, MAX(word) AS word FROM numbers GROUP BY MOD(id, 2)"
    )
    changes = t_env.to_changelog_stream(counted)
    kind = Types.ROW_NAMED(["odd", "total", "length"], [Types.LONG(), Types.LONG(), Types.INT()])
    again = changes.map(
        lambda row: Row.of_kind(row.get_row_kind(), odd=row.odd, total=row.total, length=len(row.word)), kind
    )
    table = t_env.from_changelog_stream(again)
    summed = t_env.sql_query(f"SELECT length, SUM(total) FROM {table} GROUP BY length")
    rows = run(t_env.to_changelog_stream(summed)).rows
    assert (rows[-1][0], rows[-1][1]) == (3, 36)
    assert packed
    assert all(packed)


@udf(result_type=DataTypes.STRING())
async def looked_up(number: int) -> str:
    await asyncio.sleep(0)
    if number > 4:
        raise ValueError(f"no {number}")
    return f"name {number}"


@pytest.mark.usefixtures("no_session")
def test_asynchronous_functions_are_called_on_the_way_of_packets(env: EnvironmentFactory, packed: list[bool]):
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.create_temporary_system_function("looked_up", looked_up)
    t_env.create_temporary_view("numbers", t_env.from_elements([(1,), (4,), (3,), (40,)], ["n"]))
    with t_env.execute_sql("SELECT n, looked_up(n) FROM numbers WHERE n < 5").collect() as found:
        assert [tuple(row) for row in found] == [(1, "name 1"), (4, "name 4"), (3, "name 3")]
    assert packed
    assert all(packed)
    with (
        pytest.raises(HeadraceError, match="no 40"),
        t_env.execute_sql("SELECT looked_up(n) FROM numbers").collect() as found,
    ):
        list(found)


@udtf(result_types=[DataTypes.INT(), DataTypes.STRING()])
async def related(number: int) -> list[tuple[int, str]]:
    await asyncio.sleep(0)
    if number > 4:
        raise ValueError(f"no {number}")
    return [(at, f"of {number}") for at in range(number - 1)]


@udtf(result_types=[DataTypes.DATE()])
class Days(AsyncTableFunction):
    async def eval(self, *args: int) -> AsyncIterator[date]:
        for day in range(args[0]):
            await asyncio.sleep(0)
            yield date(2026, 1, 1 + day)


def test_asynchronous_table_functions_are_called_with_and_without_packets(
    env: EnvironmentFactory, packed: list[bool]
):
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.get_config().set("table.exec.async-table.retry-strategy", "NO_RETRY")
    t_env.create_temporary_system_function("related", related)
    t_env.create_temporary_system_function("days", Days)
    t_env.create_temporary_view("numbers", t_env.from_elements([(1,), (3,), (2,)], ["n"]))
    t_env.create_temporary_view("large", t_env.from_elements([(40,)], ["n"]))
    lateral = "SELECT n, a, b FROM numbers LEFT JOIN LATERAL TABLE(related(n)) AS r(a, b) ON TRUE"
    with t_env.execute_sql(lateral).collect() as found:
        rows = [tuple(row) for row in found]
    assert rows == [(1, None, None), (3, 0, "of 3"), (3, 1, "of 3"), (2, 0, "of 2")]
    assert packed
    assert all(packed)
    # Days are among the types that Spark SQL passes on.
    with t_env.execute_sql(
        "SELECT n, d FROM numbers, LATERAL TABLE(days(n)) AS r(d) WHERE d < DATE '2026-01-03'"
    ).collect() as found:
        assert [tuple(row) for row in found] == [
            (1, date(2026, 1, 1)),
            (3, date(2026, 1, 1)),
            (3, date(2026, 1, 2)),
            (2, date(2026, 1, 1)),
            (2, date(2026, 1, 2)),
        ]
    assert not all(packed)
    with (
        pytest.raises(HeadraceError, match="no 40"),
        t_env.execute_sql("SELECT n, a FROM large, LATERAL TABLE(related(n)) AS r(a, b)").collect() as found,
    ):
        list(found)


@pytest.mark.usefixtures("no_session")
def test_time_is_read_off_timestamps_in_every_zone(env: EnvironmentFactory, packed: list[bool]):
    environment = env(parallelism=1, max_records=2)
    t_env = StreamTableEnvironment.create(environment)
    t_env.get_config().set_local_timezone("America/New_York")
    kind = Types.ROW_NAMED(["ts", "name"], [Types.SQL_TIMESTAMP(), Types.STRING()])
    schema = (
        Schema.new_builder()
        .column("ts", DataTypes.TIMESTAMP(3))
        .column("name", DataTypes.STRING())
        .watermark("ts", "ts - INTERVAL '3' SECOND")
        .build()
    )
    rows = [(at(ms // 1000), name) for ms, name, _ in EVENTS]
    t_env.create_temporary_view("e", environment.from_collection(rows, kind), schema)
    window = "TUMBLE(ts, INTERVAL '5' SECOND)"
    query = f"SELECT name, COUNT(*), {window.replace('TUMBLE', 'TUMBLE_END')} FROM e GROUP BY name, {window}"
    with t_env.execute_sql(query).collect() as found:
        assert {tuple(row) for row in found} == {("ann", 2, at(5)), ("bob", 2, at(5)), ("bob", 1, at(10))}
    assert len(packed) > 1
    assert all(packed)

"""JdbcSource and JdbcLookup on SQLite; tests/contracts has them on real servers."""

from __future__ import annotations

import asyncio
import datetime
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Row
from headrace.common.time import Duration
from headrace.connectors.base import Slice
from headrace.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcLookup,
    JdbcPartition,
    JdbcSource,
    _connections,
)
from headrace.connectors.jdbc.source import _bounds
from headrace.connectors.lookup import LookupCache, LookupCacheOptions
from headrace.datastream import AsyncFunction
from headrace.errors import ConnectorError, JobDefinitionError
from headrace.operators.async_wait import AsyncWaitDeclaration
from headrace.testing.harness import OperatorHarness


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "shop.db"
    execute(path, "CREATE TABLE orders (id INTEGER PRIMARY KEY, fruit TEXT, shelf INTEGER)")
    for number in range(20):
        shelf = "NULL" if number % 7 == 0 else number % 3
        execute(path, f"INSERT INTO orders VALUES ({number}, 'fruit {number}', {shelf})")
    yield path
    _connections.dispose_engines()


def execute(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(sql).fetchall()
        connection.commit()
        return found


def options(path: Path) -> JdbcConnectionOptions:
    return JdbcConnectionOptions(f"jdbc:sqlite:{path}")


def read(source: JdbcSource) -> dict[str, list[Any]]:
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    return {
        split.split_id: [row for batch in reader.read(Slice(split, None)) for row in batch.values]
        for split in enumerator.discover()
    }


def test_a_table_is_read_as_rows_with_its_columns(database: Path) -> None:
    rows = read(JdbcSource(options(database), "orders", ["fruit", "id"], fetch_size=3))["orders"]
    assert rows == [Row(f"fruit {n}", n) for n in range(20)]
    assert rows[3].fruit == "fruit 3"


def test_ranges_have_all_rows_between_them_also_those_with_null(database: Path) -> None:
    found = read(JdbcSource(options(database), "orders", ["id"], JdbcPartition("shelf", 3)))
    assert sorted(row.id for rows in found.values() for row in rows) == list(range(20))
    found = read(JdbcSource(options(database), "orders", ["id"], JdbcPartition("id", 4)))
    assert [[row.id for row in rows] for rows in found.values()] == [
        list(range(4)),
        list(range(4, 9)),
        list(range(9, 14)),
        list(range(14, 20)),
    ]


def test_bounds_that_are_given_hold(database: Path) -> None:
    found = read(JdbcSource(options(database), "orders", ["id"], JdbcPartition("id", 2, 5, 9)))
    assert [[row.id for row in rows] for rows in found.values()] == [[5, 6], [7, 8, 9]]


def test_a_condition_holds_for_rows_and_for_the_ranges(database: Path) -> None:
    partition = JdbcPartition("id", 2)
    found = read(JdbcSource(options(database), "orders", ["id"], partition, where="shelf = 2 OR id = 0"))
    assert [[row.id for row in rows] for rows in found.values()] == [[0, 2, 5], [8, 11, 17]]


def test_a_condition_is_taken_as_it_is(database: Path) -> None:
    execute(database, "UPDATE orders SET fruit = '10:30%' WHERE id = 4")
    source = JdbcSource(options(database), "orders", ["id"], where="fruit LIKE '10:3_%' AND fruit <> ':x'")
    assert read(source)["orders"] == [Row(4)]


def test_a_table_without_rows_is_one_empty_range(database: Path) -> None:
    execute(database, "DELETE FROM orders")
    assert read(JdbcSource(options(database), "orders", ["id"], JdbcPartition("id", 4))) == {
        "orders:id:1/1": []
    }


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 2, [0, 1, 2]),
        (0, 100, [0, 25, 50, 75, 100]),
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (datetime.date(2024, 1, 1), datetime.date(2024, 1, 9), [1, 3, 5, 7, 9]),
    ],
)
def test_ranges_are_cut_evenly(lower: Any, upper: Any, expected: list[Any]) -> None:
    found = _bounds(lower, upper, 4)
    assert [getattr(each, "day", each) for each in found] == expected


def test_a_key_of_several_columns_orders_rows(database: Path) -> None:
    execute(database, "CREATE TABLE pairs (a INTEGER, b TEXT)")
    for a, b in [(1, "x"), (1, "y"), (2, "x"), (0, "z")]:
        execute(database, f"INSERT INTO pairs VALUES ({a}, '{b}')")
    with pytest.raises(JobDefinitionError, match="pairs has no primary key"):
        read(JdbcSource(options(database), "pairs", ["b"]))
    source = JdbcSource(options(database), "pairs", ["b"], order_by=["a", "b"], fetch_size=1)
    assert [row.b for row in read(source)["pairs"]] == ["z", "x", "y", "x"]


def test_mistakes_are_reported(database: Path) -> None:
    with pytest.raises(ConnectorError, match="JDBC: reading the definition of table nowhere failed"):
        read(JdbcSource(options(database), "nowhere", ["id"]))
    with pytest.raises(ConnectorError, match=r"JDBC: reading orders failed at .*no such column"):
        read(JdbcSource(options(database), "orders", ["colour"]))
    with pytest.raises(JobDefinitionError, match="give both bounds, or neither"):
        JdbcPartition("id", 2, lower_bound=1)
    with pytest.raises(JobDefinitionError, match="lower bound 9 is greater than the upper bound 1"):
        read(JdbcSource(options(database), "orders", ["id"], JdbcPartition("id", 2, 9, 1)))
    with pytest.raises(JobDefinitionError, match="ranges need numbers, dates or timestamps"):
        read(JdbcSource(options(database), "orders", ["id"], JdbcPartition("fruit", 2)))
    with pytest.raises(JobDefinitionError, match="unique column names"):
        JdbcSource(options(database), "orders", [])


# --- lookups --------------------------------------------------------------------------------------


def test_rows_are_looked_up_by_key(database: Path) -> None:
    lookup = pickle.loads(pickle.dumps(JdbcLookup(options(database), "orders", ["fruit"], ["id"])))
    assert lookup(3) == [Row(fruit="fruit 3")]
    assert lookup(99) == []
    assert lookup(None) == []
    by_two = JdbcLookup(options(database), "orders", ["id"], ["shelf", "fruit"])
    assert by_two(1, "fruit 1") == [Row(1)]
    with pytest.raises(TypeError, match=r"expected 2 values \(shelf, fruit\); got 1"):
        by_two(1)


def test_what_was_found_is_remembered_also_that_it_was_nothing(database: Path) -> None:
    lookup = JdbcLookup(options(database), "orders", ["fruit"], ["id"], LookupCacheOptions(max_rows=2))
    assert (lookup(1), lookup(99)) == ([Row("fruit 1")], [])
    execute(database, "UPDATE orders SET fruit = 'new'")
    execute(database, "INSERT INTO orders VALUES (99, 'late', 1)")
    assert (lookup(1), lookup(99)) == ([Row("fruit 1")], [])
    assert lookup(2) == [Row("new")]  # makes 1 go
    assert lookup(1) == [Row("new")]


def test_lookups_can_be_awaited(database: Path) -> None:
    lookup = JdbcLookup(options(database), "orders", ["fruit"], ["id"], LookupCacheOptions())

    async def ask() -> list[Any]:
        return await asyncio.gather(*(lookup.ask(n) for n in (1, 2, 1)))

    assert asyncio.run(ask()) == [[Row("fruit 1")], [Row("fruit 2")], [Row("fruit 1")]]
    execute(database, "DELETE FROM orders")
    assert asyncio.run(lookup.ask(1)) == [Row("fruit 1")]


class Price(AsyncFunction[int, str]):
    def __init__(self, lookup: JdbcLookup) -> None:
        self.lookup = lookup

    async def async_invoke(self, value: int) -> list[str]:
        return [row.fruit for row in await self.lookup.ask(value)]


def test_lookups_work_in_asynchronous_functions(database: Path) -> None:
    lookup = JdbcLookup(options(database), "orders", ["fruit"], ["id"], LookupCacheOptions())
    operator = AsyncWaitDeclaration(Price(lookup), timeout_ms=60_000, capacity=4, is_ordered=True)
    with OperatorHarness(operator) as harness:
        harness.process_batch([3, 99, 1, 3])
        harness.end_epoch()
        assert harness.output == ["fruit 3", "fruit 1", "fruit 3"]


def test_the_cache_forgets_by_age_and_by_use() -> None:
    now = 0.0
    cache = LookupCache(
        LookupCacheOptions(
            10, expire_after_write=Duration.of_seconds(10), expire_after_access=Duration.of_seconds(4)
        ),
        clock=lambda: now,
    )
    cache.put("a", [1])
    cache.put("b", [2])
    now = 3.0
    assert cache.get("a") == [1]
    now = 6.0
    assert (cache.get("a"), cache.get("b")) == ([1], None)
    now = 9.5
    assert cache.get("a") == [1]
    now = 10.0
    assert cache.get("a") is None
    assert (len(cache), cache.hits, cache.misses) == (0, 3, 2)


def test_the_cache_counts_rows_and_may_leave_out_what_is_missing() -> None:
    cache = LookupCache(LookupCacheOptions(3, cache_missing_key=False))
    cache.put("none", [])
    cache.put("two", [1, 2])
    cache.put("four", [1, 2, 3, 4])
    cache.put("two", [3])
    cache.put("more", [5, 6])
    assert [cache.get(key) for key in ("none", "two", "four", "more")] == [None, [3], None, [5, 6]]
    with pytest.raises(JobDefinitionError, match="must not be negative"):
        LookupCacheOptions(-1)

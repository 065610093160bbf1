"""PostgreSQL -> join -> PostgreSQL while drivers are killed: the sums are those of the tables, nothing counts twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.chaos.killed_driver import KilledDriver
from tests.postgres import PostgresServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.chaos,
    pytest.mark.slow(seconds=240),
    pytest.mark.timeout(500),
]

PROGRAM = Path(__file__).with_name("cdc_program.py")


class Shop:
    """Tables that change, and the job over them."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self._name = f"cdc_{uuid4().hex[:8]}"
        self._random = random.Random(7)
        environment = {
            "CDC_HOST": server.host,
            "CDC_PORT": str(server.port),
            "CDC_USER": server.user,
            "CDC_PASSWORD": server.password,
        }
        self._driver = KilledDriver(
            PROGRAM, [self._name], folder, environment, {"headrace.epoch.max-records": 7}
        )
        for table, columns in {
            "customers": "id INT PRIMARY KEY, name TEXT",
            "orders": "id INT PRIMARY KEY, customer INT, amount NUMERIC(10, 2)",
            "totals": "customer INT PRIMARY KEY, name TEXT, orders BIGINT, amount NUMERIC(38, 2)",
        }.items():
            server.execute(f"CREATE TABLE {self._name}_{table} ({columns})")
        server.execute(f"ALTER TABLE {self._name}_orders REPLICA IDENTITY FULL")

    def change(self, count: int) -> None:
        """Insert, update and delete rows, some of them in one transaction."""
        draw, name = self._random, self._name
        for _ in range(count):
            order, customer = draw.randrange(60), draw.randrange(8)
            statements = [
                f"INSERT INTO {name}_customers VALUES ({customer}, 'c{draw.randrange(5)}') "
                "ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                f"INSERT INTO {name}_orders VALUES ({order}, {customer}, {draw.randrange(1000)}) "
                "ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, customer = excluded.customer",
                f"DELETE FROM {name}_orders WHERE id = {draw.randrange(60)}",
                f"DELETE FROM {name}_customers WHERE id = {draw.randrange(8)}",
                f"UPDATE {name}_orders SET id = id + 100 WHERE id = {draw.randrange(60)} "
                f"AND NOT EXISTS (SELECT FROM {name}_orders AS o WHERE o.id = {name}_orders.id + 100)",
            ]
            self._server.execute("; ".join(draw.sample(statements, draw.randrange(1, 4))))

    def expected(self) -> list[tuple[Any, ...]]:
        name = self._name
        return self._server.execute(
            f"SELECT c.id, max(c.name), count(*), sum(o.amount) FROM {name}_orders o "
            f"JOIN {name}_customers c ON o.customer = c.id GROUP BY c.id ORDER BY c.id"
        )

    def found(self) -> list[tuple[Any, ...]]:
        return self._server.execute(f"SELECT * FROM {self._name}_totals ORDER BY customer")

    def start(self) -> None:
        self._driver.start()

    def kill(self) -> None:
        self._driver.kill()

    def wait_until_changed(self, before: list[tuple[Any, ...]]) -> None:
        """Wait until the job has written something new."""
        self._wait(lambda: self.found() != before)

    def wait_until_equal(self) -> None:
        """Wait until the totals are those of the tables, row by row."""
        self._wait(lambda: self.found() == self.expected())

    def _wait(self, condition: Callable[[], bool]) -> None:
        self._driver.wait_until(condition, lambda: f"{self.found()}\n{self.expected()}")


@pytest.fixture
def shop(postgres: PostgresServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(postgres, tmp_path)
    yield made
    made.kill()


def test_changes_are_joined_exactly_once_while_drivers_are_killed(shop: Shop) -> None:
    shop.change(60)
    shop.start()
    shop.wait_until_changed([])  # in the middle of the snapshot: an epoch has seven rows
    shop.kill()
    shop.change(40)
    for _ in range(2):
        before = shop.found()
        shop.start()
        shop.change(30)
        shop.wait_until_changed(before)
        shop.kill()
        shop.change(20)
    shop.start()
    shop.wait_until_equal()
    shop.change(20)
    shop.wait_until_equal()

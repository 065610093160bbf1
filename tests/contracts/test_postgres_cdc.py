"""The source of PostgreSQL's changes against the contract of sources."""

from __future__ import annotations

import pytest

from headrace.common import Row
from headrace.testing.contracts import check_source
from tests.postgres import PostgresServer
from tests.unit.connectors.test_postgres_cdc import Table


@pytest.mark.slow
def test_the_source_keeps_the_contract(postgres: PostgresServer) -> None:
    table = Table(postgres)
    table.run("INSERT INTO t SELECT n, 'x' || n FROM generate_series(1, 9) AS n")
    numbers = iter(range(100, 200))

    def more() -> list[Row]:
        first, second = next(numbers), next(numbers)
        table.run(f"INSERT INTO t VALUES ({first}, 'more'), ({second}, 'more')")
        return [Row(id=first, name="more"), Row(id=second, name="more")]

    check_source(
        table.source(),
        [Row(id=number, name=f"x{number}") for number in range(1, 10)],
        cuts=(2, 100),
        more=more,
    )
    table.drop()

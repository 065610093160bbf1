"""Table jobs from scan to sink on a real Spark."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table.declarations import AggSpec, Fragment, GroupAggregate, Select, Where
from tests.spark.table_jobs import bigint, collect, materialized, straight, string, texts, values

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]

USER, AMOUNT = string("user"), bigint("amount")
COUNT, SUM = bigint("n"), bigint("s")
ROWS = [(f"u{i % 7}", i) for i in range(100)]


def test_projection_and_filter_reach_the_sink():
    rows = collect(
        [values(ROWS, (USER, AMOUNT))],
        (USER, SUM),
        Fragment(
            (Where("amount >= 95"), Select((("upper(user)", "user"), ("amount * 2", "s")))), (USER, SUM)
        ),
    )
    assert sorted(texts(rows)) == sorted(f"+I[U{i % 7}, {i * 2}]" for i in range(95, 100))


def count_and_sum() -> TableNode:
    calls = (AggSpec("COUNT", (), COUNT), AggSpec("SUM", ("amount",), SUM))
    return TableNode(
        GroupAggregate((USER, COUNT, SUM), keys=("user",), calls=calls),
        "aggregate",
        (TableInput(0, straight((USER, AMOUNT))),),
        uid="aggregate",
    )


@pytest.mark.parametrize("max_records", [None, 13])
def test_a_group_by_gives_the_same_table_whatever_the_epochs(max_records: int | None):
    rows = collect(
        [values(ROWS, (USER, AMOUNT)), count_and_sum()], (USER, COUNT, SUM), max_records=max_records
    )
    expected: dict[str, list[int]] = defaultdict(list)
    for user, amount in ROWS:
        expected[user].append(amount)
    assert materialized(rows) == Counter((user, len(of), sum(of)) for user, of in expected.items())
    if max_records is None:
        assert all(text.startswith("+I") for text in texts(rows))
    else:
        assert (
            Counter(text[:2] for text in texts(rows))["-U"] == Counter(text[:2] for text in texts(rows))["+U"]
        )

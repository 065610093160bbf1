"""The examples in SQL, against models in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from examples.sql import tea_house
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import result_of, run_together

pytestmark = pytest.mark.spark


def test_the_tea_house(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(max_records=70))
    tea_house.declare(t_env)

    minutes, guests, regulars = (
        result_of(rows) for rows in run_together(t_env, [*tea_house.RESULTS.values()])
    )

    orders = [(number % 4, number * 7 % 3 + 1, number // 60) for number in range(180)]
    per_minute: Counter[int] = Counter()
    per_guest = defaultdict(list)
    for guest, cups, minute in orders:
        per_minute[minute] += cups
        per_guest[guest].append(cups)
    assert minutes == {(f"2024-03-01 08:0{minute}:00.000", cups): 1 for minute, cups in per_minute.items()}
    assert guests == {(guest, len(cups), max(cups)): 1 for guest, cups in per_guest.items()}
    assert regulars == {(name, len(per_guest[at])): 1 for at, name in enumerate(["ann", "bob", "eve"])}


def test_the_tea_houses_job_reads_the_orders_once():
    text = tea_house.build(StreamTableEnvironment.create()).explain()

    assert text.count("TableSourceScan(table=[[default_catalog, default_database, orders]]") == 1

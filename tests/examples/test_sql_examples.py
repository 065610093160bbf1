"""The examples in SQL, against models in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from examples.sql import sensor_report, tea_house
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import result_of, run_together
from tests.spark.support import run_and_collect

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


def test_the_sensor_report(env: EnvironmentFactory):
    lines = run_and_collect(sensor_report.build(env(max_records=17), sensor_report.READINGS))

    averages = defaultdict(list)
    last: dict[str, float] = {}
    for sensor, celsius, at_ms in sensor_report.READINGS:
        if last.get(sensor) != celsius:
            last[sensor] = celsius
            averages[sensor, at_ms // 30_000].append(celsius)
    expected, before = [], {}
    for (sensor, window), values in sorted(averages.items(), key=lambda item: item[0][1]):
        now = sum(values) / len(values)
        moved = f" ({now - before[sensor]:+.1f})" if sensor in before else ""
        before[sensor] = now
        expected.append(f"{(window + 1) * 30:>3} s  {sensor}: {now:.1f}{moved}")
    assert Counter(lines) == Counter(expected)

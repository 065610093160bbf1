"""Watermarks between slow records: 0.4 s between records, a watermark interval of 50 ms, in both engines.

Flink emits a watermark between two records if the interval has passed. (What PyFlink does with a slow Python function
depends on where its bundles end, so this is not among the programs that were recorded from it.)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.common import Types, WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.datastream import KeyedProcessFunction
from tests.conftest import EnvironmentFactory
from tests.engines import MINI, SPARK


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Lateness(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str, bool, int]]:
        known = ctx.timer_service().current_watermark()
        yield value[0], value[1] <= known, known


def slowly(value: Any) -> Any:
    # The pace of the input is what this is about: eight intervals pass at every record.
    time.sleep(0.4)
    return value


@pytest.mark.slow
@pytest.mark.parametrize("engine", [MINI, pytest.param(SPARK, marks=pytest.mark.spark)])
@pytest.mark.parametrize("exchange", ["blocking", "pipelined"], ids=["epochs", "live"])
def test_a_record_behind_the_watermark_of_slow_records_is_late(
    env: EnvironmentFactory, exchange: str
) -> None:
    environment = env(parallelism=1, options={"headrace.exchange.kind": exchange})
    environment.get_config().set_auto_watermark_interval(50)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    found = (
        environment.from_collection([("a", 1000), ("b", 5000), ("c", 3000), ("d", 6000), ("e", 5999)])
        .map(slowly)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: 0, Types.INT())
        .process(Lateness())
        .execute_and_collect()
    )

    nothing_yet = -(2**63)
    assert list(found) == [
        ("a", False, nothing_yet),
        ("b", False, 999),
        ("c", True, 4999),
        ("d", False, 4999),
        ("e", True, 5999),
    ]

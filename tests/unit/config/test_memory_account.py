"""Memory is divided as by Flink's start script, and becomes sizes of Spark's processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.config import Configuration
from headrace.config.memory_account import DriverMemory, ExecutorMemory, driver_memory, executor_memory
from headrace.errors import ConfigurationError

RECORDED = json.loads((Path(__file__).parent / "flink_memory.json").read_text())
#: Flink computes fractions with 32 bits.
CLOSE = 1024


def case_name(case: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in case["options"].items())


def close(found: dict[str, int], expected: dict[str, int]) -> bool:
    return all(abs(found[name] - expected[name]) < CLOSE for name in found)


@pytest.mark.parametrize("case", RECORDED["executor"], ids=case_name)
def test_an_executor_is_divided_as_in_flink(case):
    configuration = Configuration(
        {f"taskmanager.memory.{key}": each for key, each in case["options"].items()}
    )
    if case.get("refused"):
        with pytest.raises(ConfigurationError):
            executor_memory(configuration)
        return
    found = executor_memory(configuration)
    assert found is not None
    sizes = {
        "Total Process Memory": found.process,
        "Total JVM Heap Memory": found.heap,
        "Task": found.task_heap,
        "Task off-heap": found.task_off_heap,
        "Managed": found.managed,
        "Network": found.network,
        "JVM Overhead": found.overhead,
    }
    assert close(sizes, case["sizes"])


@pytest.mark.parametrize("case", RECORDED["driver"], ids=case_name)
def test_the_driver_is_divided_as_in_flink(case):
    configuration = Configuration({f"jobmanager.memory.{key}": each for key, each in case["options"].items()})
    if case.get("refused"):
        with pytest.raises(ConfigurationError):
            driver_memory(configuration)
        return
    found = driver_memory(configuration)
    assert found is not None
    sizes = {
        "Total Process Memory": found.process,
        "JVM Heap": found.heap,
        "Off-heap": found.off_heap,
        "JVM Overhead": found.overhead,
    }
    assert close(sizes, case["sizes"])


def test_spark_gets_the_sizes_unless_it_has_its_own():
    options = {"taskmanager.memory.process.size": "1728m", "jobmanager.memory.process.size": "1600m"}
    assert Configuration(options).spark_settings() == {
        "spark.driver.memory": "1024m",
        "spark.driver.memoryOverhead": "576m",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "1216m",
    }
    own = Configuration({**options, "spark.executor.memory": "3g"}).spark_settings()
    assert own["spark.executor.memory"] == "3g"


def test_without_sizes_spark_has_its_defaults():
    configuration = Configuration({"taskmanager.memory.managed.fraction": 0.5})
    assert executor_memory(configuration) is None
    assert driver_memory(configuration) is None
    assert configuration.spark_settings() == {}


def test_workers_share_what_is_managed():
    found = executor_memory(
        Configuration(
            {
                "taskmanager.memory.task.heap.size": "1g",
                "taskmanager.memory.managed.size": "1000m",
                "taskmanager.memory.task.off-heap.size": "200m",
                "taskmanager.numberOfTaskSlots": 4,
            }
        )
    )
    assert found is not None
    assert (found.per_worker, found.state_per_worker) == (300 << 20, 175 << 20)


def test_a_weight_that_is_not_a_number_is_refused():
    options = {
        "taskmanager.memory.process.size": "2g",
        "taskmanager.memory.managed.consumer-weights": "STATE_BACKEND:much",
    }
    with pytest.raises(ConfigurationError, match="expected whole numbers"):
        executor_memory(Configuration(options))


def test_sizes_that_contradict_each_other_are_named():
    with pytest.raises(ConfigurationError, match="leaves 252 MB for all of them") as caught:
        executor_memory(Configuration({"taskmanager.memory.process.size": "700m"}))
    assert "raise taskmanager.memory.process.size" in caught.value.hint


def test_accounts_are_values():
    assert DriverMemory(1, 2, 3, 4).process == 10
    assert ExecutorMemory(1, 1, 1, 1, 1, 1, 1, 1, None, 0.7).per_worker is None

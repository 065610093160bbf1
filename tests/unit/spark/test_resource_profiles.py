"""Slot sharing groups with resources: which stages get which profile, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headrace.datastream import SlotSharingGroup, StreamExecutionEnvironment
from headrace.errors import ConfigurationError
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.slot_resources import SlotResources
from headrace.spark.resource_profiles import StageProfile, _mib, stage_profiles

GROWING = {"spark.dynamicAllocation.enabled": "true"}


def job(group: SlotSharingGroup | None) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    keyed = env.from_collection(range(4)).key_by(lambda n: n).map(lambda n: n)
    if group is not None:
        keyed = keyed.slot_sharing_group(group)
    keyed.print()
    return build_job_graph(env._build_stream_graph(), job_id="0" * 32, name="job")


def heavy(cores: float = 2.0, heap_mb: int = 1024, managed_mb: int = 512) -> SlotSharingGroup:
    builder = SlotSharingGroup.builder("heavy").set_cpu_cores(cores).set_task_heap_memory_mb(heap_mb)
    return builder.set_managed_memory_mb(managed_mb).set_task_off_heap_memory_mb(128).build()


def profiles(
    group: SlotSharingGroup | None, master: str, settings: Mapping[str, str]
) -> list[StageProfile | None]:
    return stage_profiles(job(group), master, settings)


def test_a_group_without_amounts_asks_for_nothing() -> None:
    assert profiles(SlotSharingGroup.builder("io").build(), "local[2]", {}) == [None, None]
    assert profiles(None, "local[2]", {}) == [None, None]


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "k8s://https://host:6443"])
def test_with_dynamic_allocation_a_group_gets_executors_of_its_own(master: str) -> None:
    settings = {**GROWING, "spark.executor.cores": "4"}
    assert profiles(heavy(), master, settings) == [
        None,
        StageProfile(2, executor_cores=4, executor_memory_mib=2048, executor_overhead_mib=1280),
    ]


def test_an_executor_has_one_slot_if_its_cores_are_not_set() -> None:
    assert profiles(heavy(heap_mb=100, managed_mb=0), "yarn", GROWING)[1] == StageProfile(
        2, executor_cores=2, executor_memory_mib=100, executor_overhead_mib=384
    )


def test_without_dynamic_allocation_tasks_take_more_cores_of_the_executors_there_are() -> None:
    settings = {
        "spark.executor.cores": "4",
        "spark.executor.memory": "4g",
        "spark.executor.memoryOverhead": "2g",
    }
    assert profiles(heavy(), "spark://host:7077", settings) == [None, StageProfile(2)]
    assert profiles(heavy(cores=0.5, heap_mb=10, managed_mb=1), "spark://host:7077", settings)[
        1
    ] == StageProfile(1)


def test_memory_that_no_executor_has_is_refused_without_dynamic_allocation() -> None:
    settings = {"spark.executor.cores": "4", "spark.executor.memory": "1g"}
    with pytest.raises(ConfigurationError, match="needs 2048 MB of heap for 2 slots") as refused:
        profiles(heavy(), "yarn", settings)
    assert "dynamicAllocation" in str(refused.value.hint)
    with pytest.raises(ConfigurationError, match="needs 640 MB of managed and off-heap memory"):
        profiles(heavy(heap_mb=100), "yarn", {"spark.executor.memory": "1g"})


def test_a_local_spark_refuses_amounts() -> None:
    with pytest.raises(ConfigurationError, match="a local Spark cannot give them to a part of a job"):
        profiles(heavy(), "local[4]", {})


def test_external_resources_are_refused() -> None:
    builder = SlotSharingGroup.builder("gpus").set_cpu_cores(1).set_task_heap_memory_mb(10)
    with pytest.raises(ConfigurationError, match=r"asks for gpu"):
        profiles(builder.set_external_resource("gpu", 1.0).build(), "yarn", GROWING)


def test_groups_that_share_a_level_get_what_is_enough_for_all() -> None:
    both = SlotResources(1.0, 500, 20).at_least(SlotResources(2.0, 100, 30, (("gpu", 1.0),)))
    assert both == SlotResources(2.0, 500, 30, (("gpu", 1.0),))


@pytest.mark.parametrize(
    ("text", "mib"), [("1g", 1024), ("512m", 512), ("2048", 2048), ("1024k", 1), ("1gb", 1024)]
)
def test_sizes_are_read_as_spark_reads_them(text: str, mib: int) -> None:
    assert _mib(text) == mib

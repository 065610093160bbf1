"""What executors offer, by the master and by what was declared."""

from __future__ import annotations

import pytest

from headrace.runtime.scheduling.slots import SlotOffer
from headrace.spark.cluster import SparkExecutorInfo, task_executors
from headrace.spark.slots import offer_of

DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}
BOUNDED = {**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "5", "spark.executor.cores": "4"}


class Conf(dict[str, str]):
    """What is asked of Spark's configuration."""


def executors(*cores: int) -> list[SparkExecutorInfo]:
    return [SparkExecutorInfo(str(each), "host", 1, count, 0, 0, 0, 0) for each, count in enumerate(cores)]


@pytest.mark.parametrize(
    ("master", "cores", "conf", "declared", "expected"),
    [
        ("local[2,4]", (2,), {}, None, SlotOffer(2, 1, is_elastic=True)),
        ("local[2,4]", (2,), {}, 8, SlotOffer(8, 1)),
        ("spark://a:7077", (), {}, None, SlotOffer(0, 0, may_grow=True)),
        ("spark://a:7077", (4, 2), {}, None, SlotOffer(6, 2, may_grow=True)),
        ("spark://a:7077", (4, 2), {}, 3, SlotOffer(6, 2, may_grow=True)),
        ("local-cluster[2,1,1024]", (1, 1), {}, None, SlotOffer(2, 2, may_grow=True)),
        ("yarn", (4, 4), {"spark.task.cpus": "2"}, None, SlotOffer(4, 2, may_grow=True)),
        ("yarn", (4,), DYNAMIC, None, SlotOffer(4, 1, is_elastic=True, may_grow=True)),
        ("yarn", (4,), BOUNDED, None, SlotOffer(20, 5, may_grow=True)),
        ("yarn", (4,), BOUNDED, 1, SlotOffer(5, 5, may_grow=True)),
    ],
)
def test_slots_follow_the_master_and_what_was_declared(
    master: str, cores: tuple[int, ...], conf: dict[str, str], declared: int | None, expected: SlotOffer
) -> None:
    assert offer_of(executors(*cores), Conf(conf), master, declared) == expected


def test_subtasks_of_live_jobs_do_not_take_turns_on_the_threads_of_a_local_spark() -> None:
    assert offer_of(executors(7), Conf({}), "local[7,1]", None, is_live=True) == SlotOffer(7, 1)


def test_the_driver_of_a_cluster_offers_nothing_also_while_it_is_alone() -> None:
    driver = SparkExecutorInfo("driver", "host", 1, 0, 0, 0, 0, 0)
    assert task_executors([driver], "spark://a:7077") == []
    assert task_executors([driver, *executors(2)], "yarn") == executors(2)
    [local] = task_executors([driver], "local[3,4]")
    assert (local.executor_id, local.cores) == ("driver", 3)

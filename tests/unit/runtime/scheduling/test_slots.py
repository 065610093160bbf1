"""Slots are taken whole, given back, and missed in numbers."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from headrace.common.job_status import JobStatus
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.errors import JobCancelledError, NoResourceAvailableError
from headrace.graph.execution_graph import ExecutionState
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import uniform_parallelism
from headrace.runtime.scheduling.slots import SlotManager, SlotOffer, SlotPool
from headrace.testing.mini_cluster import MiniJob
from tests.unit.rest.conftest import wait_until
from tests.unit.runtime.jobs import BASE, job_graph, make_env

OPTIONS = {key: value for key, value in BASE.items() if key != "execution.target"}
ENDLESS = 10**12


def counting(
    parallelism: int, *, last: int = 20, job_id: str = "a" * 32, group: int | None = None
) -> JobGraph:
    env = make_env(parallelism)
    numbers = env.from_source(NumberSequenceSource(0, last), WatermarkStrategy.no_watermarks(), "numbers")
    mapped = numbers.rebalance().map(lambda n: n + 1)
    if group is not None:
        mapped.slot_sharing_group("heavy").set_parallelism(group)
    mapped.sink_to(BlackholeSink())
    return replace(job_graph(env, "counting"), job_id=job_id)


def start(
    graph: JobGraph, offer: SlotOffer | list[SlotOffer], manager: SlotManager | None = None, **options: str
) -> MiniJob:
    shown = offer if isinstance(offer, list) else [offer]
    given = {**OPTIONS, "headrace.epoch.max-records": "5", **options}
    return MiniJob(graph, Configuration(given), slots=lambda: shown[-1], slot_manager=manager)


def wait_until_scheduled(job: MiniJob) -> None:
    """Wait until all subtasks wait for slots."""

    def is_scheduled() -> bool:
        states = {vertex.current.state for _, vertex in job.master.execution.subtasks()}
        return states == {ExecutionState.SCHEDULED}

    wait_until(is_scheduled, "scheduled")


# -- the account -----------------------------------------------------------------------------------


def test_a_job_gets_all_its_slots_or_none() -> None:
    manager = SlotManager()
    offer = SlotOffer(4)
    assert manager.take("a", 3, offer)
    assert not manager.take("b", 2, offer)
    assert (manager.held("a"), manager.held("b")) == (3, 0)
    assert manager.take("b", 1, offer)


def test_slots_that_are_given_back_are_for_others() -> None:
    manager = SlotManager()
    manager.take("a", 4, SlotOffer(4))
    manager.free("a")
    assert manager.take("b", 4, SlotOffer(4))


def test_a_job_that_asks_again_has_the_last_number_and_not_both() -> None:
    manager = SlotManager()
    assert manager.take("a", 3, SlotOffer(4))
    assert manager.take("a", 4, SlotOffer(4))
    assert not manager.take("a", 5, SlotOffer(4))
    assert manager.held("a") == 4, "what it could not have, it does not lose"


def test_an_elastic_offer_gives_any_number_and_keeps_the_account() -> None:
    manager = SlotManager()
    assert manager.take("a", 9, SlotOffer(2, is_elastic=True))
    assert manager.held("a") == 9


def test_available_is_what_others_leave() -> None:
    manager = SlotManager()
    mine = SlotPool(manager, "a", lambda: SlotOffer(4))
    manager.take("b", 3, SlotOffer(4))
    manager.take("a", 1, SlotOffer(4))
    assert mine.available()[0] == 1
    assert SlotPool(manager, "a", lambda: SlotOffer(2)).available()[0] == 0, "an executor has gone"


def test_other_jobs_do_not_reduce_an_elastic_offer() -> None:
    manager = SlotManager()
    manager.take("b", 3, SlotOffer(2, is_elastic=True))
    assert SlotPool(manager, "a", lambda: SlotOffer(2, is_elastic=True)).available()[0] == 2


# -- jobs ------------------------------------------------------------------------------------------


def test_a_job_whose_slots_do_not_come_fails_with_numbers() -> None:
    manager = SlotManager()
    manager.take("other", 1, SlotOffer(3))
    job = start(counting(2, group=6), SlotOffer(3, executors=2), manager, **{"slot.request.timeout": "0 ms"})
    with pytest.raises(NoResourceAvailableError) as failure:
        job.wait()
    message, _, waited = failure.value.message.rpartition("; waited for ")
    assert message == (
        "job 'counting' needs 8 slots (default 2, heavy 6), but has 2: 2 executors with 3 slots, 1 of them taken by "
        "other jobs"
    )
    assert float(waited.removesuffix(" s")) >= 0
    assert "taskmanager.numberOfTaskSlots" in str(failure.value)
    assert job.status() is JobStatus.FAILED
    assert job.progress.epochs == 0, "nothing of it has run"


def test_a_job_waits_for_its_slots_and_runs_when_they_come() -> None:
    offers = [SlotOffer(1, may_grow=True)]
    job = start(counting(3), offers)
    wait_until_scheduled(job)
    assert (job.status(), job.master.slots_held, job.progress.epochs) == (JobStatus.RUNNING, 0, 0)
    offers.append(SlotOffer(3, may_grow=True))
    job.wait()
    assert job.status() is JobStatus.FINISHED
    assert job.master.slots_held == 0, "given back at the end"


def test_a_job_that_waits_can_be_cancelled() -> None:
    job = start(counting(3), SlotOffer(1, may_grow=True))
    job.cancel().result(30)
    with pytest.raises(JobCancelledError):
        job.wait()


def test_the_next_job_gets_the_slots_of_one_that_ends() -> None:
    manager = SlotManager()
    first = start(counting(2, last=ENDLESS), SlotOffer(2), manager)
    wait_until(lambda: first.master.slots_held == 2, "the first has its slots")
    second = start(counting(1, job_id="b" * 32), SlotOffer(2), manager)
    assert second.master.slots_held == 0
    first.cancel().result(30)
    second.wait()
    assert second.status() is JobStatus.FINISHED


def test_a_job_that_cannot_have_its_slots_leaves_nothing_behind_for_the_next() -> None:
    manager = SlotManager()
    refused = start(counting(3), SlotOffer(2), manager, **{"slot.request.timeout": "0 ms"})
    with pytest.raises(NoResourceAvailableError):
        refused.wait()
    start(counting(2, job_id="b" * 32), SlotOffer(2), manager).wait()


def test_a_restart_strategy_asks_again() -> None:
    offers = [SlotOffer(1)]
    failed = threading.Event()
    options = {
        "slot.request.timeout": "0 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000000",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    job = start(counting(2), offers, **options)
    wait_until(lambda: job.master.failures.count > 0, "a failure")
    failed.set()
    offers.append(SlotOffer(2))
    job.wait()
    assert job.master.failures.latest()[-1].name.endswith("NoResourceAvailableError")


def test_a_job_is_not_rescaled_beyond_its_slots_and_continues() -> None:
    job = start(counting(2, last=ENDLESS), SlotOffer(3))
    wait_until(lambda: job.progress.epochs > 0, "an epoch")
    wanted = uniform_parallelism(job.master.job, 4)
    with pytest.raises(NoResourceAvailableError, match="needs 4 slots, but has 3"):
        job.master.rescale(wanted).result(30)
    epochs = job.progress.epochs
    wait_until(lambda: job.progress.epochs > epochs, "the next epoch")
    job.master.rescale(uniform_parallelism(job.master.job, 3)).result(30)
    assert job.master.slots_held == 3
    job.cancel().result(30)


def test_an_adaptive_job_starts_when_executors_have_registered_with_the_slots_others_leave() -> None:
    manager = SlotManager()
    manager.take("other", 1, SlotOffer(4))
    offers = [SlotOffer(0, executors=0, may_grow=True)]
    options = {
        "jobmanager.scheduler": "Adaptive",
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "0 ms",
    }
    job = start(counting(8), offers, manager, **options)
    wait_until_scheduled(job)
    assert job.progress.epochs == 0
    offers.append(SlotOffer(4, executors=2, may_grow=True))
    job.wait()
    widest = max(vertex.parallelism for vertex in job.master.job.vertices)
    assert (widest, job.progress.rescales) == (3, 0), "to find its width is no change of it"


def test_an_adaptive_job_without_a_slot_for_each_group_fails_with_numbers() -> None:
    options = {
        "jobmanager.scheduler": "Adaptive",
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout": "0 ms",
    }
    job = start(counting(2, group=2), SlotOffer(1), **options)
    with pytest.raises(NoResourceAvailableError, match=r"needs 2 slots \(default 1, heavy 1\), but has 1"):
        job.wait()

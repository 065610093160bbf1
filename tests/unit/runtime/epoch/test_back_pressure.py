"""How subtasks spend an epoch."""

from __future__ import annotations

import pytest

from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.back_pressure import BackPressureLevel, TimeShares, time_shares, work_time
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from tests.unit.runtime.jobs import job_graph, make_env

_START_MS = 1_700_000_000_000


def three_levels(parallelism: int = 1) -> JobGraph:
    """source -> first -> second, and the source also feeds a branch of its own."""
    env = make_env(parallelism=parallelism)
    source = env.from_collection([1])
    source.rebalance().map(lambda n: n).name("first").rebalance().map(lambda n: n).name("second").print()
    source.rebalance().map(lambda n: n).name("branch").print()
    return job_graph(env)


class Epoch:
    """Reports of an epoch, by vertex; times in seconds from its start."""

    def __init__(self, job: JobGraph) -> None:
        self.job = job
        self.reports: list[SubtaskReport] = []

    def vertex(self, name: str) -> str:
        return next(vertex.vertex_id for vertex in self.job.vertices if name in vertex.name)

    def sink(self, name: str) -> str:
        """Return the operator id of the sink that is chained to a vertex."""
        return self.job.vertex(self.vertex(name)).operators[-1].operator_id

    def work(self, name: str, start_s: float, end_s: float, subtask: int = 0, waited_s: float = 0.0) -> None:
        self.reports.append(
            SubtaskReport(
                SubtaskId(self.vertex(name), subtask),
                busy_ns=int((end_s - start_s) * 1e9),
                waited_ns=int(waited_s * 1e9),
                started_ms=_START_MS + int(start_s * 1000),
                ended_ms=_START_MS + int(end_s * 1000),
            )
        )

    def shares(
        self, name: str, wall_s: float, publishing_s: float = 0.0, waiting_s: float = 0.0
    ) -> TimeShares:
        published = {self.sink("second"): publishing_s}
        shares = time_shares(self.job, self.reports, wall_s, published, waiting_s)
        return shares[SubtaskId(self.vertex(name), 0)]


@pytest.fixture
def epoch() -> Epoch:
    return Epoch(three_levels())


def rounded(shares: TimeShares) -> tuple[float, float, float]:
    return round(shares.busy, 3), round(shares.back_pressured, 3), round(shares.idle, 3)


def test_vertices_before_the_slow_one_are_back_pressured_and_those_after_it_idle(epoch: Epoch) -> None:
    #   source  ##
    #   first     ########
    #   second            #
    epoch.work("Source", 0, 2)
    epoch.work("first", 2, 10)
    epoch.work("second", 10, 11)
    assert rounded(epoch.shares("Source", 12)) == (0.167, 0.5, 0.333)
    assert rounded(epoch.shares("first", 12)) == (0.667, 0.0, 0.333)
    assert rounded(epoch.shares("second", 12)) == (0.083, 0.0, 0.917)


def test_levels_that_take_equally_long_are_not_held_up(epoch: Epoch) -> None:
    epoch.work("Source", 0, 2)
    epoch.work("first", 2, 4)
    epoch.work("second", 4, 6)
    assert {epoch.shares(name, 6).back_pressured for name in ("Source", "first", "second")} == {0.0}


def test_the_slowest_counts_however_far_downstream_it_is(epoch: Epoch) -> None:
    epoch.work("Source", 0, 1)
    epoch.work("first", 1, 2)
    epoch.work("second", 2, 10)
    assert epoch.shares("Source", 10).back_pressured == pytest.approx(0.7)
    assert epoch.shares("first", 10).back_pressured == pytest.approx(0.7)


def test_a_vertex_is_not_held_up_by_one_that_its_records_do_not_reach(epoch: Epoch) -> None:
    epoch.work("Source", 0, 1)
    epoch.work("first", 1, 2)
    epoch.work("branch", 1, 9)
    epoch.work("second", 9, 10)
    assert epoch.shares("first", 10).back_pressured == 0.0
    assert epoch.shares("Source", 10).back_pressured == pytest.approx(0.7)


def test_slow_publishing_holds_up_the_sink_and_all_before_it(epoch: Epoch) -> None:
    epoch.work("Source", 0, 1)
    epoch.work("first", 1, 2)
    epoch.work("second", 2, 3)
    assert epoch.shares("second", 10, publishing_s=7.0).back_pressured == pytest.approx(0.6)
    assert epoch.shares("Source", 10, publishing_s=7.0).back_pressured == pytest.approx(0.6)


def test_time_without_input_is_not_back_pressure(epoch: Epoch) -> None:
    epoch.work("Source", 0, 2)
    epoch.work("first", 2, 8)
    epoch.work("second", 8, 9)
    # A consumer as fast as the source would save 4; the job waited for input for 1 of 10, then for 4 and for more.
    assert rounded(epoch.shares("Source", 10, waiting_s=1)) == (0.2, 0.3, 0.5)
    assert rounded(epoch.shares("Source", 20, waiting_s=4)) == (0.1, 0.0, 0.9)
    assert rounded(epoch.shares("Source", 20, waiting_s=11)) == (0.1, 0.0, 0.9)


def test_subtasks_that_take_turns_in_few_slots_are_seen_as_one() -> None:
    # Two subtasks on one core each: the source takes 4 in all, its consumer 6. Only 2 are too long.
    epoch = Epoch(three_levels(parallelism=2))
    epoch.work("Source", 0, 2, subtask=0)
    epoch.work("Source", 2, 4, subtask=1)
    epoch.work("first", 4, 7, subtask=0)
    epoch.work("first", 7, 10, subtask=1)
    assert epoch.shares("Source", 10).back_pressured == pytest.approx(0.2)


def test_a_subtask_that_had_ended_is_idle(epoch: Epoch) -> None:
    epoch.reports.append(SubtaskReport(SubtaskId(epoch.vertex("Source"), 0), has_ended=True))
    epoch.work("first", 0, 5)
    assert epoch.shares("Source", 5) == TimeShares(0.0, 0.0, 1.0)


def test_shares_add_up_to_one_also_when_clocks_disagree(epoch: Epoch) -> None:
    epoch.work("Source", 100, 102)
    epoch.work("first", -50, 50)
    for wall_s in (0.0, 1.0, 3.0, 1000.0):
        shares = epoch.shares("Source", wall_s)
        assert shares.busy + shares.back_pressured + shares.idle == pytest.approx(1.0)
        assert min(shares.busy, shares.back_pressured, shares.idle) >= 0


@pytest.mark.parametrize(
    ("share", "level"),
    [
        (0.0, BackPressureLevel.OK),
        (0.1, BackPressureLevel.OK),
        (0.11, BackPressureLevel.LOW),
        (0.5, BackPressureLevel.LOW),
        (0.51, BackPressureLevel.HIGH),
    ],
)
def test_the_levels_are_those_of_flink(share: float, level: BackPressureLevel) -> None:
    assert TimeShares(0.0, share, 1.0 - share).level is level


def test_the_time_of_work_is_that_of_the_slowest_vertex_of_each_level(epoch: Epoch) -> None:
    epoch.work("Source", 0, 2)
    epoch.work("first", 3, 5)
    epoch.work("branch", 3, 7)
    epoch.work("second", 8, 9)
    assert work_time(epoch.job, epoch.reports) == pytest.approx(2 + 4 + 1)


def test_waiting_for_answers_does_not_count_as_work(epoch: Epoch) -> None:
    epoch.work("Source", 0, 1)
    epoch.work("first", 1, 6, waited_s=4.5)
    assert work_time(epoch.job, epoch.reports) == pytest.approx(1 + 0.5)


def test_subtasks_that_wait_in_turns_do_not_work_either() -> None:
    epoch = Epoch(three_levels(parallelism=2))
    epoch.work("first", 0, 5, subtask=0, waited_s=4)
    epoch.work("first", 5, 10, subtask=1, waited_s=4)
    assert work_time(epoch.job, epoch.reports) == pytest.approx(2)

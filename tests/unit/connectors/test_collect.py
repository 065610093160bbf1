"""CollectSink and Collector: order, end, errors, back pressure, closing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headrace.connectors import collect
from headrace.connectors.base import Committable
from headrace.connectors.collect import Collector, CollectSink, open_collector
from headrace.errors import InvariantViolation, JobExecutionError


@contextmanager
def thread(target: Callable[[], object]) -> Iterator[threading.Thread]:
    started = threading.Thread(target=target, daemon=True)
    started.start()
    yield started
    started.join(timeout=10)
    assert not started.is_alive()


def wait_until_waiting(collector: Collector) -> None:
    """Return when a thread waits in `put`, without a guess at how long that takes."""
    while True:
        with collector._changed:
            if collector._changed._waiters:  # type: ignore[attr-defined]
                return


def test_rows_are_read_while_the_job_runs_and_end_with_it():
    collector = Collector("a")
    collector.put([1, 2])

    assert [next(collector), next(collector)] == [1, 2]
    with thread(lambda: (collector.put([3]), collector.put([]), collector.finish())):
        assert list(collector) == [3]


def test_a_reader_waits_for_the_first_row():
    collector = Collector("a")
    read: list[int] = []

    with thread(lambda: read.extend(collector)):
        wait_until_waiting(collector)
        collector.put([1])
        collector.finish()
    assert read == [1]


def test_rows_come_before_the_error_the_job_failed_with():
    collector = Collector("a")
    collector.put([1])
    collector.finish(JobExecutionError("boom"))
    collector.finish()

    assert next(collector) == 1
    with pytest.raises(JobExecutionError, match="boom"):
        next(collector)
    assert list(collector) == []


def test_too_many_unread_rows_make_the_committer_wait():
    collector = Collector("a", max_waiting=2)
    collector.put([1, 2])

    with thread(lambda: (collector.put([3]), collector.finish())):
        wait_until_waiting(collector)
        assert list(collector) == [1, 2, 3]


def test_closing_lets_a_waiting_committer_continue_and_drops_what_comes():
    collector = open_collector("closing", max_waiting=1)
    collector.put([1])

    with thread(lambda: collector.put([2])):
        wait_until_waiting(collector)
        collector.close()
    collector.put([3])
    assert list(collector) == []


def test_the_committer_finds_the_collector_by_its_id():
    committer = CollectSink("by-id").create_committer()
    with open_collector("by-id") as collector:
        committer.commit([Committable(0, 1, ["a"]), Committable(1, 1, ["b"])])
        committer.commit([Committable(1, 1, ["b"]), Committable(0, 2, ["c"])])
        collector.finish()

        assert list(collector) == ["a", "b", "c"]
    committer.commit([Committable(0, 3, ["nobody reads this"])])
    assert "by-id" not in collect._registry


def test_an_id_is_for_one_open_collector():
    with open_collector("twice"):
        with pytest.raises(InvariantViolation, match="'twice' is already open"):
            open_collector("twice")
    open_collector("twice").close()

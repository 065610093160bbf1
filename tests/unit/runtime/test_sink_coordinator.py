"""When the output of sinks is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.connectors.print import PrintSink
from headrace.graph.job_graph import JobVertex, OperatorNode
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from tests.unit.runtime.jobs import job_graph, make_env


@contextmanager
def nobody(node: OperatorNode) -> Iterator[None]:
    yield


def staged(vertex: JobVertex, payload: str) -> SubtaskReport:
    return SubtaskReport(
        SubtaskId(vertex.vertex_id, 0), committables={vertex.operators[-1].operator_id: [payload]}
    )


def test_what_is_only_printed_does_not_wait_for_a_checkpoint_and_is_not_kept_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = make_env(1)
    env.from_collection([1]).sink_to(PrintSink()).disable_chaining()
    (vertex,) = [each for each in job_graph(env).vertices if not each.is_source]
    coordinator = SinkCoordinator(job_graph(env), "/nowhere", is_checkpointed=True, blaming=nobody)
    coordinator.add(0, [staged(vertex, "one\n")])
    assert capsys.readouterr().out == "one\n"
    assert coordinator.snapshot(vertex.operators[-1].operator_id) == (None, ())
    coordinator.cover(1)
    coordinator.commit(1)
    coordinator.add(1, [staged(vertex, "two\n")])
    assert capsys.readouterr().out == "two\n"

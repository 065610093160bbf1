"""When a live subtask sends records that do not fill a buffer."""

from __future__ import annotations

import pytest

from headrace.datastream import StreamExecutionEnvironment
from headrace.graph.job_graph import build_job_graph
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan
from headrace.runtime.exchange.buffers import Header, encode_items, pack
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_settings import LiveSettings
from headrace.runtime.task.settings import TaskSettings
from headrace.testing.stepped_subtask import SteppedSubtask
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.jobs import make_env


def sent_before_idle(tmp_path: object, *, of_job_ms: int, of_operator_ms: int | None) -> int:
    """Have a subtask process one of two buffers that wait; return how many it has sent then."""
    env: StreamExecutionEnvironment = make_env(1)
    mapped = env.from_collection([1]).rebalance().map(lambda n: n)
    if of_operator_ms is not None:
        mapped.set_buffer_timeout(of_operator_ms)
    mapped.rebalance().map(lambda n: n).sink_to(MarkedSink("timeout"))
    job = build_job_graph(env._build_stream_graph(), job_id="0" * 32, name="timeout")
    layout, vertex = Layout(job), job.vertices[1]
    own = SubtaskId(vertex.vertex_id, 0)
    subtask = SteppedSubtask(
        JobCode(job, "run", TaskSettings(scratch_name="timeout")),
        layout,
        *layout.place(own),
        EpochPlan("job", 1, 0, str(tmp_path), {own: SubtaskPlan()}),
        LiveSettings(("", 0), b"", buffer_timeout_ms=of_job_ms),
        tell=lambda message: None,
    )
    subtask.begin()
    for value in (1, 2):
        header = Header(*layout.place(own), job.inputs_of(vertex.vertex_id)[0].edge_id, 0, 0, value)
        subtask.put(pack(header, encode_items([([value], None)])))
    subtask.most_buffers = 1
    sent = len(list(subtask.turn()))
    # The second turn leaves nothing to wait for: whatever the timeout, everything is sent.
    assert sent + len(list(subtask.turn())) >= 1
    subtask.end()
    return sent


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("of_job_ms", "of_operator_ms", "expected"),
    [(0, None, 1), (HOUR_MS, None, 0), (HOUR_MS, 0, 1), (0, HOUR_MS, 0), (0, -1, 0)],
)
def test_a_record_waits_for_others_as_long_as_the_timeout_says(
    tmp_path: object, of_job_ms: int, of_operator_ms: int | None, expected: int
) -> None:
    assert sent_before_idle(tmp_path, of_job_ms=of_job_ms, of_operator_ms=of_operator_ms) == expected

"""States in the words of the REST API, counted and timed."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.common.job_status import JobStatus
from headrace.graph.execution_graph import Execution, ExecutionState

#: A state of Flink's that no task is ever in here.
_RECONCILING = "RECONCILING"
#: Those a subtask spends time in before it ends.
_LASTING = (
    ExecutionState.CREATED,
    ExecutionState.SCHEDULED,
    ExecutionState.DEPLOYING,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
)


def state_counts(counts: Mapping[ExecutionState, int]) -> dict[str, int]:
    """Name every state with its count."""
    return {**{state.name: counts.get(state, 0) for state in ExecutionState}, _RECONCILING: 0}


def state_timestamps(execution: Execution) -> dict[str, int]:
    """Name every state with the time it was entered; 0 if it was not."""
    return {**{state.name: execution.timestamps.get(state, 0) for state in ExecutionState}, _RECONCILING: 0}


def job_timestamps(timestamps: Mapping[JobStatus, int], started_ms: int) -> dict[str, int]:
    """Name every status of a job with the time it was entered; 0 if it was not."""
    return {"INITIALIZING": started_ms, **{status.name: timestamps.get(status, 0) for status in JobStatus}}


def start_of(execution: Execution) -> int:
    """Return when an attempt was deployed; -1 if it was not."""
    return execution.timestamps.get(ExecutionState.DEPLOYING, -1)


def end_of(execution: Execution) -> int:
    """Return when an attempt ended; -1 while it has not."""
    return execution.timestamps[execution.state] if execution.state.is_terminal else -1


def duration_of(start_ms: int, end_ms: int, now_ms: int) -> int:
    """Return how long something took, or takes so far; -1 if it has not started."""
    if start_ms < 0:
        return -1
    return max(0, (end_ms if end_ms >= 0 else now_ms) - start_ms)


def state_durations(execution: Execution, now_ms: int) -> dict[str, int]:
    """Say how long an attempt was in each state so far."""
    entered = sorted(execution.timestamps.items(), key=lambda item: list(ExecutionState).index(item[0]))
    ends = [time for _, time in entered[1:]] + [now_ms]
    return {
        state.name: max(0, end - start)
        for (state, start), end in zip(entered, ends, strict=True)
        if state in _LASTING
    }

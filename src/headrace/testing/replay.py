"""Recorded epochs in tests: `replay(directory)` runs one again, in this process, and compares it.

result = replay("checkpoints", epoch=17)
assert not result.differences
"""

from __future__ import annotations

from headrace.replay.comparison import ReplayDifference
from headrace.replay.recordings import find_recording
from headrace.replay.run import ReplayResult, replay_epoch

__all__ = ["ReplayDifference", "ReplayResult", "recorded_epochs", "replay"]


def recorded_epochs(directory: str) -> list[int]:
    """Return the epochs that can be replayed, in order.

    Args:
        directory: As for `replay`.

    Raises:
        StateError: If nothing is recorded there.
    """
    return list(find_recording(directory).epochs)


def replay(
    directory: str, epoch: int | None = None, *, last_failure: bool = False, runs_sinks: bool = False
) -> ReplayResult:
    """Run a recorded epoch again, without Spark, and compare it with what the job did.

    This loads and runs the functions of the recording: use only recordings that you trust.

    Args:
        directory: The directory of `headrace.replay.dir` or of checkpoints, a checkpoint, or a savepoint.
        epoch: The epoch; the last one that is recorded if None.
        last_failure: Take the last epoch that failed instead.
        runs_sinks: Whether writers of sinks run; what they stage is never committed.

    Raises:
        StateError: If there is no such recording or epoch.
    """
    recording = find_recording(directory)
    if last_failure:
        return replay_epoch(recording, recording.last_failure(), runs_sinks=runs_sinks)
    recorded = recording.last() if epoch is None else recording.epoch(epoch)
    return replay_epoch(recording, recorded, runs_sinks=runs_sinks)

"""Crashes for committers: killed processes at every step of a commit, and a driver that fails at random.

crash_everywhere    forks; the child is killed with SIGKILL before the n-th step; another one recovers
run_driver          stage, checkpoint, commit, crash, recover, in this process, from a seed
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connectors.base import (
    Committable,
    Committer,
    CommitterContext,
    Sink,
    WriterContext,
    committer_of,
)
from headrace.elements import Batch


class Crash(BaseException):
    """The process is gone: no handler of ours may run anything that matters."""


@dataclass
class Fuse:
    """Counts steps. Hooks call it before every step; it decides whether that is the end."""

    burn: Callable[[str], None]

    def wrap(self, owner: Any, name: str) -> Callable[[], None]:
        """Call the fuse before every call of a function; returns what undoes it."""
        original = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            self.burn(name)
            return original(*args, **kwargs)

        setattr(owner, name, step)
        return lambda: setattr(owner, name, original)


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process; return the signal that killed it, 0 if it came to its end."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    assert os.WEXITSTATUS(status) == 0, "the child failed, see above"
    return 0


def crash_everywhere(
    prepare: Callable[[int], Any],
    commit: Callable[[Any], None],
    recover: Callable[[Any], None],
    check: Callable[[Any], None],
    hook: Callable[[Fuse], object],
    most: int = 500,
) -> int:
    """Kill `commit` before its first, second, ... step, until it comes through; recover and check each time."""
    for steps in range(most):
        prepared = prepare(steps)

        def doomed(prepared: Any = prepared, steps: int = steps) -> None:
            left = [steps]

            def burn(name: str) -> None:
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

            hook(Fuse(burn))
            commit(prepared)

        killed = in_child(doomed)
        assert in_child(lambda prepared=prepared: recover(prepared)) == 0
        check(prepared)
        if not killed:
            return steps
    raise AssertionError(f"no end after {most} steps")


def write_epoch(
    sink: Sink,
    epoch: int,
    shares: Sequence[Sequence[Any]],
    staging_dir: str = "",
    attempt: str = "a",
    job_id: str = "chaos",
) -> list[Committable]:
    """Stage an epoch, a share each subtask."""
    found = []
    for subtask, values in enumerate(shares):
        if values:
            context = WriterContext(
                subtask,
                len(shares),
                epoch,
                f"{attempt}{epoch}-{subtask}",
                job_id,
                "sink",
                staging_dir=staging_dir,
            )
            writer = sink.create_writer(context)
            writer.write_batch(Batch(list(values)))
            found += [Committable(subtask, epoch, payload) for payload in writer.prepare_commit()]
            writer.close()
    return found


def new_committer(sink: Sink, staging_dir: str = "", job_id: str = "chaos") -> Committer:
    context = CommitterContext(job_id, "sink", staging_dir=staging_dir, is_checkpointed=True)
    committer = committer_of(sink, context)
    assert committer is not None
    return committer


def run_driver(
    sink: Sink,
    records: Sequence[Any],
    rng: random.Random,
    maybe_crash: Callable[[str], None],
    restarted: Callable[[], None],
    staging_dir: str = "",
    damage_rate: float = 0.0,
) -> int:
    """Run a job over the records until it is finished; return how often it crashed on the way.

    With a damage rate, the last checkpoint sometimes turns out to be damaged and the one before it is used.
    """
    checkpoints: list[bytes | None] = [None]
    crashes = 0
    while True:
        try:
            _attempt_job(sink, records, rng, maybe_crash, staging_dir, checkpoints, crashes)
            return crashes
        except (Crash, OSError, Exception) as error:
            if not isinstance(error, Crash) and not getattr(error, "retryable", False):
                raise
            crashes += 1
            if len(checkpoints) > 1 and rng.random() < damage_rate:
                checkpoints.pop()
            del checkpoints[:-1]
            restarted()


def _attempt_job(
    sink: Sink,
    records: Sequence[Any],
    rng: random.Random,
    maybe_crash: Callable[[str], None],
    staging_dir: str,
    checkpoints: list[bytes | None],
    life: int,
) -> None:
    committer = new_committer(sink, staging_dir)
    epoch = position = 0
    if checkpoints[-1] is not None:
        epoch, position, state, pending = pickle.loads(checkpoints[-1])
        if state is not None:
            committer.restore(state)
        committer.commit(pending)
        maybe_crash("recovered")
        committer.discard_after(epoch)
    pending = []
    while position < len(records):
        # Epochs that are run again may be cut in another way.
        end = min(position + rng.choice([0, 1, 3, 10, 40]), len(records))
        parallelism = rng.choice([1, 2, 3])
        shares = [records[position:end][index::parallelism] for index in range(parallelism)]
        epoch, position = epoch + 1, end
        if rng.random() < 0.1:  # an attempt whose worker vanished
            write_epoch(sink, epoch, shares, staging_dir, attempt=f"lost-{life}-")
        pending += write_epoch(sink, epoch, shares, staging_dir, attempt=f"life-{life}-")
        maybe_crash("epoch")
        if position == len(records) or rng.random() < 0.4:
            state = committer.snapshot()
            maybe_crash("snapshot")
            checkpoints.append(pickle.dumps((epoch, position, state, pending)))
            maybe_crash("checkpoint")
            committer.commit(pending)
            maybe_crash("commit")
            pending = []
    committer.finish()
    maybe_crash("finish")
    committer.close()

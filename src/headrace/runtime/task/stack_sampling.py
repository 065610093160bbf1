"""Stack samples: what a task is doing, sampled by another thread. Flame graphs are made of them.

    task's thread   ~~~~~~map~~~~~~~|~~reduce~~~|~~~~~~~ waits for a database ~~~~~~|
    sampler             ^     ^     ^     ^     ^     ^     ^     ^     ^     ^     ^      every few milliseconds

The thread is there only while somebody wants to know. Whether a sample counts as on or off the processor goes by the
processor time that the task's thread had since the sample before: the state that the system gives is no help, because
a thread that is looked at has always just been made to wait for the interpreter's lock.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from types import FrameType, TracebackType
from typing import Self

from headrace.runtime.epoch.messages import StackSample

#: Below it are Spark's worker and what fetches the task's input.
_TASK_MODULE = "headrace.runtime.task.stream_task"
#: A thread that had the processor for this part of the time was at work.
_ON_CPU = 0.5


class StackSampler:
    """Samples the stack of the thread that enters it, until that leaves it.

    Args:
        delay_s: Seconds between two samples.
        depth: Frames that are kept of a stack.
        watched: The thread to sample, if it is another one.
    """

    def __init__(self, delay_s: float, depth: int, watched: int | None = None) -> None:
        self._watched = watched
        self._delay_s = delay_s
        self._depth = depth
        self._samples: Counter[StackSample] = Counter()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="headrace-stack-sampler", daemon=True)

    def __enter__(self) -> Self:
        self._watched = threading.get_ident() if self._watched is None else self._watched
        self._cpu_clock = time.pthread_getcpuclockid(self._watched)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def take(self) -> dict[StackSample, int]:
        """Return how often the task was found where since the last time; while it is at work."""
        samples, self._samples = self._samples, Counter()
        return dict(samples)

    def samples(self) -> dict[StackSample, int]:
        """Return how often the task was found where, once it has left."""
        return dict(self._samples)

    def _sample(self) -> None:
        wall, cpu = time.monotonic(), time.clock_gettime(self._cpu_clock)
        # At a moment drawn by chance: tasks may be shorter than the time between two samples.
        pause = random.uniform(0, self._delay_s)
        while not self._is_over.wait(pause):
            frame = None if self._watched is None else sys._current_frames().get(self._watched)
            if frame is None:
                return
            wall_now, cpu_now = time.monotonic(), time.clock_gettime(self._cpu_clock)
            is_on_cpu = cpu_now - cpu >= _ON_CPU * (wall_now - wall)
            self._samples[StackSample(frames_of(frame, self._depth), is_on_cpu)] += 1
            wall, cpu, pause = wall_now, cpu_now, self._delay_s


def frames_of(frame: FrameType, depth: int) -> tuple[str, ...]:
    """Return the calls that led to a frame, the outermost first; from the task on, if one is at work."""
    modules: list[str] = []
    names: list[str] = []
    current: FrameType | None = frame
    while current is not None:
        module = str(current.f_globals.get("__name__", "?"))
        modules.append(module)
        names.append(f"{module}.{current.f_code.co_qualname}:{current.f_lineno}")
        current = current.f_back
    modules.reverse()
    names.reverse()
    start = modules.index(_TASK_MODULE) if _TASK_MODULE in modules else 0
    return tuple(names[start : start + depth])

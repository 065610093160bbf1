"""Samples of a thread's stack: where it was found, and whether it was at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from headrace.runtime.epoch.messages import StackSample
from headrace.runtime.task.stack_sampling import StackSampler, frames_of


def at_work(until: Callable[[], bool]) -> None:
    while not until():
        sum(range(200))


def asleep(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(0.05)


def found(
    work: Callable[[Callable[[], bool]], None], is_enough: Callable[[dict[StackSample, int]], bool]
) -> dict[StackSample, int]:
    """Sample some work until the samples are enough."""
    sampler = StackSampler(0.01, depth=100)
    deadline = time.monotonic() + 30
    with sampler:
        work(lambda: is_enough(dict(sampler._samples)) or time.monotonic() > deadline)
    return sampler.samples()


def at_least(count: int) -> Callable[[dict[StackSample, int]], bool]:
    return lambda samples: sum(samples.values()) >= count


def seen_in(samples: dict[StackSample, int], name: str, *, is_on_cpu: bool) -> int:
    return sum(
        count
        for sample, count in samples.items()
        if sample.is_on_cpu is is_on_cpu and any(name in frame for frame in sample.frames)
    )


def test_a_thread_that_computes_is_found_where_it_computes() -> None:
    # On a busy machine, a thread that wants to compute may wait for a processor at many samples.
    def is_seen(samples: dict[StackSample, int]) -> bool:
        return seen_in(samples, "test_stack_sampling.at_work:", is_on_cpu=True) > 0

    assert is_seen(found(at_work, is_seen))


def test_a_thread_that_waits_is_off_the_processor() -> None:
    samples = found(asleep, at_least(20))
    off = seen_in(samples, "test_stack_sampling.asleep:", is_on_cpu=False)
    assert off >= 0.9 * sum(samples.values())


def test_the_sampler_is_gone_when_the_task_is() -> None:
    found(asleep, at_least(1))
    assert not [each for each in threading.enumerate() if each.name == "headrace-stack-sampler"]


def test_a_stack_is_cut_at_its_depth_from_the_outermost_call() -> None:
    import sys

    frames = frames_of(sys._getframe(), depth=10_000)
    assert frames[-1].startswith(f"{__name__}.test_a_stack_is_cut")
    assert frames_of(sys._getframe(), depth=2) == frames[:2]

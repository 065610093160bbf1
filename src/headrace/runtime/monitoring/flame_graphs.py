"""Flame graphs of one job: who asked for one, the samples that came in, and the tree they make.

    ask() -> nothing yet         plans carry `Sampling`, reports bring samples       ask() -> the recording
    |---------------------------- recording, some seconds -------------------------|--------- for a while ---|

Nothing is sampled unless a user asks. As in Flink, the answer is that of the last recording, and a new one begins
when it is asked for and the last is old. Times come in as arguments.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby

from headrace.config.configuration import Configuration
from headrace.config.options import flame_graphs as options
from headrace.runtime.epoch.messages import EpochPlan, Sampling, StackSample, SubtaskId, SubtaskReport


@dataclass(frozen=True)
class FlameGraphSettings:
    """How recordings are made."""

    delay_s: float = 0.01
    samples: int = 500
    depth: int = 100
    refresh_ms: int = 60_000

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> FlameGraphSettings:
        get = configuration.get
        return cls(
            delay_s=get(options.DELAY).total_seconds(),
            samples=get(options.SAMPLES),
            depth=get(options.STACK_DEPTH),
            refresh_ms=int(get(options.REFRESH_INTERVAL).total_seconds() * 1000),
        )

    @property
    def duration_ms(self) -> int:
        """How long a recording takes."""
        return int(self.delay_s * self.samples * 1000)


class SampleKind(Enum):
    """Which samples a graph is made of."""

    FULL = "full"
    ON_CPU = "on_cpu"
    OFF_CPU = "off_cpu"

    def takes(self, sample: StackSample) -> bool:
        return self is SampleKind.FULL or sample.is_on_cpu is (self is SampleKind.ON_CPU)


@dataclass
class Recording:
    """The samples of one vertex."""

    until_ms: int
    #: Whether an epoch is under way that will bring samples.
    is_awaited: bool = False
    by_subtask: dict[int, Counter[StackSample]] = field(default_factory=dict)

    def samples(self, kind: SampleKind, subtask: int | None = None) -> Counter[StackSample]:
        """Return the samples of one subtask, or of all."""
        total: Counter[StackSample] = Counter()
        for index, counts in self.by_subtask.items():
            if subtask is None or index == subtask:
                total.update({sample: count for sample, count in counts.items() if kind.takes(sample)})
        return total


class FlameGraphs:
    """The recordings of one job's vertices. Asked by any thread, fed by that of the job."""

    def __init__(self, settings: FlameGraphSettings | None = None) -> None:
        self._settings = settings or FlameGraphSettings()
        self._open: dict[str, Recording] = {}
        self._done: dict[str, Recording] = {}
        self._lock = threading.Lock()
        #: Called when a recording begins: a live job may be waiting for something else.
        self.on_begin: Callable[[], None] = lambda: None

    def ask(self, vertex_id: str, now_ms: int) -> Recording | None:
        """Return the last recording of a vertex, None if there is none yet; begins one if that is old."""
        with self._lock:
            self._close_due(now_ms)
            done = self._done.get(vertex_id)
            is_fresh = done is not None and now_ms - done.until_ms < self._settings.refresh_ms
            begins = not is_fresh and vertex_id not in self._open
            if begins:
                self._open[vertex_id] = Recording(now_ms + self._settings.duration_ms)
        if begins:
            self.on_begin()
        return done

    def sampled(self, plan: EpochPlan, now_ms: int) -> EpochPlan:
        """Have an epoch sample the vertices that a user asked for; the plan itself if there are none."""
        if not self._open:  # the usual case, which costs nothing
            return plan
        with self._lock:
            self._close_due(now_ms)
            if not self._open:
                return plan
            for recording in self._open.values():
                recording.is_awaited = True
            sampling = Sampling(frozenset(self._open), self._settings.delay_s, self._settings.depth)
        return replace(plan, sampling=sampling)

    def wanted(self, now_ms: int) -> Sampling | None:
        """Return whose stacks live subtasks are to sample now."""
        if not self._open:
            return None
        with self._lock:
            self._close_due(now_ms)
            if not self._open:
                return None
            return Sampling(frozenset(self._open), self._settings.delay_s, self._settings.depth)

    def take(self, subtask: SubtaskId, samples: Mapping[StackSample, int]) -> None:
        """Take the samples of a live subtask."""
        with self._lock:
            recording = self._open.get(subtask.vertex_id)
            if recording is not None:
                recording.by_subtask.setdefault(subtask.subtask, Counter()).update(samples)

    def add(self, reports: Iterable[SubtaskReport], now_ms: int) -> None:
        """Take the samples of an epoch."""
        if not self._open:
            return
        with self._lock:
            for report in reports:
                recording = self._open.get(report.subtask.vertex_id)
                if recording is not None and report.samples:
                    counts = recording.by_subtask.setdefault(report.subtask.subtask, Counter())
                    counts.update(report.samples)
            for recording in self._open.values():
                recording.is_awaited = False
            self._close_due(now_ms)

    def _close_due(self, now_ms: int) -> None:
        due = [
            vertex_id
            for vertex_id, recording in self._open.items()
            # An epoch may take longer than the recording should: what it brings is waited for.
            if now_ms >= recording.until_ms and not recording.is_awaited
        ]
        for vertex_id in due:
            recording = self._open.pop(vertex_id)
            recording.until_ms = now_ms
            self._done[vertex_id] = recording


@dataclass(frozen=True)
class FlameNode:
    """A call, how many samples were in it, and what it called."""

    name: str
    value: int
    children: tuple[FlameNode, ...] = ()


def flame_tree(samples: Mapping[StackSample, int]) -> FlameNode:
    """Put samples together by what their stacks have in common.

    Example:
        >>> tree = flame_tree({StackSample(("run", "map"), True): 2, StackSample(("run",), True): 1})
        >>> [(node.name, node.value) for node in (tree, tree.children[0], *tree.children[0].children)]
        [('root', 3), ('run', 3), ('map', 2)]
    """
    return _node("root", sorted((sample.frames, count) for sample, count in samples.items()), 0)


def _node(name: str, stacks: list[tuple[tuple[str, ...], int]], depth: int) -> FlameNode:
    deeper = [stack for stack in stacks if len(stack[0]) > depth]
    children = tuple(
        _node(child, list(below), depth + 1)
        for child, below in groupby(deeper, lambda stack: stack[0][depth])
    )
    return FlameNode(name, sum(count for _, count in stacks), children)

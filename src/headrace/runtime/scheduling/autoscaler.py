"""The autoscaler: a job's parallelism follows its load.

    utilization     0 -------- 0.5 ------ 0.7 ------ 0.9 -------- 1
                    narrower        stays as it is       has a backlog: twice as wide

The utilization is the part of the time in which subtasks work, over a window; waiting for input does not count. The
new parallelism is the one at which the same work would take the target part of the time. A job that is never done with
its input has a backlog, and nobody knows yet how much more is needed: it gets twice the parallelism.

Like the adaptive scheduler it holds no clock and asks nobody.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.config.configuration import Configuration
from headrace.config.options import autoscaler as options
from headrace.config.options import scheduler
from headrace.config.scheduling import scheduler_type
from headrace.errors import ConfigurationError
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import is_single
from headrace.runtime.scheduling.adaptive_scheduler import widest_fitting

__all__ = ["Autoscaler", "AutoscalerSettings", "ScalingDecision"]

#: From this part of the time on, a job has more to do than it can.
_SATURATED = 0.9
#: Decisions that are remembered.
_REMEMBERED = 64


@dataclass(frozen=True)
class AutoscalerSettings:
    """The options of the autoscaler."""

    target: float = 0.7
    #: How far the utilization may be from the target before anything changes.
    boundary: float = 0.2
    window_ms: int = 60_000
    cooldown_ms: int = 60_000
    least: int = 1
    #: None for as many as there are slots.
    most: int | None = None

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> AutoscalerSettings | None:
        """Return the settings; None if it is not enabled.

        Raises:
            ConfigurationError: If options contradict each other.
        """
        get = configuration.get
        if not get(options.ENABLED):
            return None
        if scheduler_type(configuration) is scheduler.SchedulerType.Adaptive:
            raise ConfigurationError(
                f"{options.ENABLED.key} cannot be combined with {scheduler.SCHEDULER.key}: Adaptive",
                hint="choose one: the parallelism follows either the load or the slots",
            )
        least, most = get(options.MIN_PARALLELISM), get(options.MAX_PARALLELISM)
        if most is not None and most < least:
            raise ConfigurationError(
                f"{options.MAX_PARALLELISM.key}: must be at least {options.MIN_PARALLELISM.key}, {least}; got {most}"
            )
        millisecond = timedelta(milliseconds=1)
        return cls(
            target=get(options.TARGET),
            boundary=get(options.BOUNDARY),
            window_ms=get(options.WINDOW) // millisecond,
            cooldown_ms=get(options.COOLDOWN) // millisecond,
            least=least,
            most=most,
        )


@dataclass(frozen=True)
class ScalingDecision:
    """That another parallelism is better, and why."""

    timestamp_ms: int
    utilization: float
    before: int
    after: int
    reason: str


@dataclass(frozen=True)
class _Epoch:
    ended_ms: int
    work_ms: float
    wall_ms: float


class Autoscaler:
    """Decides about one job.

    Args:
        settings: The options.
        job: The job as it was submitted: vertices keep their parallelism relative to each other.
        now_ms: The time.
        is_live: Whether every subtask has a slot of its own.
    """

    def __init__(
        self, settings: AutoscalerSettings, job: JobGraph, now_ms: int, *, is_live: bool = False
    ) -> None:
        self._settings = settings
        self._is_live = is_live
        widest = max((vertex.parallelism for vertex in job.vertices), default=1)
        #: Of vertices that can be changed: their part of the job's parallelism, and their limit.
        self._parts = {
            vertex.vertex_id: (vertex.parallelism / widest, vertex.max_parallelism)
            for vertex in job.vertices
            if not is_single(vertex, job)
        }
        self._groups = max(1, len(job.slots_by_group()))
        self._epochs: deque[_Epoch] = deque()
        #: Since when the parallelism is what it is.
        self._since_ms = now_ms
        self._changed_ms: int | None = None
        self.decisions: deque[ScalingDecision] = deque(maxlen=_REMEMBERED)

    def observe(self, work_s: float, wall_s: float, now_ms: int) -> None:
        """Learn from an epoch.

        Args:
            work_s: For how long subtasks were at work.
            wall_s: From the end of the epoch before to its own.
            now_ms: When it ended.
        """
        self._epochs.append(_Epoch(now_ms, min(work_s, wall_s) * 1000, wall_s * 1000))
        while self._epochs and self._epochs[0].ended_ms <= now_ms - self._settings.window_ms:
            self._epochs.popleft()

    def utilization(self, now_ms: int) -> float:
        """Return which part of the window the job was at work."""
        begin = max(now_ms - self._settings.window_ms, self._since_ms)
        inside = [each for each in self._epochs if each.ended_ms > begin]
        if not inside:
            return 0.0
        # Of the oldest epoch, what was before the window does not count.
        first = inside[0]
        cut = max(0.0, begin - (first.ended_ms - first.wall_ms))
        work = sum(each.work_ms for each in inside) - first.work_ms * cut / max(first.wall_ms, 1e-9)
        # A live job is at work after its last barrier, too; how much is said with the next one.
        end = inside[-1].ended_ms if self._is_live else now_ms
        return min(1.0, work / max(1, end - begin))

    def decide(self, present: Mapping[str, int], slots: int, now_ms: int) -> dict[str, int] | None:
        """Return the parallelism to change to, by vertex id; None to stay.

        Args:
            present: The parallelism the job has.
            slots: How many it could have, those it has included.
            now_ms: The time.
        """
        settings = self._settings
        if not self._parts or now_ms - self._since_ms < settings.window_ms:
            return None
        if self._changed_ms is not None and now_ms - self._changed_ms < settings.cooldown_ms:
            return None
        if self._is_live and not any(each.ended_ms > now_ms - settings.window_ms for each in self._epochs):
            return None  # its barriers are further apart than the window is long
        before = max(present[vertex_id] for vertex_id in self._parts)
        utilization = self.utilization(now_ms)
        after, reason = self._wanted(before, utilization, self._room(present, slots))
        wanted = self._at(present, after)
        if after == before or wanted == dict(present):
            return None
        self.decisions.append(ScalingDecision(now_ms, utilization, before, after, reason))
        return wanted

    def _at(self, present: Mapping[str, int], width: int) -> dict[str, int]:
        """Return what vertices have at a parallelism of the job."""
        changed = {
            vertex_id: min(limit, max(1, round(part * width)))
            for vertex_id, (part, limit) in self._parts.items()
        }
        return {**present, **changed}

    def _room(self, present: Mapping[str, int], slots: int) -> int:
        """Return the highest parallelism there are slots for."""
        if self._is_live:
            return widest_fitting(lambda width: self._at(present, width), slots)
        return max(1, slots // self._groups)

    def changed(self, now_ms: int) -> None:
        """Begin again: the job has another parallelism."""
        self._epochs.clear()
        self._since_ms = self._changed_ms = now_ms

    def _wanted(self, before: int, utilization: float, room: int) -> tuple[int, str]:
        settings = self._settings
        least = min(settings.least, room)
        most = room if settings.most is None else min(settings.most, room)
        part = f"{utilization:.0%} of the time at work"
        if utilization >= _SATURATED:
            return min(most, max(before * 2, least)), f"{part}: there is a backlog"
        if abs(utilization - settings.target) <= settings.boundary and least <= before <= most:
            return before, part
        fitting = math.ceil(before * utilization / settings.target)
        return max(least, min(most, fitting)), f"{part}, the target is {settings.target:.0%}"

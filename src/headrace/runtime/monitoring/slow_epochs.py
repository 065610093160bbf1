r"""Why an epoch took as long as it did, or a barrier of a live job: one plain sentence or two, with numbers.

An epoch is cut into parts that follow each other; the largest is where the time went, and is looked at closer:

    | planning | level 0 | (Spark) | level 1 | (Spark) | publishing | checkpoint |
                                        \__ one subtask slower than the others? more records than they, or not?
                                             subtasks in turns, for want of slots?

In a live job, a level lasts until the barrier has passed its last subtask, and the rest is the way of acknowledgements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.monitoring.job_monitor import EpochView

#: From this many times the median on, an epoch is slow; and a subtask, if that costs at least so many milliseconds.
_SLOW_FACTOR = 1.5
_SKEW_FACTOR = 2.0
_LEAST_MS = 50.0
#: The median of fewer epochs says nothing.
_LEAST_EPOCHS = 5
#: Below this part of the time nothing is worth a sentence.
_LEAST_SHARE = 0.1

PartKind = Literal["planning", "level", "spark", "publishing", "checkpoint"]


@dataclass(frozen=True)
class LevelVertex:
    """A vertex, as far as it is needed to speak of it."""

    vertex_id: str
    name: str
    parallelism: int


@dataclass(frozen=True)
class EpochShare:
    """A part of an epoch's time."""

    kind: PartKind
    ms: float
    #: From 0 to 1, of the whole epoch.
    share: float
    #: Of kind level: which.
    level: int | None = None


@dataclass(frozen=True)
class Usual:
    """What the epochs of a job are like, as medians."""

    total_ms: float
    records: float

    @classmethod
    def of(cls, epochs: Sequence[EpochView]) -> Usual | None:
        """Take the medians; None of too few epochs."""
        if len(epochs) < _LEAST_EPOCHS:
            return None
        return cls(median(total_ms(each) for each in epochs), median(each.records for each in epochs))


@dataclass(frozen=True)
class Explanation:
    """Where the time of an epoch went."""

    is_slow: bool
    parts: tuple[EpochShare, ...]
    text: str


def total_ms(epoch: EpochView) -> float:
    """Return how long an epoch took, from its plan until the next one could begin."""
    run_ms = epoch.ended_ms - epoch.started_ms
    return epoch.planning_ms + run_ms + epoch.checkpoint_ms + epoch.late_publishing_ms


def epoch_parts(epoch: EpochView) -> tuple[EpochShare, ...]:
    """Cut an epoch into parts that follow each other; together they are the whole of it."""
    whole = total_ms(epoch) or 1.0
    run_ms = epoch.ended_ms - epoch.started_ms - epoch.publishing_ms
    levels = []
    reached = float(epoch.started_ms)
    for begin, end in epoch.levels:
        # Clocks of hosts differ, and the next level may begin while the last subtasks of this one report.
        levels.append(max(0.0, min(end, epoch.ended_ms) - max(begin, reached)))
        reached = max(reached, min(end, epoch.ended_ms))
    # What no level accounts for: launching tasks, shuffling, collecting reports, the log.
    spark_ms = max(0.0, run_ms - sum(levels))
    found: list[tuple[PartKind, float, int | None]] = [("planning", epoch.planning_ms, None)]
    found += [("level", ms, level) for level, ms in enumerate(levels)]
    found += [
        ("spark", spark_ms, None),
        ("publishing", epoch.publishing_ms + epoch.late_publishing_ms, None),
        ("checkpoint", epoch.checkpoint_ms, None),
    ]
    return tuple(EpochShare(kind, ms, ms / whole, level) for kind, ms, level in found)


def explain_epoch(
    epoch: EpochView,
    levels: Sequence[Sequence[LevelVertex]],
    usual: Usual | None = None,
    *,
    is_live: bool = False,
) -> Explanation:
    """Say where the time of an epoch went, and whether it was slow for its job.

    Args:
        epoch: The epoch.
        levels: The vertices on each level of the job.
        usual: What its other epochs are like.
        is_live: Whether the epoch is the way of a barrier through a live job.
    """
    whole_ms = total_ms(epoch)
    parts = epoch_parts(epoch)
    is_slow = (
        usual is not None
        and whole_ms > usual.total_ms * _SLOW_FACTOR
        and whole_ms - usual.total_ms > _LEAST_MS
    )
    sentences = []
    if is_slow and usual is not None:
        sentences.append(_compared(epoch, whole_ms, usual))
    if epoch.tries > 1:
        sentences.append(f"The whole epoch ran {epoch.tries} times, because a worker or a host was lost.")
    if epoch.retried_tasks:
        sentences.append(f"Spark retried {_count(epoch.retried_tasks, 'task')} after a failure.")
    largest = max(parts, key=lambda part: part.ms)
    if largest.share >= _LEAST_SHARE:
        sentences += _about(largest, epoch, levels, is_live)
    second = sorted(parts, key=lambda part: -part.ms)[1]
    if second.share >= 0.25:
        sentences.append(f"{_name(second, levels, is_live)} took another {_percent(second.share)}.")
    return Explanation(is_slow, parts, " ".join(sentences))


def _compared(epoch: EpochView, whole_ms: float, usual: Usual) -> str:
    text = (
        f"{_duration(whole_ms)} is {_times(whole_ms / usual.total_ms)} the usual {_duration(usual.total_ms)}"
    )
    if usual.records and epoch.records >= usual.records * _SLOW_FACTOR:
        return f"{text}; it read {_times(epoch.records / usual.records)} the usual number of records."
    return f"{text}, with {'no more' if usual.records else 'few'} records than usual."


def _about(
    part: EpochShare, epoch: EpochView, levels: Sequence[Sequence[LevelVertex]], is_live: bool
) -> list[str]:
    sentences = [
        f"{_name(part, levels, is_live)} took {_percent(part.share)} of the time ({_duration(part.ms)})."
    ]
    if part.kind == "level" and part.level is not None and part.level < len(levels):
        vertices = levels[part.level]
        sentences += _about_passing(epoch, vertices) if is_live else _about_level(part.ms, epoch, vertices)
    elif part.kind == "spark" and is_live:
        sentences.append(
            "This is the way of acknowledgements to the driver: it grows with the load of the machine."
        )
    elif part.kind == "spark":
        sentences.append(
            f"Each epoch has this overhead, and this one read only {epoch.records:,} records: longer epochs "
            "(headrace.epoch.target-duration) spend less of their time on it."
        )
    elif part.kind == "publishing":
        sentences.append(f"The next {_whole(is_live)}s had to wait for the sink's committer.")
    elif part.kind == "checkpoint":
        sentences.append(
            f"The next {_whole(is_live)} waited for a checkpoint to be written: the storage is slow, or checkpoints "
            "follow each other too fast (execution.checkpointing.interval)."
        )
    elif part.kind == "planning":
        sentences.append("A source took long to plan what to read.")
    return sentences


def _about_passing(epoch: EpochView, vertices: Sequence[LevelVertex]) -> list[str]:
    """Say why a barrier took long to pass a level."""
    skew = _skew_of(*_slowest(epoch, vertices), epoch)
    if skew is not None:
        return [skew]
    return ["The barrier waits there for the records that were sent before it, and for state to be written."]


def _about_level(level_ms: float, epoch: EpochView, vertices: Sequence[LevelVertex]) -> list[str]:
    slowest, times = _slowest(epoch, vertices)
    if len(times) < 2:
        return []
    skew = _skew_of(slowest, times, epoch)
    if skew is not None:
        return [skew]
    worst = max(range(len(times)), key=times.__getitem__)
    if level_ms > times[worst] * _SLOW_FACTOR and level_ms - times[worst] > _LEAST_MS:
        return [
            f"Its {len(times)} subtasks took turns or started late: the longest worked {_duration(times[worst])}. "
            "More slots would let them run in parallel."
        ]
    return [f"Its {len(times)} subtasks worked about equally long: more parallelism would share the work."]


def _slowest(epoch: EpochView, vertices: Sequence[LevelVertex]) -> tuple[LevelVertex, list[float]]:
    """Return the vertex with the busiest subtask, and how long each of its subtasks was busy."""
    busy = {
        vertex.vertex_id: [
            epoch.shares[subtask].busy_ms
            for index in range(vertex.parallelism)
            if (subtask := SubtaskId(vertex.vertex_id, index)) in epoch.shares
        ]
        for vertex in vertices
    }
    slowest = max(vertices, key=lambda vertex: max(busy[vertex.vertex_id], default=0.0))
    return slowest, busy[slowest.vertex_id]


def _skew_of(vertex: LevelVertex, times: Sequence[float], epoch: EpochView) -> str | None:
    """Name the subtask that was much busier than the others, if there is one."""
    if len(times) < 2:
        return None
    worst = max(range(len(times)), key=times.__getitem__)
    rest = median([*times[:worst], *times[worst + 1 :]])
    if times[worst] > rest * _SKEW_FACTOR and times[worst] - rest > _LEAST_MS:
        return _skew(vertex, worst, times[worst], rest, epoch)
    return None


def _skew(vertex: LevelVertex, worst: int, worst_ms: float, rest_ms: float, epoch: EpochView) -> str:
    records = [
        share.records_in
        for index in range(vertex.parallelism)
        if (share := epoch.shares.get(SubtaskId(vertex.vertex_id, index))) is not None
    ]
    part = records[worst] / sum(records) if sum(records) else 0.0
    text = f"Subtask {worst} worked {_duration(worst_ms)}"
    if rest_ms >= 1.0:
        text += f", {_times(worst_ms / rest_ms)} the median of the others ({_duration(rest_ms)})"
    else:
        text += ", while the others had almost nothing to do"
    if part * len(records) > _SLOW_FACTOR:
        return f"{text}: it got {_percent(part)} of the records, so keys are skewed."
    return f"{text}, though it got no more records than they did: its records take longer, or its host is slower."


def _whole(is_live: bool) -> str:
    return "barrier" if is_live else "epoch"


def _name(part: EpochShare, levels: Sequence[Sequence[LevelVertex]], is_live: bool) -> str:
    if part.kind != "level":
        return {
            "planning": "Planning",
            "spark": "Acknowledging the barrier" if is_live else "Spark's scheduling and shuffling",
            "publishing": "Publishing output",
            "checkpoint": "A checkpoint",
        }[part.kind]
    vertices = levels[part.level] if part.level is not None and part.level < len(levels) else ()
    names = ", ".join(_short(vertex.name) for vertex in vertices[:2])
    more = f" and {len(vertices) - 2} more" if len(vertices) > 2 else ""
    return f"Level {part.level}" + (f" ({names}{more})" if names else "")


def _short(name: str, most: int = 60) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _times(factor: float) -> str:
    return f"{factor:.1f} times"


def _duration(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 1000 else f"{ms:,.0f} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

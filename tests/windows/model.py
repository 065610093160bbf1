"""A model of Flink's window semantics, to hold the window operator against.

It knows nothing of headrace: windows are tuples, everything is in plain lists and dictionaries, and whatever is asked
is computed again. So it can be read beside Flink's documentation, and is slow.

    model = Model(Tumbling(10), EventTime())
    model.record("a", "x", 3)
    model.watermark(9)
    model.output["a"]        [(("x",), 9)]

What Flink leaves open is decided as headrace does: timers of a key that fall due at the same moment come in the order
of their windows, by end and then by start; of sessions that become one, the elements of the earlier come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

FOREVER = 2**63 - 1
NOT_YET = -(2**63)

#: ("time", end, start), ("count", number) or ("global",); windows of time sort by their end.
Window = tuple[Any, ...]


def time_window(start: int, end: int) -> Window:
    return ("time", end, start)


def last_moment(window: Window) -> int:
    """The last timestamp that belongs to a window."""
    return window[1] - 1 if window[0] == "time" else FOREVER


# ------------------------------------------------------------------------------------------ assigners


@dataclass(frozen=True)
class Tumbling:
    size: int
    offset: int = 0

    def windows(self, value: Any, time: int, number: int) -> list[Window]:
        return Sliding(self.size, self.size, self.offset).windows(value, time, number)


@dataclass(frozen=True)
class Sliding:
    size: int
    slide: int
    offset: int = 0

    def windows(self, value: Any, time: int, number: int) -> list[Window]:
        """Of all windows that there are, those around the time; the latest first."""
        starts = range(time - self.size + 1, time + 1)
        return [
            time_window(start, start + self.size)
            for start in reversed(starts)
            if (start - self.offset) % self.slide == 0
        ]


@dataclass(frozen=True)
class Sessions:
    """Windows that become one when they overlap or touch."""

    gap_after: Callable[[Any], int]

    def windows(self, value: Any, time: int, number: int) -> list[Window]:
        return [time_window(time, time + self.gap_after(value))]


@dataclass(frozen=True)
class CountTumbling:
    size: int

    def windows(self, value: Any, time: int, number: int) -> list[Window]:
        return CountSliding(self.size, self.size).windows(value, time, number)


@dataclass(frozen=True)
class CountSliding:
    size: int
    slide: int

    def windows(self, value: Any, time: int, number: int) -> list[Window]:
        """Window i has the elements i * slide up to but not including i * slide + size of a key."""
        return [
            ("count", index)
            for index in range(number, -1, -1)
            if index * self.slide <= number < index * self.slide + self.size
        ]


@dataclass(frozen=True)
class Global:
    def windows(self, value: Any, time: int, number: int) -> list[Window]:
        return [("global",)]


# ------------------------------------------------------------------------------------------- triggers


@dataclass
class Contents:
    """What a window of a key holds."""

    elements: list[tuple[Any, int | None]] = field(default_factory=list)
    #: What the trigger remembers.
    memory: dict[str, Any] = field(default_factory=dict)
    #: What the window function remembers.
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What a trigger is asked about: a window of a key."""

    model: Model
    key: Any
    window: Window
    memory: dict[str, Any]

    @property
    def end(self) -> int:
        return last_moment(self.window)

    def wait(self, clock: str, time: int) -> None:
        self.model.timers[self.key].add((clock, time, self.window))

    def wait_no_more(self, clock: str, time: int) -> None:
        self.model.timers[self.key].discard((clock, time, self.window))


FIRE, PURGE = "fire", "purge"
Decision = frozenset[str]
GO_ON: Decision = frozenset()


class Trigger:
    """Goes on, whatever happens."""

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        return GO_ON

    def on_time(self, asked: Asked, clock: str, time: int) -> Decision:
        return GO_ON

    def on_merge(self, asked: Asked, memories: list[dict[str, Any]]) -> None:
        raise AssertionError("a program with this trigger on merging windows is refused")

    def clear(self, asked: Asked) -> None:
        pass


@dataclass(frozen=True)
class Never(Trigger):
    pass


@dataclass(frozen=True)
class EventTime(Trigger):
    """At the end of the window; at once for elements that come later."""

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        if asked.end <= asked.model.event_time:
            return frozenset({FIRE})
        asked.wait("event", asked.end)
        return GO_ON

    def on_time(self, asked: Asked, clock: str, time: int) -> Decision:
        return frozenset({FIRE}) if clock == "event" and time == asked.end else GO_ON

    def on_merge(self, asked: Asked, memories: list[dict[str, Any]]) -> None:
        if asked.end > asked.model.event_time:
            asked.wait("event", asked.end)

    def clear(self, asked: Asked) -> None:
        asked.wait_no_more("event", asked.end)


@dataclass(frozen=True)
class ProcessingTime(Trigger):
    """When the clock has reached the end of the window."""

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        asked.wait("processing", asked.end)
        return GO_ON

    def on_time(self, asked: Asked, clock: str, time: int) -> Decision:
        return frozenset({FIRE}) if clock == "processing" else GO_ON

    def on_merge(self, asked: Asked, memories: list[dict[str, Any]]) -> None:
        if asked.end > asked.model.clock:
            asked.wait("processing", asked.end)

    def clear(self, asked: Asked) -> None:
        asked.wait_no_more("processing", asked.end)


@dataclass(frozen=True)
class Continuous(Trigger):
    """At every multiple of an interval that falls into the window's life, and at its end."""

    clock: str
    interval: int

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        if self.clock == "event":
            if asked.end <= asked.model.event_time:
                return frozenset({FIRE})
            asked.wait("event", asked.end)
            now = time
        else:
            now = asked.model.clock
        assert now is not None
        if "next" not in asked.memory:
            self._wait_for(asked, (now // self.interval + 1) * self.interval)
        return GO_ON

    def on_time(self, asked: Asked, clock: str, time: int) -> Decision:
        if clock != self.clock:
            return GO_ON
        if clock == "event" and time == asked.end:
            return frozenset({FIRE})
        if clock == "event" and asked.end == asked.model.event_time == FOREVER:
            # Here Flink continues forever: in a window without end there is always another interval.
            return GO_ON
        if asked.memory.get("next") != time:
            return GO_ON
        del asked.memory["next"]
        if time < asked.end:
            self._wait_for(asked, time + self.interval)
        return frozenset({FIRE})

    def on_merge(self, asked: Asked, memories: list[dict[str, Any]]) -> None:
        nexts = [memory["next"] for memory in memories if "next" in memory]
        if nexts:
            asked.memory["next"] = min(nexts)
            asked.wait(self.clock, min(nexts))

    def clear(self, asked: Asked) -> None:
        if "next" in asked.memory:
            asked.wait_no_more(self.clock, asked.memory.pop("next"))

    def _wait_for(self, asked: Asked, time: int) -> None:
        asked.memory["next"] = min(time, asked.end)
        asked.wait(self.clock, asked.memory["next"])


@dataclass(frozen=True)
class Count(Trigger):
    """After so many elements."""

    size: int

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        asked.memory["count"] = asked.memory.get("count", 0) + 1
        if asked.memory["count"] < self.size:
            return GO_ON
        del asked.memory["count"]
        return frozenset({FIRE})

    def on_merge(self, asked: Asked, memories: list[dict[str, Any]]) -> None:
        asked.memory["count"] = sum(memory.get("count", 0) for memory in memories)

    def clear(self, asked: Asked) -> None:
        asked.memory.pop("count", None)


@dataclass(frozen=True)
class Delta(Trigger):
    """When an element is farther than a threshold from the one it fired at last."""

    threshold: float
    distance: Callable[[Any, Any], float]

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        if "last" not in asked.memory:
            asked.memory["last"] = value
            return GO_ON
        if self.distance(asked.memory["last"], value) <= self.threshold:
            return GO_ON
        asked.memory["last"] = value
        return frozenset({FIRE})

    def clear(self, asked: Asked) -> None:
        asked.memory.pop("last", None)


@dataclass(frozen=True)
class Purging(Trigger):
    """As another, and purges when that one fires."""

    other: Trigger

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        return self._purging(self.other.on_element(asked, value, time))

    def on_time(self, asked: Asked, clock: str, time: int) -> Decision:
        return self._purging(self.other.on_time(asked, clock, time))

    def on_merge(self, asked: Asked, memories: list[dict[str, Any]]) -> None:
        self.other.on_merge(asked, memories)

    def clear(self, asked: Asked) -> None:
        self.other.clear(asked)

    @staticmethod
    def _purging(decision: Decision) -> Decision:
        return decision | {PURGE} if FIRE in decision else decision


@dataclass(frozen=True)
class Timeout(Trigger):
    """As another, or when the clock has gone on for some time since the first element (or the last)."""

    other: Trigger
    timeout: int
    resets: bool = False
    clears: bool = True

    def on_element(self, asked: Asked, value: Any, time: int | None) -> Decision:
        decision = self.other.on_element(asked, value, time)
        if FIRE in decision:
            self.clear(asked)
            return decision
        if "until" in asked.memory and self.resets:
            asked.wait_no_more("processing", asked.memory.pop("until"))
        if "until" not in asked.memory:
            asked.memory["until"] = asked.model.clock + self.timeout
            asked.wait("processing", asked.memory["until"])
        return decision

    def on_time(self, asked: Asked, clock: str, time: int) -> Decision:
        decision = self.other.on_time(asked, clock, time)
        if self.clears:
            self.clear(asked)
        return decision | {FIRE}

    def clear(self, asked: Asked) -> None:
        if "until" in asked.memory:
            asked.wait_no_more("processing", asked.memory.pop("until"))
        self.other.clear(asked)


# ------------------------------------------------------------------------------------------- evictors

Elements = list[tuple[Any, int | None]]


@dataclass(frozen=True)
class KeepLatest:
    """Keeps so many elements, the last ones."""

    count: int
    is_after: bool = False

    def keep(self, elements: Elements) -> Elements:
        return elements[max(0, len(elements) - self.count) :]


@dataclass(frozen=True)
class KeepYoung:
    """Keeps elements that are not older than the youngest by some time or more."""

    age: int
    is_after: bool = False

    def keep(self, elements: Elements) -> Elements:
        if not elements or elements[0][1] is None:
            return elements
        youngest = max(NOT_YET if time is None else time for _, time in elements)
        return [(value, time) for value, time in elements if time is not None and youngest - time < self.age]


@dataclass(frozen=True)
class KeepNear:
    """Keeps elements nearer than a threshold to the last one."""

    threshold: float
    distance: Callable[[Any, Any], float]
    is_after: bool = False

    def keep(self, elements: Elements) -> Elements:
        return [each for each in elements if self.distance(each[0], elements[-1][0]) < self.threshold]


# ---------------------------------------------------------------------------------------------- model


def list_values(key: Any, window: Window, values: list[Any], notes: Any, key_notes: Any) -> list[Any]:
    """Give the elements of a window as one result."""
    return [tuple(values)]


class Model:
    """Windows of a stream, element by element.

    Args:
        assigner: One of those above.
        trigger: One of those above.
        is_event_time: Whether windows live in event time. Count and global windows do not.
        lateness: How long windows of event time are kept after their end.
        evictor: One of those above, or None.
        compute: Called for a window that fires, with the key, the window, its values, and two dictionaries: notes of
            the key in this window, which are gone when the window is, and notes of the key. Returns results.
    """

    def __init__(
        self,
        assigner: Any,
        trigger: Trigger,
        *,
        is_event_time: bool = True,
        lateness: int = 0,
        evictor: Any = None,
        compute: Callable[..., Iterable[Any]] = list_values,
    ) -> None:
        self.assigner = assigner
        self.trigger = trigger
        self.is_event_time = is_event_time
        self.lateness = lateness
        self.evictor = evictor
        self.compute = compute
        self.event_time = NOT_YET
        self.clock = 0
        #: Per key: its windows, its timers as (clock, time, window), how many elements it had, its notes.
        self.windows: dict[Any, dict[Window, Contents]] = {}
        self.timers: dict[Any, set[tuple[str, int, Window]]] = {}
        self.counts: dict[Any, int] = {}
        self.key_notes: dict[Any, dict[str, Any]] = {}
        #: Results per key in order, each with its timestamp.
        self.output: dict[Any, list[tuple[Any, int]]] = {}
        #: Elements that were late for all their windows.
        self.late: list[tuple[Any, int | None]] = []
        #: Windows that were removed, as (key, window).
        self.removed: list[tuple[Any, Window]] = []

    # -- steps ------------------------------------------------------------------------------------

    def record(self, key: Any, value: Any, time: int | None) -> None:
        """An element comes."""
        for part in (self.windows, self.key_notes):
            part.setdefault(key, {})
        self.timers.setdefault(key, set())
        number = self.counts.get(key, 0)
        self.counts[key] = number + 1
        now = time if self.is_event_time else self.clock
        is_taken = False
        for window in self.assigner.windows(value, now, number):
            place = self._merged(key, window) if isinstance(self.assigner, Sessions) else window
            if self._is_gone(place):
                continue
            is_taken = True
            contents = self.windows[key].setdefault(place, Contents())
            contents.elements.append((value, time))
            self._act(key, place, self.trigger.on_element(self._ask(key, place), value, time))
            self._wait_for_removal(key, place)
        if not is_taken and self.is_event_time and time is not None:
            if time + self.lateness <= self.event_time:
                self.late.append((value, time))

    def watermark(self, time: int) -> None:
        """Event time reaches a moment; one that it has reached before changes nothing."""
        if time > self.event_time:
            self.event_time = time
            self._fire_timers("event", time)

    def set_clock(self, time: int) -> None:
        """The clock reaches a moment."""
        self.clock = time
        self._fire_timers("processing", time)

    def finish(self) -> None:
        """The input has ended: so has event time."""
        self.watermark(FOREVER)

    # -- rules ------------------------------------------------------------------------------------

    def _merged(self, key: Any, new: Window) -> Window:
        """Put a session together with all that it overlaps or touches; return what it has become."""
        olds = sorted(
            (old for old in self.windows[key] if old[2] <= new[1] and new[2] <= old[1]),
            key=lambda old: old[2],
        )
        parts = [new, *olds]
        merged = time_window(min(part[2] for part in parts), max(part[1] for part in parts))
        if not olds or olds == [merged]:
            return merged
        before = {old: self.windows[key].pop(old) for old in olds}
        contents = self.windows[key][merged] = Contents(
            [element for old in olds for element in before[old].elements]
        )
        self.trigger.on_merge(Asked(self, key, merged, contents.memory), [before[old].memory for old in olds])
        for old in olds:
            self.timers[key] = {timer for timer in self.timers[key] if timer[2] != old}
        return merged

    def _is_gone(self, window: Window) -> bool:
        return self.is_event_time and self._removal(window) <= self.event_time

    def _removal(self, window: Window) -> int:
        kept = self.lateness if self.is_event_time else 0
        return min(last_moment(window) + kept, FOREVER)

    def _wait_for_removal(self, key: Any, window: Window) -> None:
        if self._removal(window) < FOREVER:
            clock = "event" if self.is_event_time else "processing"
            self.timers[key].add((clock, self._removal(window), window))

    def _fire_timers(self, clock: str, until: int) -> None:
        for key in self.timers:
            while due := [timer for timer in self.timers[key] if timer[0] == clock and timer[1] <= until]:
                # The earliest; of one moment, that of the window that ends and starts first.
                first = min(due, key=lambda timer: (timer[1], timer[2]))
                self.timers[key].remove(first)
                self._on_timer(key, clock, first[1], first[2])

    def _on_timer(self, key: Any, clock: str, time: int, window: Window) -> None:
        if window not in self.windows[key]:
            return
        self._act(key, window, self.trigger.on_time(self._ask(key, window), clock, time))
        if (clock == "event") == self.is_event_time and time == self._removal(window):
            self.trigger.clear(self._ask(key, window))
            del self.windows[key][window]
            self.removed.append((key, window))

    def _ask(self, key: Any, window: Window) -> Asked:
        return Asked(self, key, window, self.windows[key][window].memory)

    def _act(self, key: Any, window: Window, decision: Decision) -> None:
        if FIRE in decision:
            self._fire(key, window)
        if PURGE in decision:
            self.windows[key][window].elements = []

    def _fire(self, key: Any, window: Window) -> None:
        contents = self.windows[key][window]
        if not contents.elements:
            return
        if self.evictor is not None and not self.evictor.is_after:
            contents.elements = self.evictor.keep(contents.elements)
        values = [value for value, _ in contents.elements]
        results = self.compute(key, window, values, contents.notes, self.key_notes[key])
        self.output.setdefault(key, []).extend((result, last_moment(window)) for result in results)
        if self.evictor is not None and self.evictor.is_after:
            contents.elements = self.evictor.keep(contents.elements)

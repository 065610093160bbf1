"""Windows that share slices, across changes of parallelism: no window is lost, none fires twice.

Every subtask has a watermark of its own, so key groups that come together may have come differently far.

    before   subtask 0   groups 0-3   ======= W 20                after   subtask 0   groups 0-7
             subtask 1   groups 4-7   === W 8                             W unknown: groups 0-3 go on from 20,
                                                                          groups 4-7 from 8
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import MIN_WATERMARK
from headrace.operators.window.slices import SlicedWindowProcessor
from headrace.state.key_groups import key_group_of
from headrace.state.keys import hash_key
from headrace.testing.harness import OperatorHarness, Snapshot, rescale
from tests.windows import model
from tests.windows.scripts import COMMUTATIVE, LATE, Computation, Program, slidings, some_examples, tumblings
from tests.windows.test_slices import SOMETHING_OF_THE_FIRST

KEYS = "abcdefgh"
GROUPS = 8


@dataclass(frozen=True)
class Records:
    """(key, value, timestamp, counted from the highest watermark so far)."""

    items: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Watermark:
    """Of one subtask, or of whichever has the place in a smaller job."""

    subtask: int
    step: int


@dataclass(frozen=True)
class Rescale:
    parallelism: int
    #: Whether what subtasks remember besides their keyed state is lost, as if they had been cut again.
    loses_memory: bool = False


record = st.tuples(st.sampled_from(KEYS), st.integers(0, 9), st.integers(-15, 20))
records = st.builds(Records, st.lists(record, min_size=1, max_size=6).map(tuple))
steps = st.lists(
    st.one_of(
        records,
        records,
        st.builds(Watermark, st.integers(0, 3), st.integers(0, 15)),
        st.builds(Rescale, st.integers(1, 4), st.booleans()),
    ),
    min_size=8,
    max_size=30,
)


@dataclass
class Run:
    """The operator and, beside it, a model per key: each key has the watermarks of the subtask that has it."""

    program: Program
    parallelism: int
    output: dict[str, list[Any]] = field(default_factory=dict)
    late: list[Any] = field(default_factory=list)
    highest: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        self.declaration = replace(self.program.declaration(), late_tag_id=LATE)
        assert type(self.declaration.build()) is SlicedWindowProcessor
        self.models = {key: self.program.make_model() for key in KEYS}
        self.watermarks = [MIN_WATERMARK] * self.parallelism
        self.harnesses = [
            OperatorHarness(
                self.declaration, parallelism=self.parallelism, subtask=subtask, max_parallelism=GROUPS
            )
            for subtask in range(self.parallelism)
        ]

    def keys_of(self, harness: OperatorHarness) -> Iterator[str]:
        return filter(harness.owns, KEYS)

    def step(self, step: Any) -> None:
        match step:
            case Records(items):
                for key, value, offset in items:
                    self.take((key, (self.count,), value), self.highest + offset)
                    self.count += 1
            case Watermark(subtask, by):
                subtask %= self.parallelism
                self.advance(subtask, max(self.watermarks[subtask], self.highest - 20) + by)
            case Rescale(parallelism, loses_memory):
                self.rescale(parallelism, loses_memory)

    def take(self, value: Any, time: int) -> None:
        self.models[value[0]].record(value[0], value, time)
        (owner,) = (harness for harness in self.harnesses if harness.owns(value[0]))
        owner.process(value, timestamp=time)

    def advance(self, subtask: int, time: int) -> None:
        self.watermarks[subtask] = time
        self.highest = max(self.highest, time) if time < 1_000_000 else self.highest
        self.harnesses[subtask].process_watermark(time)
        for key in self.keys_of(self.harnesses[subtask]):
            self.models[key].watermark(time)

    def rescale(self, parallelism: int, loses_memory: bool) -> None:
        snapshots = [harness.snapshot() for harness in self.harnesses]
        self.collect()
        if loses_memory:
            snapshots = [replace(each, operator_state=None) for each in snapshots]
        keeps_watermarks = parallelism == self.parallelism
        self.harnesses = rescale(snapshots, self.declaration, parallelism)
        self.parallelism = parallelism
        if not keeps_watermarks:
            self.watermarks = [MIN_WATERMARK] * parallelism
            self.forget_time(snapshots)

    def forget_time(self, snapshots: list[Snapshot]) -> None:
        """A key group with nothing open has no state, and so, as in Flink, no memory of the watermark."""
        stored = {group for snapshot in snapshots for group in snapshot.keyed}
        for key, windows in self.models.items():
            if key_group_of(hash_key(key), GROUPS) not in stored:
                assert not windows.windows.get(key)
                windows.event_time = model.NOT_YET

    def collect(self) -> None:
        for harness in self.harnesses:
            for value, timestamp in harness.output_with_timestamps:
                self.output.setdefault(value[0], []).append((value, timestamp))
            self.late += harness.side_output_with_timestamps(LATE)
            harness.close()

    def check(self) -> None:
        for subtask in range(self.parallelism):
            self.advance(subtask, 2_000_000)
        self.collect()
        assert self.output == {key: each.output[key] for key, each in self.models.items() if each.output}
        assert sorted(self.late) == sorted(late for each in self.models.values() for late in each.late)


def check(assigner: Any, computation: Computation, parallelism: int, script: list[Any]) -> None:
    run = Run(Program(assigner, model.EventTime(), computation=computation), parallelism)
    for step in script:
        run.step(step)
    run.check()


moderate = some_examples(120)
overlapping = slidings().filter(lambda assigner: assigner.slide <= assigner.size)


@given(
    st.one_of(tumblings(), overlapping),
    st.sampled_from([*COMMUTATIVE, SOMETHING_OF_THE_FIRST]),
    st.integers(1, 4),
    steps,
)
@moderate
def test_windows_are_those_of_the_model_whatever_the_parallelism(
    assigner: Any, computation: Any, parallelism: int, script: list[Any]
) -> None:
    check(assigner, computation, parallelism, script)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (4, 1), (3, 4), (2, 2)])
@pytest.mark.parametrize("loses_memory", [False, True])
def test_long_windows_of_blocks_follow_their_keys(before: int, after: int, loses_memory: bool) -> None:
    """Blocks that one subtask had built and another had not are built again."""
    script: list[Any] = []
    for number in range(40):
        script.append(Records(tuple((key, number % 7, number % 11) for key in KEYS[number % 3 :: 2])))
        script.append(Watermark(number % 4, 1 + number % 9))
        if number in (13, 14, 29):
            script.append(Rescale(after if number != 14 else before, loses_memory))
    check(model.Sliding(180, 2, 1), SOMETHING_OF_THE_FIRST, before, script)


def test_a_record_that_is_late_for_its_key_group_is_late_though_the_subtask_does_not_know() -> None:
    """And one that is in an open window counts in that one only, not in those that have fired."""
    run = Run(Program(model.Sliding(20, 10, 0), model.EventTime(), computation=COMMUTATIVE[0]), 1)
    run.take(("a", (0,), 1), 12)
    run.advance(0, 19)
    run.rescale(2, False)
    run.take(("a", (1,), 1), 3)
    run.take(("a", (2,), 1), 15)
    run.check()
    assert run.late == [(("a", (1,), 1), 3)]
    assert run.output == {"a": [(("a", (0,), 1), 19), (("a", (0, 2), 2), 29)]}

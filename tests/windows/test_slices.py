"""Windows that share slices: the same results as the model's and as those of the general operator."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.window.operator import WindowProcessor
from headrace.operators.window.slices import SlicedWindowProcessor
from tests.windows import model
from tests.windows.scripts import (
    COMMUTATIVE,
    COMPUTATIONS,
    Computation,
    Program,
    Record,
    general,
    long_script,
    run_harness,
    run_model,
    scripts,
    slidings,
    some_examples,
    tumblings,
)

moderate = some_examples(60)
INCREMENTAL = [each for each in COMPUTATIONS if each.kind != "buffer"]


def add_to_first(left: Record, right: Record) -> Record:
    """As `sum` does: what is not added up is the first record's."""
    return left[0], left[1], left[2] + right[2]


def _first(key: Any, window: Any, values: list[Record], notes: Any, key_notes: Any) -> list[Any]:
    return [(values[0][0], values[0][1], sum(value[2] for value in values))]


SOMETHING_OF_THE_FIRST = Computation("first", _first, "reduce", add_to_first)


def check_slices(program: Program, script: list[Any]) -> None:
    declaration = program.declaration()
    # Records between windows lie in none, and may still be late: that is left to the general operator.
    has_gaps = isinstance(program.assigner, model.Sliding) and program.assigner.slide > program.assigner.size
    assert type(declaration.build()) is (WindowProcessor if has_gaps else SlicedWindowProcessor)
    expected = run_model(program, script)
    shared = run_harness(program, script, declaration)
    assert (shared.output, shared.late) == (expected.output, expected.late)
    apart = run_harness(program, script, general(declaration))
    assert (shared.output, shared.late) == (apart.output, apart.late)


@given(tumblings(), st.sampled_from([*INCREMENTAL, *COMMUTATIVE]), st.booleans(), scripts())
@moderate
def test_tumbling_windows_of_one_slice_each(
    assigner: Any, computation: Any, is_all: bool, script: list[Any]
) -> None:
    check_slices(Program(assigner, model.EventTime(), computation=computation, is_all=is_all), script)


@given(slidings(), st.sampled_from([*COMMUTATIVE, SOMETHING_OF_THE_FIRST]), st.booleans(), scripts())
@moderate
def test_sliding_windows_of_some_slices(
    assigner: Any, computation: Any, is_all: bool, script: list[Any]
) -> None:
    check_slices(Program(assigner, model.EventTime(), computation=computation, is_all=is_all), script)


def long_windows(chance: random.Random, most_slices: int) -> model.Sliding:
    """Windows of more than 64 slices: they are made of blocks."""
    step, slides = chance.randint(1, 3), chance.randint(1, 4)
    slices = chance.randint(65, most_slices)
    return model.Sliding(slices * step, slides * step, chance.randrange(slides * step))


@pytest.mark.parametrize("seed", range(12))
def test_sliding_windows_of_many_slices(seed: int) -> None:
    chance = random.Random(seed)
    assigner = long_windows(chance, 100)
    computation = chance.choice([*COMMUTATIVE, SOMETHING_OF_THE_FIRST])
    script = long_script(chance, steps=20, disorder=assigner.size, largest_step=20)
    check_slices(Program(assigner, model.EventTime(), computation=computation), script)


@pytest.mark.parametrize("seed", range(12))
def test_windows_of_blocks_of_blocks_are_those_of_the_general_operator(seed: int) -> None:
    chance = random.Random(seed)
    assigner = long_windows(chance, 700)
    computation = chance.choice([*COMMUTATIVE, SOMETHING_OF_THE_FIRST])
    script = long_script(chance, steps=40, disorder=assigner.size, largest_step=assigner.size // 2)
    program = Program(assigner, model.EventTime(), computation=computation)
    shared = run_harness(program, script)
    apart = run_harness(program, script, general(program.declaration()))
    assert sum(map(len, shared.output.values())) > 100
    assert (shared.output, shared.late) == (apart.output, apart.late)

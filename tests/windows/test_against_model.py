"""Random windows, triggers, evictors, disorder, lateness and ends of epochs, against the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.windows import model
from tests.windows.scripts import (
    COMPUTATIONS,
    Program,
    any_evictor,
    any_trigger,
    check,
    counts,
    mergeable,
    scripts,
    sessions,
    slidings,
    some_examples,
    tumblings,
)

moderate = some_examples(60)


def programs(
    assigner: st.SearchStrategy[Any], trigger: st.SearchStrategy[Any], **fixed: st.SearchStrategy[Any]
) -> st.SearchStrategy[Program]:
    parts: dict[str, st.SearchStrategy[Any]] = {
        "is_event_time": st.just(True),
        "lateness": st.sampled_from([0, 0, 3, 10]),
        "evictor": st.none(),
        "computation": st.sampled_from(COMPUTATIONS),
        "is_all": st.booleans(),
    }
    return st.builds(Program, assigner, trigger, **{**parts, **fixed})


time_windows = st.one_of(tumblings(), slidings())
in_processing_time = {"is_event_time": st.just(False), "lateness": st.just(0)}
#: Windows that merge have no state of their own: which part's would it be?
without_window_state = st.sampled_from([each for each in COMPUTATIONS if "remember" not in each.name])


@given(programs(time_windows, st.just(model.EventTime())), scripts())
@moderate
def test_windows_of_event_time(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(programs(time_windows, any_trigger), scripts())
@moderate
def test_windows_of_event_time_with_any_trigger(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(programs(time_windows, any_trigger, **in_processing_time), scripts())
@moderate
def test_windows_of_processing_time_with_any_trigger(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(programs(sessions, mergeable, computation=without_window_state), scripts())
@moderate
def test_sessions_of_event_time(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(programs(sessions, mergeable, computation=without_window_state, **in_processing_time), scripts())
@moderate
def test_sessions_of_processing_time(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(programs(st.one_of(counts, st.just(model.Global())), any_trigger, **in_processing_time), scripts())
@moderate
def test_count_and_global_windows_with_any_trigger(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(counts, st.sampled_from(COMPUTATIONS), st.booleans(), scripts())
@moderate
def test_count_windows_with_their_own_trigger(
    assigner: Any, computation: Any, is_all: bool, script: list[Any]
) -> None:
    full = model.Purging(model.Count(assigner.size))
    program = Program(assigner, full, is_event_time=False, computation=computation, is_all=is_all)
    own = program.declaration().assigner.get_default_trigger(None)
    check(program, script, replace(program.declaration(), trigger=own))


@given(programs(time_windows, any_trigger, evictor=any_evictor), scripts())
@moderate
def test_evictors_in_windows_of_event_time(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(programs(sessions, mergeable, evictor=any_evictor, computation=without_window_state), scripts())
@moderate
def test_evictors_in_sessions(program: Program, script: list[Any]) -> None:
    check(program, script)


@given(
    programs(
        st.one_of(time_windows, counts, st.just(model.Global())),
        any_trigger,
        evictor=any_evictor,
        **in_processing_time,
    ),
    scripts(),
)
@moderate
def test_evictors_in_windows_that_the_watermark_does_not_end(program: Program, script: list[Any]) -> None:
    check(program, script)

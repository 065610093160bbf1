from __future__ import annotations

from itertools import count
from typing import Any

from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.runtime.run.state_registry import Compaction, StateRegistry
from headrace.state.handles import StateFile

A0, A1 = SubtaskId("a", 0), SubtaskId("a", 1)


def names() -> Any:
    return (f"merged-{number}" for number in count(1))


def report(
    subtask: SubtaskId, epoch: int, before: int, size: int = 10, **operator_state: bytes
) -> SubtaskReport:
    file = StateFile(f"{subtask.vertex_id}{subtask.subtask}-{epoch}", before, epoch, size)
    return SubtaskReport(subtask, changes={"op": file}, operator_state=operator_state)


def registry_after(epochs: int, *, max_changes: int = 3, size: int = 10) -> StateRegistry:
    registry = StateRegistry("line", max_changes)
    for epoch in range(1, epochs + 1):
        registry.advance(report(A0, epoch, epoch - 1, size))
    return registry


def finish(registry: StateRegistry, work: Compaction, size: int, epoch: int) -> None:
    registry.compacted(work, size, epoch)


def test_a_job_starts_with_no_state() -> None:
    registry = StateRegistry("line", 3)
    assert registry.keyed(A0) == {}
    assert registry.operator(A0) == {}
    assert registry.sizes() == {}


def test_completed_epochs_lengthen_the_chain_of_their_subtask() -> None:
    registry = registry_after(2)
    registry.advance(report(A1, 2, 0))
    chain = registry.keyed(A0)["op"]
    assert (chain.lineage, chain.version, [file.path for file in chain.files]) == (
        "line",
        2,
        ["a0-1", "a0-2"],
    )
    assert [file.path for file in registry.keyed(A1)["op"].files] == ["a1-2"]


def test_an_epoch_that_changed_nothing_leaves_the_chain_alone() -> None:
    registry = registry_after(1)
    registry.advance(SubtaskReport(A0))
    assert registry.keyed(A0)["op"].version == 1


def test_operator_state_is_kept_until_there_is_a_newer_one() -> None:
    registry = StateRegistry("line", 3)
    registry.advance(SubtaskReport(A0, operator_state={"one": b"1", "two": b"2"}))
    registry.advance(SubtaskReport(A0, operator_state={"two": b"22"}))
    assert registry.operator(A0) == {"one": b"1", "two": b"22"}
    assert {name: size.operator for name, size in registry.sizes().items()} == {"one": 1, "two": 2}


def test_returned_values_are_copies() -> None:
    registry = registry_after(1)
    registry.keyed(A0).clear()
    assert registry.keyed(A0)


def test_a_chain_is_compacted_when_it_has_many_changes_and_only_once_at_a_time() -> None:
    registry = registry_after(2)
    assert registry.due_compactions(names()) == []
    registry.advance(report(A0, 3, 2))
    [work] = registry.due_compactions(names())
    assert (work.subtask, work.operator_id, work.path) == (A0, "op", "merged-1")
    assert [file.path for file in work.files] == ["a0-1", "a0-2", "a0-3"]
    assert work.is_full
    registry.advance(report(A0, 4, 3))
    assert registry.due_compactions(names()) == [], "this chain is being worked on"


def test_changes_written_meanwhile_follow_the_new_base() -> None:
    registry = registry_after(3)
    [work] = registry.due_compactions(names())
    registry.advance(report(A0, 4, 3))
    finish(registry, work, size=25, epoch=5)
    files = registry.keyed(A0)["op"].files
    assert [(file.path, file.is_base) for file in files] == [("merged-1", True), ("a0-4", False)]
    assert registry.sizes()["op"].keyed == 35


def test_small_changes_to_a_large_state_are_merged_among_themselves() -> None:
    registry = registry_after(3, size=1000)
    [work] = registry.due_compactions(names())
    finish(registry, work, size=3000, epoch=4)
    for epoch in (4, 5, 6):
        registry.advance(report(A0, epoch, epoch - 1, size=10))
    [work] = registry.due_compactions(names())
    assert not work.is_full
    assert [file.path for file in work.files] == ["a0-4", "a0-5", "a0-6"]
    finish(registry, work, size=20, epoch=7)
    chain = registry.keyed(A0)["op"]
    assert [(file.from_version, file.to_version, file.is_base) for file in chain.files] == [
        (0, 3, True),
        (3, 6, False),
    ]


def test_a_new_base_is_written_when_changes_exceed_half_of_it() -> None:
    registry = registry_after(3, size=1000)
    [work] = registry.due_compactions(names())
    finish(registry, work, size=3000, epoch=4)
    for epoch in (4, 5, 6):
        registry.advance(report(A0, epoch, epoch - 1, size=500))
    [work] = registry.due_compactions(names())
    assert work.is_full
    assert len(work.files) == 4


def test_every_chain_that_is_due_is_found() -> None:
    registry = registry_after(3)
    for epoch in (1, 2, 3):
        registry.advance(report(A1, epoch, epoch - 1))
    assert [(work.subtask, work.path) for work in registry.due_compactions(names())] == [
        (A0, "merged-1"),
        (A1, "merged-2"),
    ]


def test_a_compaction_that_failed_may_be_tried_again() -> None:
    registry = registry_after(3)
    [work] = registry.due_compactions(names())
    registry.abandoned(work)
    assert [file.path for file in registry.keyed(A0)["op"].files] == ["a0-1", "a0-2", "a0-3"]
    [again] = registry.due_compactions(names())
    assert again.files == work.files


def test_replaced_files_are_garbage_when_no_plan_names_them_any_more() -> None:
    registry = registry_after(3)
    [work] = registry.due_compactions(names())
    # Taken over after epoch 4: epoch 5 is the first whose plan names the new file.
    finish(registry, work, size=25, epoch=5)
    assert registry.take_garbage(completed_epoch=4) == []
    assert registry.take_garbage(completed_epoch=5) == ["a0-1", "a0-2", "a0-3"]
    assert registry.take_garbage(completed_epoch=6) == [], "and it is handed out once"

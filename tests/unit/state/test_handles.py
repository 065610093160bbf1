from __future__ import annotations

from headrace.state.handles import StateChain, StateFile

#   version   0 ......... 12   13   14
#   chain     [== base ==]  [c] [c]
BASE = StateFile("base", 0, 12, 100, is_base=True)
C13 = StateFile("c13", 12, 13, 10)
C14 = StateFile("c14", 13, 14, 10)
CHAIN = StateChain("line", (BASE, C13, C14))


def test_an_empty_chain_is_at_version_0() -> None:
    empty = StateChain("line")
    assert (empty.version, empty.tip, empty.changes) == (0, "", ())
    assert empty.since(0) == ()


def test_a_chain_leads_to_its_last_file() -> None:
    assert (CHAIN.version, CHAIN.tip) == (14, "c14")
    assert CHAIN.changes == (C13, C14)


def test_appending_leaves_the_old_chain_as_it_was() -> None:
    before = StateChain("line", (BASE, C13))
    assert before.append(C14) == CHAIN
    assert before.version == 13


def test_a_copy_applies_the_files_it_lacks() -> None:
    assert CHAIN.since(14) == ()
    assert CHAIN.since(13) == (C14,)
    assert CHAIN.since(12) == (C13, C14)


def test_a_copy_older_than_the_base_starts_from_the_base() -> None:
    assert CHAIN.since(5) == CHAIN.since(0) == (BASE, C13, C14)


def test_epochs_without_a_change_leave_gaps_in_the_versions() -> None:
    sparse = StateChain("line", (StateFile("c3", 0, 3, 1), StateFile("c9", 3, 9, 1)))
    assert [file.path for file in sparse.since(7)] == ["c9"]
    assert [file.path for file in sparse.since(3)] == ["c9"]


def test_a_merged_file_takes_the_place_of_those_it_covers() -> None:
    merged = StateFile("merged", 12, 14, 15)
    c15 = StateFile("c15", 14, 15, 10)
    # A change was appended while the merge was at work.
    assert CHAIN.append(c15).compacted(merged).files == (BASE, merged, c15)


def test_a_merged_file_may_overlap_what_a_copy_has() -> None:
    merged = StateFile("merged", 12, 14, 15)
    assert CHAIN.compacted(merged).since(13) == (merged,)


def test_a_new_base_replaces_everything_before() -> None:
    base = StateFile("new", 0, 14, 110, is_base=True)
    assert CHAIN.compacted(base).files == (base,)

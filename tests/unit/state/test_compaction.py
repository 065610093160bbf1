from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.state.changes import read_change
from headrace.state.compaction import compact
from headrace.state.handles import StateChain, StateFile
from headrace.state.stores.lmdb import LmdbStore
from tests.unit.state.chains import ChainWriter, Written

ALL = range(128)
A, B, C = b"\x00\x01a", b"\x00\x01b", b"\x00\x05c"

storage_keys = st.sampled_from(
    [bytes([0, group]) + name for group in (1, 5, 127) for name in (b"a", b"b", b"c")]
)
#: What one epoch after the other wrote to the two states.
histories = st.lists(
    st.fixed_dictionaries(
        {name: st.dictionaries(storage_keys, st.none() | st.binary(max_size=3)) for name in ("s", "t")}
    ),
    min_size=1,
    max_size=6,
)


def replay(directory: Path, chain: StateChain) -> dict[str, dict[bytes, bytes]]:
    """Build a copy from a chain and read all of it."""
    with closing(LmdbStore(str(directory))) as store:
        store.catch_up(chain, ALL)
        return {name: dict(store.scan(name)) for name in ("s", "t")}


def merge(chain: StateChain, first: int, last: int, path: Path) -> StateChain:
    """Put the files first..last into one."""
    files = chain.files[first : last + 1]
    size = compact(files, str(path))
    start = files[0].from_version
    return chain.compacted(StateFile(str(path), start, files[-1].to_version, size, is_base=start == 0))


@given(history=histories, data=st.data())
@settings(max_examples=40, deadline=None)
def test_merged_files_amount_to_the_same_state(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, Written]], data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("merge")
    writer = ChainWriter(directory)
    for version, states in enumerate(history, start=1):
        writer.change(version, **states)
    chain = writer.chain
    expected = replay(directory / "all", chain)
    for number in range(3):
        first = data.draw(st.integers(0, len(chain.files) - 1))
        last = data.draw(st.integers(first, len(chain.files) - 1))
        chain = merge(chain, first, last, directory / f"{number}.merged")
        assert chain.version == len(history)
        assert replay(directory / f"copy-{number}", chain) == expected


@given(history=histories, behind=st.integers(0, 6), start=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_a_copy_that_is_behind_reaches_the_same_state_over_merged_files(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, Written]], behind: int, start: int
) -> None:
    directory = tmp_path_factory.mktemp("behind")
    writer = ChainWriter(directory)
    chains = [writer.chain]
    chains += [writer.change(version, **states) for version, states in enumerate(history, start=1)]
    expected = replay(directory / "all", chains[-1])
    replay(directory / "copy", chains[min(behind, len(history))])
    first = min(start, len(history) - 1)
    merged = merge(chains[-1], first, len(history) - 1, directory / "1.merged")
    assert replay(directory / "copy", merged) == expected


def test_a_base_has_no_memory_of_what_was_removed(tmp_path: Path) -> None:
    writer = ChainWriter(tmp_path)
    writer.change(1, s={A: b"1", B: b"1"})
    writer.change(2, s={A: None}, t={C: b"2"})
    writer.change(3, t={C: None})
    path = str(tmp_path / "base")
    compact(writer.chain.files, path)
    assert read_change(path) == {"s": {1: ([B], [b"1"])}}


def test_merged_changes_remember_what_was_removed(tmp_path: Path) -> None:
    writer = ChainWriter(tmp_path)
    writer.base(1, s={A: b"1", B: b"1"})
    writer.change(2, s={A: b"2"})
    writer.change(3, s={A: None})
    path = str(tmp_path / "merged")
    compact(writer.chain.changes, path)
    assert read_change(path) == {"s": {1: ([A], [None])}}


def test_a_state_that_is_empty_altogether_makes_an_empty_base(tmp_path: Path) -> None:
    writer = ChainWriter(tmp_path)
    writer.change(1, s={A: b"1"})
    writer.change(2, s={A: None})
    chain = merge(writer.chain, 0, 1, tmp_path / "base")
    assert chain.files[0].is_base
    assert replay(tmp_path / "copy", chain) == {"s": {}, "t": {}}

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from headrace.errors import StateError
from headrace.state.handles import StateChain
from headrace.state.store import LocalStore
from tests.unit.state.chains import ChainWriter

A, B, C = b"\x00\x01a", b"\x00\x01b", b"\x00\x05c"
ALL = range(128)


@pytest.fixture
def writer(tmp_path: Path) -> ChainWriter:
    return ChainWriter(tmp_path / "state")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(str(tmp_path / "copy"))) as opened:
        yield opened


def content(store: LocalStore, table: str = "s") -> dict[bytes, bytes]:
    return dict(store.scan(table))


def test_an_empty_chain_is_empty_state(store: LocalStore) -> None:
    store.catch_up(StateChain("line"), ALL)
    assert content(store) == {}
    assert store.get("s", A) is None


def test_a_copy_is_built_from_changes_alone(store: LocalStore, writer: ChainWriter) -> None:
    writer.change(1, s={A: b"1", B: b"1"})
    writer.change(2, s={A: b"2"}, t={C: b"2"})
    store.catch_up(writer.change(3, s={B: None}), ALL)
    assert content(store) == {A: b"2"}
    assert content(store, "t") == {C: b"2"}


def test_a_copy_that_is_behind_applies_what_it_lacks(store: LocalStore, writer: ChainWriter) -> None:
    store.catch_up(writer.change(1, s={A: b"1", B: b"1"}), ALL)
    assert content(store) == {A: b"1", B: b"1"}
    writer.change(2, s={A: b"2"})
    writer.change(5, s={C: b"5"})
    # What it has already is not read again.
    os.remove(writer.chain.files[0].path)
    store.catch_up(writer.chain, ALL)
    assert content(store) == {A: b"2", B: b"1", C: b"5"}


def test_a_copy_is_built_from_a_base_and_the_changes_since(store: LocalStore, writer: ChainWriter) -> None:
    writer.base(4, s={A: b"4", B: b"4"})
    store.catch_up(writer.change(5, s={B: None, C: b"5"}), ALL)
    assert content(store) == {A: b"4", C: b"5"}


def test_a_copy_older_than_the_base_is_emptied_first(store: LocalStore, writer: ChainWriter) -> None:
    store.catch_up(writer.change(1, s={A: b"1"}, gone={C: b"1"}), ALL)
    # A was removed in between; the base has no memory of it.
    store.catch_up(writer.base(4, s={B: b"4"}), ALL)
    assert content(store) == {B: b"4"}
    assert content(store, "gone") == {}


def test_a_copy_within_a_merged_change_takes_all_of_it(store: LocalStore, writer: ChainWriter) -> None:
    writer.change(1, s={A: b"1"})
    store.catch_up(writer.change(2, s={B: b"2"}), ALL)
    merged = ChainWriter(Path(writer.chain.files[0].path).parent / "merged")
    merged.change(3, s={A: None, B: b"3", C: b"3"})
    store.catch_up(merged.chain, ALL)
    assert content(store) == {B: b"3", C: b"3"}


def test_only_the_key_groups_of_the_subtask_are_taken(store: LocalStore, writer: ChainWriter) -> None:
    store.catch_up(writer.change(1, s={A: b"1", C: b"1"}), range(5, 128))
    assert content(store) == {C: b"1"}


def test_catching_up_again_changes_nothing(store: LocalStore, writer: ChainWriter) -> None:
    chain = writer.change(1, s={A: b"1"})
    for _ in range(3):
        store.catch_up(chain, ALL)
        assert content(store) == {A: b"1"}


def test_an_attempt_with_an_older_plan_is_refused(store: LocalStore, writer: ChainWriter) -> None:
    old = writer.change(1, s={A: b"1"})
    store.catch_up(writer.change(2, s={A: b"2"}), ALL)
    with pytest.raises(StateError, match=r"at version 2, this attempt wants 1.*later attempt"):
        store.catch_up(old, ALL)


def test_state_of_another_run_is_refused(store: LocalStore, writer: ChainWriter, tmp_path: Path) -> None:
    store.catch_up(writer.change(1, s={A: b"1"}), ALL)
    other = ChainWriter(tmp_path / "other", lineage="other").change(1, s={A: b"9"})
    with pytest.raises(StateError, match="lineage line, not other"):
        store.catch_up(other, ALL)


def test_a_damaged_file_leaves_the_copy_as_it_was(store: LocalStore, writer: ChainWriter) -> None:
    before = writer.change(1, s={A: b"1"})
    store.catch_up(before, ALL)
    good = writer.change(2, s={A: b"2"})
    bad = writer.change(3, s={A: b"3"})
    Path(bad.tip).write_bytes(b"nonsense")
    with pytest.raises(StateError):
        store.catch_up(bad, ALL)
    store.catch_up(good, ALL)
    assert content(store) == {A: b"2"}


def test_reading_stays_at_the_version_that_was_asked_for(
    store: LocalStore, writer: ChainWriter, tmp_path: Path
) -> None:
    store.catch_up(writer.change(1, s={A: b"1"}), ALL)
    get = store.reader("s")
    scan = store.scan("s")
    assert get(A) == b"1"
    # The copy goes on in another process meanwhile; this one keeps seeing its snapshot.
    advanced = writer.change(2, s={A: b"2", B: b"2"})
    in_child(advance_copy, str(tmp_path / "copy"), advanced)
    assert get(A) == b"1"
    assert list(scan) == [(A, b"1")]
    store.catch_up(advanced, ALL)
    assert content(store) == {A: b"2", B: b"2"}


def test_entries_are_scanned_in_order_and_by_prefix(store: LocalStore, writer: ChainWriter) -> None:
    found = {b"\x00\x01" + bytes([n]): bytes([n]) for n in (3, 1, 2)} | {
        b"\x00\x02x": b"x",
        b"\x01\x00y": b"y",
    }
    store.catch_up(writer.change(1, s=found), ALL)
    assert [key for key, _ in store.scan("s", b"\x00\x01")] == [
        b"\x00\x01\x01",
        b"\x00\x01\x02",
        b"\x00\x01\x03",
    ]
    assert [key for key, _ in store.scan("s", b"\x00\x02")] == [b"\x00\x02x"]
    assert list(store.scan("s", b"\x05")) == []
    assert list(store.scan("nothing", b"")) == []


def test_an_empty_value_is_a_value(store: LocalStore, writer: ChainWriter) -> None:
    store.catch_up(writer.change(1, s={A: b""}), ALL)
    assert store.get("s", A) == b""
    assert content(store) == {A: b""}


def test_a_copy_survives_its_process(tmp_path: Path, writer: ChainWriter) -> None:
    chain = writer.change(1, s={A: b"1"})
    in_child(advance_copy, str(tmp_path / "copy"), chain)
    os.remove(chain.tip)
    with closing(LocalStore(str(tmp_path / "copy"))) as store:
        store.catch_up(chain, ALL)  # the copy is there already: nothing is read
        assert content(store) == {A: b"1"}


def test_workers_that_start_together_build_the_copy_once(tmp_path: Path, writer: ChainWriter) -> None:
    writer.base(3, s={bytes([0, n % 128]) + str(n).encode(): b"v" * 50 for n in range(2000)})
    chain = writer.change(4, s={A: b"4"})
    context = multiprocessing.get_context("spawn")
    results: list[Connection] = []
    workers = []
    for _ in range(3):
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=report_content, args=(str(tmp_path / "copy"), chain, there))
        worker.start()
        there.close()
        results.append(here)
        workers.append(worker)
    found = [result.recv() for result in results]
    for worker in workers:
        worker.join(30)
    for result in results:
        result.close()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert found == [2001] * 3


def test_a_worker_killed_while_it_reads_is_forgotten_by_the_next_one(
    store: LocalStore, tmp_path: Path, writer: ChainWriter
) -> None:
    chain = writer.change(1, s={A: b"1"})
    store.catch_up(chain, ALL)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    worker = context.Process(target=read_for_ever, args=(str(tmp_path / "copy"), chain, there))
    worker.start()
    there.close()
    assert here.recv() == "reading"
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(30)
    here.close()
    in_child(advance_copy, str(tmp_path / "copy"), writer.change(2, s={A: b"2"}))
    # Else LMDB would keep the pages of its snapshot for ever, and run out of places for readers.
    assert store._env.reader_check() == 0, "the reader that was killed is still counted"


# --- what runs in other processes -----------------------------------------------------------------


def in_child(target: object, *arguments: object) -> None:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)  # type: ignore[arg-type]
    process.start()
    process.join(30)
    assert process.exitcode == 0


def advance_copy(directory: str, chain: StateChain) -> None:
    with closing(LocalStore(directory)) as store:
        store.catch_up(chain, ALL)


def report_content(directory: str, chain: StateChain, result: Connection) -> None:
    with closing(LocalStore(directory)) as store:
        store.catch_up(chain, ALL)
        result.send(len(content(store)))


def read_for_ever(directory: str, chain: StateChain, result: Connection) -> None:
    store = LocalStore(directory)
    store.catch_up(chain, ALL)
    store.get("s", A)
    result.send("reading")
    signal.pause()

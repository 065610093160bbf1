"""Whatever writes to a disk: when it is full the error says where and what to do, and with space it continues."""

from __future__ import annotations

import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.common.serialization import Encoder
from headrace.common.types import Row
from headrace.connectors.base import Sink, WriterContext
from headrace.connectors.file import FileSink
from headrace.connectors.write_ahead import WriteAheadSink
from headrace.datastream.formats.parquet import ParquetBulkWriters
from headrace.elements import Batch
from headrace.errors import CheckpointError, DiskFullError, HeadraceError, StateError
from headrace.runtime.artifacts import Artifact, ArtifactKind, ShippedArtifact, stage
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.runtime.checkpoint.storage import CheckpointDirectory
from headrace.runtime.epoch.log import EpochLog
from headrace.runtime.epoch.messages import EpochPlan
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease
from headrace.runtime.task.workplace import prepare
from headrace.state.changes import column_of, table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.handles import StateChain, StateFile
from headrace.state.stores import lmdb as lmdb_module
from headrace.state.stores.factory import make_store
from headrace.state.stores.settings import RocksDBSettings, StoreSettings
from headrace.storage.files import write_new_file
from headrace.storage.paths import join_path
from headrace.types import DataTypes
from tests.small_disk import SmallDisk, fill, small_disks, write_without_space
from tests.unit.runtime.checkpoint.snapshots import checkpoint
from tests.unit.state.chains import ChainWriter
from tests.unit.state.test_columnar import GROUPS, LAYOUT, contents, row_set

ALL = range(128)
STORES = {
    "hashmap": StoreSettings(),
    "rocksdb": StoreSettings(rocksdb=RocksDBSettings(shared_memory=1 << 20, write_batch_size=1 << 12)),
}
OPTIONS = {"hashmap": "headrace.state.local-dir", "rocksdb": "state.backend.rocksdb.localdir"}
ROWS = {key: (key, f"text {key} " * 8) for key in range(1_000, 6_000)}
RANDOM = Random(7)
ENTRIES = {b"\x00\x01%05d" % key: RANDOM.randbytes(100) for key in range(4_000)}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with small_disks(tmp_path_factory.mktemp("disk")) as disks:
        yield disks


def refusal_of(action: Callable[[], object]) -> HeadraceError:
    """Return what is raised by something that needs space."""
    try:
        action()
    except HeadraceError as error:
        return error
    raise AssertionError("there was space")


def says_what_to_do(error: HeadraceError, directory: str, option: str) -> None:
    assert isinstance(error, DiskFullError | CheckpointError), error
    text = str(error)
    assert "disk full on host" in text
    assert directory in text
    assert "free" in text
    assert "free space there, or" in text
    assert option in text
    assert error.retryable


# --- copies of state ------------------------------------------------------------------------------


def table_chain(outside: str) -> StateChain:
    path = f"{outside}/1.change"
    size = write_change(path, table_change({"table": row_set(ROWS)}, GROUPS))
    return StateChain("run").append(StateFile(path, 0, 1, size))


def fill_tables(directory: str, chain: StateChain) -> DiskFullError:
    copy = TableCopy(f"{directory}/copy", [LAYOUT])
    filler = fill(directory, leave=200_000)
    error = refusal_of(lambda: copy.catch_up(chain, range(GROUPS)))
    copy.close()
    filler.unlink()
    # Whoever comes next finds what was left of it, and space.
    with closing(TableCopy(f"{directory}/copy", [LAYOUT])) as next_one:
        next_one.catch_up(chain, range(GROUPS))
        assert contents(next_one.tables["table"]) == ROWS
    assert isinstance(error, DiskFullError)
    return error


def test_a_copy_of_tables(disk: SmallDisk, tmp_path: Path) -> None:
    error = disk.run(fill_tables, table_chain(str(tmp_path)), size="4m")
    says_what_to_do(error, error.directory, "headrace.state.local-dir")
    assert error.needed > error.free
    assert error.directory.endswith("/copy/table")


def test_a_write_to_mapped_memory_without_space_ends_the_process(tmp_path: Path) -> None:
    """What all this is for: see it, so that a system that behaves otherwise is noticed."""
    with (
        small_disks(tmp_path) as other,
        pytest.raises(AssertionError, match=f"was ended: -{signal.SIGBUS.value}"),
    ):
        other.run(write_without_space)


def tables_at_every_size(directory: str, chain: StateChain) -> tuple[int, int]:
    """Have ever more space for the copy, page by page, until it is enough: none must be one too few to notice."""
    refused = 0
    for pages in range(0, 1024, 3):
        filler = fill(directory, leave=pages * 4096)
        with closing(TableCopy(f"{directory}/copy", [LAYOUT])) as copy:
            try:
                copy.catch_up(StateChain("run"), range(GROUPS))  # an empty table is looked at, too
                assert contents(copy.tables["table"]) == {}
                copy.catch_up(chain, range(GROUPS))
                assert contents(copy.tables["table"]) == ROWS
                return refused, pages
            except DiskFullError:
                refused += 1
            finally:
                filler.unlink()
                shutil.rmtree(f"{directory}/copy")
    raise AssertionError("there was never enough")


def test_tables_with_whatever_space_there_is(disk: SmallDisk, tmp_path: Path) -> None:
    refused, pages = disk.run(tables_at_every_size, table_chain(str(tmp_path)), size="8m")
    assert refused == pages // 3 > 50


def fill_store(directory: str, kind: str, chain: StateChain) -> HeadraceError:
    filler = fill(directory, leave=500_000)

    def catch_up() -> None:
        with closing(make_store(STORES[kind], f"{directory}/copy")) as store:
            store.catch_up(chain, ALL)

    error = refusal_of(catch_up)
    filler.unlink()
    with closing(make_store(STORES[kind], f"{directory}/copy")) as next_one:
        next_one.catch_up(chain, ALL)
        assert dict(next_one.scan("state")) == ENTRIES
    return error


@pytest.mark.parametrize("kind", STORES)
def test_a_copy_of_a_store(disk: SmallDisk, tmp_path: Path, kind: str) -> None:
    chain = ChainWriter(tmp_path).change(1, state=ENTRIES)
    error = disk.run(fill_store, kind, chain, size="6m")
    assert isinstance(error, DiskFullError)
    says_what_to_do(error, f"{error.directory}", OPTIONS[kind])
    assert str(error.directory).endswith("/copy")


def store_at_every_size(directory: str, kind: str, chain: StateChain, step: int) -> int:
    refused = 0
    for pages in range(0, 1024, step):
        filler = fill(directory, leave=pages * 4096)
        try:
            with closing(make_store(STORES[kind], f"{directory}/copy")) as store:
                store.catch_up(chain, ALL)
                assert dict(store.scan("state")) == ENTRIES
            return refused
        except DiskFullError:
            refused += 1
        finally:
            filler.unlink()
            shutil.rmtree(f"{directory}/copy")
    raise AssertionError("there was never enough")


@pytest.mark.parametrize(("kind", "step"), [("hashmap", 3), ("rocksdb", 44)])
def test_a_store_with_whatever_space_there_is(disk: SmallDisk, tmp_path: Path, kind: str, step: int) -> None:
    chain = ChainWriter(tmp_path).change(1, state=ENTRIES)
    assert disk.run(store_at_every_size, kind, chain, step, size="8m") >= 3


def test_a_copy_that_is_larger_than_lmdb_maps_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_module, "_MAP_SIZE", 1 << 17)
    chain = ChainWriter(tmp_path / "files").change(1, state=ENTRIES)
    with (
        closing(make_store(StoreSettings(), str(tmp_path / "copy"))) as store,
        pytest.raises(StateError, match="larger than") as raised,
    ):
        store.catch_up(chain, ALL)
    assert not raised.value.retryable
    assert "state.backend.type to rocksdb" in str(raised.value)


# --- files of the job -----------------------------------------------------------------------------


def write_state_file(directory: str) -> None:
    write_change(
        f"{directory}/job/shared/1.change", {"state": column_of(list(ENTRIES), list(ENTRIES.values()))}
    )


def write_checkpoint(directory: str) -> None:
    home = CheckpointDirectory(directory, "a" * 32)
    home.write(checkpoint(home.highest_id() + 1))


def write_probe(directory: str) -> None:
    CheckpointDirectory(directory, "a" * 32).ensure_writable()


def write_savepoint_with_files(directory: str, outside: str) -> None:
    path = join_path(outside, "1.change")
    write_new_file(path, b"x" * 100_000)
    write_savepoint(checkpoint(1, path, size=100_000), directory)


def write_epoch(directory: str) -> None:
    EpochLog(directory, "line").plan(EpochPlan("a" * 32, 1, 0, "x" * 50_000, {}))


def write_lease(directory: str) -> None:
    lease = LeaderLease(HighAvailabilitySettings(directory, "cluster", 1))
    lease.acquire(1)
    lease.release()


def stage_artifact(directory: str, outside: str) -> None:
    path = Path(outside) / "functions.py"
    path.write_bytes(b"#" * 100_000)
    stage(Artifact(ArtifactKind.PYTHON_FILE, str(path), "functions.py"), Path(directory))


def unpack_archive(directory: str, outside: str) -> None:
    path = Path(outside) / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", b"x" * 100_000)
    prepare(
        [ShippedArtifact(ArtifactKind.ARCHIVE, "data", "data.zip", False, False)],
        directory,
        lambda _: str(path),
    )


def write_rows(directory: str) -> None:
    write_to(
        FileSink.for_row_format(f"{directory}/out", Encoder.simple_string_encoder()).build(),
        ["x" * 100] * 9_999,
    )


def write_parquet(directory: str) -> None:
    row_type = DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING())])
    sink = FileSink.for_bulk_format(f"{directory}/out", ParquetBulkWriters.for_row_type(row_type)).build()
    write_to(sink, [Row(word=RANDOM.randbytes(60).hex()) for _ in range(9_999)])


class _Ahead(WriteAheadSink):
    def create_publisher(self, context: Any) -> Any:
        raise NotImplementedError


def write_ahead(directory: str) -> None:
    write_to(_Ahead(), [RANDOM.randbytes(100) for _ in range(20_000)], staging_dir=f"{directory}/staging")


def write_to(sink: Sink, values: list[Any], staging_dir: str = "") -> None:
    writer = sink.create_writer(WriterContext(0, 1, 1, "attempt", "job", "sink", staging_dir))
    try:
        writer.write_batch(Batch(values, None))
        writer.prepare_commit()
    except BaseException:
        writer.abort()  # which must not fail in its turn
        raise


def fill_and(directory: str, action: Callable[..., None], *arguments: str) -> HeadraceError:
    errors = []
    # Not even the first bytes can be written, and then these but no more.
    for leave in (0, 8_192):
        filler = fill(directory, leave=leave)
        with suppress(AssertionError):
            errors.append(refusal_of(lambda: action(directory, *arguments)))
        filler.unlink()
    with suppress(FileNotFoundError):
        left = [path for path in Path(directory).rglob("*") if path.is_file() and path.stat().st_size > 4096]
        assert left == []
    action(directory, *arguments)
    return errors[-1]


WRITERS: dict[str, tuple[Callable[..., None], str]] = {
    "state file": (write_state_file, "execution.checkpointing.dir"),
    "checkpoint": (write_checkpoint, "execution.checkpointing.dir"),
    "checkpoint directory": (write_probe, "execution.checkpointing.dir"),
    "savepoint": (write_savepoint_with_files, "another directory"),
    "log of epochs": (write_epoch, "execution.checkpointing.dir"),
    "lease": (write_lease, "high-availability.storageDir"),
    "artifacts": (stage_artifact, "TMPDIR"),
    "workplace": (unpack_archive, "spark.local.dir"),
    "file sink": (write_rows, "the sink"),
    "parquet sink": (write_parquet, "the sink"),
    "sink that writes ahead": (write_ahead, "the sink"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_writers(disk: SmallDisk, tmp_path: Path, name: str) -> None:
    action, option = WRITERS[name]
    outside = [str(tmp_path)] if action.__code__.co_argcount > 1 else []
    error = disk.run(fill_and, action, *outside)
    says_what_to_do(error, str(disk.directory), option)

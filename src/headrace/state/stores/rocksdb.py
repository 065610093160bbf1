"""The host's copy of keyed state in RocksDB, on disk: for state beyond memory.

RocksDB lets one process at a time open a database, and which process runs a subtask changes from epoch to epoch. So the
copy is open from ``catch_up`` to ``release``, under a lock of our own that is waited for: a process that was killed has
let go of it, one whose task was given up does when it notices. What a process keeps from one epoch to the next is the
block cache, which RocksDB finds its blocks in again.

    catch_up   lock | open | files the copy lacks, in batches | flush       release   merges that run | close | unlock

There is no write-ahead log: the change files are one. All tables are in one column family, which RocksDB writes to disk
in the order of the batches; and the mark of the version is written with the data. So a process may be killed anywhere:
what is found is the copy as it was after some batch, and the mark says whether that is a version.

    mark      lineage 7 complete      state at version 7
              lineage 7 partial       at least version 7, on its way to a later one: files after 7 are applied again
              lineage 0 partial       the beginning of a base: to be built again
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from headrace.config.options.rocksdb import CompactionStyle
from headrace.errors import StateError
from headrace.state.changes import ChangeReader
from headrace.state.handles import StateChain, StateFile
from headrace.state.sections import Section
from headrace.state.stores.settings import ROCKSDB_ELSEWHERE, RocksDBSettings
from headrace.util.disk_space import free_bytes, is_full, watching_space

_log = logging.getLogger(__name__)

#: Sorts before all tables, whose names have a length.
_MARK = b"\x00\x00mark"
_NAME_LENGTH_BYTES = 2
#: Every epoch leaves a small file; so many are merged with the rest at a time.
_FILES_TO_MERGE = 8
_LEVELS = 7
#: A scan reads so many entries at first, more each time, and not many more bytes than this.
_FIRST_CHUNK = 16
_LARGEST_CHUNK = 1024
_CHUNK_BYTES = 1 << 20
#: What RocksDB answers, instead of waiting, when its buffers are full.
_STALLED = "Write stall"
#: How many entries go into a batch before its size is looked at.
_ENTRIES_PER_LOOK = 256
#: How long the end of an epoch waits for merges of files; one that takes longer is begun again in the next epoch.
_MERGE_PATIENCE_S = 30.0
_SHORTEST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.05


class _Mark(NamedTuple):
    """Which version the copy is at."""

    lineage: str
    version: int
    is_complete: bool

    def encode(self) -> bytes:
        return f"{self.lineage} {self.version} {'complete' if self.is_complete else 'partial'}".encode()

    @classmethod
    def decode(cls, stored: bytes) -> _Mark:
        lineage, version, word = stored.decode().split()
        return cls(lineage, int(version), word == "complete")


class RocksDBStore:
    """Tables of sorted byte keys, at one committed version.

    Args:
        directory: Where the copy is; it has a lock file and the database.
        settings: How RocksDB is set up.
    """

    def __init__(self, directory: str, settings: RocksDBSettings | None = None) -> None:
        self._directory = directory
        self._database = os.path.join(directory, "db")
        self._settings = settings or RocksDBSettings()
        self._lock = _Lock(directory, self._settings.lock_timeout_s)
        self._db: Rdict | None = None
        #: Whether RocksDB could not read what it had written.
        self._is_damaged = False
        #: Goes up when what was read may not hold any more: scans from before end with an error.
        self._generation = 0

    def catch_up(self, chain: StateChain, groups: range) -> None:
        """Bring the copy to the chain's version, and keep it open to read."""
        self._generation += 1
        try:
            with watching_space(self._directory, "the copy of state", ROCKSDB_ELSEWHERE):
                self._lock.acquire()
                if self._db is None:
                    self._db = self._open()
                self._bring_to(chain, groups)
        except BaseException:
            self.close()
            raise

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value under a key."""
        return self.reader(table)(key)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values under keys, in the order of the keys."""
        read = self.reader(table)
        # Neighbours share blocks: in order, a read takes half the time.
        found = {key: read(key) for key in sorted(set(keys))}
        return [found[key] for key in keys]

    def reader(self, table: str) -> Callable[[bytes], bytes | None]:
        """Return ``get`` of one table, bound."""
        if self._db is None:
            return lambda key: None
        name = _name_prefix(table)
        get: Callable[[bytes], bytes | None] = self._db.get

        def read(key: bytes) -> bytes | None:
            try:
                return get(name + key)
            except Exception as error:  # rocksdict has no other
                raise self._unreadable(error) from error

        return read

    def scan(
        self, table: str, prefix: bytes = b"", start: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose key starts with a prefix, in key order, from ``start`` on."""
        if self._db is None:
            return
        generation = self._generation
        name = _name_prefix(table)
        skipped = len(name)
        lower: bytes | None = name + (prefix if start is None else start)
        end = _end_of(name + prefix)
        count = _FIRST_CHUNK
        while lower is not None:
            if generation != self._generation:
                raise StateError(f"table '{table}' was scanned after the end of the epoch")
            # In chunks, each with its own iterator: an open one would keep the database from being closed.
            chunk, lower = self._chunk(lower, end, count)
            for key, value in chunk:
                yield key[skipped:], value
            count = min(count * 4, _LARGEST_CHUNK)

    def release(self) -> None:
        """Let other processes have the copy."""
        self._generation += 1
        if self._db is not None:
            self._finish_merges(self._db)
        self._shut()

    def close(self) -> None:
        """Let go of the copy without waiting for anything."""
        self._generation += 1
        self._shut()

    # -- versions ----------------------------------------------------------------------------------------------

    def _bring_to(self, chain: StateChain, groups: range) -> None:
        mark = self._read_mark()
        if mark is not None and mark.lineage != chain.lineage:
            raise StateError(f"the local state copy belongs to lineage {mark.lineage}, not {chain.lineage}")
        version = 0 if mark is None else mark.version
        if version > chain.version:
            raise StateError(
                f"the local state copy is at version {version}, but this attempt needs {chain.version}: "
                "a later attempt of the same subtask is running"
            )
        if mark is not None and not mark.is_complete and version in (0, chain.version):
            _log.warning("the state copy in %s is incomplete; rebuilding it", self._directory)
            self._start_over()
            version = 0
        files = chain.since(version)
        if files and files[0].is_base and version:
            self._start_over()
            version = 0
        # After a rescale, several files lead to one version together.
        for to_version, together in groupby(files, key=attrgetter("to_version")):
            self._apply(tuple(together), groups, _Mark(chain.lineage, version, is_complete=False))
            version = to_version
        if files:
            # Merges that follow from it run while the epoch is at work.
            self._opened().flush()

    def _read_mark(self) -> _Mark | None:
        try:
            stored: bytes | None = self._opened().get(_MARK)
        except Exception as error:
            raise self._unreadable(error) from error
        return None if stored is None else _Mark.decode(stored)

    def _apply(self, files: Sequence[StateFile], groups: range, before: _Mark) -> None:
        writer = _BatchWriter(self._opened(), self._settings)
        writer.put(_MARK, before.encode())
        for file in files:
            with closing(ChangeReader.of(file, groups)) as reader:
                for group in reader.groups:
                    writer.put_section(reader.section(group))
        writer.put(_MARK, _Mark(before.lineage, files[-1].to_version, is_complete=True).encode())
        writer.write()

    # -- reading -----------------------------------------------------------------------------------------------

    def _chunk(self, lower: bytes, end: bytes, count: int) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Return entries from ``lower`` on, and where to continue; None if there are no more."""
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(end)
        chunk: list[tuple[bytes, bytes]] = []
        size = 0
        try:
            entry: Any
            for entry in self._opened().items(from_key=lower, read_opt=bounds):
                chunk.append(entry)
                size += len(entry[1])
                if len(chunk) == count or size >= _CHUNK_BYTES:
                    return chunk, entry[0] + b"\x00"
            # Also what cannot be read ends the loop: ask.
            check = self._opened().iter(bounds)
            check.seek(chunk[-1][0] + b"\x00" if chunk else lower)
            check.status()
            is_at_end = not check.valid()
        except Exception as error:
            raise self._unreadable(error) from error
        if not is_at_end:
            raise self._unreadable("a scan ended before the last entry")
        return chunk, None

    def _unreadable(self, cause: object) -> StateError:
        if self._db is None:
            return StateError("keyed state was read after the end of the epoch")
        self._is_damaged = True
        return StateError(f"the state copy in {self._directory} cannot be read and will be rebuilt: {cause}")

    # -- the database ------------------------------------------------------------------------------------------

    def _opened(self) -> Rdict:
        if self._db is None:
            raise StateError("keyed state was read after the end of the epoch")
        return self._db

    def _open(self) -> Rdict:
        try:
            return self._open_once()
        except StateError:
            raise
        except Exception as error:  # rocksdict has no other
            if is_full(error):
                raise
            # Whatever was left of it is worth no more than the time to build it.
            _log.warning("the state copy in %s cannot be opened; rebuilding it: %s", self._directory, error)
        shutil.rmtree(self._database, ignore_errors=True)
        try:
            return self._open_once()
        except Exception as error:
            raise StateError(
                f"RocksDB cannot create a database in {self._directory}: {error}",
                hint="it needs disk space and write permission; state.backend.rocksdb.localdir sets another directory",
            ) from error

    def _open_once(self) -> Rdict:
        try:
            options = _options(self._settings)
            # By name: else what was there when the database was made would count, with a cache of its own.
            database = Rdict(self._database, options, {"default": options})
        except Exception as error:
            if "/LOCK" in str(error):  # not by our rules: better to stop than to delete what somebody uses
                raise StateError(
                    f"the state copy in {self._directory} is open in another process: {error}"
                ) from error
            raise
        write = WriteOptions()
        write.disable_wal = True  # type: ignore[method-assign,assignment]  # a property, whatever its stub says
        write.no_slowdown = True  # we wait by ourselves
        database.set_write_options(write)
        return database

    def _start_over(self) -> None:
        self._opened().close()
        self._db = None
        shutil.rmtree(self._database, ignore_errors=True)
        self._db = self._open()

    def _finish_merges(self, database: Rdict) -> None:
        """Wait for merges of files: closing the database would end them, and files would become more and more."""
        if self._settings.compaction is CompactionStyle.NONE:
            return
        deadline = time.monotonic() + _MERGE_PATIENCE_S
        wait_s = _SHORTEST_WAIT_S
        while time.monotonic() < deadline and not database.property_int_value("rocksdb.background-errors"):
            if not (
                database.property_int_value("rocksdb.num-running-compactions")
                or database.property_int_value("rocksdb.compaction-pending")
            ):
                return
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    def _shut(self) -> None:
        database, self._db = self._db, None
        try:
            if database is not None:
                self._close(database)
                if self._is_damaged:
                    shutil.rmtree(self._database, ignore_errors=True)
        finally:
            self._is_damaged = False
            self._lock.let_go()

    def _close(self, database: Rdict) -> None:
        try:
            database.close()
        except Exception as error:  # noqa: BLE001 - rocksdict has no other
            # It is closed all the same. What it could not write is in the state files.
            _log.warning("the state copy in %s could not be written completely: %s", self._directory, error)


class _BatchWriter:
    """Writes entries in batches of a size, in the order they come."""

    def __init__(self, database: Rdict, settings: RocksDBSettings) -> None:
        self._database = database
        self._settings = settings
        #: What waits to be written, and how many bytes it has.
        self._entries: list[tuple[bytes, bytes | None]] = []
        self._size = 0

    def put(self, key: bytes, value: bytes) -> None:
        self._entries.append((key, value))

    def put_section(self, section: dict[str, Section]) -> None:
        """Write entries of a key group, by table."""
        for table, (keys, values) in section.items():
            self._put_all(_name_prefix(table), keys, values)

    def _put_all(self, name: bytes, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        for start in range(0, len(keys), _ENTRIES_PER_LOOK):
            entries = [
                (name + key, value)
                for key, value in zip(
                    keys[start : start + _ENTRIES_PER_LOOK],
                    values[start : start + _ENTRIES_PER_LOOK],
                    strict=True,
                )
            ]
            self._entries += entries
            self._size += sum(len(key) + len(value or b"") for key, value in entries)
            if self._size >= self._settings.write_batch_size:
                self.write()

    def write(self) -> None:
        """Hand over what has been gathered, when RocksDB has room for it."""
        wait_s = _SHORTEST_WAIT_S
        while not self._is_taken():
            if self._database.property_int_value("rocksdb.background-errors"):
                # It would wait for space to come, forever.
                raise self._cannot_write()
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        self._entries = []
        self._size = 0

    def _is_taken(self) -> bool:
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key, value in self._entries:
            if value is None:
                delete(key)
            else:
                put(key, value)
        try:
            self._database.write(batch)
        except Exception as error:
            if _STALLED in str(error):
                return False
            raise
        return True

    def _cannot_write(self) -> Exception:
        # RocksDB does not say what the error was. It fails when there is no room for what is in its buffers.
        path = self._database.path()
        if free_bytes(path) < 2 * self._settings.write_buffer_size:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return StateError(f"RocksDB cannot write to {path}; see the file LOG there for the reason")


class _Lock:
    """Who may have the copy open: held by a process, and let go by the system if it dies."""

    def __init__(self, directory: str, timeout_s: float) -> None:
        self._directory = directory
        self._timeout_s = timeout_s
        self._file: int | None = None

    def acquire(self) -> None:
        """Wait until no other process has it open."""
        if self._file is not None:
            return
        os.makedirs(self._directory, exist_ok=True)
        file = os.open(os.path.join(self._directory, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._wait(file)
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def let_go(self) -> None:
        """Let another one have it."""
        if self._file is not None:
            file, self._file = self._file, None
            # Not left to close(): a process that user code has forked would keep it.
            fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def _wait(self, file: int) -> None:
        deadline = time.monotonic() + self._timeout_s
        wait_s = _SHORTEST_WAIT_S
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if time.monotonic() >= deadline:
                holder = os.pread(file, 20, 0).decode() or "unknown"
                raise StateError(
                    f"the state copy in {self._directory} has been open in process {holder} "
                    f"for more than {self._timeout_s:g} s",
                    hint="that process runs an earlier attempt of this subtask; stop it, "
                    "or raise headrace.state.rocksdb.lock-timeout",
                )
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


def _name_prefix(table: str) -> bytes:
    """Return what the keys of a table begin with; no table's is the beginning of another's."""
    name = table.encode()
    return (len(name) + 1).to_bytes(_NAME_LENGTH_BYTES, "big") + name


def _end_of(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a prefix."""
    shorter = prefix.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1])  # the length of the table's name is never all ones


# -- settings ----------------------------------------------------------------------------------------------------


class _SharedMemory(NamedTuple):
    """What all copies of a process share, so that their number does not matter."""

    cache: Cache
    buffers: WriteBufferManager
    buffer_size: int


@lru_cache(maxsize=4)  # jobs with other settings may be at work in the same process
def _shared_memory(total: int, write_buffer_ratio: float) -> _SharedMemory:
    # As Flink divides it (RocksDBMemoryControllerUtils): write buffers may exceed their limit by half before they are
    # written, and are accounted for in the cache.
    buffer_size = max(int(2 * total * write_buffer_ratio / 3), 1)
    cache = Cache(int((3 - write_buffer_ratio) * total / 3))
    buffers = WriteBufferManager.new_write_buffer_manager_with_cache(buffer_size, False, cache)
    return _SharedMemory(cache, buffers, buffer_size)


def _options(settings: RocksDBSettings) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_max_background_jobs(settings.threads)
    options.set_max_open_files(settings.open_files)
    if settings.log_directory is not None:
        options.set_db_log_dir(settings.log_directory)
    options.set_max_log_file_size(settings.log_max_file_size)
    options.set_keep_log_file_num(settings.log_files)
    # Opened every epoch: no statistics of all files first, no dump of them into the log.
    options.set_skip_stats_update_on_db_open(True)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    _set_compaction(options, settings)
    blocks = _block_options(settings)
    write_buffer_size = settings.write_buffer_size
    if settings.shared_memory is None:
        blocks.set_block_cache(Cache(settings.block_cache_size))
    else:
        shared = _shared_memory(settings.shared_memory, settings.write_buffer_ratio)
        blocks.set_block_cache(shared.cache)
        # Else indexes and filters would take memory beside the cache, the more the larger the state.
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
        options.set_write_buffer_manager(shared.buffers)
        write_buffer_size = min(
            write_buffer_size, max(shared.buffer_size // settings.write_buffers, 64 << 10)
        )
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(write_buffer_size)
    options.set_max_write_buffer_number(settings.write_buffers)
    options.set_min_write_buffer_number_to_merge(settings.write_buffers_to_merge)
    return options


def _set_compaction(options: Options, settings: RocksDBSettings) -> None:
    if settings.compaction is CompactionStyle.UNIVERSAL:
        options.set_compaction_style(DBCompactionStyle.universal())
    else:
        options.set_compaction_style(DBCompactionStyle.level())
        options.set_disable_auto_compactions(settings.compaction is CompactionStyle.NONE)
    options.set_level_zero_file_num_compaction_trigger(_FILES_TO_MERGE)
    options.set_level_compaction_dynamic_level_bytes(settings.has_dynamic_levels)
    options.set_target_file_size_base(settings.target_file_size)
    options.set_max_bytes_for_level_base(settings.level_base_size)
    kinds = [getattr(DBCompressionType, name)() for name in settings.compression] or [
        DBCompressionType.snappy()
    ]
    options.set_compression_per_level(kinds + kinds[-1:] * (_LEVELS - len(kinds)))


def _block_options(settings: RocksDBSettings) -> BlockBasedOptions:
    blocks = BlockBasedOptions()
    blocks.set_block_size(settings.block_size)
    if settings.bloom_bits is not None:
        blocks.set_bloom_filter(settings.bloom_bits, settings.is_bloom_per_block)
    if settings.has_partitioned_filters and settings.shared_memory is not None:
        blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
        blocks.set_partition_filters(settings.bloom_bits is not None)
        blocks.set_metadata_block_size(settings.metadata_block_size)
        blocks.set_pin_top_level_index_and_filter(True)
    return blocks

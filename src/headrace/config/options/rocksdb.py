"""RocksDB: the local store of `state.backend.type: rocksdb`."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from headrace.config.memory_size import MemorySize
from headrace.config.option import option

__all__ = ["CompactionStyle", "PredefinedOptions", "TimerStore"]

_COPY = "copies are built from headrace's state files, not from RocksDB's own"
_MB = 1 << 20


class PredefinedOptions(Enum):
    """Flink's bundles of RocksDB settings; `headrace.datastream` shows it to users."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class CompactionStyle(Enum):
    """How RocksDB merges its files."""

    LEVEL = 0
    UNIVERSAL = 1
    #: Deletes the oldest files, and so loses state: refused.
    FIFO = 2
    #: Files are never merged.
    NONE = 3


class TimerStore(Enum):
    """Where timers are kept: the values of `state.backend.rocksdb.timer-service.factory`."""

    ROCKSDB = 0
    #: Refused: timers are always stored with the rest.
    HEAP = 1


def _positive(size: MemorySize) -> str | None:
    return None if size.get_bytes() > 0 else "more than 0 bytes"


# -- memory --------------------------------------------------------------------------------------------------

MEMORY_MANAGED = (
    option("state.backend.rocksdb.memory.managed", bool)
    .default(True)
    .describe(
        "Whether all copies that a worker process has open share one limit of memory, "
        "`headrace.state.rocksdb.memory-per-worker`. If not, each copy has a block cache and write buffers of its own."
    )
)
MEMORY_PER_WORKER = (
    option("headrace.state.rocksdb.memory-per-worker", MemorySize)
    .default(MemorySize(128 * _MB))
    .describe(
        "What block cache, indexes, filters and write buffers of a worker process may take together "
        "when memory is managed. Outside of Java's heap: leave room for it in `spark.executor.memoryOverhead`."
    )
    .checked_by(_positive)
)
MEMORY_FIXED_PER_SLOT = (
    option("state.backend.rocksdb.memory.fixed-per-slot", MemorySize)
    .no_default()
    .describe(
        "The same limit under Flink's key, which takes precedence. A slot is a Python worker process here."
    )
    .checked_by(_positive)
)
MEMORY_FIXED_PER_TM = (
    option("state.backend.rocksdb.memory.fixed-per-tm", MemorySize)
    .no_default()
    .describe("Refused with rocksdb: workers are processes, and processes cannot share a cache.")
)
WRITE_BUFFER_RATIO = (
    option("state.backend.rocksdb.memory.write-buffer-ratio", float)
    .default(0.5)
    .describe("Which part of the shared memory write buffers may take.")
    .at_least(0.0)
    .at_most(1.0)
)
HIGH_PRIORITY_POOL_RATIO = (
    option("state.backend.rocksdb.memory.high-prio-pool-ratio", float)
    .no_default("RocksDB's own, a half")
    .describe("Refused with rocksdb: the Python binding has no way to set it.")
)
PARTITIONED_INDEX_FILTERS = (
    option("state.backend.rocksdb.memory.partitioned-index-filters", bool)
    .default(False)
    .describe(
        "Whether indexes and filters are read in parts, as needed; for very large state with little memory."
    )
)
BLOCK_CACHE_SIZE = (
    option("state.backend.rocksdb.block.cache-size", MemorySize)
    .no_default("8 mb, or that of the predefined options")
    .describe("The block cache of each copy if memory is not managed.")
    .checked_by(_positive)
)
WRITE_BUFFER_SIZE = (
    option("state.backend.rocksdb.writebuffer.size", MemorySize)
    .no_default("64 mb, less if the shared memory asks for it")
    .describe("How much is collected in memory before it is written to a file.")
    .checked_by(_positive)
)
WRITE_BUFFER_COUNT = (
    option("state.backend.rocksdb.writebuffer.count", int)
    .no_default("2, or that of the predefined options")
    .describe("How many write buffers may be in memory, the one in use included.")
    .at_least(1)
)
WRITE_BUFFERS_TO_MERGE = (
    option("state.backend.rocksdb.writebuffer.number-to-merge", int)
    .no_default("1, or that of the predefined options")
    .describe("How many write buffers are merged into one file.")
    .at_least(1)
)
WRITE_BATCH_SIZE = (
    option("state.backend.rocksdb.write-batch-size", MemorySize)
    .default(MemorySize(2 * _MB))
    .describe("How much is handed to RocksDB at a time when a copy is brought up to date.")
    .checked_by(_positive)
)

# -- files ---------------------------------------------------------------------------------------------------

LOCAL_DIRECTORIES = (
    option("state.backend.rocksdb.localdir", list[str])
    .default([])
    .describe(
        "Directories of the host for RocksDB's files; copies are spread over them. "
        "Counts before `headrace.state.local-dir`; without either it is the temporary directory."
    )
)
LOCK_TIMEOUT = (
    option("headrace.state.rocksdb.lock-timeout", timedelta)
    .default(timedelta(seconds=60))
    .describe(
        "How long a worker waits for a copy that another process of the host has open, "
        "such as one whose task was given up and that has not noticed yet."
    )
)
PREDEFINED_OPTIONS = (
    option("state.backend.rocksdb.predefined-options", PredefinedOptions)
    .default(PredefinedOptions.DEFAULT)
    .describe("A predefined set of options. Options that are set individually take precedence.")
)
OPTIONS_FACTORY = (
    option("state.backend.rocksdb.options-factory", str)
    .no_default()
    .describe("Refused with rocksdb: it names a Java class.")
)
BLOCK_SIZE = (
    option("state.backend.rocksdb.block.blocksize", MemorySize)
    .no_default("4 kb, or that of the predefined options")
    .describe("The size of a block in a file: what is read at a time.")
    .checked_by(_positive)
)
METADATA_BLOCK_SIZE = (
    option("state.backend.rocksdb.block.metadata-blocksize", MemorySize)
    .default(MemorySize(4 << 10))
    .describe("The size of a part of an index or filter, if these are partitioned.")
    .checked_by(_positive)
)
USE_BLOOM_FILTER = (
    option("state.backend.rocksdb.use-bloom-filter", bool)
    .default(True)
    .describe(
        "Whether files have Bloom filters, which spare reading files that do not have a key. "
        "Flink's default is false; here every epoch writes a file, so there are more to look in."
    )
)
BLOOM_FILTER_BITS = (
    option("state.backend.rocksdb.bloom-filter.bits-per-key", float)
    .default(10.0)
    .describe("The size of the filters. Whole numbers only.")
    .checked_by(lambda bits: None if bits >= 1 and bits == int(bits) else "a whole number from 1 on")
)
BLOOM_FILTER_BLOCK_BASED = (
    option("state.backend.rocksdb.bloom-filter.block-based-mode", bool)
    .default(False)
    .describe("Whether each block has its filter, in place of each file.")
)
COMPACTION_STYLE = (
    option("state.backend.rocksdb.compaction.style", CompactionStyle)
    .default(CompactionStyle.LEVEL)
    .describe("How files are merged. `FIFO` is refused: it deletes state.")
)
USE_DYNAMIC_LEVEL_SIZE = (
    option("state.backend.rocksdb.compaction.level.use-dynamic-size", bool)
    .no_default("false, or that of the predefined options")
    .describe("Whether the sizes of levels follow that of the last one.")
)
TARGET_FILE_SIZE = (
    option("state.backend.rocksdb.compaction.level.target-file-size-base", MemorySize)
    .no_default("64 mb, or that of the predefined options")
    .describe("The size of the files of level 1.")
    .checked_by(_positive)
)
MAX_SIZE_LEVEL_BASE = (
    option("state.backend.rocksdb.compaction.level.max-size-level-base", MemorySize)
    .no_default("256 mb, or that of the predefined options")
    .describe("The size of level 1.")
    .checked_by(_positive)
)
COMPRESSION_PER_LEVEL = (
    option("state.backend.rocksdb.compression.per.level", list[str])
    .default(["SNAPPY_COMPRESSION"])
    .describe(
        "How each level is compressed, the last one named for all that follow: `NO_COMPRESSION`, "
        "`SNAPPY_COMPRESSION`, `ZLIB_COMPRESSION`, `BZLIB2_COMPRESSION`, `LZ4_COMPRESSION`, `LZ4HC_COMPRESSION`, "
        "`ZSTD_COMPRESSION`."
    )
)
THREADS = (
    option("state.backend.rocksdb.thread.num", int)
    .no_default("2, or that of the predefined options")
    .describe("How many threads write and merge files, for each copy.")
    .at_least(1)
)
OPEN_FILES = (
    option("state.backend.rocksdb.files.open", int)
    .default(-1)
    .describe("How many files each copy may have open; -1 for all.")
    .at_least(-1)
)
LOG_DIRECTORY = (
    option("state.backend.rocksdb.log.dir", str)
    .no_default("next to the files")
    .describe("Where RocksDB writes its own log.")
)
LOG_MAX_FILE_SIZE = (
    option("state.backend.rocksdb.log.max-file-size", MemorySize)
    .default(MemorySize(25 * _MB))
    .describe("The size at which RocksDB starts a new log file; 0 for never.")
)
LOG_FILES = (
    option("state.backend.rocksdb.log.file-num", int)
    .default(4)
    .describe("How many log files of RocksDB are kept.")
    .at_least(1)
)
LOG_LEVEL = (
    option("state.backend.rocksdb.log.level", str)
    .no_default("INFO_LEVEL")
    .describe("Refused with rocksdb: the Python binding has no way to set it.")
)

# -- what the design has no place for ------------------------------------------------------------------------

TIMER_STORE = (
    option("state.backend.rocksdb.timer-service.factory", TimerStore)
    .default(TimerStore.ROCKSDB)
    .describe(
        "Where timers are stored. `HEAP` is rejected: timers are always stored with the rest of the state."
    )
)
TIMER_CACHE = (
    option("state.backend.rocksdb.timer-service.cache-size", int)
    .default(128)
    .describe("How many timers of a key group are kept in memory.")
    .without_effect("timers are read when they fall due")
)
TRANSFER_THREADS = (
    option("state.backend.rocksdb.checkpoint.transfer.thread.num", int)
    .default(4)
    .describe("How many threads write files of a checkpoint.")
    .without_effect("a subtask writes one file, with what the epoch changed")
)
UPLOAD_JITTER = (
    option("state.backend.rocksdb.checkpoint.upload-jitter", timedelta)
    .default(timedelta(0))
    .describe("How long files of a checkpoint are held back at random.")
    .without_effect("changes are written when an epoch ends, which waits for them")
)
RESTORE_OVERLAP = (
    option("state.backend.rocksdb.restore-overlap-fraction-threshold", float)
    .default(0.0)
    .describe("Which copies may be started from when parallelism changes.")
    .without_effect(_COPY)
)
USE_INGEST_RESTORE = (
    option("state.backend.rocksdb.use-ingest-db-restore-mode", bool)
    .default(False)
    .describe("Whether files are taken over as they are when parallelism changes.")
    .without_effect(_COPY)
)
COMPACT_AFTER_RESCALE = (
    option("state.backend.rocksdb.incremental-restore-async-compact-after-rescale", bool)
    .default(False)
    .describe("Whether files are merged when parallelism has changed.")
    .without_effect(_COPY)
)
DELETE_FILES_IN_RANGE = (
    option("state.backend.rocksdb.rescaling.use-delete-files-in-range", bool)
    .default(False)
    .describe("Whether files are deleted whole when parallelism changes.")
    .without_effect(_COPY)
)
TTL_FILTER_TIME_EVERY = (
    option("state.backend.rocksdb.compaction.filter.query-time-after-num-entries", int)
    .default(1000)
    .describe("How often the filter for time to live asks for the time.")
    .without_effect("the sweep and the compaction of state files remove what has ended")
)
TTL_PERIODIC_COMPACTION = (
    option("state.backend.rocksdb.compaction.filter.periodic-compaction-time", timedelta)
    .default(timedelta(days=30))
    .describe("How old a file may get before the filter for time to live looks at it.")
    .without_effect("the sweep and the compaction of state files remove what has ended")
)

"""Which store a job's state is kept in, and how it is set up: fixed when the job is submitted, shipped with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from headrace.config.configuration import Configuration
from headrace.config.memory_account import executor_memory
from headrace.config.memory_size import MemorySize
from headrace.config.option import ConfigOption
from headrace.config.options import rocksdb, state
from headrace.config.options.rocksdb import CompactionStyle, PredefinedOptions, TimerStore
from headrace.errors import ConfigurationError, UnsupportedFeatureError

_MB: Final = 1 << 20
#: What to do where there is no space for copies of state.
COPY_ELSEWHERE: Final = f"set {state.LOCAL_DIRECTORY.key} to a directory on a larger disk"
ROCKSDB_ELSEWHERE: Final = f"set {rocksdb.LOCAL_DIRECTORIES.key} to directories on larger disks"


@dataclass(frozen=True)
class RocksDBSettings:
    """How RocksDB is set up. Sizes are bytes."""

    #: What all copies of a process share; None: each copy has its own caches and buffers.
    shared_memory: int | None = 128 * _MB
    write_buffer_ratio: float = 0.5
    has_partitioned_filters: bool = False
    block_cache_size: int = 8 * _MB
    write_buffer_size: int = 64 * _MB
    write_buffers: int = 2
    write_buffers_to_merge: int = 1
    write_batch_size: int = 2 * _MB
    block_size: int = 4 << 10
    metadata_block_size: int = 4 << 10
    #: Bits per key; None: no filters.
    bloom_bits: int | None = 10
    is_bloom_per_block: bool = False
    compaction: CompactionStyle = CompactionStyle.LEVEL
    has_dynamic_levels: bool = False
    target_file_size: int = 64 * _MB
    level_base_size: int = 256 * _MB
    #: Names of rocksdict's ``DBCompressionType``, from level 0 on; the last one counts for the rest.
    compression: tuple[str, ...] = ("snappy",)
    threads: int = 2
    open_files: int = -1
    log_directory: str | None = None
    log_max_file_size: int = 25 * _MB
    log_files: int = 4
    lock_timeout_s: float = 60.0


@dataclass(frozen=True)
class StoreSettings:
    """The choice of a state backend."""

    #: None: the store of ``hashmap``.
    rocksdb: RocksDBSettings | None = None
    #: Directories of the host to keep copies in; empty lets the worker choose.
    directories: tuple[str, ...] = ()

    @property
    def elsewhere(self) -> str:
        """What to do where there is no space for copies."""
        return COPY_ELSEWHERE if self.rocksdb is None else ROCKSDB_ELSEWHERE

    @property
    def prefers_memory(self) -> bool:
        """Whether copies belong on a memory file system."""
        return self.rocksdb is None


#: Flink's bundles. What is in none of them is as RocksDB has it, or as its option says.
_PREDEFINED: Final[dict[PredefinedOptions, dict[str, Any]]] = {
    PredefinedOptions.DEFAULT: {},
    PredefinedOptions.SPINNING_DISK_OPTIMIZED: {"threads": 4, "has_dynamic_levels": True},
    PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM: {
        "threads": 4,
        "has_dynamic_levels": True,
        "target_file_size": 256 * _MB,
        "level_base_size": 1024 * _MB,
        "write_buffers": 4,
        "write_buffers_to_merge": 3,
        "block_cache_size": 256 * _MB,
        "block_size": 128 << 10,
    },
    PredefinedOptions.FLASH_SSD_OPTIMIZED: {"threads": 4},
}
#: Options without a default of their own: they count only where they are set.
_PLAIN: Final[dict[str, ConfigOption[Any]]] = {
    "block_cache_size": rocksdb.BLOCK_CACHE_SIZE,
    "write_buffer_size": rocksdb.WRITE_BUFFER_SIZE,
    "write_buffers": rocksdb.WRITE_BUFFER_COUNT,
    "write_buffers_to_merge": rocksdb.WRITE_BUFFERS_TO_MERGE,
    "block_size": rocksdb.BLOCK_SIZE,
    "has_dynamic_levels": rocksdb.USE_DYNAMIC_LEVEL_SIZE,
    "target_file_size": rocksdb.TARGET_FILE_SIZE,
    "level_base_size": rocksdb.MAX_SIZE_LEVEL_BASE,
    "threads": rocksdb.THREADS,
}
_COMPRESSIONS: Final = {
    "NO_COMPRESSION": "none",
    "SNAPPY_COMPRESSION": "snappy",
    "ZLIB_COMPRESSION": "zlib",
    "BZLIB2_COMPRESSION": "bz2",
    "LZ4_COMPRESSION": "lz4",
    "LZ4HC_COMPRESSION": "lz4hc",
    "ZSTD_COMPRESSION": "zstd",
}
#: What cannot be honoured, why not, and what to do.
_REFUSED: Final[tuple[tuple[ConfigOption[Any], str, str], ...]] = (
    (
        rocksdb.MEMORY_FIXED_PER_TM,
        "workers are processes, and processes cannot share a cache",
        "set headrace.state.rocksdb.memory-per-worker",
    ),
    (
        rocksdb.HIGH_PRIORITY_POOL_RATIO,
        "rocksdict cannot set it; RocksDB uses half of the cache for indexes and filters",
        "leave it out",
    ),
    (rocksdb.OPTIONS_FACTORY, "it names a Java class", "set the options by their keys"),
    (rocksdb.LOG_LEVEL, "rocksdict cannot set it", "leave it out"),
)


def store_settings(configuration: Configuration) -> StoreSettings:
    """Read the choice of a state backend.

    Raises:
        UnsupportedFeatureError: An option of RocksDB is set that cannot be honoured.
        ConfigurationError: Options contradict each other.
    """
    configured = configuration.get(state.LOCAL_DIRECTORY)
    directories = (configured,) if configured else ()
    if configuration.get(state.BACKEND) == "hashmap":
        return StoreSettings(directories=directories)
    own = configuration.get(rocksdb.LOCAL_DIRECTORIES)
    return StoreSettings(rocksdb=_rocksdb_settings(configuration), directories=tuple(own) or directories)


def _rocksdb_settings(configuration: Configuration) -> RocksDBSettings:
    _refuse(configuration)
    values = dict(_PREDEFINED[configuration.get(rocksdb.PREDEFINED_OPTIONS)])
    values |= {
        name: _plain(configuration.get(each)) for name, each in _PLAIN.items() if configuration.contains(each)
    }
    get = configuration.get
    compression = get(rocksdb.COMPRESSION_PER_LEVEL)
    settings = RocksDBSettings(
        shared_memory=_shared_memory(configuration),
        write_buffer_ratio=get(rocksdb.WRITE_BUFFER_RATIO),
        has_partitioned_filters=get(rocksdb.PARTITIONED_INDEX_FILTERS),
        write_batch_size=get(rocksdb.WRITE_BATCH_SIZE).get_bytes(),
        metadata_block_size=get(rocksdb.METADATA_BLOCK_SIZE).get_bytes(),
        bloom_bits=int(get(rocksdb.BLOOM_FILTER_BITS)) if get(rocksdb.USE_BLOOM_FILTER) else None,
        is_bloom_per_block=get(rocksdb.BLOOM_FILTER_BLOCK_BASED),
        compaction=get(rocksdb.COMPACTION_STYLE),
        compression=tuple(map(_compression, compression)),
        open_files=get(rocksdb.OPEN_FILES),
        log_directory=get(rocksdb.LOG_DIRECTORY),
        log_max_file_size=get(rocksdb.LOG_MAX_FILE_SIZE).get_bytes(),
        log_files=get(rocksdb.LOG_FILES),
        lock_timeout_s=get(rocksdb.LOCK_TIMEOUT).total_seconds(),
        **values,
    )
    if settings.write_buffers_to_merge >= max(settings.write_buffers, 2):
        raise ConfigurationError(
            f"{rocksdb.WRITE_BUFFERS_TO_MERGE.key}: must be less than {rocksdb.WRITE_BUFFER_COUNT.key}, "
            f"{settings.write_buffers}; got {settings.write_buffers_to_merge}"
        )
    return settings


def _refuse(configuration: Configuration) -> None:
    for each, why, instead in _REFUSED:
        if configuration.contains(each):
            raise UnsupportedFeatureError(f"{each.key}: {why}", hint=instead)
    if configuration.get(rocksdb.COMPACTION_STYLE) is CompactionStyle.FIFO:
        raise UnsupportedFeatureError(
            f"{rocksdb.COMPACTION_STYLE.key}: FIFO deletes the oldest files and the state in them",
            hint="use LEVEL or UNIVERSAL",
        )
    if configuration.get(rocksdb.TIMER_STORE) is TimerStore.HEAP:
        raise UnsupportedFeatureError(
            f"{rocksdb.TIMER_STORE.key}: HEAP is not supported: timers are stored with the rest of the state",
            hint="leave it out",
        )


def _shared_memory(configuration: Configuration) -> int | None:
    fixed = configuration.get(rocksdb.MEMORY_FIXED_PER_SLOT)
    if fixed is not None:
        return fixed.get_bytes()
    if not configuration.get(rocksdb.MEMORY_MANAGED):
        return None
    account = executor_memory(configuration)
    if account is not None and not configuration.contains(rocksdb.MEMORY_PER_WORKER):
        share = account.state_per_worker
        if share is not None:
            return share
    return configuration.get(rocksdb.MEMORY_PER_WORKER).get_bytes()


def _plain(value: Any) -> Any:
    return value.get_bytes() if isinstance(value, MemorySize) else value


def _compression(name: str) -> str:
    try:
        return _COMPRESSIONS[name.upper()]
    except KeyError:
        raise ConfigurationError(
            f"{rocksdb.COMPRESSION_PER_LEVEL.key}: expected one of {', '.join(_COMPRESSIONS)}; got {name!r}"
        ) from None

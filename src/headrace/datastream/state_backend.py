"""State backends as a program declares them: `state.backend.type` and related options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from headrace.common._missing import missing_names
from headrace.config import Configuration
from headrace.config.options import checkpointing, rocksdb, state
from headrace.config.options.rocksdb import PredefinedOptions
from headrace.errors import JobDefinitionError, UnsupportedFeatureError

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(__name__)


class StateBackend:
    """Where keyed state lives between epochs."""

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class HashMapStateBackend(StateBackend):
    """Keeps state in memory of the host. The default.

    Example:
        >>> HashMapStateBackend().to_dict()
        {'state.backend.type': 'hashmap'}
    """

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        return {state.BACKEND.key: "hashmap"}


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state on the disk of the host, in RocksDB: for state beyond memory.

    Its settings become configuration when you pass it to the environment, and take precedence over existing values.

    Args:
        enable_incremental_checkpointing: Kept and shown; checkpoints are always incremental.

    Example:
        >>> backend = EmbeddedRocksDBStateBackend()
        >>> backend.set_db_storage_paths("/ssd1/state", "/ssd2/state")
        >>> backend.to_dict()["state.backend.rocksdb.localdir"]
        '/ssd1/state;/ssd2/state'
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._is_incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        #: None: what the configuration says.
        self._options: PredefinedOptions | None = None
        self._transfer_threads: int | None = None

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set directories on the host for RocksDB's files; copies of state are spread over them."""
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        """Return the directories for RocksDB's files."""
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether this backend was asked for incremental checkpoints; what the configuration says is not known here."""
        return self._is_incremental is True

    def set_predefined_options(self, options: PredefinedOptions) -> Self:
        """Choose a bundle of settings."""
        self._options = options
        return self

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the bundle of settings."""
        return self._options or rocksdb.PREDEFINED_OPTIONS.default

    def set_options(self, options_factory_class_name: str) -> None:
        """Not there: it names a Java class.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet(
            "a RocksDB options factory, which is a Java class",
            "set state.backend.rocksdb.* in the configuration",
        )

    def get_options(self) -> str | None:
        """Return None: there are no options factories."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """Return how many threads write files. Without effect: a subtask writes one file an epoch."""
        return self._transfer_threads or rocksdb.TRANSFER_THREADS.default

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set how many threads write files. Without effect: a subtask writes one file an epoch.

        Raises:
            JobDefinitionError: If it is not positive.
        """
        if number_of_transfering_threads < 1:
            raise JobDefinitionError(
                f"transfer threads: expected at least 1; got {number_of_transfering_threads}"
            )
        self._transfer_threads = number_of_transfering_threads

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        values = {state.BACKEND.key: "rocksdb"}
        if self._paths:
            values[rocksdb.LOCAL_DIRECTORIES.key] = rocksdb.LOCAL_DIRECTORIES.write(self._paths)
        if self._options is not None:
            values[rocksdb.PREDEFINED_OPTIONS.key] = rocksdb.PREDEFINED_OPTIONS.write(self._options)
        if self._transfer_threads is not None:
            values[rocksdb.TRANSFER_THREADS.key] = str(self._transfer_threads)
        if self._is_incremental is not None:
            values[checkpointing.INCREMENTAL.key] = checkpointing.INCREMENTAL.write(self._is_incremental)
        return values


def state_backend_of(configuration: Configuration) -> StateBackend:
    """Return the backend that a configuration chooses."""
    if configuration.get(state.BACKEND) == "hashmap":
        return HashMapStateBackend()
    incremental = checkpointing.INCREMENTAL
    backend = EmbeddedRocksDBStateBackend(
        configuration.get(incremental) if configuration.contains(incremental) else None
    )
    backend.set_db_storage_paths(*configuration.get(rocksdb.LOCAL_DIRECTORIES))
    if configuration.contains(rocksdb.PREDEFINED_OPTIONS):
        backend.set_predefined_options(configuration.get(rocksdb.PREDEFINED_OPTIONS))
    if configuration.contains(rocksdb.TRANSFER_THREADS):
        backend.set_number_of_transfer_threads(configuration.get(rocksdb.TRANSFER_THREADS))
    return backend


class CustomStateBackend(StateBackend):
    """PyFlink's way to a backend written in Java, which headrace does not have.

    Raises:
        UnsupportedFeatureError: Always.
    """

    def __init__(self, backend: object) -> None:
        raise UnsupportedFeatureError.not_yet(
            "CustomStateBackend", "use HashMapStateBackend or EmbeddedRocksDBStateBackend"
        )

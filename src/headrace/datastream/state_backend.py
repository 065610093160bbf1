"""State backends as a program declares them: a choice of `state.backend.type` and what goes with it."""

from __future__ import annotations

from enum import Enum
from typing import Self

from headrace.config.options import state
from headrace.errors import JobDefinitionError, UnsupportedFeatureError

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend:
    """Where keyed state lives between epochs."""

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        raise NotImplementedError


class HashMapStateBackend(StateBackend):
    """Keeps state in memory of the host. The default.

    Example:
        >>> HashMapStateBackend().to_dict()
        {'state.backend.type': 'hashmap'}
    """

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        return {state.BACKEND.key: "hashmap"}


class PredefinedOptions(Enum):
    """Flink's bundles of RocksDB settings. Kept and shown; headrace chooses its own."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state on the disk of the host, in RocksDB: for state beyond memory.

    Args:
        enable_incremental_checkpointing: Kept and shown; checkpoints are always incremental.
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._is_incremental = enable_incremental_checkpointing is not False
        self._paths: list[str] = []
        self._options = PredefinedOptions.DEFAULT
        self._transfer_threads = 4

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set directories on the host for RocksDB's files; the first one is used."""
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        """Return the directories for RocksDB's files."""
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether incremental checkpoints were asked for, as by default."""
        return self._is_incremental

    def set_predefined_options(self, options: PredefinedOptions) -> Self:
        """Choose a bundle of settings. Kept and shown."""
        self._options = options
        return self

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the bundle of settings."""
        return self._options

    def set_options(self, options_factory_class_name: str) -> None:
        """Not there: it names a Java class.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("a RocksDB options factory, which is a Java class")

    def get_options(self) -> str | None:
        """Return None: there are no options factories."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """Return how many threads write files. Kept and shown."""
        return self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set how many threads write files. Kept and shown.

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
            values[state.LOCAL_DIRECTORY.key] = self._paths[0]
        return values


class CustomStateBackend(StateBackend):
    """PyFlink's way to a backend written in Java, which headrace does not have.

    Raises:
        UnsupportedFeatureError: Always.
    """

    def __init__(self, backend: object) -> None:
        raise UnsupportedFeatureError.not_yet(
            "CustomStateBackend", "use HashMapStateBackend or EmbeddedRocksDBStateBackend"
        )

"""How the files of a sink are named, when they are closed, and what would put small ones together.

In headrace every epoch's output is a file of its own, so the only rolling policy is the one that rolls with
the checkpoints. What asks for more is refused where it is declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from headrace.errors import UnsupportedFeatureError

_PART_SIZE = 128 << 20
_ROLLOVER_MS = 60_000


@dataclass(frozen=True)
class OutputFileConfig:
    """What the names of part files begin and end with.

    Example:
        >>> OutputFileConfig.builder().with_part_prefix("clicks").with_part_suffix(".txt").build()
        OutputFileConfig(part_prefix='clicks', part_suffix='.txt')
    """

    part_prefix: str
    part_suffix: str

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Begin with the prefix `part` and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """What names begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """What names end with."""
        return self.part_suffix

    class OutputFileConfigBuilder:
        """Collects prefix and suffix."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set what names begin with."""
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set what names end with, for instance `.txt`."""
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Make the configuration."""
            return OutputFileConfig(self._prefix, self._suffix)


@dataclass(frozen=True)
class RollingPolicy:
    """When a part file is closed and the next one begun."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = _PART_SIZE,
        rollover_interval: int = _ROLLOVER_MS,
        inactivity_interval: int = _ROLLOVER_MS,
    ) -> DefaultRollingPolicy:
        """Roll by size and age. Only the defaults are taken: the end of an epoch closes the files anyway.

        Raises:
            UnsupportedFeatureError: A value is not the default.
        """
        if (part_size, rollover_interval, inactivity_interval) != (_PART_SIZE, _ROLLOVER_MS, _ROLLOVER_MS):
            raise UnsupportedFeatureError.not_yet(
                "RollingPolicy.default_rolling_policy with its own sizes and intervals",
                "leave the values out: every epoch's output is a file of its own",
            )
        return DefaultRollingPolicy()

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Roll with every checkpoint, which is what headrace does."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Roll by size and age."""


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Roll with every checkpoint."""


class _MissingBuilderError(UnsupportedFeatureError, AttributeError):
    """Also an AttributeError, so that `hasattr` and what looks through a class go on."""


class MissingBuilder:
    """Stands where PyFlink has a builder inside a class and headrace has none yet: asking for it says so."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise _MissingBuilderError.not_yet(self._name)


def _refuse_compaction() -> NoReturn:
    raise UnsupportedFeatureError.not_yet(
        "compaction in FileSink", "make epochs longer, or put small files together in a job of its own"
    )


class FileCompactStrategy:
    """When small files would be put together. Not in headrace yet."""

    Builder = MissingBuilder()

    @staticmethod
    def builder() -> NoReturn:
        """Refuse."""
        _refuse_compaction()


class FileCompactor:
    """How small files would be put together. Not in headrace yet."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> NoReturn:
        """Refuse."""
        _refuse_compaction()

    @staticmethod
    def identical_file_compactor() -> NoReturn:
        """Refuse."""
        _refuse_compaction()


def refuse_bulk_format(name: str, *_: Any) -> NoReturn:
    """Refuse columnar output."""
    raise UnsupportedFeatureError.not_yet(f"{name}.for_bulk_format", f"write rows with {name}.for_row_format")

"""How the files of a sink are named, when they are closed, and how small ones are compacted.

A rolling policy is asked by the committer, and its answer depends on its arguments alone: see `_parts`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from string import Template
from typing import NoReturn
from urllib.parse import unquote

from headrace.errors import ConnectorError, JobDefinitionError, UnsupportedFeatureError

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
            """Return the prefix and suffix as an `OutputFileConfig`."""
            return OutputFileConfig(self._prefix, self._suffix)


@dataclass(frozen=True)
class PartitionCommit:
    """When a bucket gets a file that says that it is complete: Flink's `sink.partition-commit.*`.

    Args:
        delay_ms: How long after its first record, by the clock; or after its own time, by the watermark.
        success_file_name: The name of the file, which is empty.
        partition_time: Finds the time of a bucket; None: buckets follow the clock.
    """

    delay_ms: int = 0
    success_file_name: str = "_SUCCESS"
    partition_time: PartitionTime | None = None

    def __post_init__(self) -> None:
        if self.delay_ms < 0 or not self.success_file_name or "/" in self.success_file_name:
            raise JobDefinitionError(
                f"FileSink.with_partition_commit: delay must not be negative and file name not empty; got {self}"
            )

    def is_over(self, bucket: str, begun_ms: int, now_ms: int, watermark_ms: int | None) -> bool:
        """Whether the time of a bucket is over."""
        if self.partition_time is None:
            return now_ms >= begun_ms + self.delay_ms
        return watermark_ms is not None and watermark_ms > self.partition_time.of(bucket) + self.delay_ms


@dataclass(frozen=True)
class PartitionTime:
    """Finds the time of a bucket in its name: Flink's `partition.time-extractor.timestamp-pattern`.

    Args:
        pattern: A timestamp or date in which `$name` stands for the value of a directory `name=value`.
        format: How it is written, in the letters of Java (`yyyyMMdd HH`); None: as SQL writes timestamps and dates.

    Raises:
        JobDefinitionError: The format has other letters than those of a date and a time of day.

    Example:
        >>> PartitionTime("$day $hour:00:00").of("day=2024-02-29/hour=8") // 3_600_000
        474776
        >>> PartitionTime("$day", "yyyyMMdd").of("day=20240229") // 3_600_000
        474768
    """

    pattern: str
    format: str | None = None

    def __post_init__(self) -> None:
        self._parts()

    def of(self, bucket: str) -> int:
        """Return the time that a bucket begins with, in ms since 1970.

        Raises:
            ConnectorError: Its name has none.
        """
        values = {
            name: unquote(value) for name, _, value in (part.partition("=") for part in bucket.split("/"))
        }
        text = Template(self.pattern).safe_substitute(values)
        found = self._parts().fullmatch(text.strip())
        try:
            if found is None:
                raise ValueError(f"expected a time such as {self.format or '2024-02-29 08:00:00, or a date'}")
            parts = {**_FIRST, **{name: int(value) for name, value in found.groupdict().items() if value}}
            at = datetime(**parts)  # type: ignore[arg-type]  # noqa: DTZ001 - no zone
        except ValueError as error:
            raise ConnectorError(
                f"FileSink: bucket {bucket!r}: the pattern {self.pattern!r} gives {text!r}, not a time: {error}",
                hint="the directories that the pattern names must form a timestamp, as in '$day $hour:00:00'",
                retryable=False,
            ) from None
        return (at - _EPOCH) // timedelta(milliseconds=1)

    def _parts(self) -> re.Pattern[str]:
        """Return what finds the parts of a time in a text."""
        return _TIME if self.format is None else _of_letters(self.format)


@cache
def _of_letters(letters: str) -> re.Pattern[str]:
    made = ""
    for run in re.finditer(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+", letters):
        name = _LETTERS.get(run[2] or "")
        if name is not None:
            count = len(run[0])
            made += rf"(?P<{name}>\d{{{count}}})" if count > 1 else rf"(?P<{name}>\d+)"
        elif run[2]:
            raise JobDefinitionError(
                f"FileSink.with_partition_commit: {run[0]!r} in the format {letters!r} is not a date or time field",
                hint="use y, M, d, H, m and s; put literal text in single quotes",
            )
        else:
            made += re.escape(run[0] if run[1] is None else run[1])
    try:
        return re.compile(made)
    except re.error:
        raise JobDefinitionError(
            f"FileSink.with_partition_commit: the format {letters!r} has the same date or time field twice"
        ) from None


_LETTERS = {"y": "year", "u": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
#: What is not said is the first there is.
_FIRST = {"year": 1970, "month": 1, "day": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - watermarks of timestamps have no zone either
_TIME = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}))?)?"
)


class RollingPolicy(ABC):
    """When a part file is closed and the next one begun. Files are published with checkpoints only."""

    #: Whether a checkpoint closes every file.
    rolls_on_checkpoint: bool = False

    @abstractmethod
    def is_full(self, size: int) -> bool:
        """Whether a file of this size is large enough."""

    @abstractmethod
    def is_over(self, created_ms: int, written_ms: int, now_ms: int) -> bool:
        """Whether a file is old enough, by when its first and its last record were written."""

    def next_roll_ms(self, created_ms: int, written_ms: int) -> int | None:
        """Return when such a file will be old enough; None if never."""
        return None

    def closing_with_checkpoints(self) -> RollingPolicy:
        """Return a policy that closes every file with each checkpoint, and before for the size that this one does."""
        return self if self.rolls_on_checkpoint else OnCheckpointRollingPolicy()

    @staticmethod
    def default_rolling_policy(
        part_size: int = _PART_SIZE,
        rollover_interval: int = _ROLLOVER_MS,
        inactivity_interval: int = _ROLLOVER_MS,
    ) -> DefaultRollingPolicy:
        """Roll by size and age.

        Args:
            part_size: Bytes with which a file is large enough.
            rollover_interval: How long a file may be open, in ms.
            inactivity_interval: How long a file may be open without a new record, in ms.

        Raises:
            JobDefinitionError: A value is not positive.
        """
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Roll with every checkpoint; without checkpointing, with every epoch."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Roll by size and age."""

    part_size: int = _PART_SIZE
    rollover_interval: int = _ROLLOVER_MS
    inactivity_interval: int = _ROLLOVER_MS

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise JobDefinitionError(
                    f"RollingPolicy.default_rolling_policy: {name} must be positive; got {value}"
                )

    def is_full(self, size: int) -> bool:
        """Whether a file of this size is large enough."""
        return size >= self.part_size

    def is_over(self, created_ms: int, written_ms: int, now_ms: int) -> bool:
        """Whether a file is old enough."""
        return now_ms >= self.next_roll_ms(created_ms, written_ms)

    def next_roll_ms(self, created_ms: int, written_ms: int) -> int:
        """Return when such a file will be old enough."""
        return min(created_ms + self.rollover_interval, written_ms + self.inactivity_interval)

    def closing_with_checkpoints(self) -> RollingPolicy:
        """Return a policy that closes every file with each checkpoint, and before if it is large enough."""
        return CompactingRollingPolicy(self.part_size)


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Roll with every checkpoint."""

    rolls_on_checkpoint = True

    def is_full(self, size: int) -> bool:
        """Never: a file is as large as a checkpoint's output."""
        return False

    def is_over(self, created_ms: int, written_ms: int, now_ms: int) -> bool:
        """Never: no file is older than a checkpoint."""
        return False


@dataclass(frozen=True)
class CompactingRollingPolicy(OnCheckpointRollingPolicy):
    """Roll with every checkpoint, and by size: only closed files are merged."""

    part_size: int = _PART_SIZE

    def is_full(self, size: int) -> bool:
        """Whether a file of this size is large enough."""
        return size >= self.part_size


class _MissingBuilderError(UnsupportedFeatureError, AttributeError):
    """Also an AttributeError, so that `hasattr` and what looks through a class go on."""


class MissingBuilder:
    """A placeholder for a builder that PyFlink has and headrace does not: using it raises an error that says so."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise _MissingBuilderError.not_yet(self._name)


def _refuse_compaction() -> NoReturn:
    raise UnsupportedFeatureError.not_yet(
        "compaction in FileSink", "use a RollingPolicy with larger part files"
    )


class FileCompactStrategy:
    """When small files would be compacted. Not in headrace yet."""

    Builder = MissingBuilder()

    @staticmethod
    def builder() -> NoReturn:
        """Raise `UnsupportedFeatureError`: `FileSink` does not compact files yet."""
        _refuse_compaction()


class FileCompactor:
    """How small files would be compacted. Not in headrace yet."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> NoReturn:
        """Raise `UnsupportedFeatureError`: `FileSink` does not compact files yet."""
        _refuse_compaction()

    @staticmethod
    def identical_file_compactor() -> NoReturn:
        """Raise `UnsupportedFeatureError`: `FileSink` does not compact files yet."""
        _refuse_compaction()

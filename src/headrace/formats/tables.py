"""Formats of tables, found by the option 'format': what a format offers, and how connectors find it.

A format is a class that is called with the table's options for it, such as those below `json.`. It implements
`MessageFormat` if it reads and writes single records, `TableFileFormat` if it reads and writes files, or both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from headrace.common.changelog import ChangelogMode
from headrace.common.serialization import BulkWriterFactory, DeserializationSchema, SerializationSchema
from headrace.config.table_options import TableOptions
from headrace.errors import ConfigurationError
from headrace.types.logical import DataType, RowType
from headrace.util.plugins import FORMATS

__all__ = [
    "SPARK_TIMESTAMPS",
    "ChangelogFormat",
    "RegistryFormat",
    "TableFileFormat",
    "MessageFormat",
    "SparkReader",
    "file_format",
    "message_format",
]
#: Timestamps as SQL writes them, for Spark's readers of text.
SPARK_TIMESTAMPS: Final = "yyyy-MM-dd HH:mm:ss[.SSSSSS][.SSSSS][.SSSS][.SSS][.SS][.S]"


@runtime_checkable
class MessageFormat(Protocol):
    """A format in which a record is a message of its own, as in Kafka."""

    def reader(self, row_type: RowType) -> DeserializationSchema:
        """Return what reads rows with these fields."""

    def writer(self, row_type: RowType) -> SerializationSchema:
        """Return what writes rows with these fields."""


@runtime_checkable
class ChangelogFormat(MessageFormat, Protocol):
    """A format whose messages are changes: its rows have kinds."""

    #: Which kinds it reads; all are written.
    mode: ChangelogMode

    @property
    def metadata(self) -> Mapping[str, DataType]:
        """The types of metadata that it reads beside the row, by key."""

    def reader(self, row_type: RowType, metadata: Sequence[str] = ()) -> DeserializationSchema:
        """Return what reads rows with these fields, followed by metadata of these keys."""


@runtime_checkable
class RegistryFormat(MessageFormat, Protocol):
    """A format that registers its schema under a subject."""

    def default_subject(self, subject: str) -> None:
        """Say under which one, unless the options do."""


@dataclass(frozen=True)
class SparkReader:
    """How Spark reads files of a format.

    Args:
        format: Spark's name of the format.
        options: The options of Spark's reader.
        ignores_errors: Of JSON and CSV: whether records that cannot be read are left out, rather than failing the job.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    ignores_errors: bool = False


@runtime_checkable
class TableFileFormat(Protocol):
    """A format of files, which Spark reads."""

    def spark_reader(self) -> SparkReader:
        """Return how Spark reads the files."""

    def file_writer(self, row_type: RowType) -> SerializationSchema | BulkWriterFactory:
        """Return what writes a row as a line, or what writes whole files."""


def message_format(options: TableOptions, *keys: str) -> MessageFormat:
    """Return the format that one of these options names; the first that is set.

    Options of the format itself have the same prefix as the option that names it: `value.format` = `json` is followed
    by `value.json.charset`.

    Raises:
        SqlValidationError: None of the options is set, or no format for messages has this name.
        ConfigurationError: The format is declared by several packages, or cannot be loaded.
    """
    key = next((key for key in keys if options.text(key) is not None), keys[0])
    found: MessageFormat = _named(options, key, MessageFormat)
    return found


def file_format(options: TableOptions, *others: str) -> TableFileFormat:
    """Return the format of files that the option 'format' names.

    Args:
        options: The options of the table.
        others: Formats that the connector reads and writes itself, for the error.

    Raises:
        SqlValidationError: The option is not set, or no format for files has this name.
        ConfigurationError: The format is declared by several packages, or cannot be loaded.
    """
    found: TableFileFormat = _named(options, "format", TableFileFormat, others)
    return found


def _named(options: TableOptions, key: str, ability: type[Any], others: tuple[str, ...] = ()) -> Any:
    name = options.required(key)
    made = FORMATS.make(name, options.below(f"{key.removesuffix('format')}{name}."))
    if not isinstance(made, ability):
        names = sorted([*_names(ability), *others])
        raise options.wrong(key, f"one of {', '.join(names)}", names)
    return made


def _names(ability: type[Any]) -> list[str]:
    """Return the formats with an ability; those that cannot be loaded are left out."""
    found = []
    for name in FORMATS.names():
        with suppress(ConfigurationError):
            format_class = FORMATS.load(name)
            if isinstance(format_class, type) and issubclass(format_class, ability):
                found.append(name)
    return found

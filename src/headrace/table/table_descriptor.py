"""`TableDescriptor`: a table as a program describes it, in place of CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.table.schema import Schema
from headrace.types.logical import quote_name, quote_text

__all__ = ["FormatDescriptor", "TableDescriptor"]


@dataclass(frozen=True)
class TableDescriptor:
    """The connector of a table, its options, and its schema. Made by `TableDescriptor.for_connector`.

    Example:
        >>> TableDescriptor.for_connector("datagen").option("number-of-rows", "10").build().get_options()
        {'connector': 'datagen', 'number-of-rows': '10'}
    """

    schema: Schema | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """Start to describe a table."""
        return TableDescriptor.Builder().option("connector", connector)

    def get_schema(self) -> Schema | None:
        """Return the columns; None leaves them to the connector."""
        return self.schema

    def get_options(self) -> dict[str, str]:
        """Return connector, format and all that was set for them, by name."""
        return dict(sorted(self.options.items()))

    def get_partition_keys(self) -> list[str]:
        """Return the columns that the table is stored by."""
        return list(self.partition_keys)

    def get_comment(self) -> str | None:
        """Return what is said about the table."""
        return self.comment

    def __str__(self) -> str:
        schema = "" if self.schema is None else str(self.schema)
        comment = f"\nCOMMENT '{self.comment}'" if self.comment else ""
        keys = ", ".join(map(quote_name, self.partition_keys))
        partitioned = f"\nPARTITIONED BY ({keys})" if keys else ""
        return f"{schema}{comment}{partitioned}\nWITH (\n{_options_text(self.options)}\n)"

    class Builder:
        """Collects the parts of a descriptor; every call returns the builder."""

        def __init__(self) -> None:
            self._schema: Schema | None = None
            self._options: dict[str, str] = {}
            self._partition_keys: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Set the schema of the table."""
            self._schema = schema
            return self

        def option(self, key: Any, value: Any) -> TableDescriptor.Builder:
            """Set an option of the connector."""
            name = key if isinstance(key, str) else key.key()
            self._options[name] = str(value).lower() if isinstance(value, bool) else str(value)
            return self

        def format(
            self, format: str | FormatDescriptor, format_option: Any = None
        ) -> TableDescriptor.Builder:
            """Set the format of the records.

            Args:
                format: Its name, or a descriptor with options.
                format_option: The option that names it: ``format``, or for instance ``key.format``.
            """
            option = (
                "format" if format_option is None else getattr(format_option, "key", lambda: format_option)()
            )
            if isinstance(format, str):
                return self.option(option, format)
            self.option(option, format.get_format())
            prefix = option.removesuffix("format")
            for key, value in format.get_options().items():
                self.option(f"{prefix}{format.get_format()}.{key}", value)
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """Set the columns that the table is stored by."""
            self._partition_keys = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Say something about the table."""
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """Return a descriptor with these options."""
            return TableDescriptor(self._schema, dict(self._options), self._partition_keys, self._comment)


def _options_text(options: Mapping[str, str]) -> str:
    return ",\n".join(f"  {quote_text(key)} = {quote_text(options[key])}" for key in sorted(options))


@dataclass(frozen=True)
class FormatDescriptor:
    """A format and its options. Made by `FormatDescriptor.for_format`."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """Start to describe a format."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """Return the name of the format."""
        return self.name

    def get_options(self) -> dict[str, str]:
        """Return the options of the format, by name."""
        return dict(sorted(self.options.items()))

    def __str__(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in sorted(self.options.items()))
        return f"{self.name}[{{{given}}}]"

    class Builder:
        """Collects the options of a format."""

        def __init__(self, format: str = "") -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: Any, value: Any) -> FormatDescriptor.Builder:
            """Set an option of the format."""
            name = key if isinstance(key, str) else key.key()
            self._options[name] = str(value).lower() if isinstance(value, bool) else str(value)
            return self

        def build(self) -> FormatDescriptor:
            """Return a descriptor with these options."""
            return FormatDescriptor(self._format, dict(self._options))

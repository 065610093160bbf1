"""Columns of a table that its files do not contain: values of directories `day=2024-02-29`, and metadata of files.

Spark's readers find them by themselves. This is for files that workers read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from headrace.errors import FormatError, UnsupportedFeatureError
from headrace.formats._scalars import reader_of
from headrace.storage.locations import Location
from headrace.storage.store import Entry
from headrace.types import logical
from headrace.types.logical import DataType
from headrace.types.type_information import type_information

__all__ = ["ImpliedColumns"]

#: Types that the name of a directory can have, as in Flink.
_OF_DIRECTORIES: Final = (
    *(logical.CharType, logical.VarCharType, logical.BooleanType, logical.DateType, logical.TimestampType),
    *(logical.TinyIntType, logical.SmallIntType, logical.IntType, logical.BigIntType),
    *(logical.FloatType, logical.DoubleType, logical.DecimalType),
)

#: What Java leaves in the path of a URI as it is.
_PLAIN: Final = "/:@!$&'()*+,;="


def _path(location: Location, entry: Entry) -> str:
    return str(location) if location.root else f"file://{quote(location.path, safe=_PLAIN)}"


def _modified(location: Location, entry: Entry) -> datetime | None:
    if entry.modified_s is None:
        return None
    return datetime.fromtimestamp(entry.modified_s, UTC).replace(tzinfo=None)


#: Metadata columns of files, by Flink's keys.
_METADATA: Final[Mapping[str, Callable[[Location, Entry], Any]]] = {
    "file.path": _path,
    "file.name": lambda location, entry: entry.name,
    "file.size": lambda location, entry: entry.size,
    "file.modification-time": _modified,
}


@dataclass(frozen=True)
class ImpliedColumns:
    """Finds the values of columns that files do not contain.

    Args:
        table: The name of the table, for messages.
        partitions: Columns whose values are in names of directories, with their types.
        metadata: Flink's keys of the other columns, by name.
        no_value: What a directory is called where its column is NULL.

    Raises:
        UnsupportedFeatureError: The name of a directory cannot have the type of its column.
    """

    table: str
    partitions: Mapping[str, DataType]
    metadata: Mapping[str, str]
    no_value: str

    def __post_init__(self) -> None:
        for name, data_type in self.partitions.items():
            if not isinstance(data_type, _OF_DIRECTORIES):
                raise UnsupportedFeatureError.not_yet(
                    f"table {self.table!r}: partition column {name!r} of type {data_type.summary_without_null()}"
                )

    def of(self, location: Location) -> dict[str, Any]:
        """Return the values of the columns for all records of a file.

        Raises:
            FormatError: The name of a directory is not a value of its column.
        """
        named = dict(_named(location.path.split("/")[:-1]))
        found = {name: self._value(name, named.get(name)) for name in self.partitions}
        if self.metadata:
            entry = location.look_up()
            found |= {name: _METADATA[key](location, entry) for name, key in self.metadata.items()}
        return found

    def _value(self, name: str, text: str | None) -> Any:
        if text is None or text == self.no_value:
            return None
        data_type = self.partitions[name]
        read = reader_of(type_information(data_type))
        assert read is not None, "checked when the table was made"
        try:
            return read(text)
        except ValueError:
            raise FormatError(
                f"partition column {name}: cannot convert {text!r} to {data_type.summary_without_null()}"
            ) from None


def _named(directories: Sequence[str]) -> list[tuple[str, str]]:
    parts = [each.partition("=") for each in directories]
    return [(name, unquote(value)) for name, sign, value in parts if sign]

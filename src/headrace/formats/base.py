"""What all record formats have in common: strict reading, and what is done when that fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from headrace.common.serialization import DeserializationSchema
from headrace.common.typeinfo import RowTypeInfo, TypeInformation
from headrace.errors import FormatError, JobDefinitionError

V = TypeVar("V")


class FormatDeserializationSchema(DeserializationSchema, ABC):
    """A format that reads records. Subclasses say what is strictly right; leniency comes second, if asked for.

    Args:
        type_info: The type of the records.
        ignore_parse_errors: Whether bytes that cannot be read are left out instead of failing the job.
    """

    #: Whether one message may hold several records, or none; then `parse` returns a list.
    yields_many = False

    def __init__(self, type_info: TypeInformation, *, ignore_parse_errors: bool = False) -> None:
        self._type_info = type_info
        self.ignores_parse_errors = ignore_parse_errors

    @abstractmethod
    def parse(self, message: bytes) -> Any:
        """Return the record, or the list of them if the format yields many.

        Raises:
            FormatError: The bytes are not what the format expects.
        """

    def parse_leniently(self, message: bytes) -> Any:
        """Return what is left of a record that `parse` refused, with None for what is wrong; None if nothing is."""
        return None

    def deserialize(self, message: bytes) -> Any:
        """Return the record; what cannot be read raises, unless parse errors are ignored.

        Raises:
            FormatError: The bytes are not what the format expects.
        """
        try:
            return self.parse(message)
        except FormatError:
            if not self.ignores_parse_errors:
                raise
            return self.parse_leniently(message)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self._type_info


class MadeInEachProcess(ABC):
    """A format with parts that do not pickle, or need not: the process that unpickles it makes them again."""

    #: The attributes that stay behind; `_prepare` sets them.
    made_here: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _prepare(self) -> None:
        """Make the parts; the rest of the format is there."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self.made_here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


def required(value: V | None, what: str, how: str) -> V:
    """Return a setting of a builder, which must be there.

    Raises:
        JobDefinitionError: It is not.
    """
    if value is None:
        raise JobDefinitionError(f"{what} is required", hint=f"call {how}")
    return value


def row_type(given: object, who: str) -> RowTypeInfo:
    """Return the type of rows that a format was given.

    Raises:
        JobDefinitionError: It is another type.
    """
    if not isinstance(given, RowTypeInfo):
        raise JobDefinitionError(
            f"{who}: expected the type of a row; got {given!r}", hint="use Types.ROW_NAMED([...], [...])"
        )
    return given


def row_values(row: Any, names: Sequence[str], who: str) -> Sequence[Any]:
    """Return the values of a row, tuple, list or dictionary that is to be written.

    Raises:
        FormatError: It is something else, or has another number of fields.
    """
    if isinstance(row, dict):
        return [row.get(name) for name in names]
    try:
        count = len(row)
    except TypeError:
        count = -1
    if count != len(names) or isinstance(row, str | bytes):
        raise FormatError(f"{who}: expected a row of {len(names)} fields ({', '.join(names)})", example=row)
    return list(row)

"""Rolling aggregations of a keyed stream: sum, min, max, min_by, max_by, as reduce functions over one field.

key 'a'    ('a', 3, 'x')   ('a', 1, 'y')   ('a', 2, 'z')
min(1)     ('a', 3, 'x')   ('a', 1, 'x')   ('a', 1, 'x')     the field's minimum; the rest of the first record
min_by(1)  ('a', 3, 'x')   ('a', 1, 'y')   ('a', 1, 'y')     the whole record that has it; the first of equals
"""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any

from headrace.common.typeinfo import BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from headrace.common.types import Row
from headrace.datastream.functions import ReduceFunction
from headrace.errors import JobDefinitionError, shorten

if TYPE_CHECKING:
    from headrace.datastream.data_stream import DataStream

Position = int | str


class AccumulateType(Enum):
    """How a field is aggregated."""

    MIN = 1
    MAX = 2
    MIN_BY = 3
    MAX_BY = 4
    SUM = 5


class FieldAggregation(ReduceFunction):
    """Aggregates one field of the records of a key.

    Args:
        kind: What happens to the field.
        position: An index into a tuple, list or Row, or a name in a Row, an object or a dictionary. Position
            0 of anything else is the record itself.

    Example:
        >>> FieldAggregation(AccumulateType.SUM, 1).reduce(("a", 1), ("a", 2))
        ('a', 3)
    """

    def __init__(self, kind: AccumulateType, position: Position) -> None:
        self.kind = kind
        self.position = position

    @property
    def needs_arrival_order(self) -> bool:
        """Whether the first of equal records counts, so that sliding windows cannot share slices."""
        return self.kind in (AccumulateType.MIN_BY, AccumulateType.MAX_BY)

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the value aggregated so far with the next record."""
        old, new = get_field(value1, self.position), get_field(value2, self.position)
        match self.kind:
            case AccumulateType.SUM:
                return with_field(value1, self.position, old + new)
            case AccumulateType.MIN:
                return with_field(value1, self.position, new) if new < old else value1
            case AccumulateType.MAX:
                return with_field(value1, self.position, new) if new > old else value1
            case AccumulateType.MIN_BY:
                return value2 if new < old else value1
            case AccumulateType.MAX_BY:
                return value2 if new > old else value1

    def __repr__(self) -> str:
        return f"FieldAggregation({self.kind.name}, {self.position!r})"


class FieldAggregations(ABC):
    """The methods of keyed streams and of windows that aggregate one field of their records."""

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Add up a field of the records of each key or window; the other fields are those of the first record.

        Args:
            position_to_sum: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate(AccumulateType.SUM, position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Find the least value of a field in each key or window; the other fields are those of the first record.

        Args:
            position_to_min: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate(AccumulateType.MIN, position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Find the greatest value of a field in each key or window; the other fields are those of the first record.

        Args:
            position_to_max: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate(AccumulateType.MAX, position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Find the record with the least value of a field in each key or window; the first of equal ones.

        Args:
            position_to_min_by: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate(AccumulateType.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Find the record with the greatest value of a field in each key or window; the first of equal ones.

        Args:
            position_to_max_by: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate(AccumulateType.MAX_BY, position_to_max_by)

    @abstractmethod
    def _accumulate(self, kind: AccumulateType, position: Position) -> DataStream:
        """Add the operator that aggregates the field."""


def get_field(record: Any, position: Position) -> Any:
    """Return a field of a record.

    Raises:
        JobDefinitionError: If the record does not have the field.
    """
    try:
        if isinstance(record, Row):
            return record[position]
        if isinstance(position, int):
            if isinstance(record, tuple | list):
                return record[position]
            if position == 0:
                return record
        elif isinstance(record, dict):
            return record[position]
        else:
            return getattr(record, position)
    except (IndexError, KeyError, AttributeError, ValueError, TypeError):
        pass
    raise JobDefinitionError(
        f"there is no field {position!r} in {type(record).__name__} {shorten(record)}",
        hint="fields have an index in a tuple or Row, and a name in a Row, an object or a dictionary",
    )


def with_field(record: Any, position: Position, value: Any) -> Any:
    """Return a copy of a record with one field changed. The record itself may still be in use elsewhere."""
    match record:
        case Row():
            changed = copy.copy(record)
            changed[position] = value
            return changed
        case tuple() if isinstance(position, str):  # a named tuple
            return record._replace(**{position: value})  # type: ignore[attr-defined]
        case tuple():
            fields = [*record]
            fields[int(position)] = value
            make = getattr(type(record), "_make", tuple)
            return make(fields)
        case list() | dict():
            container: Any = record.copy()
            container[position] = value
            return container
        case _ if isinstance(position, int):
            return value
        case _ if dataclasses.is_dataclass(record) and not isinstance(record, type):
            return dataclasses.replace(record, **{position: value})
        case _:
            changed = copy.copy(record)
            setattr(changed, position, value)
            return changed


def check_position(kind: AccumulateType, given: Any, type_info: TypeInformation | None) -> Position:
    """Accept an index or name, and one that the type has if the type is declared.

    Raises:
        JobDefinitionError: If it is neither, or the type has no such field.
    """
    call = kind.name.lower()
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise JobDefinitionError(
            f"{call}(): the position must be an index or a name, got {type(given).__name__} {shorten(given)}"
        )
    known: list[Position]
    match type_info:
        case RowTypeInfo():
            names = type_info.get_field_names()
            known = [*range(len(names)), *names]
        case TupleTypeInfo():
            known = [*range(len(type_info.get_field_types()))]
        case BasicTypeInfo():
            known = [0]
        case _:
            return given
    if given not in known:
        raise JobDefinitionError(
            f"{call}(): {type_info.summary()} has no field {given!r}",
            hint="it has " + ", ".join(repr(each) for each in known),
        )
    return given

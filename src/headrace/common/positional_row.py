"""Rows of a result print by position, as in PyFlink, and still know the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.common.types import Row, make_row


class PositionalRow(Row):
    """A row that shows no names, though its values can be asked for by name.

    Example:
        >>> row = by_position(Row(name="Alice", age=11))
        >>> row, row.name, row["age"], "name" in row
        (<Row('Alice', 11)>, 'Alice', 11, False)
    """

    __slots__ = ()

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Give the values names, which are shown from now on."""
        super().set_field_names(field_names)
        object.__setattr__(self, "__class__", Row)

    def __contains__(self, item: object) -> bool:
        return item in self._values

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[Any, ...]]:
        return by_position, (make_row(self._fields, self._values, self._row_kind.value),)

    def __repr__(self) -> str:
        return f"<Row({', '.join(map(repr, self._values))})>"


def by_position(value: Any) -> Any:
    """Return a value whose rows, however deep, show no names."""
    if isinstance(value, Row):
        row = make_row(value._fields, map(by_position, value._values), value._row_kind.value)
        object.__setattr__(row, "__class__", PositionalRow)
        return row
    if isinstance(value, list):
        return list(map(by_position, value))
    if isinstance(value, dict):
        return {key: by_position(each) for key, each in value.items()}
    return value

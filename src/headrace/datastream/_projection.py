"""The function behind `DataStream.project`."""

from __future__ import annotations

from typing import Any

from headrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from headrace.common.types import Row
from headrace.datastream.functions import MapFunction
from headrace.errors import JobDefinitionError, shorten

__all__ = ["Projection"]


class Projection(MapFunction):
    """Keeps some fields of a tuple or row."""

    def __init__(self, indexes: tuple[int, ...], type_info: TypeInformation | None) -> None:
        if not indexes:
            raise JobDefinitionError("project(): name at least one field")
        width = (
            len(type_info.get_field_types()) if isinstance(type_info, TupleTypeInfo | RowTypeInfo) else None
        )
        given: tuple[Any, ...] = indexes
        for index in given:
            is_index = isinstance(index, int) and not isinstance(index, bool) and index >= 0
            if not is_index or (width is not None and index >= width):
                limit = "" if width is None else f" below {width}"
                raise JobDefinitionError(
                    f"project(): a field must be an index from 0{limit}, got {shorten(index)}"
                )
        self.indexes = indexes

    def map(self, value: Any) -> Any:
        """Return the fields, as a row if they come from a row, else as a tuple."""
        fields = [value[index] for index in self.indexes]
        if not isinstance(value, Row):
            return tuple(fields)
        row = Row(*fields)
        row.set_row_kind(value.get_row_kind())
        names = getattr(value, "_fields", None)
        if names is not None:
            row.set_field_names([names[index] for index in self.indexes])
        return row

"""Types of accumulators with many values: lists and maps that a function sees through a view."""

from __future__ import annotations

from headrace.types.logical import ArrayType, DataType, MapType

__all__ = ["ListViewType", "MapViewType"]


class ListViewType(ArrayType):
    """A `ListView` of elements of one type; only accumulators have it."""

    __slots__ = ()

    def __init__(self, element_type: DataType) -> None:
        super().__init__(element_type, False)

    def summary_without_null(self) -> str:
        """As PyFlink writes it: `LIST_VIEW<STRING>`."""
        return f"LIST_VIEW<{self.element_type.summary()}>"

    def __repr__(self) -> str:
        return f"ListViewType({self.element_type!r})"


class MapViewType(MapType):
    """A `MapView` from keys of one type to values of another; only accumulators have it."""

    __slots__ = ()

    def __init__(self, key_type: DataType, value_type: DataType) -> None:
        super().__init__(key_type, value_type, False)

    def summary_without_null(self) -> str:
        """As PyFlink writes it: `MAP_VIEW<STRING, BIGINT>`."""
        return f"MAP_VIEW<{self.key_type.summary()}, {self.value_type.summary()}>"

    def __repr__(self) -> str:
        return f"MapViewType({self.key_type!r}, {self.value_type!r})"

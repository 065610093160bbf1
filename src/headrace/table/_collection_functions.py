"""Functions of arrays and maps, as methods of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.table._calls import Calls, call_property

if TYPE_CHECKING:
    from headrace.table.expression import Expression

__all__ = ["CollectionFunctions"]


class CollectionFunctions(Calls):
    """Functions of arrays and maps."""

    cardinality = call_property("CARDINALITY", "The number of elements.")

    element = call_property("ELEMENT", "The only element of an array.")

    map_keys = call_property("MAP_KEYS", "The keys of a map, as an array.")

    map_values = call_property("MAP_VALUES", "The values of a map, as an array.")

    map_entries = call_property("MAP_ENTRIES", "The entries of a map, as an array of rows.")

    def array_append(self, addition: Any) -> Expression[Any]:
        """The array with an element appended."""
        return self._call("ARRAY_APPEND", addition)

    def array_contains(self, needle: Any) -> Expression[Any]:
        """Whether the array has an element."""
        return self._call("ARRAY_CONTAINS", needle)

    def array_distinct(self) -> Expression[Any]:
        """The array with each element once."""
        return self._call("ARRAY_DISTINCT")

    def array_position(self, needle: Any) -> Expression[Any]:
        """The position of the first occurrence of an element, from 1; 0 if the array does not contain it."""
        return self._call("ARRAY_POSITION", needle)

    def array_prepend(self, addition: Any) -> Expression[Any]:
        """The array, and an element before it."""
        return self._call("ARRAY_PREPEND", addition)

    def array_remove(self, needle: Any) -> Expression[Any]:
        """The array without an element."""
        return self._call("ARRAY_REMOVE", needle)

    def array_reverse(self) -> Expression[Any]:
        """The array from its end to its start."""
        return self._call("ARRAY_REVERSE")

    def array_slice(self, start_offset: Any, end_offset: Any = None) -> Expression[Any]:
        """Part of the array, from a position that counts from 1."""
        return self._call("ARRAY_SLICE", start_offset, end_offset)

    def array_sort(self, ascending_order: Any = None, null_first: Any = None) -> Expression[Any]:
        """The array in order."""
        return self._call("ARRAY_SORT", ascending_order, null_first)

    def array_union(self, array: Any) -> Expression[Any]:
        """The elements that are in either array, once each."""
        return self._call("ARRAY_UNION", array)

    def array_concat(self, *arrays: Any) -> Expression[Any]:
        """The array with other arrays appended."""
        return self._call("ARRAY_CONCAT", *arrays)

    def array_max(self) -> Expression[Any]:
        """Return the greatest element of the array."""
        return self._call("ARRAY_MAX")

    def array_join(self, delimiter: Any, null_replacement: Any = None) -> Expression[Any]:
        """The elements as one text."""
        return self._call("ARRAY_JOIN", delimiter, null_replacement)

    def array_min(self) -> Expression[Any]:
        """Return the smallest element of the array."""
        return self._call("ARRAY_MIN")

    def array_except(self, array: Any) -> Expression[Any]:
        """The elements that the other array has not."""
        return self._call("ARRAY_EXCEPT", array)

    def array_intersect(self, array: Any) -> Expression[Any]:
        """The elements that are in both arrays."""
        return self._call("ARRAY_INTERSECT", array)

    def map_union(self, *maps: Any) -> Expression[Any]:
        """The map, and others over it."""
        return self._call("MAP_UNION", *maps)

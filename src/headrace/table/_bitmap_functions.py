"""Functions of bitmaps, and aggregations that make them, as methods of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.table._calls import Calls

if TYPE_CHECKING:
    from headrace.table.expression import Expression

__all__ = ["BitmapFunctions"]


class BitmapFunctions(Calls):
    """Functions of bitmaps, and aggregations that make them."""

    def bitmap_and(self, bitmap2: Any) -> Expression[Any]:
        """The values in both bitmaps."""
        return self._call("BITMAP_AND", bitmap2)

    def bitmap_andnot(self, bitmap2: Any) -> Expression[Any]:
        """The values that the other bitmap has not."""
        return self._call("BITMAP_ANDNOT", bitmap2)

    def bitmap_and_agg(self) -> Expression[Any]:
        """The values in all bitmaps of the group."""
        return self._call("BITMAP_AND_AGG")

    def bitmap_and_cardinality_agg(self) -> Expression[Any]:
        """How many values are in all bitmaps of the group."""
        return self._call("BITMAP_AND_CARDINALITY_AGG")

    def bitmap_build(self) -> Expression[Any]:
        """A bitmap of the numbers in an array."""
        return self._call("BITMAP_BUILD")

    def bitmap_build_agg(self) -> Expression[Any]:
        """A bitmap of the numbers of the group."""
        return self._call("BITMAP_BUILD_AGG")

    def bitmap_build_cardinality_agg(self) -> Expression[Any]:
        """How many numbers a bitmap of the group has."""
        return self._call("BITMAP_BUILD_CARDINALITY_AGG")

    def bitmap_cardinality(self) -> Expression[Any]:
        """How many values the bitmap has."""
        return self._call("BITMAP_CARDINALITY")

    def bitmap_from_bytes(self) -> Expression[Any]:
        """The bitmap that is serialized in these bytes."""
        return self._call("BITMAP_FROM_BYTES")

    def bitmap_or(self, bitmap2: Any) -> Expression[Any]:
        """The values in either bitmap."""
        return self._call("BITMAP_OR", bitmap2)

    def bitmap_or_agg(self) -> Expression[Any]:
        """The values in any bitmap of the group."""
        return self._call("BITMAP_OR_AGG")

    def bitmap_or_cardinality_agg(self) -> Expression[Any]:
        """How many values are in any bitmap of the group."""
        return self._call("BITMAP_OR_CARDINALITY_AGG")

    def bitmap_to_array(self) -> Expression[Any]:
        """The values of the bitmap, as an array."""
        return self._call("BITMAP_TO_ARRAY")

    def bitmap_to_bytes(self) -> Expression[Any]:
        """The bitmap as bytes."""
        return self._call("BITMAP_TO_BYTES")

    def bitmap_to_string(self) -> Expression[Any]:
        """The bitmap as text."""
        return self._call("BITMAP_TO_STRING")

    def bitmap_xor(self, bitmap2: Any) -> Expression[Any]:
        """The values in one of the two bitmaps."""
        return self._call("BITMAP_XOR", bitmap2)

    def bitmap_xor_agg(self) -> Expression[Any]:
        """The values in an odd number of the group's bitmaps."""
        return self._call("BITMAP_XOR_AGG")

    def bitmap_xor_cardinality_agg(self) -> Expression[Any]:
        """How many values are in an odd number of the group's bitmaps."""
        return self._call("BITMAP_XOR_CARDINALITY_AGG")

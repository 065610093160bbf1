"""Windows as bytes, under PyFlink's names and in Flink's layout: big-endian 64-bit numbers."""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

from headrace.common.serializer import TypeSerializer
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window

__all__ = [
    "CountWindowSerializer",
    "GlobalWindowSerializer",
    "PickledWindowSerializer",
    "TimeWindowSerializer",
]

_LONG = struct.Struct(">q")
_LONGS = struct.Struct(">qq")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes the start and the end.

    Example:
        >>> import io
        >>> stream = io.BytesIO()
        >>> TimeWindowSerializer().serialize(TimeWindow(0, 5), stream)
        >>> TimeWindowSerializer().deserialize(io.BytesIO(stream.getvalue()))
        TimeWindow(start=0, end=5)
    """

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        """Write start and end of the window, 16 bytes."""
        stream.write(_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        """Read start and end of the window."""
        return TimeWindow(*_LONGS.unpack(stream.read(_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Stores a `CountWindow` as its id, 8 bytes."""

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        """Write the id of the window, 8 bytes."""
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        """Read the id of the window."""
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes a byte that says nothing: there is only one such window."""

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        """Write a single zero byte: there is only one global window."""
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        """Read the placeholder byte and return the global window."""
        stream.read(1)
        return GlobalWindow.get()


class PickledWindowSerializer(TypeSerializer[Window]):
    """Pickles windows of any kind: for assigners that do not say how theirs are written."""

    def serialize(self, element: Window, stream: BinaryIO) -> None:
        """Write the window as a pickle."""
        pickle.dump(element, stream, protocol=5)

    def deserialize(self, stream: BinaryIO) -> Any:
        """Read a window from its pickle."""
        return pickle.load(stream)

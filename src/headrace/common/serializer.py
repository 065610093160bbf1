"""Serializers that write values to a stream of bytes, under PyFlink's names.

For users who bring their own, and for namespaces of state. State values go through `headrace.common.codec`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

__all__ = ["TypeSerializer", "VoidNamespaceSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values of a type to bytes and reads them back. Two of the same class are equal."""

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write one value to the stream."""

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read the value that was written."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(type(self).__name__)


class VoidNamespaceSerializer(TypeSerializer[None]):
    r"""Writes the namespace of state that has none: one zero byte, as Flink does.

    Example:
        >>> import io
        >>> stream = io.BytesIO()
        >>> VoidNamespaceSerializer().serialize(None, stream)
        >>> stream.getvalue()
        b'\x00'
    """

    def serialize(self, element: None, stream: BinaryIO) -> None:
        """Write a single zero byte: a void value has no content."""
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> None:
        """Read the placeholder byte and return None."""
        stream.read(1)

"""Values that headrace does not look into: pickled ones, and those that another type wraps."""

from __future__ import annotations

from typing import Any

from headrace.common.typeinfo.base import TypeInformation, checked_type


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object that can be pickled: the type of everything that declares none."""

    def summary(self) -> str:
        """Return the name that the type has in `Types`."""
        return "PICKLED_BYTE_ARRAY"

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class ExternalTypeInfo(TypeInformation):
    """A type of the Table API used in a stream; it behaves like the type it wraps.

    Args:
        type_info: The type.
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = checked_type(type_info, "an external type")

    def need_conversion(self) -> bool:
        """Whether the wrapped type needs it."""
        return self._type_info.need_conversion()

    def to_internal_type(self, obj: Any) -> Any:
        """Return what the wrapped type makes of it."""
        return self._type_info.to_internal_type(obj)

    def from_internal_type(self, obj: Any) -> Any:
        """Return what the wrapped type makes of it."""
        return self._type_info.from_internal_type(obj)

    def _parts(self) -> tuple[object, ...]:
        return (self._type_info,)

    def summary(self) -> str:
        """Return the type that it wraps, and that it does."""
        return f"EXTERNAL<{self._type_info.summary()}>"

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self._type_info!r}>"

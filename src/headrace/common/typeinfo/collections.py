"""Arrays, lists and maps."""

from __future__ import annotations

from typing import ClassVar, Final

from headrace.common.typeinfo.base import TypeInformation, checked_type
from headrace.common.typeinfo.basic import BasicType, BasicTypeInfo
from headrace.errors import TypeInferenceError


class ElementTypeInfo(TypeInformation):
    """A type made of one other type."""

    #: What is printed before the element type.
    _name: ClassVar[str]

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = checked_type(element_type, f"the elements of a {self._name}")

    @property
    def element_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._element_type

    def _parts(self) -> tuple[object, ...]:
        return (self._element_type,)

    def summary(self) -> str:
        """Return the type in the words of `Types`."""
        return f"{self._name}<{self._element_type.summary()}>"

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self._element_type!r}>"


_PRIMITIVES: Final = frozenset(
    {
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    }
)


class PrimitiveArrayTypeInfo(ElementTypeInfo):
    """A list of numbers or truth values without None. Of bytes: `bytes`.

    Args:
        element_type: A basic type with a fixed size.

    Raises:
        TypeInferenceError: If the elements have no fixed size.
    """

    _name = "PRIMITIVE_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if not (isinstance(element_type, BasicTypeInfo) and element_type.basic_type in _PRIMITIVES):
            raise TypeInferenceError(
                f"PRIMITIVE_ARRAY: expected elements of fixed size, for instance LONG; got {element_type.summary()}",
                hint="use Types.BASIC_ARRAY or Types.OBJECT_ARRAY",
            )


class BasicArrayTypeInfo(ElementTypeInfo):
    """A list of values of a basic type, which may be None.

    Args:
        element_type: A number, a truth value or a string.

    Raises:
        TypeInferenceError: If the elements are of another type.
    """

    _name = "BASIC_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        allowed = _PRIMITIVES | {BasicType.STRING}
        if not (isinstance(element_type, BasicTypeInfo) and element_type.basic_type in allowed):
            raise TypeInferenceError(
                f"BASIC_ARRAY: expected elements of a basic type, for instance STRING; got {element_type.summary()}",
                hint="use Types.OBJECT_ARRAY",
            )


class ObjectArrayTypeInfo(ElementTypeInfo):
    """A list of values of any type.

    Args:
        element_type: The type of the elements.
    """

    _name = "OBJECT_ARRAY"


class ListTypeInfo(ElementTypeInfo):
    """A list of values of any type, as state.

    Args:
        element_type: The type of the elements.
    """

    _name = "LIST"

    @property
    def elem_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._element_type


class MapTypeInfo(TypeInformation):
    """The type of `dict`.

    Args:
        key_type_info: The type of the keys.
        value_type_info: The type of the values.
    """

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type_info = checked_type(key_type_info, "the keys of a MAP")
        self._value_type_info = checked_type(value_type_info, "the values of a MAP")

    @property
    def key_type(self) -> TypeInformation:
        """The type of the keys."""
        return self._key_type_info

    @property
    def value_type(self) -> TypeInformation:
        """The type of the values."""
        return self._value_type_info

    def _parts(self) -> tuple[object, ...]:
        return (self._key_type_info, self._value_type_info)

    def summary(self) -> str:
        """Return the type in the words of `Types`."""
        return f"MAP<{self._key_type_info.summary()}, {self._value_type_info.summary()}>"

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info!r}, {self._value_type_info!r}>"

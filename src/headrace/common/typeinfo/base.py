"""What all type information has in common."""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.errors import TypeInferenceError, UnsupportedFeatureError


class TypeInformation:
    """The type of the values of a stream or state. Make one with `Types`.

    Types with the same parts are equal, hash alike and print as in PyFlink.
    """

    def get_java_type_info(self) -> NoReturn:
        """Not there: headrace has no Java objects behind its types.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("get_java_type_info", "use the Python type itself")

    def need_conversion(self) -> bool:
        """Whether the internal form of values differs from what user functions see."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Return the internal form of a value."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Return the value for an internal form."""
        return obj

    def _parts(self) -> tuple[object, ...]:
        """What makes two types of the same class equal."""
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parts()))

    def summary(self) -> str:
        """Return the type in the words of `Types`: messages show it, and state files name types by it."""
        return type(self).__name__.removesuffix("TypeInfo").upper()

    def __repr__(self) -> str:
        return type(self).__name__


def checked_type(given: object, what: str) -> TypeInformation:
    """Return the given type; raise an error that says what to pass if it is not a type."""
    if isinstance(given, TypeInformation):
        return given
    hint = "call it: Types.STRING()" if callable(given) else "use one of Types, such as Types.STRING()"
    raise TypeInferenceError(f"{what}: expected type information; got {given!r}", hint=hint)

"""How types print: as in PyFlink, `DecimalType(10, 2, true)` for `repr` and `DECIMAL` for `str`."""

from __future__ import annotations

from typing import Any

__all__ = ["ShownField", "ShownRow", "ShownType"]


class ShownType:
    """A type that prints its class, what it was made with, and whether it has NULL."""

    __slots__ = ()

    _nullable: bool

    def _parameters(self) -> tuple[Any, ...]:
        return ()

    @classmethod
    def type_name(cls) -> str:
        """The name of the class without `Type`, in capitals: `BIGINT`, and `LOCALZONEDTIMESTAMP` for TIMESTAMP_LTZ."""
        return cls.__name__.removesuffix("Type").upper()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join([*map(repr, self._parameters()), self._shown_nullability()])})"
        )

    def __str__(self) -> str:
        return self.type_name()

    def _shown_nullability(self) -> str:
        return str(self._nullable).lower()


class ShownField:
    """A field of a row, with its name, type and comment."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        return f"RowField({self.name}, {self.data_type!r}, {self.description or '...'})"

    def __str__(self: Any) -> str:
        return f"RowField({self.name}, {self.data_type})"


class ShownRow(ShownType):
    """A type that prints its fields."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        return f"RowType({','.join(map(repr, self.fields))})"

"""Types made of fields: rows and tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.common.typeinfo.base import TypeInformation, checked_type
from headrace.common.types import Row, make_row
from headrace.errors import TypeInferenceError


class RowTypeInfo(TypeInformation):
    """The type of `Row`; internally a tuple of the row's kind and its values.

    Args:
        field_types: The types of the fields.
        field_names: Their names; `f0`, `f1`, ... if None.

    Raises:
        TypeInferenceError: If names and types differ in number, or a name comes twice.
    """

    def __init__(
        self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None
    ) -> None:
        self._field_types = tuple(checked_type(each, "a field of a ROW") for each in field_types)
        names = [f"f{i}" for i in range(len(field_types))] if field_names is None else field_names
        if len(names) != len(self._field_types):
            raise TypeInferenceError(
                f"ROW: expected as many names as types; got {len(names)} names and {len(field_types)} types"
            )
        if len(set(names)) != len(names):
            raise TypeInferenceError(f"ROW: expected names that differ; got {', '.join(names)}")
        self._field_names = tuple(names)
        self._has_names = field_names is not None
        self._need_conversion = any(each.need_conversion() for each in self._field_types)

    def get_field_names(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._field_names)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field; without fields, -1.

        Raises:
            ValueError: If no field has that name.
        """
        return self._field_names.index(field_name) if self._field_names else -1

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the kind and values of a row, dict, tuple, list or object with attributes.

        Raises:
            TypeInferenceError: If the value has other fields than the type.

        Example:
            >>> import datetime
            >>> from headrace.common.typeinfo import Types
            >>> Types.ROW_NAMED(["d"], [Types.SQL_DATE()]).to_internal_type({"d": datetime.date(1970, 1, 2)})
            (0, 1)
        """
        if obj is None:
            return None
        kind = obj.get_row_kind().value if isinstance(obj, Row) else 0
        values = self._values_of(obj)
        if self._need_conversion:
            pairs = zip(self._field_types, values, strict=True)
            values = [field.to_internal_type(value) for field, value in pairs]
        return (kind, *values)

    def from_internal_type(self, obj: Any) -> Any:
        """Return the row with names and kind; a Row is returned unchanged."""
        if obj is None or isinstance(obj, Row):
            return obj
        kind, *values = obj
        if self._need_conversion:
            pairs = zip(self._field_types, values, strict=True)
            values = [field.from_internal_type(value) for field, value in pairs]
        return make_row(self._field_names, values, kind)

    def _values_of(self, obj: Any) -> Sequence[Any]:
        if isinstance(obj, dict):
            return [obj.get(name) for name in self._field_names]
        if isinstance(obj, Row | tuple | list):
            if len(obj) != len(self._field_names):
                raise TypeInferenceError(
                    f"{self.summary()}: expected {len(self._field_names)} values; got {len(obj)}: {obj!r}"
                )
            return list(obj)
        if hasattr(obj, "__dict__"):
            return [getattr(obj, name, None) for name in self._field_names]
        raise TypeInferenceError(f"{self.summary()}: expected a Row, dict or tuple; got {obj!r}")

    def _parts(self) -> tuple[object, ...]:
        return (self._field_types, self._field_names)

    def summary(self) -> str:
        """Return the type in the words of `Types`."""
        pairs = zip(self._field_names, self._field_types, strict=True)
        return f"ROW<{', '.join(f'{name}: {field.summary()}' for name, field in pairs)}>"

    def __repr__(self) -> str:
        pairs = zip(self._field_names, self._field_types, strict=True)
        shown = [f"{name}: {field!r}" if self._has_names else repr(field) for name, field in pairs]
        return f"RowTypeInfo({', '.join(shown)})"


class RowDataTypeInfo(RowTypeInfo):
    """The type of `Row`s that a format of tables reads, such as the CSV files of a `FileSource`.

    Like a ROW, but written as Flink writes rows of tables: `+I(1,x,true,null)`.
    """


class TupleTypeInfo(TypeInformation):
    """The type of `tuple` with fields of given types; internally a tuple, too.

    Args:
        field_types: The types of the fields.
    """

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = tuple(checked_type(each, "a field of a TUPLE") for each in field_types)
        self._need_conversion = any(each.need_conversion() for each in self._field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def need_conversion(self) -> bool:
        """Whether any field needs it."""
        return self._need_conversion

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the internal forms of the fields.

        Raises:
            TypeInferenceError: If the value is not a tuple, list or row of this length.
        """
        if obj is None:
            return None
        if not isinstance(obj, tuple | list | Row) or len(obj) != len(self._field_types):
            raise TypeInferenceError(
                f"{self.summary()}: expected {len(self._field_types)} values; got {obj!r}"
            )
        pairs = zip(self._field_types, obj, strict=True)
        return tuple(field.to_internal_type(value) for field, value in pairs)

    def from_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the tuple for the internal forms of its fields."""
        if obj is None:
            return None
        pairs = zip(self._field_types, obj, strict=True)
        return tuple(field.from_internal_type(value) for field, value in pairs)

    def _parts(self) -> tuple[object, ...]:
        return self._field_types

    def summary(self) -> str:
        """Return the type in the words of `Types`."""
        return f"TUPLE<{', '.join(each.summary() for each in self._field_types)}>"

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self._field_types))})"

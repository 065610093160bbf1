"""`TableSchema`: names and types of the columns of a table, PyFlink's former way to say it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.types import DataType, RowField, RowType

__all__ = ["TableSchema"]


class TableSchema:
    """Names and types of columns.

    Example:
        >>> from headrace.types import DataTypes
        >>> TableSchema(["id"], [DataTypes.BIGINT()]).get_field_data_type("id")
        BigIntType(true)
    """

    def __init__(
        self, field_names: Sequence[str] | None = None, data_types: Sequence[DataType] | None = None
    ) -> None:
        self._names = list(field_names or ())
        self._types = list(data_types or ())

    @classmethod
    def builder(cls) -> TableSchema.Builder:
        """Start to collect columns."""
        return TableSchema.Builder()

    def copy(self) -> TableSchema:
        """Return the same schema again."""
        return TableSchema(self._names, self._types)

    def get_field_data_types(self) -> list[DataType]:
        """Return the types of the columns."""
        return list(self._types)

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """Return the type of a column, by name or position; None if it does not exist."""
        at = self._names.index(field) if isinstance(field, str) and field in self._names else field
        return self._types[at] if isinstance(at, int) and 0 <= at < len(self._types) else None

    def get_field_count(self) -> int:
        """Return how many columns there are."""
        return len(self._names)

    def get_field_names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """Return the name of a column by its position; None if it does not exist."""
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def to_row_data_type(self) -> RowType:
        """Return the columns as the fields of a row."""
        return RowType([RowField(name, each) for name, each in zip(self._names, self._types, strict=True)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableSchema):
            return NotImplemented
        return (self._names, self._types) == (other._names, other._types)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))

    def __repr__(self) -> str:
        lines = [
            f" |-- {name}: {each.summary()}" for name, each in zip(self._names, self._types, strict=True)
        ]
        return "\n".join(["root", *lines]) + "\n"

    class Builder:
        """Builds a `TableSchema` column by column."""

        def __init__(self) -> None:
            self._names: list[str] = []
            self._types: list[DataType] = []

        def field(self, name: str, data_type: DataType) -> TableSchema.Builder:
            """Add a column with a name and a type."""
            self._names.append(name)
            self._types.append(data_type)
            return self

        def build(self) -> TableSchema:
            """Return a `TableSchema` with these columns."""
            return TableSchema(self._names, self._types)

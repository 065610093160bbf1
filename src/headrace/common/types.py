"""Rows and their kinds: the records of tables, and of streams that want named fields.

PyFlink's `Row`, with slots instead of a dictionary because streams are made of them. A row compares and
hashes by its kind and values, as a named tuple does: field names are a way to reach values, not part of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, NoReturn, overload

from headrace.errors import UnsupportedFeatureError

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """What a row does to a table: the four marks of a changelog."""

    #: A new row.
    INSERT = 0
    #: The row as it was before an update; comes before UPDATE_AFTER.
    UPDATE_BEFORE = 1
    #: The row as it is after an update.
    UPDATE_AFTER = 2
    #: A row that is gone.
    DELETE = 3

    def short_string(self) -> str:
        """Return the mark as Flink prints it.

        Example:
            >>> RowKind.UPDATE_AFTER.short_string()
            '+U'
        """
        return _MARKS[self.value]

    def __str__(self) -> str:
        """Return the mark as Flink prints it."""
        return self.short_string()

    def to_j_row_kind(self) -> NoReturn:
        """Not there: headrace has no Java objects behind its values.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("to_j_row_kind", "use the Python object itself")


_MARKS = ("+I", "-U", "+U", "-D")
_KINDS = tuple(RowKind)
_INSERT = RowKind.INSERT


class Row:
    """A record with values by position, and by name if it has field names.

    Args:
        *args: The values. Or, for a row that is to be called, the field names.
        **kwargs: The values by name; use either these or positions.

    Raises:
        ValueError: If there are both positional and named values.

    Example:
        >>> row = Row(name="Alice", age=11)
        >>> row.name, row["age"], row[1], len(row)
        ('Alice', 11, 11, 2)
        >>> Person = Row("name", "age")
        >>> Person("Alice", 11) == row
        True
        >>> print(Row("Alice", 11), row)
        <Row('Alice', 11)> Row(name='Alice', age=11)
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _values: list[Any]
    _fields: tuple[str, ...] | None
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("a Row takes positional or named values, not both")
            _set_values(self, list(kwargs.values()))
            _set_fields(self, tuple(kwargs))
        else:
            _set_values(self, list(args))
            _set_fields(self, None)
        _set_kind(self, _INSERT)

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Make a row of a kind other than INSERT."""
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the values by name.

        Args:
            recursive: Whether rows inside values become dictionaries, too.

        Raises:
            TypeError: If the row has no field names.

        Example:
            >>> Row(id=1, pos=Row(x=2, y=3)).as_dict(recursive=True)
            {'id': 1, 'pos': {'x': 2, 'y': 3}}
        """
        if self._fields is None:
            raise TypeError(f"{self!r} has no field names and cannot become a dict; use set_field_names")
        values = [_plain(value) for value in self._values] if recursive else self._values
        return dict(zip(self._fields, values, strict=True))

    def get_row_kind(self) -> RowKind:
        """Return what the row does to a table."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Change what the row does to a table."""
        if not isinstance(row_kind, RowKind):
            raise TypeError(f"expected a RowKind; got {row_kind!r}")
        _set_kind(self, row_kind)

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Give the values names.

        Raises:
            ValueError: If there are not as many names as values.
        """
        if len(field_names) != len(self._values):
            raise ValueError(f"{self!r} has {len(self._values)} values; got the names {list(field_names)}")
        _set_fields(self, tuple(field_names))

    def get_fields_by_names(self, names: Iterable[str]) -> list[Any]:
        """Return the values of some fields.

        Raises:
            ValueError: If there is no such field.

        Example:
            >>> Row(a=1, b=2, c=3).get_fields_by_names(["c", "a"])
            [3, 1]
        """
        return [self._values[self._index(name)] for name in names]

    def _index(self, name: object) -> int:
        if self._fields is None:
            raise ValueError(
                f"no field {name!r}: the row has no field names; use set_field_names or positions"
            )
        try:
            return self._fields.index(name)
        except ValueError:
            raise ValueError(f"no field {name!r}; the fields are {', '.join(self._fields)}") from None

    def __call__(self, *args: Any) -> Row:
        """Make a row whose field names are the values of this one; the last fields may be left out."""
        names = self._values[: len(args)]
        if len(args) > len(self._values):
            raise ValueError(
                f"expected {len(self._values)} values for the fields {self._values}; got {len(args)}: {args}"
            )
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"{self!r} cannot make rows: its values are not all field names")
        return make_row(tuple(names), args, 0)

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    @overload
    def __getitem__(self, item: slice) -> list[Any]: ...

    @overload
    def __getitem__(self, item: int | str) -> Any: ...

    def __getitem__(self, item: int | str | slice) -> Any:
        if isinstance(item, int | slice):
            return self._values[item]
        return self._values[self._index(item)]

    def __setitem__(self, key: int | str, value: Any) -> None:
        self._values[key if isinstance(key, int) else self._index(key)] = value

    def __getattr__(self, item: str) -> Any:
        # Only called when there is no such attribute. Names with underscores are asked for by copy and
        # pickle, on rows that are not filled in yet.
        if item.startswith("_"):
            raise AttributeError(item)
        try:
            return self._values[self._index(item)]
        except ValueError as error:
            raise AttributeError(error.args[0]) from None

    def __setattr__(self, key: str, value: Any) -> None:
        try:
            self._values[self._index(key)] = value
        except ValueError as error:
            raise AttributeError(error.args[0]) from None

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[Any, ...]]:
        # Rows fill buffers and state: the common kinds of row have the shortest form.
        if self._fields is None and self._row_kind is _INSERT:
            return Row, tuple(self._values)
        return make_row, (self._fields, tuple(self._values), self._row_kind.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._row_kind is other._row_kind and self._values == other._values

    def __hash__(self) -> int:
        return hash((self._row_kind.value, *self._values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        """Return the row as PyFlink writes it: `Row(name='Alice', age=11)`, or `<Row('Alice', 11)>` without names."""
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        pairs = zip(self._fields, self._values, strict=True)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in pairs)})"


# `__setattr__` is taken by field names; the slots' own setters go past it and are quick.
_set_values = vars(Row)["_values"].__set__
_set_fields = vars(Row)["_fields"].__set__
_set_kind = vars(Row)["_row_kind"].__set__


def make_row(fields: tuple[str, ...] | None, values: Iterable[Any], kind: int) -> Row:
    """Make a row of all its parts; `kind` is the value of a RowKind."""
    row: Row = Row.__new__(Row)
    _set_values(row, list(values))
    _set_fields(row, fields)
    _set_kind(row, _KINDS[kind])
    return row


def rows_of(fields: tuple[str, ...], columns: Sequence[Sequence[Any]]) -> list[Row]:
    """Make rows of columns of equal length, each as a list of values."""
    rows: list[Row] = []
    append, new = rows.append, Row.__new__
    for values in zip(*columns, strict=True):
        row: Row = new(Row)
        _set_values(row, list(values))
        _set_fields(row, fields)
        _set_kind(row, _INSERT)
        append(row)
    return rows


def _plain(value: Any) -> Any:
    """Turn rows within a value into dictionaries."""
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def changelog_text(row: Row) -> str:
    """Write a row as tables are printed: its mark and its values.

    Example:
        >>> changelog_text(Row.of_kind(RowKind.DELETE, "Alice", None))
        '-D[Alice, null]'
    """
    return f"{row._row_kind.short_string()}[{', '.join(map(_printed, row._values))}]"


def _printed(value: Any) -> str:
    """Write a value as Flink does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Row):
        return changelog_text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_printed, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_printed(k)}={_printed(v)}" for k, v in value.items()) + "}"
    return str(value)

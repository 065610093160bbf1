"""Rows and their kinds."""

from pyflink.common import Row, RowKind

from . import values

_NAMED = Row(name="Alice", age=11)
_PLAIN = Row("Alice", 11)


def _renamed():
    row = Row("Alice", 11)
    row.set_field_names(["n", "a"])
    return row


def _changed():
    row = Row("Alice", 11)
    row[1] = 12
    return list(row)


def _changed_by_name():
    row = Row(name="Alice", age=11)
    row["age"] = 12
    return row


def _kinds():
    row = Row(1)
    row.set_row_kind(RowKind.DELETE)
    return row.get_row_kind()


values(
    contains_name=lambda: "name" in _NAMED,
    contains_value_of_named=lambda: "Alice" in _NAMED,
    contains_value=lambda: ("Alice" in _PLAIN, "name" in _PLAIN),
    str_plain=lambda: str(_PLAIN),
    str_named=lambda: str(_NAMED),
    str_none=lambda: str(Row(None, True, 1.5)),
    str_empty=lambda: str(Row()),
    repr_named=lambda: repr(_NAMED),
    length=lambda: len(_PLAIN),
    by_position=lambda: _PLAIN[0],
    by_negative_position=lambda: _PLAIN[-1],
    by_slice=lambda: list(_PLAIN[0:1]),
    by_name=lambda: _NAMED["age"],
    by_attribute=lambda: _NAMED.age,
    as_list=lambda: list(_PLAIN),
    as_tuple=lambda: tuple(_NAMED),
    contains=lambda: ("Alice" in _PLAIN, "Bob" in _PLAIN),
    as_dict=_NAMED.as_dict,
    as_dict_recursive=lambda: Row(a=1, b=Row(c=2)).as_dict(True),
    as_dict_plain=_PLAIN.as_dict,
    missing_name=lambda: _NAMED["no"],
    missing_attribute=lambda: _NAMED.no,
    missing_position=lambda: _PLAIN[5],
    name_of_plain=lambda: _PLAIN["name"],
    renamed=lambda: _renamed().as_dict(),
    changed=_changed,
    changed_by_name=_changed_by_name,
    mixed_arguments=lambda: Row(1, b=2),
    called=lambda: Row("name", "age")("Bob", 5),
    called_with_few=lambda: Row("name", "age")("Bob"),
    kind_default=_PLAIN.get_row_kind,
    kind_set=_kinds,
    kind_of=lambda: Row.of_kind(RowKind.UPDATE_AFTER, 1, 2).get_row_kind(),
    kinds=lambda: [str(kind) for kind in RowKind],
    kind_names=lambda: [kind.name for kind in RowKind],
    kind_values=lambda: [kind.value for kind in RowKind],
    equal=lambda: Row(1, 2) == Row(1, 2),
    unequal=lambda: Row(1, 2) == Row(2, 1),
    equal_named=lambda: Row(a=1) == Row(a=1),
    unequal_kinds=lambda: Row(1) == Row.of_kind(RowKind.DELETE, 1),
    unequal_tuple=lambda: Row(1) == (1,),
    iterates=lambda: [each for each in Row(1, "a", None)],
    fields_by_names=lambda: _NAMED.get_fields_by_names(["age", "name"]),
)

"""Functions of arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace import types as t
from headrace.planner.coercion import can_cast_implicitly, common_type, is_string
from headrace.planner.expressions import Call
from headrace.planner.functions.registry import FunctionRegistry, same_as
from headrace.planner.functions.signature import (
    Nulls,
    Resolved,
    Resolver,
    Result,
    WrongArguments,
    signature,
)
from headrace.planner.functions.text import any_is_null, constant, quoted
from headrace.planner.functions.variants import variant_item, variant_item_type

__all__ = ["COLLECTIONS"]

COLLECTIONS: Final = FunctionRegistry("collection")
_INT: Final = t.IntType()
_ALWAYS: Final = Nulls.ALWAYS


def _one_type(name: str, types: Sequence[t.DataType]) -> t.DataType:
    found = common_type(types)
    if found is None:
        shown = ", ".join(one.summary_without_null() for one in types)
        raise WrongArguments(f"{name} holds values of one type, not {shown}")
    return found


def _array(types: Sequence[t.DataType]) -> Resolved:
    if not types:
        raise WrongArguments("ARRAY needs at least one element", "its type comes from its elements")
    element = _one_type("ARRAY", types)
    return tuple(element for _ in types), t.ArrayType(element, False)


def _map(types: Sequence[t.DataType]) -> Resolved:
    if not types or len(types) % 2:
        raise WrongArguments("MAP takes keys and values in turn", "MAP[key, value, key, value, ...]")
    key, value = _one_type("MAP", types[::2]), _one_type("MAP", types[1::2])
    return tuple(key if place % 2 == 0 else value for place in range(len(types))), t.MapType(
        key, value, False
    )


def _row(types: Sequence[t.DataType]) -> Resolved:
    fields = [t.RowField(f"EXPR${place}", one) for place, one in enumerate(types)]
    return tuple(types), t.RowType(fields, False)


def _emit_row(call: Call, operands: list[str]) -> str:
    assert isinstance(call.type, t.RowType)
    pairs = (f"{quoted(field.name)}, {text}" for field, text in zip(call.type, operands, strict=True))
    return f"named_struct({', '.join(pairs)})"


COLLECTIONS.add_shape("ARRAY", "ARRAY[value, ...]", "An array of values.", _array, "array({all})")
COLLECTIONS.add_shape("MAP", "MAP[key, value, ...]", "A map of keys to values.", _map, "map({all})")
COLLECTIONS.add_shape(
    "ROW", "ROW(value, ...)", "A row of values; also `(value, value, ...)`.", _row, _emit_row
)


def _item(types: Sequence[t.DataType]) -> Resolved:
    collection, key = types
    if isinstance(key, t.NullType):
        raise WrongArguments("the type of this NULL is not known", "write CAST(NULL AS ...)")
    match collection:
        case t.ArrayType():
            if not isinstance(key, t.IntegralType):
                raise WrongArguments(f"an array index must be an integer, not {key.summary_without_null()}")
            return (collection, t.IntType(key.is_nullable)), collection.element_type.nullable()
        case t.MapType():
            if common_type([collection.key_type, key]) is None:
                raise WrongArguments(
                    f"the keys are {collection.key_type.summary_without_null()}, not {key.summary_without_null()}"
                )
            return (collection, collection.key_type.with_nullability(key.is_nullable)), (
                collection.value_type.nullable()
            )
        case t.VariantType():
            return variant_item_type(types)
        case _:
            raise WrongArguments(
                f"[ ] needs an array, a map or a VARIANT, not {collection.summary_without_null()}"
            )


def _emit_item(call: Call, operands: list[str]) -> str:
    if isinstance(call.operands[0].type, t.VariantType):
        return variant_item(call, operands)
    if isinstance(call.operands[0].type, t.MapType):
        return f"element_at({operands[0]}, {operands[1]})"
    place = constant(call.operands[1])
    if isinstance(place, int) and place < 1:
        raise WrongArguments(f"the index of an array element starts at 1; got {place}")
    return f"get({operands[0]}, {operands[1]} - 1)"


COLLECTIONS.add_shape(
    "ITEM",
    "array[place], map[key]",
    "The element at a position, counted from 1, or the value of a key; NULL if it does not exist.",
    _item,
    _emit_item,
    is_form=True,
)


def _element(types: Sequence[t.DataType]) -> t.DataType:
    one = types[0]
    assert isinstance(one, t.ArrayType)
    return one.element_type


def _common_arrays(name: str) -> Resolver:
    """Arrays as arrays of one type."""

    def resolve(types: Sequence[t.DataType]) -> Resolved:
        arguments = _bound(f"{name}(array ARRAY [, other ARRAY...])", types)
        found = t.ArrayType(_one_type(name, [_element([one]) for one in arguments]))
        made = tuple(found.with_nullability(one.is_nullable) for one in types)
        return made, found.with_nullability(any(one.is_nullable for one in types))

    return resolve


def _bound(text: str, types: Sequence[t.DataType]) -> tuple[t.DataType, ...]:
    return signature(text).bind(types)


def _with_element(name: str, result: Callable[[t.ArrayType, t.DataType], t.DataType]) -> Resolver:
    """An array and a value that goes into it without a CAST."""

    def resolve(types: Sequence[t.DataType]) -> Resolved:
        array, value = _bound(f"{name}(array ARRAY, element ANY)", types)
        assert isinstance(array, t.ArrayType)
        if not can_cast_implicitly(value, array.element_type):
            raise WrongArguments(
                f"{name}: {value.summary_without_null()} cannot be an element of {array.summary_without_null()}",
                "CAST it to the type of the elements",
            )
        element = array.element_type.with_nullability(types[1].is_nullable)
        return (array, element), result(array, element)

    return resolve


def _grown(array: t.ArrayType, element: t.DataType) -> t.DataType:
    nullable = array.element_type.is_nullable or element.is_nullable
    return t.ArrayType(
        array.element_type.with_nullability(nullable), array.is_nullable or element.is_nullable
    )


def _sortable(name: str) -> Result:
    """An array of values that have an order."""

    def result(types: Sequence[t.DataType]) -> t.DataType:
        element = _element(types)
        if isinstance(element, t.BooleanType | t.ArrayType | t.MapType | t.MultisetType | t.RowType):
            raise WrongArguments(
                f"{name} takes an array of values that can be ordered, not {types[0].summary_without_null()}"
            )
        return types[0]

    return result


COLLECTIONS.add(
    "CARDINALITY(collection COLLECTION)",
    _INT,
    "IF({0} IS NULL, NULL, size({0}))",
    "The number of elements.",
)
COLLECTIONS.add(
    "ELEMENT(array ARRAY)",
    _element,
    lambda call, each: (
        f"IF(size({each[0]}) > 1, CAST(raise_error('ELEMENT takes an array of one element') AS "
        f"{call.type.spark_name()}), get({each[0]}, 0))"
    ),
    "The only element; NULL for an empty array.",
)
COLLECTIONS.add_shape(
    "ARRAY_APPEND",
    "ARRAY_APPEND(array, element)",
    "The array with an element at its end.",
    _with_element("ARRAY_APPEND", _grown),
    "array_append({0}, {1})",
    exact=False,
)
COLLECTIONS.add_shape(
    "ARRAY_PREPEND",
    "ARRAY_PREPEND(array, element)",
    "The array with an element at its start.",
    _with_element("ARRAY_PREPEND", _grown),
    "array_prepend({0}, {1})",
    exact=False,
)
COLLECTIONS.add_shape(
    "ARRAY_CONTAINS",
    "ARRAY_CONTAINS(array, element)",
    "Whether an element is in the array.",
    _with_element("ARRAY_CONTAINS", lambda array, _: t.BooleanType(array.is_nullable)),
    "exists({0}, __one -> __one <=> {1})",
    exact=False,
)
COLLECTIONS.add(
    "ARRAY_DISTINCT(array ARRAY)", same_as(), "array_distinct({0})", "The array with each element once."
)
COLLECTIONS.add_shape(
    "ARRAY_POSITION",
    "ARRAY_POSITION(array, element)",
    "The position of an element, counted from 1; 0 if it is not found.",
    _with_element(
        "ARRAY_POSITION", lambda array, element: t.IntType(array.is_nullable or element.is_nullable)
    ),
    "array_position({0}, {1})",
    exact=False,
)
COLLECTIONS.add_shape(
    "ARRAY_REMOVE",
    "ARRAY_REMOVE(array, element)",
    "The array without an element.",
    _with_element("ARRAY_REMOVE", lambda array, _: array),
    "filter({0}, __one -> NOT (__one <=> {1}))",
    exact=False,
)
COLLECTIONS.add("ARRAY_REVERSE(array ARRAY)", same_as(), "reverse({0})", "The array backwards.")
for _name, _emission, _what in (
    ("ARRAY_UNION", "array_union({0}, {1})", "Elements of both arrays, each once."),
    ("ARRAY_CONCAT", "concat({all})", "The arrays joined."),
    ("ARRAY_EXCEPT", "array_except({0}, {1})", "Elements of the first array that are not in the second."),
    ("ARRAY_INTERSECT", "array_intersect({0}, {1})", "Elements that are in both arrays."),
):
    COLLECTIONS.add_shape(
        _name,
        f"{_name}(array, other{', ...' if _name == 'ARRAY_CONCAT' else ''})",
        _what,
        _common_arrays(_name),
        _emission,
        exact=False,
    )


def _sortable_element(name: str) -> Result:
    return lambda types: _element([_sortable(name)(types)])


for _name, _what in (("ARRAY_MAX", "largest"), ("ARRAY_MIN", "smallest")):
    COLLECTIONS.add(
        f"{_name}(array ARRAY)",
        _sortable_element(_name),
        f"{_name.lower()}({{0}})",
        f"The {_what} element.",
        nulls=_ALWAYS,
    )


def _joined(types: Sequence[t.DataType]) -> t.DataType:
    if not is_string(_element(types)):
        raise WrongArguments(f"ARRAY_JOIN takes an array of strings, not {types[0].summary_without_null()}")
    return t.DataTypes.STRING()


COLLECTIONS.add(
    "ARRAY_JOIN(array ARRAY, delimiter STRING [, null STRING])",
    _joined,
    "array_join({all})",
    "The elements as one string.",
)


def _emit_slice(call: Call, operands: list[str]) -> str:
    array, size = operands[0], f"size({operands[0]})"

    def place(text: str) -> str:
        return f"IF({text} < 0, {size} + {text} + 1, IF({text} = 0, 1, {text}))"

    last = place(operands[2]) if len(operands) > 2 else size
    part = f"filter({array}, (__one, __at) -> __at + 1 BETWEEN {place(operands[1])} AND {last})"
    return f"IF({any_is_null(operands[1:])}, NULL, {part})"


COLLECTIONS.add(
    "ARRAY_SLICE(array ARRAY, start INT [, end INT])",
    same_as(),
    _emit_slice,
    "The elements between two positions, both included; negative positions count from the end.",
)


def _emit_sort(_: Call, operands: list[str]) -> str:
    array, *how = operands
    ascending = how[0] if how else "true"
    if len(how) < 2:
        either = f"IF({ascending}, sort_array({array}, true), sort_array({array}, false))"
        return f"IF({ascending} IS NULL, NULL, {either})"
    nulls, rest = f"filter({array}, __one -> __one IS NULL)", f"filter({array}, __one -> __one IS NOT NULL)"
    ordered = f"IF({ascending}, sort_array({rest}, true), sort_array({rest}, false))"
    known = f"{ascending} IS NULL OR {how[1]} IS NULL"
    either = f"WHEN {how[1]} THEN concat({nulls}, {ordered}) ELSE concat({ordered}, {nulls})"
    return f"CASE WHEN {known} THEN NULL {either} END"


COLLECTIONS.add(
    "ARRAY_SORT(array ARRAY [, ascending BOOLEAN, nulls_first BOOLEAN])",
    _sortable("ARRAY_SORT"),
    _emit_sort,
    "The elements in order; NULL is the smallest unless nulls_first is given.",
)


def _parts(types: Sequence[t.DataType]) -> t.MapType:
    one = types[0]
    assert isinstance(one, t.MapType)
    return one


COLLECTIONS.add(
    "MAP_KEYS(map MAP)", lambda types: t.ArrayType(_parts(types).key_type), "map_keys({0})", "The keys."
)
COLLECTIONS.add(
    "MAP_VALUES(map MAP)",
    lambda types: t.ArrayType(_parts(types).value_type),
    "map_values({0})",
    "The values.",
)
COLLECTIONS.add(
    "MAP_ENTRIES(map MAP)",
    lambda types: t.ArrayType(
        t.RowType([t.RowField("key", _parts(types).key_type), t.RowField("value", _parts(types).value_type)])
    ),
    "map_entries({0})",
    "Keys and values as rows.",
)


def _united(types: Sequence[t.DataType]) -> Resolved:
    arguments = _bound("MAP_UNION(map MAP [, other MAP...])", types)
    found = _one_type("MAP_UNION", arguments)
    return tuple(found.with_nullability(one.is_nullable) for one in arguments), found


def _emit_union(_: Call, operands: list[str]) -> str:
    made = operands[0]
    for other in operands[1:]:
        made = f"map_concat(map_filter({made}, (__k, __v) -> NOT map_contains_key({other}, __k)), {other})"
    return made


COLLECTIONS.add_shape(
    "MAP_UNION",
    "MAP_UNION(map, other, ...)",
    "The entries of all maps; for equal keys, the value of the last map.",
    _united,
    _emit_union,
    exact=False,
)


def _from_arrays(types: Sequence[t.DataType]) -> t.DataType:
    keys, values = types
    assert isinstance(keys, t.ArrayType)
    assert isinstance(values, t.ArrayType)
    return t.MapType(keys.element_type, values.element_type)


COLLECTIONS.add(
    "MAP_FROM_ARRAYS(keys ARRAY, values ARRAY)",
    _from_arrays,
    "map_from_arrays({0}, {1})",
    "A map from keys and values.",
)

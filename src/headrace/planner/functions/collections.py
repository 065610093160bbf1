"""Functions of arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace import types as t
from headrace.planner.coercion import common_type
from headrace.planner.expressions import Call
from headrace.planner.functions.registry import Registry, same_as
from headrace.planner.functions.signature import Nulls, Resolved, WrongArguments
from headrace.planner.functions.text import quoted

__all__ = ["COLLECTIONS"]

COLLECTIONS: Final = Registry("collection")
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
    match collection:
        case t.ArrayType():
            if not isinstance(key, t.IntegralType):
                raise WrongArguments(f"an array index must be an integer, not {key.summary_without_null()}")
            return (collection, t.IntType(key.is_nullable)), collection.element_type.nullable()
        case t.MapType():
            found = common_type([collection.key_type, key])
            if found is None:
                raise WrongArguments(
                    f"the keys are {collection.key_type.summary_without_null()}, not {key.summary_without_null()}"
                )
            return (collection, collection.key_type.with_nullability(key.is_nullable)), (
                collection.value_type.nullable()
            )
        case _:
            raise WrongArguments(f"[ ] needs an array or a map, not {collection.summary_without_null()}")


def _emit_item(call: Call, operands: list[str]) -> str:
    if isinstance(call.operands[0].type, t.MapType):
        return f"element_at({operands[0]}, {operands[1]})"
    return f"get({operands[0]}, {operands[1]} - 1)"


COLLECTIONS.add_shape(
    "ITEM",
    "array[place], map[key]",
    "An element by its place from 1, or a value by its key; NULL if there is none.",
    _item,
    _emit_item,
    is_form=True,
)


def _element(types: Sequence[t.DataType]) -> t.DataType:
    one = types[0]
    assert isinstance(one, t.ArrayType)
    return one.element_type


def _same_elements(types: Sequence[t.DataType]) -> t.DataType:
    """The type of an array with the elements of another, or one more element."""
    one, other = types[0], types[1]
    assert isinstance(one, t.ArrayType)
    added = other.element_type if isinstance(other, t.ArrayType) else other
    return t.ArrayType(_one_type("an array", [one.element_type, added]))


COLLECTIONS.add(
    "CARDINALITY(collection COLLECTION)",
    _INT,
    "IF({0} IS NULL, NULL, size({0}))",
    "The number of elements.",
)
COLLECTIONS.add("ELEMENT(array ARRAY)", _element, "get({0}, 0)", "The only element.")
COLLECTIONS.add(
    "ARRAY_APPEND(array ARRAY, element ANY)",
    _same_elements,
    "array_append({0}, {1})",
    "The array with an element at its end.",
)
COLLECTIONS.add(
    "ARRAY_PREPEND(array ARRAY, element ANY)",
    _same_elements,
    "array_prepend({0}, {1})",
    "The array with an element at its start.",
)
COLLECTIONS.add(
    "ARRAY_CONTAINS(array ARRAY, element ANY)",
    t.BooleanType(),
    "exists({0}, __one -> __one <=> {1})",
    "Whether an element is in the array.",
)
COLLECTIONS.add(
    "ARRAY_DISTINCT(array ARRAY)", same_as(), "array_distinct({0})", "The array with each element once."
)
COLLECTIONS.add(
    "ARRAY_POSITION(array ARRAY, element ANY)",
    _INT,
    "array_position({0}, {1})",
    "The place of an element from 1; 0 if it is not there.",
)
COLLECTIONS.add(
    "ARRAY_REMOVE(array ARRAY, element ANY)",
    same_as(),
    "filter({0}, __one -> NOT (__one <=> {1}))",
    "The array without an element.",
)
COLLECTIONS.add("ARRAY_REVERSE(array ARRAY)", same_as(), "reverse({0})", "The array backwards.")
COLLECTIONS.add(
    "ARRAY_UNION(array ARRAY, other ARRAY)",
    _same_elements,
    "array_union({0}, {1})",
    "Elements of both arrays, each once.",
)
COLLECTIONS.add(
    "ARRAY_CONCAT(array ARRAY, other ARRAY...)", _same_elements, "concat({all})", "The arrays joined."
)
COLLECTIONS.add(
    "ARRAY_EXCEPT(array ARRAY, other ARRAY)",
    same_as(),
    "array_except({0}, {1})",
    "Elements of the first array that are not in the second.",
)
COLLECTIONS.add(
    "ARRAY_INTERSECT(array ARRAY, other ARRAY)",
    same_as(),
    "array_intersect({0}, {1})",
    "Elements that are in both arrays.",
)
COLLECTIONS.add("ARRAY_MAX(array ARRAY)", _element, "array_max({0})", "The largest element.", nulls=_ALWAYS)
COLLECTIONS.add("ARRAY_MIN(array ARRAY)", _element, "array_min({0})", "The smallest element.", nulls=_ALWAYS)
COLLECTIONS.add(
    "ARRAY_JOIN(array ARRAY, delimiter STRING [, null STRING])",
    t.DataTypes.STRING(),
    "array_join({all})",
    "The elements as one string.",
)


def _emit_slice(call: Call, operands: list[str]) -> str:
    array, size = operands[0], f"size({operands[0]})"

    def place(text: str) -> str:
        return f"IF({text} < 0, {size} + {text} + 1, IF({text} = 0, 1, {text}))"

    last = place(operands[2]) if len(operands) > 2 else size
    return f"filter({array}, (__one, __at) -> __at + 1 BETWEEN {place(operands[1])} AND {last})"


COLLECTIONS.add(
    "ARRAY_SLICE(array ARRAY, start INT [, end INT])",
    same_as(),
    _emit_slice,
    "The elements from one place to another, both included; negative places count from the end.",
)
COLLECTIONS.add(
    "ARRAY_SORT(array ARRAY [, ascending BOOLEAN])",
    same_as(),
    lambda _, each: f"sort_array({each[0]}, {each[1] if len(each) > 1 else 'true'})",
    "The elements in order; NULL is the smallest.",
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
COLLECTIONS.add(
    "MAP_UNION(map MAP, other MAP)",
    same_as(),
    "map_concat(map_filter({0}, (__k, __v) -> NOT map_contains_key({1}, __k)), {1})",
    "Both maps in one; the second one's values win.",
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

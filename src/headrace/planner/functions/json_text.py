"""Functions that make JSON strings of values.

As in Flink members of objects are in the order of their names, whatever they are made of: rows, maps, JSON itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace import types as t
from headrace.planner.coercion import is_binary, is_string
from headrace.planner.expressions import Call, Literal
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import Resolved, WrongArguments
from headrace.planner.functions.text import constant, let, quoted
from headrace.types.logical import quote_name

__all__ = ["JSON_TEXT", "LISTED_JSON"]

JSON_TEXT: Final = FunctionRegistry("JSON")
#: What aggregates of JSON make of the list of a group's values.
LISTED_JSON: Final = FunctionRegistry("internal")
_STRING: Final = t.DataTypes.STRING()


# --- values ---------------------------------------------------------------------------------------


def json_text(text: str, data_type: t.DataType, depth: int = 0) -> str:
    """The JSON of a value in Spark SQL; NULL for NULL.

    Raises:
        WrongArguments: Values of the type have no JSON.
    """
    match data_type:
        case t.NullType():
            return "CAST(NULL AS string)"
        case t.BooleanType() | t.IntegralType() | t.DecimalType():
            return f"CAST({text} AS string)"
        case t.FloatType() | t.DoubleType():
            return _floating(f"CAST(CAST({text} AS double) AS string)")
        case t.TimestampType():
            return f"concat('\"', replace(CAST({text} AS string), ' ', 'T'), '\"')"
        case t.LocalZonedTimestampType():
            moment = f"CAST(to_utc_timestamp({text}, current_timezone()) AS string)"
            return f"concat('\"', replace({moment}, ' ', 'T'), 'Z\"')"
        case t.ArrayType():
            name = f"e{depth}"
            each = json_text(name, data_type.element_type, depth + 1)
            return f"concat('[', array_join(transform({text}, {name} -> {each}), ',', 'null'), ']')"
        case t.MapType() if is_string(data_type.key_type):
            return _map(text, data_type, depth)
        case t.RowType():
            return _row(text, data_type, depth)
        case t.VariantType():
            return text
        case _ if is_string(data_type):
            return _quoted(text)
        case _ if is_binary(data_type):
            return f"concat('\"', base64({text}), '\"')"
        case _:
            raise WrongArguments(
                f"a value of type {data_type.summary_without_null()} cannot be made JSON", "CAST it to STRING"
            )


def _quoted(text: str) -> str:
    """A string as JSON: Spark writes it into an array, whose brackets go."""
    return f"nullif(regexp_extract(to_json(array({text})), '(?s)^.(.*).$', 1), 'null')"


def _floating(text: str) -> str:
    """A number as Java's BigDecimal writes it: exponents have a sign, and those from -4 to -6 are written out."""
    made = f"regexp_replace({text}, 'E([0-9])', 'E+$1')"
    for exponent, zeros in ((4, "0.000"), (5, "0.0000"), (6, "0.00000")):
        made = f"regexp_replace({made}, '^(-?)([0-9])[.]([0-9]+)E-{exponent}$', '$1{zeros}$2$3')"
    return f"regexp_replace({made}, '^(-?[A-Z].*)$', '\"$1\"')"


def _map(text: str, data_type: t.MapType, depth: int) -> str:
    name = f"e{depth}"
    value = json_text(f"{name}.value", data_type.value_type, depth + 1)
    pairs = f"transform(map_entries({text}), {name} -> struct({name}.key AS k, {value} AS v))"
    return _object(pairs)


def _row(text: str, data_type: t.RowType, depth: int) -> str:
    name = f"e{depth}"
    members = []
    for field in sorted(data_type, key=lambda each: each.name):
        value = json_text(f"{name}.{quote_name(field.name)}", field.data_type, depth + 1)
        members.append(f"concat({_quoted(quoted(field.name))}, ':', coalesce({value}, 'null'))")
    made = f"concat('{{', concat_ws(',', {', '.join(members)}), '}}')"
    return let(name, text, f"IF({name} IS NULL, NULL, {made})")


def _object(pairs: str, *, keeps_nulls: bool = True) -> str:
    """The JSON of an array of structs of a name `k` and the JSON `v` of its value."""
    order = "(a, b) -> CASE WHEN a.k < b.k THEN -1 WHEN a.k > b.k THEN 1 ELSE 0 END"
    value = "coalesce(pair.v, 'null')" if keeps_nulls else "pair.v"
    members = f"transform(array_sort({pairs}, {order}), pair -> concat({_quoted('pair.k')}, ':', {value}))"
    return f"concat('{{', array_join({members}, ','), '}}')"


# --- JSON_STRING, JSON_OBJECT, JSON_ARRAY ---------------------------------------------------------


JSON_TEXT.add(
    "JSON_STRING(value ANY)",
    _STRING,
    lambda call, each: json_text(each[0], call.operands[0].type),
    "A value as JSON: numbers, booleans, strings, timestamps, bytes in BASE64, arrays, maps with names, rows.",
)


def _value(call: Call, operands: list[str], place: int) -> str:
    """The JSON of a value within JSON; what is JSON already goes in as it is."""
    operand = call.operands[place]
    is_json = isinstance(operand, Call) and operand.function in ("JSON", "JSON_NESTED")
    return operands[place] if is_json else json_text(operands[place], operand.type)


def _made(types: Sequence[t.DataType]) -> Resolved:
    return tuple(types), t.DataTypes.STRING(False)


def _object_type(types: Sequence[t.DataType]) -> Resolved:
    for key in types[1::2]:
        if not is_string(key):
            raise WrongArguments(f"a key of JSON_OBJECT must be a STRING, not {key.summary_without_null()}")
    return _made(types)


def _emit_object(call: Call, operands: list[str]) -> str:
    absent = constant(call.operands[0]) == "ABSENT"
    named: dict[str, str] = {}
    for place in range(1, len(operands), 2):
        key = call.operands[place]
        if not isinstance(key, Literal) or key.value is None:
            raise WrongArguments(
                "a key of JSON_OBJECT must be a string literal",
                "MAP[...] in JSON_STRING takes any strings as keys",
            )
        named[str(key.value)] = _value(call, operands, place + 1)
    # Of equal names the last one counts.
    members = []
    for name, value in sorted(named.items()):
        member = f"concat({_quoted(quoted(name))}, ':', {value})"
        members.append(member if absent else f"coalesce({member}, concat({_quoted(quoted(name))}, ':null'))")
    listed = f"array({', '.join(members)})" if members else "array('')"
    return f"concat('{{', array_join({listed}, ','), '}}')"


JSON_TEXT.add_shape(
    "JSON_OBJECT",
    "JSON_OBJECT([[KEY] key VALUE value, ...] [{NULL | ABSENT} ON NULL])",
    "A JSON object. A value that is JSON_OBJECT, JSON_ARRAY or JSON(text) itself goes in as it is. Members that are "
    "NULL are kept unless you write ABSENT ON NULL.",
    _object_type,
    _emit_object,
    is_form=True,
)


def _emit_array(call: Call, operands: list[str]) -> str:
    values = [_value(call, operands, place) for place in range(1, len(operands))]
    if not values:
        return "'[]'"
    nulls = ", 'null'" if constant(call.operands[0]) == "NULL" else ""
    return f"concat('[', array_join(array({', '.join(values)}), ','{nulls}), ']')"


JSON_TEXT.add_shape(
    "JSON_ARRAY",
    "JSON_ARRAY([value, ...] [{NULL | ABSENT} ON NULL])",
    "A JSON array. NULLs are left out unless you write NULL ON NULL.",
    _made,
    _emit_array,
    is_form=True,
)


_READ_JSON: Final = (
    "coalesce(to_json(try_parse_json(__text)), "
    "IF(__text IS NULL, NULL, raise_error(concat('JSON: there is no JSON in ', __text))))"
)


def _json(types: Sequence[t.DataType]) -> Resolved:
    if not is_string(types[0]):
        raise WrongArguments(f"JSON takes a STRING, not {types[0].summary_without_null()}")
    return tuple(types), _STRING


JSON_TEXT.add_shape(
    "JSON",
    "JSON(text)",
    "Says that a string is JSON, as a value of JSON_OBJECT or JSON_ARRAY. It fails if the string is not valid JSON.",
    _json,
    lambda _, each: let("__text", each[0], _READ_JSON),
    is_form=True,
)
LISTED_JSON.add_shape(
    "JSON_NESTED", "JSON_NESTED(json)", "JSON in JSON.", _json, lambda _, each: each[0], is_form=True
)


# --- aggregates -----------------------------------------------------------------------------------


def _listed(types: Sequence[t.DataType]) -> Resolved:
    """Operands: ON NULL, whether values are JSON, the list."""
    return tuple(types), t.DataTypes.STRING(False)


def _element(call: Call, name: str, data_type: t.DataType) -> str:
    return name if constant(call.operands[1]) == "JSON" else json_text(name, data_type)


def _emit_listed_array(call: Call, operands: list[str]) -> str:
    kind = call.operands[2].type
    assert isinstance(kind, t.ArrayType)
    nulls = ", 'null'" if constant(call.operands[0]) == "NULL" else ""
    each = _element(call, "one", kind.element_type)
    return (
        f"coalesce(concat('[', array_join(transform({operands[2]}, one -> {each}), ','{nulls}), ']'), '[]')"
    )


def _emit_listed_object(call: Call, operands: list[str]) -> str:
    kind = call.operands[2].type
    assert isinstance(kind, t.ArrayType)
    assert isinstance(kind.element_type, t.RowType)
    key, value = kind.element_type
    if not is_string(key.data_type):
        raise WrongArguments(
            f"a key of JSON_OBJECTAGG must be a STRING, not {key.data_type.summary_without_null()}"
        )
    text = _element(call, f"one.{quote_name(value.name)}", value.data_type)
    no_key = "raise_error('a key of JSON_OBJECTAGG is NULL')"
    pairs = f"transform({operands[2]}, one -> struct(coalesce(one.{quote_name(key.name)}, {no_key}) AS k, {text} AS v))"
    twice = "raise_error('two values of JSON_OBJECTAGG have the same key')"
    keys = "transform(pairs, one -> one.k)"
    kept = "filter(pairs, one -> one.v IS NOT NULL)" if constant(call.operands[0]) == "ABSENT" else "pairs"
    made = f"IF(size(array_distinct({keys})) < size(pairs), {twice}, {_object(kept)})"
    return f"coalesce({let('pairs', pairs, made)}, '{{}}')"


LISTED_JSON.add_shape(
    "JSON_ARRAY_OF", "JSON_ARRAYAGG(value)", "A list as JSON.", _listed, _emit_listed_array, is_form=True
)
LISTED_JSON.add_shape(
    "JSON_OBJECT_OF",
    "JSON_OBJECTAGG(key VALUE value)",
    "Pairs as JSON.",
    _listed,
    _emit_listed_object,
    is_form=True,
)


# --- quotes ---------------------------------------------------------------------------------------

_ESCAPES: Final = {
    "0022": '\\"',
    "005C": "\\\\",
    "002F": "\\/",
    "0008": "\\b",
    "000C": "\\f",
    "000A": "\\n",
    "000D": "\\r",
    "0009": "\\t",
}


def _emit_quote(_: Call, operands: list[str]) -> str:
    # One character after the other, by its two bytes in hexadecimal digits.
    units = f"regexp_extract_all(hex(encode({operands[0]}, 'UTF-16BE')), '.{{4}}', 0)"
    escapes = " ".join(f"WHEN unit = '{unit}' THEN {quoted(text)}" for unit, text in _ESCAPES.items())
    plain = "WHEN unit BETWEEN '0020' AND '007E' THEN chr(CAST(conv(unit, 16, 10) AS bigint))"
    each = f"CASE {escapes} {plain} ELSE concat('\\\\u', lower(unit)) END"
    return f"concat('\"', array_join(transform({units}, unit -> {each}), ''), '\"')"


def _emit_unquote(_: Call, operands: list[str]) -> str:
    inner = "substring(text, 2, length(text) - 2)"
    escaped = f"regexp_replace({inner}, '(?<!\\\\\\\\)\"', '\\\\\\\\\"')"
    read = f"get_json_object(concat('[\"', {escaped}, '\"]'), '$[0]')"
    return let("text", operands[0], f"IF(text RLIKE '(?s)^\".*\"$', coalesce({read}, text), text)")


JSON_TEXT.add(
    "JSON_QUOTE(text STRING)",
    _STRING,
    _emit_quote,
    "A string in double quotes, with escapes for JSON's special characters and all non-ASCII characters.",
)
JSON_TEXT.add(
    "JSON_UNQUOTE(text STRING)",
    _STRING,
    _emit_unquote,
    "The text of a JSON string in double quotes; other strings are returned unchanged.",
)

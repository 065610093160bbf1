"""The text of expressions as Flink prints them: ``greaterThan(a, 1)``, with the names of Flink's functions.

An expression is written as SQL for the planner. For people, its text names the call that made it. So the methods of
`Expression` and the functions of `expressions` are wrapped here: what they return remembers the name that Flink has
for the call, and the text of its arguments. `FLINK_NAMES` has the names that do not follow from those in Python.
"""

from __future__ import annotations

import copy
import enum
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from headrace.common.typed_text import double_text
from headrace.table._pieces import written
from headrace.types import DataType
from headrace.types.logical import quote_text

__all__ = ["FLINK_NAMES", "argument_text", "with_flink_text", "with_text"]


class _HasText(Protocol):
    """An expression, to the modules that it is made of."""

    _text: str | None


E = TypeVar("E", bound=_HasText)

#: Flink's names of calls that are not the Python name in camel case.
FLINK_NAMES: Final = {
    "__add__": "plus", "__radd__": "plus", "__sub__": "minus", "__rsub__": "minus", "__mul__": "times",
    "__rmul__": "times", "__truediv__": "divide", "__rtruediv__": "divide", "__mod__": "mod", "__rmod__": "mod",
    "__pow__": "power", "__rpow__": "power", "__neg__": "minusPrefix", "__abs__": "abs", "__invert__": "isNotTrue",
    "__and__": "and", "__rand__": "and", "__or__": "or", "__ror__": "or", "__eq__": "equals", "__ne__": "notEquals",
    "__lt__": "lessThan", "__le__": "lessThanOrEqual", "__gt__": "greaterThan", "__ge__": "greaterThanOrEqual",
    "__getitem__": "at", "alias": "as", "as_argument": "ASSIGNMENT", "concat_ws": "concat_ws",
    "first_value": "first_value", "if_null": "IFNULL", "in_": "in", "last_value": "last_value", "lower_case": "lower",
    "map_": "map", "and_": "and", "or_": "or", "not_": "not", "range_": "rangeTo", "negative": "minusPrefix",
    "starts_with": "STARTSWITH", "ends_with": "ENDSWITH", "then": "ifThenElse", "translate": "TRANSLATE3",
    "upper_case": "upper", "to_date": "toDate", "to_timestamp": "toTimestamp",
}  # fmt: skip

#: Calls that have the same name in Flink, in capitals, besides those that begin as `_CAPITAL_FAMILIES` say.
_CAPITALS: Final = frozenset(
    """
    btrim coalesce current_watermark elt is_json json json_array json_array_agg json_exists json_object
    json_object_agg json_query json_quote json_string json_unquote json_value like percentile printf
    regexp_count regexp_extract_all regexp_instr regexp_substr source_watermark split to_timestamp_ltz try_cast
    unhex url_decode url_encode
    """.split()
)
_CAPITAL_FAMILIES: Final = ("array_", "bitmap_", "inet_", "map_", "object_")

#: Methods whose operands Flink writes the other way round.
_TURNED: Final = frozenset(
    "__radd__ __rsub__ __rtruediv__ __rmod__ __rpow__ __rand__ __ror__ as_argument extract".split()
)


def _trim(start: str, end: str) -> Callable[[Sequence[Any]], tuple[str, list[str]]]:
    def shape(arguments: Sequence[Any]) -> tuple[str, list[str]]:
        character = arguments[1] if len(arguments) > 1 else " "
        return "trim", [start, end, argument_text(character), argument_text(arguments[0])]

    return shape


def _cast(target: str) -> Callable[[Sequence[Any]], tuple[str, list[str]]]:
    return lambda arguments: ("cast", [argument_text(arguments[0]), target])


def _json_aggregate(name: str) -> Callable[[Sequence[Any]], tuple[str, list[str]]]:
    return lambda arguments: (f"{name}_{arguments[0].name}_ON_NULL", texts(arguments[1:]))


def _json_query(arguments: Sequence[Any]) -> tuple[str, list[str]]:
    value, path, *behaviour = arguments
    names = [each.name for each in behaviour] + ["WITHOUT_ARRAY", "NULL", "NULL"][len(behaviour) :]
    return "JSON_QUERY", [*texts([value, path]), "STRING", *names]


def _json_value(arguments: Sequence[Any]) -> tuple[str, list[str]]:
    given = texts(arguments)
    return "JSON_VALUE", given + ["STRING", "NULL", "null", "NULL", "null"][len(given) - 2 :]


def _last_first(name: str) -> Callable[[Sequence[Any]], tuple[str, list[str]]]:
    """A base or a seed is an optional last argument in Python, and the first one in Flink."""
    return lambda arguments: (name, texts([*arguments[1:2], *arguments[:1], *arguments[2:]]))


#: Calls that Flink writes with other arguments than those of the call in Python.
_SHAPES: Final[dict[tuple[str, bool], Callable[[Sequence[Any]], tuple[str, list[str]]]]] = {
    ("trim", True): _trim("true", "true"),
    ("trim_leading", True): _trim("true", "false"),
    ("trim_trailing", True): _trim("false", "true"),
    ("to_date", True): _cast("DATE"),
    ("to_time", True): _cast("TIME(0)"),
    ("to_timestamp", True): _cast("TIMESTAMP(3)"),
    ("json_query", True): _json_query,
    ("json_value", True): _json_value,
    ("log", True): _last_first("log"),
    ("with_all_columns", False): lambda given: ("*", []),
    ("lag", False): lambda given: ("lag", texts([*given, *[1][len(given) - 1 :]])),
    ("lead", False): lambda given: ("lead", texts([*given, *[1][len(given) - 1 :]])),
    ("range_", False): lambda given: ("rangeTo", [str(each) for each in given]),
    ("log", False): _last_first("log"),
    ("rand_integer", False): _last_first("randInteger"),
    ("json_object_agg", False): _json_aggregate("JSON_OBJECTAGG"),
    ("json_array_agg", False): _json_aggregate("JSON_ARRAYAGG"),
    ("list_agg", True): lambda given: ("listAgg", texts([*given, *[","][len(given) - 1 :]])),
    ("truncate", True): lambda given: ("truncate", texts([*given, *[0][len(given) - 1 :]])),
}


def flink_name(name: str) -> str:
    """Return what Flink calls the function behind a method or function of the Table API.

    Example:
        >>> flink_name("char_length"), flink_name("__add__"), flink_name("url_encode")
        ('charLength', 'plus', 'URL_ENCODE')
    """
    if found := FLINK_NAMES.get(name):
        return found
    if name in _CAPITALS or name.startswith(_CAPITAL_FAMILIES):
        return name.upper()
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def argument_text(value: Any) -> str:
    """Return the text of an argument: of an expression its own, of other values as Java writes them."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return double_text(value)
        case str():
            return quote_text(value)
        case bytes():
            return str([each - 256 if each > 127 else each for each in value])
        case DataType():
            return value.summary()
        case enum.Enum():
            return value.name
        case list() | tuple():
            return f"array({', '.join(texts(value))})"
        case dict():
            return f"map({', '.join(texts([part for entry in value.items() for part in entry]))})"
    return str(value) if hasattr(value, "_pieces") or hasattr(value, "_as_input") else written(value)


def texts(arguments: Iterable[Any]) -> list[str]:
    """Return the text of several arguments."""
    return [argument_text(each) for each in arguments]


def with_text(expression: E, text: str) -> E:
    """Return the same expression with another text."""
    other = copy.copy(expression)
    other._text = text
    return other


def _call_text(name: str, is_method: bool, arguments: Sequence[Any]) -> str:
    given = list(arguments)
    while len(given) > 1 and given[-1] is None:
        given.pop()
    if shape := _SHAPES.get((name, is_method)):
        called, parts = shape(given)
    else:
        called, parts = flink_name(name), texts(reversed(given) if name in _TURNED else given)
    return called if called == "*" else f"{called}({', '.join(parts)})"


def _wrapped(call: Callable[..., Any], name: str, *, is_method: bool) -> Callable[..., Any]:
    signature = inspect.signature(call)

    @functools.wraps(call)
    def remember(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        if result is NotImplemented:
            return result
        given = signature.bind(*args, **kwargs)
        return with_text(result, _call_text(name, is_method, [*given.args, *given.kwargs.values()]))

    return remember


def with_flink_text(owner: type | dict[str, Any], names: Iterable[str], *, is_method: bool) -> None:
    """Let what methods of a class, or functions of a module, return remember how Flink writes the call."""
    for name in names:
        found = owner[name] if isinstance(owner, dict) else inspect.getattr_static(owner, name)
        if isinstance(found, property):
            assert found.fget is not None
            new: Any = property(_wrapped(found.fget, name, is_method=True), doc=found.__doc__)
        else:
            new = _wrapped(found, name, is_method=is_method)
        if isinstance(owner, dict):
            owner[name] = new
        else:
            setattr(owner, name, new)

"""JSON paths that Spark does not know: `$..name`, `$.list[0,1]`, `$.list[?(@.price > 10)]`.

A function in Python follows them. What it finds takes the place of the document, with the path `$`:

    JSON_QUERY(doc, 'lax $..name')    becomes    JSON_QUERY(found(doc), 'lax $')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.common.json_paths import JsonPath, JsonPathError, found_as_document
from headrace.planner import expressions as e
from headrace.planner.coercion import is_string
from headrace.planner.functions.signature import WrongArguments
from headrace.planner.functions.text import constant
from headrace.types import CharType, DataTypes

__all__ = ["JSON_READERS", "with_found_document"]

#: Functions whose first operands are a document and a path.
JSON_READERS: Final = frozenset({"JSON_EXISTS", "JSON_QUERY", "JSON_VALUE"})
_PATH: Final = re.compile(r"\s*((?:lax|strict)\s+)?(\$.*?)\s*", re.DOTALL)
#: What Spark's own paths do not have, outside of quotation marks.
_MORE: Final = re.compile(r"\.\.|\?|\[\s*-|\[[^\]]*[,:]|\(\)|\*.*\*|\.\*")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


def with_found_document(name: str, operands: Sequence[e.Expression]) -> list[e.Expression]:
    """Return the operands with what a path finds in place of the document, if Spark does not know the path.

    Raises:
        WrongArguments: The path is not valid.
    """
    text = constant(operands[1])
    match = _PATH.fullmatch(text) if isinstance(text, str) else None
    if match is None or not is_string(operands[0].type) or not _MORE.search(_QUOTED.sub("''", match[2])):
        return list(operands)
    try:
        function = _function(match[2])
    except JsonPathError as wrong:
        raise WrongArguments(f"{name}: {wrong}", "such as '$.name', '$.list[0]' or '$..name'") from wrong
    found = e.UserCall(function, (operands[0],), function.result_type)
    rest = f"{match[1] or ''}$"
    return [found, e.Literal(rest, CharType(len(rest), False)), *operands[2:]]


@lru_cache(maxsize=1000)
def _function(path: str) -> UserFunction:
    """Return the function of a path, the same one each time: calls of it are equal."""
    follow = partial(found_as_document, JsonPath(path))
    string = DataTypes.STRING()
    return UserFunction("JSON_PATH", FunctionKind.SCALAR, follow, (string,), string)

"""Finds keys that do not always lead to the same state."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator
from typing import Any, Final

from headrace.checks.determinism import unstable_calls
from headrace.checks.findings import CheckFinding
from headrace.checks.source_code import FunctionBody, bodies_of, resolve
from headrace.checks.view import ReviewedJob, ReviewedOperator
from headrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types

__all__ = ["check_keys"]

_FLOATS: Final = (Types.FLOAT(), Types.DOUBLE())
_CONTAINERS: Final = (list, dict, set, bytearray)
_LITERALS: Final = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)


def check_keys(_: ReviewedJob, operator: ReviewedOperator) -> Iterator[CheckFinding]:
    """Find keys that are floats, mutable, or made of hashes, clocks and random numbers."""
    if operator.is_table:
        return
    for index, selector in operator.key_selectors():
        if selector is hash or selector is id:
            yield operator.finding("HR201", f"the key selector is {selector.__name__}()")
        given = operator.input_types[index] if index < len(operator.input_types) else None
        for position, body in enumerate(bodies_of(selector)):
            for node, name in unstable_calls(body):
                code = "HR201" if name in {"hash", "id"} else "HR204"
                message = f"the key selector calls {name}()"
                yield operator.finding(code, message, body.place(node))
            if position == 0:
                yield from _returned(operator, body, given)


def _returned(
    operator: ReviewedOperator, body: FunctionBody, given: TypeInformation | None
) -> Iterator[CheckFinding]:
    expressions = list(body.returned())
    for node in expressions:
        for each in node.elts if isinstance(node, ast.Tuple) else [node]:
            if _is_float(each, body, given):
                message = f"the key selector returns {ast.unparse(each)}, a float"
                yield operator.finding("HR202", message, body.place(each))
            elif isinstance(each, _LITERALS) or _calls(each, body, _CONTAINERS):
                message = f"the key selector returns {ast.unparse(each)}"
                yield operator.finding("HR203", message, body.place(each))
    annotated = _annotation(body, "return")
    if annotated is float:
        yield operator.finding("HR202", "the key selector is declared to return a float", body.place())
    elif typing.get_origin(annotated) in _CONTAINERS or annotated in _CONTAINERS:
        yield operator.finding("HR203", f"the key selector is declared to return {annotated}", body.place())


def _is_float(node: ast.expr, body: FunctionBody, given: TypeInformation | None) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.BinOp):
        return (
            isinstance(node.op, ast.Div)
            or _is_float(node.left, body, given)
            or _is_float(node.right, body, given)
        )
    if _calls(node, body, (float,)):
        return True
    if isinstance(node, ast.Attribute):
        return (
            _field_annotation(node, body) is float
            or _field_type(node.attr, node.value, body, given) in _FLOATS
        )
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return _field_type(node.slice.value, node.value, body, given) in _FLOATS
    return False


def _calls(node: ast.expr, body: FunctionBody, targets: tuple[type, ...]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    target = resolve(node.func, body)
    return any(target is each for each in targets)


def _field_type(
    field: Any, owner: ast.expr, body: FunctionBody, given: TypeInformation | None
) -> TypeInformation | None:
    """Return the declared type of a field of the record, if the expression is one."""
    if not _is_record(owner, body) or not isinstance(given, TupleTypeInfo | RowTypeInfo):
        return None
    types = given.get_field_types()
    if isinstance(field, str) and isinstance(given, RowTypeInfo) and field in given.get_field_names():
        field = given.get_field_names().index(field)
    return types[field] if isinstance(field, int) and -len(types) <= field < len(types) else None


def _field_annotation(node: ast.Attribute, body: FunctionBody) -> Any:
    """Return what the class of the record says about a field: of ``def key(r: Reading)``, where it is annotated."""
    if not _is_record(node.value, body):
        return None
    owner = _annotation(body, typing.cast(ast.Name, node.value).id)
    try:
        return typing.get_type_hints(owner).get(node.attr) if isinstance(owner, type) else None
    except Exception:  # noqa: BLE001 - annotations may name what is not there
        return None


def _is_record(node: ast.expr, body: FunctionBody) -> bool:
    arguments = [each.arg for each in body.tree.args.args if each.arg != "self"]
    return isinstance(node, ast.Name) and arguments[:1] == [node.id]


def _annotation(body: FunctionBody, name: str) -> Any:
    try:
        return inspect.get_annotations(body.function, eval_str=True).get(name)
    except Exception:  # noqa: BLE001 - annotations may name what is not there
        return None

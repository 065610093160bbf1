"""Compares headrace's surface with PyFlink's: what is missing, refused, or takes other arguments."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from headrace.errors import UnsupportedFeatureError
from tests.parity.make_surface import CALL, SURFACE, is_public

#: The inventory, see `make_surface`.
PYFLINK: dict[str, Any] = json.loads(SURFACE.read_text(encoding="utf-8"))

MISSING = object()

#: A default that is neither a number, a text, a truth value nor None.
SOME_DEFAULT = object()


@dataclass(frozen=True)
class Gap:
    """One thing PyFlink has and headrace has not, or has differently."""

    #: `pyflink.module.Class.method`; with `()` after it if only its parameters differ.
    name: str
    kind: Literal["missing module", "missing name", "missing member", "refused", "parameters", "kind"]
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}" + (f", {self.detail}" if self.detail else "")


def find_gaps() -> Iterator[Gap]:
    """Yield every difference, in the order of the inventory."""
    for name, module in PYFLINK["modules"].items():
        yield from module_gaps(name, module)


def module_gaps(name: str, expected: dict[str, Any]) -> Iterator[Gap]:
    ours = our_module(name)
    if ours is None:
        yield Gap(name, "missing module")
        return
    classes = expected.get("classes", {})
    functions = dict(CALL.findall(expected.get("functions", "")))
    for each in expected["names"].split():
        if each not in classes and each not in functions and look_up(ours, each) is MISSING:
            yield Gap(f"{name}.{each}", "missing name")
    for each, parameters in functions.items():
        found = look_up(ours, each)
        if found is MISSING:
            yield Gap(f"{name}.{each}", "missing name")
        else:
            yield from parameter_gaps(f"{name}.{each}", parameters, found, is_method=False)
    missing: set[str] = set()
    for each, members in classes.items():
        outer = each.rpartition(".")[0]
        found = MISSING if outer in missing else look_up(ours, each)
        if found is MISSING:
            missing.add(each)
            if outer not in missing:
                yield Gap(f"{name}.{each}", "missing member" if outer else "missing name")
        else:
            yield from class_gaps(f"{name}.{each}", members, found)


def class_gaps(name: str, expected: dict[str, str], ours: type) -> Iterator[Gap]:
    if "init" in expected:
        yield from parameter_gaps(name, expected["init"], ours, is_method=False)
    for kind in ("static", "class", "def"):
        for method, parameters in CALL.findall(expected.get(kind, "")):
            found = getattr(ours, method, MISSING)
            if found is MISSING:
                yield Gap(f"{name}.{method}", "missing member")
                continue
            is_bound = isinstance(inspect.getattr_static(ours, method), staticmethod | classmethod)
            if is_bound != (kind != "def"):
                yield Gap(f"{name}.{method}", "kind", f"PyFlink has it as {kind}")
            elif is_refused(found):
                yield Gap(f"{name}.{method}", "refused")
            else:
                yield from parameter_gaps(f"{name}.{method}", parameters, found, is_method=not is_bound)
    for attribute in filter(None, expected.get("attr", "").split("; ")):
        if not hasattr(ours, attribute):
            yield Gap(f"{name}.{attribute}", "missing member")
    for operator in filter(None, expected.get("op", "").split("; ")):
        if getattr(ours, operator, None) is getattr(object, operator, None):
            yield Gap(f"{name}.{operator}", "missing member")


def parameter_gaps(name: str, expected: str, ours: Any, *, is_method: bool) -> Iterator[Gap]:
    """Compare parameters. Ours may have more, if they need not be given."""
    theirs = [parse_parameter(text) for text in split_parameters(expected)]
    public = [each for each in theirs if is_public(each[0].lstrip("*"))]
    if any(default is MISSING for each, default in theirs if (each, default) not in public):
        return  # takes a handle of the JVM: no program calls it
    if len(public) < len(theirs):
        # They may be left out because the handle may stand for them; here there is none.
        public = [(each, MISSING) for each, _ in public]
    parameters = list(inspect.signature(ours).parameters.values())[is_method:]
    given = [(show_name(each), show_default(each)) for each in parameters]
    required = [
        each for each, default in given[len(public) :] if default is MISSING and not each.startswith("*")
    ]
    same = len(given) >= len(public) and all(map(is_same_parameter, public, given))
    if not same or required:
        yield Gap(f"{name}()", "parameters", f"PyFlink has ({expected}), headrace {inspect.signature(ours)}")


def is_same_parameter(theirs: tuple[str, Any], ours: tuple[str, Any]) -> bool:
    """Whether a parameter has their name and default; ours may have a default where theirs has none."""
    (their_name, their_default), (our_name, our_default) = theirs, ours
    if their_name != our_name:
        return False
    if their_default is MISSING:
        return True
    if their_default is SOME_DEFAULT or our_default is MISSING:
        return our_default is not MISSING
    return type(our_default) is type(their_default) and our_default == their_default


def split_parameters(text: str) -> list[str]:
    return re.findall(r"(?:[^,' ]|'[^']*')+", text)


def parse_parameter(text: str) -> tuple[str, Any]:
    if text.endswith("?"):
        return text[:-1], SOME_DEFAULT
    name, equals, default = text.partition("=")
    return name, ast.literal_eval(default) if equals else MISSING


def show_name(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    return stars + parameter.name


def show_default(parameter: inspect.Parameter) -> Any:
    return MISSING if parameter.default is parameter.empty else parameter.default


def our_module(name: str) -> ModuleType | None:
    real = "headrace" + name.removeprefix("pyflink")
    try:
        return importlib.import_module(real)
    except ModuleNotFoundError as error:
        if error.name is not None and (real == error.name or real.startswith(f"{error.name}.")):
            return None
        raise


def look_up(where: Any, name: str) -> Any:
    """Return what a dotted name leads to; MISSING if there is nothing, or it says it is not there yet."""
    for part in name.split("."):
        try:
            where = getattr(where, part)
        except (AttributeError, UnsupportedFeatureError):
            return MISSING
    return where


def is_refused(function: Any) -> bool:
    """Whether a function does nothing but say that it is not there yet."""
    if function.__annotations__.get("return") == "NoReturn":
        return True
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    statements = [
        each
        for each in tree.body[0].body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    if len(statements) != 1 or not isinstance(statements[0], ast.Raise):
        return False
    raised = {node.id for node in ast.walk(statements[0]) if isinstance(node, ast.Name)}
    return "UnsupportedFeatureError" in raised or any(
        getattr(function.__globals__.get(name), "__annotations__", {}).get("return")
        == "UnsupportedFeatureError"
        for name in raised
    )

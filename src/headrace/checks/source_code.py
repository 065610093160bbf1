"""The source of user functions: their syntax trees, the names in them, and comments that silence a finding."""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from headrace.util.call_sites import ProgramLine

__all__ = ["MISSING", "FunctionBody", "bodies_of", "is_silenced", "resolve"]

#: No object has this name, or none that can be known without running anything.
MISSING: Final = object()
_SILENCE: Final = re.compile(r"#\s*headrace:\s*ignore(?:\[([A-Z0-9, ]+)\])?")
_LIBRARIES: Final = tuple(
    {f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {f"{Path(__file__).resolve().parents[1]}/"}
)
#: Methods that run in the driver, or after everything is over.
_NOT_IN_TASKS: Final = frozenset({"__init__", "__new__", "__repr__", "__str__", "close"})


@dataclass(frozen=True)
class FunctionBody:
    """One function of the user's, with its syntax tree."""

    function: FunctionType
    tree: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef

    def place(self, node: ast.AST | None = None) -> ProgramLine:
        """Return the line of a part of it, or where it begins."""
        line = getattr(node, "lineno", None) or self.tree.lineno
        return ProgramLine(self.function.__code__.co_filename, line)

    def returned(self) -> Iterator[ast.expr]:
        """Yield the expressions that it returns."""
        if isinstance(self.tree, ast.Lambda):
            yield self.tree.body
            return
        for node in walk_own(self.tree):
            if isinstance(node, ast.Return) and node.value is not None:
                yield node.value


def walk_own(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a function without the functions that are defined in it."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield child
        yield from walk_own(child)


def bodies_of(given: Any) -> Iterator[FunctionBody]:
    """Yield a user function's own code: a plain function, the methods of an object, and helpers that they call.

    Functions of headrace, of Python and of installed packages are left out.
    """
    seen: set[Any] = set()
    waiting = list(_functions_of(given))
    while waiting:
        function = waiting.pop(0)
        if function.__code__ in seen or function.__code__.co_filename.startswith(_LIBRARIES):
            continue
        seen.add(function.__code__)
        tree = _tree_of(function)
        if tree is None:
            continue
        body = FunctionBody(function, tree)
        yield body
        waiting += [each for each in _called(body) if each.__code__ not in seen]


def _functions_of(given: Any) -> Iterator[FunctionType]:
    while isinstance(given, functools.partial):
        given = given.func
    if isinstance(given, MethodType):
        given = given.__func__
    if isinstance(given, FunctionType):
        yield given
        return
    for owner in type(given).__mro__:
        if owner.__module__.partition(".")[0] in {"headrace", *sys.stdlib_module_names}:
            continue
        for name, value in vars(owner).items():
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if isinstance(plain, FunctionType) and name not in _NOT_IN_TASKS:
                yield plain


def _called(body: FunctionBody) -> Iterator[FunctionType]:
    """Yield the functions of the program that a function calls by name."""
    for node in ast.walk(body.tree):
        if isinstance(node, ast.Call):
            target = resolve(node.func, body)
            if isinstance(target, FunctionType):
                yield target


def resolve(node: ast.expr, body: FunctionBody) -> Any:
    """Return the object that a name or a dotted name stands for; `MISSING` if only running the program would tell."""
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, body)
        if isinstance(owner, ModuleType | type):
            return getattr(owner, node.attr, MISSING)
        return MISSING
    if not isinstance(node, ast.Name):
        return MISSING
    imported = _imports(body.tree).get(node.id)
    if imported is not None:
        return _imported(*imported)
    code = body.function.__code__
    if node.id in code.co_varnames:
        return MISSING
    if node.id in code.co_freevars:
        return _closure(body.function).get(node.id, MISSING)
    globals_ = body.function.__globals__
    return globals_.get(node.id, getattr(builtins, node.id, MISSING))


def _closure(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled so far
            continue
    return found


def captured(function: FunctionType) -> dict[str, Any]:
    """Return what is shipped with a function: its closure, its defaults, and the globals it names."""
    code = function.__code__
    names = code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) : code.co_argcount]
    found = dict(zip(names, function.__defaults__ or (), strict=False))
    found |= function.__kwdefaults__ or {}
    found |= _closure(function)
    if function.__module__ == "__main__":  # modules are imported by workers, the main script is pickled
        found |= {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    return found


@functools.lru_cache(maxsize=256)
def _imports(tree: ast.AST) -> dict[str, tuple[str, str | None]]:
    """Return what a function imports by itself: module and attribute, by the name it gets."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0],
                    None,
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return found


def _imported(module: str, attribute: str | None) -> Any:
    """Look up what an import would give, of modules that are there already: nothing is imported for a check."""
    loaded = sys.modules.get(module, MISSING)
    return loaded if attribute is None else getattr(loaded, attribute, MISSING)


@functools.lru_cache(maxsize=64)
def _functions_in(file: str) -> dict[int, list[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the functions that begin in each line of a file, decorators included."""
    found: dict[int, list[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = getattr(node, "decorator_list", [])
            first = min((each.lineno for each in decorators), default=node.lineno)
            found.setdefault(first, []).append(node)
    return found


def _tree_of(function: FunctionType) -> ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | None:
    code = function.__code__
    candidates = _functions_in(code.co_filename).get(code.co_firstlineno, [])
    if code.co_name == "<lambda>":
        lambdas = [node for node in candidates if isinstance(node, ast.Lambda)]
        if len(lambdas) > 1:  # several in one line: the one whose body has the positions of the code
            starts = {(line, column) for line, _, column, _ in code.co_positions() if line is not None}
            inside = [each for each in lambdas if (each.body.lineno, each.body.col_offset) in starts]
            lambdas = inside or lambdas
        return lambdas[0] if lambdas else None
    for node in candidates:
        if not isinstance(node, ast.Lambda) and node.name == code.co_name:
            return node
    return None


def is_silenced(code: str, place: ProgramLine | None) -> bool:
    """Whether a comment in the line, ``# headrace: ignore[HR401]``, says that a finding is known."""
    if place is None:
        return False
    found = _SILENCE.search(linecache.getline(place.file, place.line))
    if found is None:
        return False
    return found[1] is None or code in {each.strip() for each in found[1].split(",")}

"""What the text of a program suggests about its jobs, before it runs. Spark is started accordingly; it may be wrong.

A guess that is wrong costs time: Spark starts again when the job is known (`spark/early_start.py`).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

__all__ = ["mentions_endless_source", "mentions_tables"]

#: What reads input without an end, whatever its arguments.
_ENDLESS: Final = frozenset(
    {"KafkaSource", "PostgresCdcSource", "SocketSource", "monitor_continuously", "socket_text_stream"}
)
#: What gives such a source an end.
_BOUNDS: Final = frozenset({"set_bounded"})
#: Sources that have no end if an argument, by its name and place, has this value.
_ENDLESS_IF: Final = {"DataGeneratorSource": ("count", 1, None), "PythonSource": ("bounded", 1, False)}


def mentions_tables(path: Path) -> bool:
    """Whether a program's own text suggests that its jobs have tables."""
    return path.suffix == ".sql" or re.search(rb"\btable\b", path.read_bytes()) is not None


def mentions_endless_source(path: Path) -> bool:
    """Whether a program's own text suggests that its jobs read input without an end."""
    if path.suffix == ".sql":
        return False
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError):
        return False
    called = [(_name(node.func), node) for node in nodes if isinstance(node, ast.Call)]
    names = {_name(node) for node in nodes}
    if names & _ENDLESS and not names & _BOUNDS:
        return True
    return any(name in _ENDLESS_IF and _is_endless(call, *_ENDLESS_IF[name]) for name, call in called)


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case _:
            return ""


def _is_endless(call: ast.Call, name: str, place: int, value: object) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    argument = call.args[place] if len(call.args) > place else given.get(name)
    return isinstance(argument, ast.Constant) and argument.value is value

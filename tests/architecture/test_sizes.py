"""Modules and functions stay small enough to be read in one go, and docstrings say something.

Ruff's mccabe check limits the complexity of functions.
"""

import ast
import tomllib
from pathlib import Path

import pytest

from headrace import __file__ as package

ROOT = Path(__file__).parents[2]
SOURCE = Path(package).parent
MODULE_LINES = 600
FUNCTION_LINES = 60
COMPLEXITY = 20


def long_functions(text: str) -> dict[str, int]:
    """The functions of a module that are too long, with their lines, docstring included and decorators not."""
    nodes = ast.walk(ast.parse(text))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = {
        f"{node.name}, line {node.lineno}": (node.end_lineno or node.lineno) - node.lineno + 1
        for node in functions
    }
    return {place: count for place, count in lines.items() if count > FUNCTION_LINES}


def test_no_module_is_longer_than_the_limit() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert len(lengths) > 100
    assert {
        str(path.relative_to(SOURCE)): count for path, count in lengths.items() if count > MODULE_LINES
    } == {}


def test_no_function_is_longer_than_the_limit() -> None:
    found = {str(path.relative_to(SOURCE)): long_functions(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert {path: functions for path, functions in found.items() if functions} == {}


def empty_words(text: str) -> list[str]:
    """The docstrings of a module that are too short to say more than the name of what they describe."""
    described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, described)]
    return [docstring for docstring in found if docstring is not None and len(docstring.split()) <= 3]


def test_docstrings_say_more_than_three_words() -> None:
    found = {str(path.relative_to(SOURCE)): empty_words(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert {path: docstrings for path, docstrings in found.items() if docstrings} == {}


def test_a_docstring_of_three_words_is_found() -> None:
    assert empty_words(
        'class A:\n    """Close the file."""\n    def run(self):\n        """Run it to its end."""\n'
    ) == ["Close the file."]


@pytest.mark.parametrize(("lines", "is_long"), [(FUNCTION_LINES, False), (FUNCTION_LINES + 1, True)])
def test_the_lines_of_a_method_are_counted_from_its_first_to_its_last(lines: int, is_long: bool) -> None:
    body = "        x = 1\n" * (lines - 1)
    found = long_functions(f"class A:\n    @staticmethod\n    def run():\n{body}\ndef run(): ...\n")
    assert found == ({"run, line 3": lines} if is_long else {})


def test_ruff_limits_the_complexity_of_functions() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "C90" in lint["select"]
    assert lint["mccabe"]["max-complexity"] <= COMPLEXITY
    ignored = [
        *lint["ignore"],
        *(code for path, codes in lint["per-file-ignores"].items() if "src" in path for code in codes),
    ]
    assert [code for code in ignored if code.startswith("C9")] == []

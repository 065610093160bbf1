"""Pages that are written from the code are not stale."""

from __future__ import annotations

from headrace.cli import docs as cli_docs
from headrace.planner import docs as function_docs
from headrace.rest import docs as rest_docs


def test_the_endpoints_in_the_rest_guide_are_those_there_are() -> None:
    text = rest_docs.PAGE.read_text()
    assert text == rest_docs.render(text), "run `make docs`"


def test_the_commands_in_the_guide_of_the_command_line_are_those_there_are() -> None:
    text = cli_docs.PAGE.read_text()
    assert text == cli_docs.render(text), "run `make docs`"


def test_the_functions_in_the_sql_reference_are_those_there_are() -> None:
    assert function_docs.PAGE.read_text() == function_docs.render(), "run `make docs`"

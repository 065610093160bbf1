"""Pages that are written from the code are not stale."""

from __future__ import annotations

import inspect
import re

import pytest

from headrace import errors
from headrace.cli import docs as cli_docs
from headrace.cli import error_docs
from headrace.cli.main import cli
from headrace.planner import docs as function_docs
from headrace.rest import docs as rest_docs


def test_the_endpoints_in_the_rest_guide_are_those_there_are() -> None:
    text = rest_docs.PAGE.read_text()
    assert text == rest_docs.render(text), "run `make docs`"


def test_the_commands_in_the_guide_of_the_command_line_are_those_there_are() -> None:
    text = cli_docs.PAGE.read_text()
    assert text == cli_docs.render(text), "run `make docs`"


def test_the_introduction_of_the_command_line_names_every_command_once() -> None:
    introduction = cli_docs.PAGE.read_text().partition("```")[0]
    named = re.findall(r"`([a-z-]+)`", introduction)
    assert sorted(named) == sorted(name for name, each in cli.commands.items() if not each.hidden)


def test_the_functions_in_the_sql_reference_are_those_there_are() -> None:
    assert function_docs.PAGE.read_text() == function_docs.render(), "run `make docs`"


def test_the_errors_page_matches_the_error_classes() -> None:
    assert error_docs.PAGE.read_text() == error_docs.render(), "run `make docs`"


@pytest.mark.parametrize(
    "kind",
    [
        each
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, errors.HeadraceError)
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_error_class_documents_its_cause_and_remedy(kind: type[errors.HeadraceError]) -> None:
    summary, cause, remedy = error_docs.describe(kind)
    assert summary, "the docstring starts with what the error means"
    assert cause, "the docstring has a section 'Cause:'"
    assert remedy, "the docstring has a section 'Remedy:'"
    assert f" {kind.__name__}\n" in error_docs.render()

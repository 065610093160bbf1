"""How the command shows errors."""

from __future__ import annotations

import pickle

from headrace.cli.errors import describe_error
from headrace.errors import UserFunctionError


def test_an_error_of_a_function_that_raised_nothing_is_marked_as_an_error() -> None:
    error = UserFunctionError("the function returned int: 1; expected an iterable of results")
    error.function = "<lambda at job.py:3>"

    lines = describe_error(pickle.loads(pickle.dumps(error))).splitlines()

    assert lines[0] == "error: the function returned int: 1; expected an iterable of results"
    assert "  function: <lambda at job.py:3>" in lines


def test_an_exception_of_a_function_is_shown_as_python_shows_it() -> None:
    error = UserFunctionError(
        "ValueError: x", user_traceback="Traceback (most recent call last):\nValueError: x"
    )

    assert describe_error(error).startswith("Traceback (most recent call last):")

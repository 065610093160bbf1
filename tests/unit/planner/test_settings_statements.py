"""SET and RESET with and without quotes, as Flink's client takes them."""

from __future__ import annotations

import pytest

from headrace.errors import SqlParseError
from headrace.planner.dialect.statement_syntax import ResetSyntax, SetSyntax
from headrace.planner.sql import parse_statement


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("SET 'a.b' = 'c d'", "a.b", "c d"),
        ("SET table.exec.state.ttl = 1d", "table.exec.state.ttl", "1d"),
        ("set execution.runtime-mode=batch;", "execution.runtime-mode", "batch"),
        ("SET a.b-c='x y'", "a.b-c", "x y"),
        ("SET table.local-time-zone = Europe/Berlin", "table.local-time-zone", "Europe/Berlin"),
        ("SET", None, None),
    ],
)
def test_set(text, key, value):
    syntax = parse_statement(text).syntax
    assert isinstance(syntax, SetSyntax)
    assert (syntax.key, syntax.value) == (key, value)


@pytest.mark.parametrize(
    ("text", "key"),
    [("RESET 'a.b'", "a.b"), ("RESET table.exec.state.ttl", "table.exec.state.ttl"), ("RESET", None)],
)
def test_reset(text, key):
    syntax = parse_statement(text).syntax
    assert isinstance(syntax, ResetSyntax)
    assert syntax.key == key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET pipeline.name = a b", "a value with spaces is written in single quotes"),
        ("SET a b = c", "a key with spaces is written in single quotes"),
        ("SET = 3", "expected a key"),
        ("SET k =", "expected a value"),
        ("SET k", "expected '='"),
    ],
)
def test_a_value_that_is_not_a_setting_is_refused(text, message):
    with pytest.raises(SqlParseError, match=message):
        parse_statement(text)

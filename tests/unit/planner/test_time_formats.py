"""Formats of times: what is tried for a text, and how letters that Spark lacks are written."""

from __future__ import annotations

import pytest

from headrace.planner.functions.time_formats import formatted, read_attempts


@pytest.mark.parametrize(
    ("pattern", "attempts"),
    [
        # Digits that touch cannot be fewer.
        ("yyyyMMdd", [("t", "'yyyyMMdd'"), ("left(t, 8)", "'yyyyMMdd'")]),
        (
            "yyyy-MM-dd'T'HH:mm",
            [
                ("t", "'yyyy-MM-dd\\'T\\'HH:mm'"),
                ("left(t, 16)", "'yyyy-MM-dd\\'T\\'HH:mm'"),
                ("t", "'yyyy-M-d\\'T\\'H:m'"),
            ],
        ),
        # Names of months and days have no fixed length.
        ("dd MMM yyyy", [("t", "'dd MMM yyyy'")]),
    ],
)
def test_a_text_may_be_longer_than_its_format_or_have_fewer_digits(
    pattern: str, attempts: list[tuple[str, str]]
) -> None:
    shown = "'" + pattern.replace("'", "\\'") + "'"
    assert read_attempts("t", shown, pattern) == attempts


def test_a_format_that_is_not_a_constant_is_left_to_spark() -> None:
    assert read_attempts("t", "f", None) == [("t", "f")]
    assert formatted("t", "f", None) == "date_format(t, f)"


def test_the_year_of_a_week_is_that_of_its_saturday() -> None:
    saturday = "date_add(CAST(t AS date), 7 - dayofweek(t))"
    assert formatted("t", "", "YYYY-MM") == f"concat(date_format({saturday}, 'yyyy'), date_format(t, '-MM'))"
    assert formatted("t", "", "'Y' y") == "date_format(t, '\\'Y\\' y')"

"""How values of options are written and read."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.memory_size import MemorySize
from headrace.config.parsing import form_of, format_duration, parse_duration, parse_list, parse_map


class Colour(Enum):
    DARK_RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 s", timedelta(seconds=10)),
        ("10s", timedelta(seconds=10)),
        ("500 ms", timedelta(milliseconds=500)),
        ("1 min", timedelta(minutes=1)),
        ("1 m", timedelta(minutes=1)),
        ("1 h", timedelta(hours=1)),
        ("2 d", timedelta(days=2)),
        ("3 Days", timedelta(days=3)),
        ("250", timedelta(milliseconds=250)),
        ("1.5 s", timedelta(milliseconds=1500)),
        ("7 us", timedelta(microseconds=7)),
    ],
)
def test_durations_have_flinks_units_and_milliseconds_without_one(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-1 s", "10 parsecs", "1 s 2 ms", "9999999999999 d"])
def test_a_value_that_is_not_a_duration_is_refused(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_a_written_duration_reads_back_exactly(value):
    assert parse_duration(format_duration(value)) == value


@given(st.integers(min_value=0, max_value=2**60))
def test_a_written_memory_size_reads_back_exactly(number):
    assert MemorySize.parse(str(MemorySize(number))) == MemorySize(number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64 mb", 64 << 20), ("1g", 1 << 30), ("12", 12), ("3 bytes", 3), ("2 KB", 2048), ("1 tb", 1 << 40)],
)
def test_memory_sizes_are_powers_of_1024(text, expected):
    assert MemorySize.parse(text).get_bytes() == expected


@pytest.mark.parametrize("text", ["", "mb", "-1 mb", "1.5 mb", "1 mib x"])
def test_a_value_that_is_not_a_memory_size_is_refused(text):
    with pytest.raises(ValueError, match="memory size"):
        MemorySize.parse(text)


def test_memory_sizes_compare_and_convert():
    size = MemorySize.of_mebi_bytes(3 << 20)
    assert size.get_tebi_bytes() == 3
    assert size.get_gibi_bytes() == 3 << 10
    assert size.get_mebi_bytes() == 3 << 20
    assert size.get_kibi_bytes() == 3 << 30
    assert MemorySize(1) < MemorySize(2) <= MemorySize(2)
    assert len({MemorySize(1024), MemorySize.parse("1 kb")}) == 1
    with pytest.raises(ValueError, match="negative"):
        MemorySize(-1)


def test_lists_split_at_semicolons_or_else_at_commas():
    assert parse_list("a;b") == ["a", "b"]
    assert parse_list("a, b") == ["a", "b"]
    assert parse_list("x=1,2;y") == ["x=1,2", "y"]
    assert parse_list("") == []


def test_maps_keep_colons_in_values():
    assert parse_map("a:1;b:http://x") == {"a": "1", "b": "http://x"}
    assert parse_map("{'a': '1', b: 2}") == {"a": "1", "b": "2"}
    with pytest.raises(ValueError, match="no ':'"):
        parse_map("a")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (bool, "TRUE", True),
        (bool, False, False),
        (int, " 12 ", 12),
        (int, 12, 12),
        (float, "1e3", 1000.0),
        (float, 2, 2.0),
        (str, " a ", "a"),
        (timedelta, 1500, timedelta(milliseconds=1500)),
        (timedelta, timedelta(1), timedelta(1)),
        (MemorySize, 10, MemorySize(10)),
        (list[str], ("a", 1), ["a", "1"]),
        (dict[str, str], {"a": 1}, {"a": "1"}),
        (Colour, "dark-red", Colour.DARK_RED),
        (Colour, "blue", Colour.BLUE),
        (Colour, Colour.BLUE, Colour.BLUE),
    ],
)
def test_text_and_python_values_become_the_same_typed_value(kind, value, expected):
    assert form_of(kind).read(value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (bool, "yes"),
        (bool, 1),
        (int, "1.5"),
        (int, True),
        (float, "fast"),
        (float, False),
        (str, 1),
        (timedelta, True),
        (MemorySize, 1.5),
        (list[str], 3),
        (dict[str, str], [1]),
        (Colour, "green"),
        (Colour, 1),
    ],
)
def test_values_of_another_type_are_refused(kind, value):
    with pytest.raises(ValueError):  # noqa: PT011  # options add the message
        form_of(kind).read(value)


def test_only_types_with_a_written_form_can_be_options():
    with pytest.raises(TypeError, match="cannot be written in a configuration"):
        form_of(complex)

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.state import entries
from headrace.state.entries import NamespacedKeys, PlainKeys
from headrace.state.key_groups import key_group_of
from headrace.state.keys import hash_key

#: What LMDB takes as a key.
LONGEST = 511

some_keys = st.one_of(
    st.text(max_size=8),
    st.text(min_size=100, max_size=700),
    st.integers(),
    st.tuples(st.text(), st.integers()),
)


@given(st.lists(some_keys, max_size=20), st.sampled_from([1, 7, 128, 32768]))
def test_many_names_are_those_of_each_key_alone(keys: list[Any], maximum: int) -> None:
    scheme = PlainKeys(maximum)
    assert scheme.storage_keys(keys) == [scheme.storage_key(key) for key in keys]


@given(st.lists(st.text(alphabet="ab\ud800é", max_size=300), max_size=20))
def test_many_strings_take_the_same_names_by_the_short_cut(keys: list[str]) -> None:
    scheme = PlainKeys(128)
    assert scheme.storage_keys(keys) == [scheme.storage_key(key) for key in keys]


def window_bytes(window: Any) -> bytes:
    return f"window {window}".encode()


def names_of(scheme: entries.KeyScheme, key: Any, map_key: Any) -> list[bytes]:
    """How the entries of a key are called, of every kind of state."""
    prefix = scheme.prefix(key)
    return [
        scheme.storage_key(key),
        prefix,
        entries.chunk_key(prefix, 2**40),
        entries.map_key(prefix, map_key),
    ]


@given(some_keys, some_keys, st.one_of(st.integers(), st.text(max_size=100)))
def test_names_begin_with_the_key_group_and_are_short_enough(key: Any, map_key: Any, window: Any) -> None:
    group = key_group_of(hash_key(key), 128).to_bytes(2, "big")
    names = [
        *names_of(PlainKeys(128), key, map_key),
        # The windows of a key stay with it.
        *names_of(NamespacedKeys(128, window_bytes), (key, window), map_key),
    ]
    assert all(name.startswith(group) and len(name) <= LONGEST for name in names)


@given(some_keys, some_keys, some_keys)
def test_entries_of_a_key_have_a_prefix_that_no_other_key_has(key: Any, other: Any, map_key: Any) -> None:
    scheme = PlainKeys(128)
    prefix = scheme.prefix(key)
    assert entries.map_key(prefix, map_key).startswith(prefix)
    assert entries.chunk_key(prefix, 7).startswith(prefix)
    assert entries.map_key(scheme.prefix(other), map_key).startswith(prefix) == (key == other)


@given(st.tuples(some_keys, st.integers(0, 3)), st.tuples(some_keys, st.integers(0, 3)), some_keys)
def test_entries_in_a_window_have_a_prefix_that_no_other_key_and_window_has(
    place: Any, other: Any, map_key: Any
) -> None:
    scheme = NamespacedKeys(128, window_bytes)
    assert entries.map_key(scheme.prefix(other), map_key).startswith(scheme.prefix(place)) == (place == other)


@pytest.mark.parametrize("maximum", [1, 128, 32768])
def test_different_long_keys_have_different_names(maximum: int) -> None:
    long = ["x" * 600 + str(number) for number in range(50)]
    plain, windows = PlainKeys(maximum), NamespacedKeys(maximum, window_bytes)
    assert len(set(plain.storage_keys(long))) == 50
    assert len({entries.map_key(plain.prefix("k"), key) for key in long}) == 50
    assert len(set(windows.storage_keys([("k", window) for window in long]))) == 50


def test_chunks_of_a_list_sort_by_version() -> None:
    prefix = PlainKeys(128).prefix("k")
    versions = [1, 2, 255, 256, 65_536, 2**40]
    names = [entries.chunk_key(prefix, version) for version in versions]
    assert names == sorted(names)


@given(some_keys, st.binary())
def test_a_map_entry_keeps_its_key_with_the_value(map_key: Any, value: bytes) -> None:
    packed = entries.pack_map_entry(map_key, value)
    assert entries.unpack_map_entry(packed) == (map_key, value)
    assert entries.unpack_map_value(packed) == value

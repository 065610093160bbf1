from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.state.key_groups import SPREAD, key_group_of, key_group_range, subtask_of


@st.composite
def scales(draw: st.DrawFn) -> tuple[int, int]:
    """A max parallelism and a parallelism below it."""
    maximum = draw(st.integers(min_value=1, max_value=700))
    return maximum, draw(st.integers(min_value=1, max_value=maximum))


@given(scales())
def test_every_key_group_has_exactly_one_owner(scale: tuple[int, int]) -> None:
    maximum, parallelism = scale
    ranges = [key_group_range(subtask, maximum, parallelism) for subtask in range(parallelism)]
    assert [group for groups in ranges for group in groups] == list(range(maximum))


@given(scales())
def test_the_owner_of_a_group_is_the_one_whose_range_it_is_in(scale: tuple[int, int]) -> None:
    maximum, parallelism = scale
    for group in range(maximum):
        owner = subtask_of(group, maximum, parallelism)
        assert group in key_group_range(owner, maximum, parallelism)


@given(scales())
def test_no_subtask_has_more_than_one_group_more_than_another(scale: tuple[int, int]) -> None:
    maximum, parallelism = scale
    sizes = {len(key_group_range(subtask, maximum, parallelism)) for subtask in range(parallelism)}
    assert max(sizes) - min(sizes) <= 1


def test_the_formulas_are_flinks() -> None:
    """KeyGroupRangeAssignment: computeKeyGroupRangeForOperatorIndex and computeOperatorIndexForKeyGroup."""
    for maximum, parallelism in [(128, 1), (128, 3), (128, 128), (10, 4), (32768, 100)]:
        for subtask in range(parallelism):
            start = (subtask * maximum + parallelism - 1) // parallelism
            end = ((subtask + 1) * maximum - 1) // parallelism
            assert key_group_range(subtask, maximum, parallelism) == range(start, end + 1)
        for group in range(0, maximum, 7):
            assert subtask_of(group, maximum, parallelism) == group * parallelism // maximum


@given(st.integers(min_value=0, max_value=2**32 - 1), st.integers(min_value=1, max_value=2**15))
def test_a_key_group_is_below_the_max_parallelism(key_hash: int, maximum: int) -> None:
    group = key_group_of(key_hash, maximum)
    assert 0 <= group < maximum
    # Loops write it out like this.
    assert group == (key_hash * SPREAD >> 16) % maximum


def test_key_groups_of_known_hashes_never_change() -> None:
    known = {0: 0, 1: 55, 2: 110, 453955339: 118, 2138990852: 101, 2**32 - 1: 72}
    assert {key_hash: key_group_of(key_hash, 128) for key_hash in known} == known

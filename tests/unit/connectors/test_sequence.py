"""NumberSequenceSource: how the range is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.base import BATCH_RECORDS, Slice
from headrace.connectors.sequence import NumberSequenceSource
from headrace.errors import JobDefinitionError


def test_the_first_splits_are_one_longer_as_in_flink():
    splits = NumberSequenceSource(1, 10).create_enumerator(4).discover()

    assert [split.split_id for split in splits] == ["1..3", "4..6", "7..8", "9..10"]


def test_there_are_no_more_splits_than_numbers():
    assert len(NumberSequenceSource(5, 6).create_enumerator(8).discover()) == 2


@given(st.integers(-(2**62), 2**62), st.integers(0, 10_000), st.integers(1, 64))
def test_the_splits_cover_the_range_without_gap_or_overlap(start, length, parallelism):
    splits = NumberSequenceSource(start, start + length).create_enumerator(parallelism).discover()

    assert [splits[0].first, splits[-1].stop] == [start, start + length + 1]
    assert all(left.stop == right.first for left, right in pairwise(splits))
    sizes = {split.stop - split.first for split in splits}
    assert max(sizes) - min(sizes) <= 1


def test_splits_known_from_a_checkpoint_are_not_cut_again():
    source = NumberSequenceSource(1, 10)
    known = source.create_enumerator(2).discover()
    enumerator = source.create_enumerator(3)
    enumerator.restore(known)

    assert list(enumerator.discover()) == []
    assert enumerator.is_complete
    assert enumerator.plan(known[0], 4, 100) == Slice(known[0], 4, 6)


def test_batches_are_of_moderate_size():
    source = NumberSequenceSource(0, 2 * BATCH_RECORDS)
    [split] = source.create_enumerator(1).discover()

    batches = list(source.create_reader().read(Slice(split, 0)))

    assert [len(batch) for batch in batches] == [BATCH_RECORDS, BATCH_RECORDS, 1]
    assert batches[2].values == [2 * BATCH_RECORDS]


@pytest.mark.parametrize(("start", "end"), [(2, 1), (1.0, 2), (True, 2), ("1", "2")])
def test_bounds_that_make_no_sequence_are_refused(start, end):
    with pytest.raises(JobDefinitionError, match="NumberSequenceSource"):
        NumberSequenceSource(start, end)

"""CollectionSource: what is shipped, what is refused, what is read."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from headrace.connectors.base import BATCH_RECORDS, Slice
from headrace.connectors.collection import CollectionSource
from headrace.errors import JobDefinitionError


def read(source: CollectionSource, start: int, end: int) -> list[Any]:
    [split] = source.create_enumerator(1).discover()
    return [
        value for batch in source.create_reader().read(Slice(split, start, end)) for value in batch.values
    ]


def test_a_slice_over_several_chunks_is_read_in_batches():
    source = CollectionSource(range(3 * BATCH_RECORDS))
    [split] = source.create_enumerator(4).discover()
    reader = source.create_reader()

    sizes = [len(batch) for batch in reader.read(Slice(split, 10, 2 * BATCH_RECORDS + 5))]

    assert sizes == [BATCH_RECORDS - 10, BATCH_RECORDS, 5]
    assert reader.progress().position == 2 * BATCH_RECORDS + 5
    assert not reader.progress().is_finished


def test_later_changes_to_the_elements_are_not_seen():
    element = ["a"]
    source = CollectionSource([element])
    element.append("b")

    assert read(source, 0, 1) == [["a"]]


@pytest.mark.parametrize("word", ["a", "__main__ stands for a class of the script"])
def test_what_one_reader_does_to_an_element_the_next_does_not_see(word):
    source = CollectionSource([[word]])
    read(source, 0, 1)[0].append("b")

    assert read(source, 0, 1) == [[word]]


def test_an_element_that_does_not_pickle_is_named_by_its_index():
    elements: list[Any] = list(range(BATCH_RECORDS + 3))
    elements[BATCH_RECORDS + 1] = threading.Lock()

    with pytest.raises(JobDefinitionError, match=f"element {BATCH_RECORDS + 1} cannot be pickled: <unlocked"):
        CollectionSource(elements)


def test_shipping_the_declaration_costs_about_what_the_elements_do():
    elements = [f"word-{i}" for i in range(20_000)]

    assert len(pickle.dumps(CollectionSource(elements))) < 1.1 * len(pickle.dumps(elements))


def test_classes_of_the_script_are_left_to_what_ships_the_job():
    # They are known by reference to __main__, which is another module in a worker.
    source = CollectionSource(["__main__ stands for such a class here"])

    assert isinstance(source._chunks[0], list)
    assert read(source, 0, 1) == ["__main__ stands for such a class here"]


def test_an_empty_collection_has_no_split_and_is_complete():
    enumerator = CollectionSource([]).create_enumerator(2)

    assert list(enumerator.discover()) == []
    assert enumerator.is_complete

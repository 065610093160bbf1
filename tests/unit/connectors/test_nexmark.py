"""The events of Nexmark: the same for the same number, in the proportions that the queries count on."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from headrace.catalog.objects import CatalogTable, PhysicalColumn
from headrace.config.table_options import TableOptions
from headrace.connectors.base import BATCH_RECORDS, Boundedness
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.nexmark import NexmarkEvents, nexmark_source
from headrace.connectors.nexmark.events import EVENT_TYPE, KINDS
from headrace.connectors.nexmark.factory import NexmarkFactory
from headrace.connectors.tables import TableRequest
from headrace.errors import JobDefinitionError, SqlValidationError
from headrace.types import DataTypes


def numbers(events: NexmarkEvents, kind: str, name: str, count: int = 20_000) -> Any:
    return events.of_kind(kind, range(count))[name].to_numpy(zero_copy_only=False)


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids():
    events = NexmarkEvents()
    assert [len(numbers(events, kind, "extra", 5000)) for kind in KINDS] == [100, 300, 4600]


def test_an_event_is_a_function_of_its_number_and_the_seed():
    source = nexmark_source(1000, seed=3)
    reader = source.create_reader()
    splits = source.create_enumerator(2)
    rows = {}
    for split in splits.discover():
        piece = splits.plan(split, 0, BATCH_RECORDS)
        assert piece is not None
        read = [row for batch in reader.read(piece) for row in batch.values]
        rows |= dict(zip(range(split.first, 1000, 2), read, strict=True))  # type: ignore[attr-defined]
    again: DataGeneratorSource = pickle.loads(pickle.dumps(source))
    assert len(rows) == 1000
    assert all(again.generator_function(index) == rows[index] for index in range(0, 1000, 97))
    other = nexmark_source(1000, seed=4)
    assert other.generator_function(7) != rows[7]


def test_ids_refer_to_what_exists_or_soon_will():
    events = NexmarkEvents()
    auctions, people = numbers(events, "auction", "id"), numbers(events, "person", "id")
    assert auctions.tolist() == list(range(1000, 1000 + len(auctions)))
    assert people.tolist() == list(range(1000, 1000 + len(people)))
    for kind, name, known in (
        ("bid", "auction", auctions),
        ("bid", "bidder", people),
        ("auction", "seller", people),
    ):
        ids = numbers(events, kind, name)
        assert ids.min() >= 1000
        assert ids.max() <= known.max() + 11


def test_half_of_the_bids_go_to_one_auction_of_a_hundred():
    ids = numbers(NexmarkEvents(), "bid", "auction", 100_000)
    assert 0.49 < np.mean(ids % 100 == 0) < 0.52


def test_every_power_of_ten_has_as_many_prices():
    prices = numbers(NexmarkEvents(), "bid", "price")
    shares = [np.mean((prices >= 10**power) & (prices < 10 ** (power + 1))) for power in range(2, 8)]
    assert shares == pytest.approx([1 / 6] * 6, abs=0.02)


def test_time_advances_by_the_rate():
    times = numbers(NexmarkEvents(rate=1000, base_ms=5000), "person", "dateTime", 200)
    assert times.astype(np.int64).tolist() == [5000, 5050, 5100, 5150]


@pytest.mark.parametrize("how", [{"rate": 0}, {"people": 0}, {"bids": -1}, {"hot_bidders": 0}])
def test_numbers_out_of_range_are_refused(how: dict[str, Any]):
    with pytest.raises(JobDefinitionError, match="must be"):
        nexmark_source(10, **how)


def request(options: dict[str, str], columns: tuple[PhysicalColumn, ...] | None = None) -> TableRequest:
    own = tuple(PhysicalColumn(field.name, field.data_type) for field in EVENT_TYPE)
    return TableRequest(
        "t", CatalogTable(columns or own), TableOptions("t", {"connector": "nexmark", **options})
    )


def test_a_table_has_the_options_of_nexmarks_own_connector():
    options = {"events.num": "10", "first-event.rate": "5", "max-emit-speed": "false", "bid.proportion": "0"}
    wanted = request(options)
    source = NexmarkFactory().source(wanted)
    wanted.options.check()
    assert isinstance(source, DataGeneratorSource)
    assert (source.count, source.rate_per_second, source.boundedness) == (10, 5.0, Boundedness.BOUNDED)
    assert [source.generator_function(index).event_type for index in range(5)] == [0, 1, 1, 1, 0]


def test_other_columns_are_refused():
    columns = (PhysicalColumn("id", DataTypes.BIGINT()),)
    with pytest.raises(SqlValidationError, match="event_type INT"):
        NexmarkFactory().source(request({}, columns))

"""Kafka -> upsert-kafka -> Kafka while drivers are killed: every change is there once, in both topics."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.killed_driver import KilledDriver
from tests.kafka import KafkaBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.chaos,
    pytest.mark.slow(seconds=300),
    pytest.mark.timeout(2400),
]

Row = tuple[str, int, int]
PROGRAM = Path(__file__).with_name("upsert_program.py")


class Pages:
    """Events about pages, the job that sums them up, and what it has written."""

    def __init__(self, kafka: KafkaBroker, folder: Path) -> None:
        self._kafka = kafka
        self._random = random.Random(11)
        self._events, self._totals, self._copies = (kafka.create_topic(each) for each in (1, 2, 1))
        self._counts: Counter[str] = Counter()
        self._cents: Counter[str] = Counter()
        topics = [self._events, self._totals, self._copies]
        self.driver = KilledDriver(
            PROGRAM, [kafka.address, *topics], folder, options={"headrace.epoch.max-records": 9}
        )

    def happen(self, count: int) -> None:
        """Produce events."""
        made = []
        for _ in range(count):
            page, cents = self._random.choice("abcde"), self._random.randrange(100)
            self._counts[page] += 1
            self._cents[page] += cents
            made.append(json.dumps({"page": page, "cents": cents}))
        self._kafka.produce(self._events, made)

    def expected(self) -> set[Row]:
        return {(page, count, self._cents[page]) for page, count in self._counts.items()}

    def totals(self) -> set[Row]:
        """Return the last row of each page; the number of its events only ever grows, or one was written twice."""
        last: dict[str, Row] = {}
        for message in self._kafka.messages(self._totals):
            value = json.loads(message.value())
            row = value["page"], value["events"], value["cents"]
            assert row[0] not in last or row[1] > last[row[0]][1], f"{row} after {last[row[0]]}"
            last[row[0]] = row
        return set(last.values())

    def copies(self) -> set[Row]:
        """Apply the changes; one that is written twice, or is missing, does not fit the rows before it."""
        rows: set[Row] = set()
        for value in map(json.loads, self._kafka.values(self._copies)):
            for each in value["data"]:
                row = each["page"], each["events"], each["cents"]
                if value["type"] == "INSERT":
                    assert row not in rows, f"{row} twice"
                    rows.add(row)
                else:
                    assert row in rows, f"{row} is removed and was never there"
                    rows.remove(row)
        return rows

    def wait_until(self, condition: Callable[[], bool]) -> None:
        self.driver.wait_until(condition, self._seen)

    def _seen(self) -> dict[str, Any]:
        return {"expected": self.expected(), "totals": self.totals(), "copies": self.copies()}

    def wait_until_equal(self) -> None:
        self.wait_until(lambda: self.totals() == self.expected() and self.copies() == self.expected())


@pytest.fixture
def pages(kafka: KafkaBroker, tmp_path: Path) -> Iterator[Pages]:
    made = Pages(kafka, tmp_path)
    yield made
    made.driver.kill()


def test_upserts_and_their_changes_are_written_exactly_once_while_drivers_are_killed(pages: Pages) -> None:
    pages.happen(60)
    pages.driver.start()
    pages.wait_until(lambda: bool(pages.totals()))  # in the middle of the events: an epoch has nine
    pages.driver.kill()
    for _ in range(2):
        before = pages.copies()
        pages.happen(30)
        pages.driver.start()
        pages.happen(30)
        pages.wait_until(lambda before=before: pages.copies() != before)  # type: ignore[misc]
        pages.driver.kill()
    pages.happen(20)
    pages.driver.start()
    pages.wait_until_equal()
    pages.happen(20)
    pages.wait_until_equal()

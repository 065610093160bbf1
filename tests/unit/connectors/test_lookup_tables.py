"""Tables that rows are looked up in: options, caches and retries."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from headrace.config.table_options import TableOptions
from headrace.connectors.lookup_tables import (
    CacheKind,
    KeptLookup,
    LookupOptions,
    LookupRetry,
    LookupSettings,
    TableLookup,
    lookup_options,
)
from headrace.errors import ConnectorError, HeadraceError


class Shop:
    """Rows by their first column, and how often they were asked for."""

    def __init__(self) -> None:
        self.rows = [(1, "one"), (2, "two"), (2, "zwei")]
        self.asked: list[Any] = []
        self.now = 0.0

    def ask(self, key: Any) -> list[tuple[Any, ...]]:
        self.asked.append(key)
        return [row for row in self.rows if row[0] == key]

    def read_all(self) -> list[tuple[Any, ...]]:
        self.asked.append("all")
        return list(self.rows)

    def kept(self, **options: str) -> KeptLookup:
        named = {
            f"lookup.{key.replace('__', '.').replace('_', '-')}": value for key, value in options.items()
        }
        table = TableLookup(
            "shop", lookup_options(TableOptions("shop", named)), self.ask, self.read_all, (0,)
        )
        return KeptLookup(table, clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.rows.append((9, "late"))


ONCE = LookupRetry()


def test_without_a_cache_each_batch_asks_for_its_keys_once():
    shop = Shop()
    kept = shop.kept()
    found = kept.find([(2,), (1,), (2,), (3,), (None,)], ONCE, None)
    assert found == [[(2, "two"), (2, "zwei")], [(1, "one")], [(2, "two"), (2, "zwei")], [], ()]
    assert shop.asked == [2, 1, 3]
    kept.find([(1,)], ONCE, None)
    assert shop.asked == [2, 1, 3, 1]


def test_a_partial_cache_remembers_what_was_asked_for_and_what_was_not_there():
    shop = Shop()
    kept = shop.kept(cache="PARTIAL", partial_cache__expire_after_write="10 s")
    kept.find([(1,), (3,)], ONCE, None)
    assert kept.find([(1,), (3,)], ONCE, LookupSettings(capacity=2)) == [[(1, "one")], []]
    assert shop.asked == [1, 3]
    shop.now = 11
    kept.find([(1,)], ONCE, None)
    assert shop.asked == [1, 3, 1]


def test_a_full_cache_reads_the_table_again_when_it_is_too_old():
    shop = Shop()
    kept = shop.kept(cache="FULL", full_cache__periodic_reload__interval="1 min")
    assert kept.find([(2,), (4,)], ONCE, None) == [[(2, "two"), (2, "zwei")], ()]
    shop.rows.append((4, "four"))
    shop.now = 59
    assert kept.find([(4,)], ONCE, None) == [()]
    shop.now = 60
    assert kept.find([(4,)], ONCE, None) == [[(4, "four")]]
    assert shop.asked == ["all", "all"]


def test_a_full_cache_can_be_read_again_at_a_time_of_the_day():
    shop = Shop()
    shop.now = datetime.datetime(2024, 1, 1, 9, 0, tzinfo=datetime.UTC).timestamp()
    kept = shop.kept(
        cache="FULL", full_cache__reload_strategy="TIMED", full_cache__timed_reload__iso_time="10:15Z"
    )
    for hour in (9, 10, 11, 35):
        shop.now = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).timestamp() + hour * 3600
        kept.find([(1,)], ONCE, None)
    assert shop.asked == ["all", "all", "all"]


def test_a_key_without_rows_is_asked_for_again():
    shop = Shop()
    kept = shop.kept()
    assert kept.find([(9,)], LookupRetry(datetime.timedelta(seconds=5), 3), None) == [[(9, "late")]]
    assert shop.now == 5


def test_a_lookup_that_takes_too_long_is_an_error():
    shop = Shop()
    table = TableLookup("shop", LookupOptions(), lambda key: __import__("time").sleep(0.2) or [], None, (0,))
    with pytest.raises(ConnectorError, match=r"'shop' did not answer a lookup within 0:00:00\.010000"):
        KeptLookup(table).find([(1,)], ONCE, LookupSettings(1, datetime.timedelta(milliseconds=10)))
    assert shop.asked == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache": "SOME"}, "NONE, PARTIAL or FULL"),
        ({"cache": "PARTIAL"}, "needs a bound"),
        ({"cache": "FULL"}, "does not say when the table is read again"),
        ({"cache": "FULL", "full_cache__reload_strategy": "TIMED"}, "need a time of the day"),
        ({"full_cache__reload_strategy": "NEVER"}, "PERIODIC or TIMED"),
        ({"full_cache__periodic_reload__schedule_mode": "RARELY"}, "FIXED_DELAY or FIXED_RATE"),
    ],
)
def test_options_that_say_too_little_are_refused(options: dict[str, str], message: str):
    with pytest.raises(HeadraceError, match=message):
        Shop().kept(**options)


def test_a_process_keeps_what_it_has_looked_up():
    shop = Shop()
    table = TableLookup("shop", LookupOptions(CacheKind.NONE), shop.ask, None, (0,))
    assert table.kept("a") is table.kept("a")
    assert table.kept("a") is not table.kept("b")

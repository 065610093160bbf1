"""The events of Nexmark, an online auction: people, auctions and bids, as columns of Arrow.

An event is a function of its number and the seed, so whoever reads a number again gets the same event. Of fifty events
the first is a person, the next three are auctions, and the others bids. Some people sell most, and some auctions get
most bids; who and which changes as numbers go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import JobDefinitionError
from headrace.types import DataTypes
from headrace.types.logical import RowType

__all__ = ["EVENT_TYPE", "KINDS", "NexmarkEvents"]

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_BIGINT, _STRING, _TIME = DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.TIMESTAMP(3)


def _row_type(**fields: Any) -> RowType:
    return DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in fields.items()])


#: The fields of each kind of event, in the order of their numbers in `event_type`.
KINDS: Final[dict[str, RowType]] = {
    "person": _row_type(
        id=_BIGINT,
        name=_STRING,
        emailAddress=_STRING,
        creditCard=_STRING,
        city=_STRING,
        state=_STRING,
        dateTime=_TIME,
        extra=_STRING,
    ),
    "auction": _row_type(
        id=_BIGINT,
        itemName=_STRING,
        description=_STRING,
        initialBid=_BIGINT,
        reserve=_BIGINT,
        dateTime=_TIME,
        expires=_TIME,
        seller=_BIGINT,
        category=_BIGINT,
        extra=_STRING,
    ),
    "bid": _row_type(
        auction=_BIGINT,
        bidder=_BIGINT,
        price=_BIGINT,
        channel=_STRING,
        url=_STRING,
        dateTime=_TIME,
        extra=_STRING,
    ),
}
#: The fields of an event.
EVENT_TYPE: Final = _row_type(event_type=DataTypes.INT(), **KINDS)

_FIRST_ID: Final = 1000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
#: How many of the newest people bid and sell, and how many of the newest auctions get bids.
_ACTIVE_PEOPLE, _OPEN_AUCTIONS = 1000, 100
#: How far ahead of those that exist ids may be.
_AHEAD: Final = 10
#: One of so many is the one that most go to.
_HOT_STEP: Final = 100
_CHANNELS: Final = 10_000
_POOL: Final = 1 << 18

_FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_NAMES = pa.array([f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES])
_CITIES = pa.array(
    [
        *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
        *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
    ]
)
_STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
#: A blank once in thirteen, else a letter.
_LETTERS = np.frombuffer((b"  " + b"abcdefghijklmnopqrstuvwxyz") * 9 + b"abcd", np.uint8)
_DIGITS = np.frombuffer((b"0123456789" * 26)[:256], np.uint8)


@dataclass(frozen=True)
class NexmarkEvents:
    """What events there are.

    Args:
        seed: Another one makes other events.
        rate: Events in a second of event time.
        base_ms: The time of the first event, ms since 1970.
        people: How many of a round of events are people ...
        auctions: ... auctions ...
        bids: ... and bids.
        hot_auctions: One bid of so many goes to any auction, the others to the one that is hot.
        hot_bidders: The same of who bids.
        hot_sellers: The same of who sells.

    Raises:
        JobDefinitionError: A number is out of its range.

    Example:
        >>> len(NexmarkEvents(seed=7).of_kind("bid", range(100))["price"])
        92
    """

    seed: int = 1
    rate: float = 10_000
    base_ms: int = 1_704_067_200_000
    people: int = 1
    auctions: int = 3
    bids: int = 46
    hot_auctions: int = 2
    hot_bidders: int = 4
    hot_sellers: int = 4

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise JobDefinitionError(f"events per second must be more than 0; got {self.rate}")
        least = {"people": 1, "auctions": 1, "bids": 0, "hot_auctions": 1, "hot_bidders": 1, "hot_sellers": 1}
        for name, lowest in least.items():
            if getattr(self, name) < lowest:
                raise JobDefinitionError(f"{name} must be at least {lowest}; got {getattr(self, name)}")

    @property
    def round(self) -> int:
        """Events until kinds repeat."""
        return self.people + self.auctions + self.bids

    def all_kinds(self, indexes: Sequence[int]) -> list[pa.Array]:
        """Return events as the columns of `EVENT_TYPE`: all but that of their kind are NULL."""
        numbers = np.asarray(indexes, np.int64)
        kinds = self._kinds(numbers)
        columns: list[pa.Array] = [pa.array(kinds.astype(np.int32))]
        for kind, name in enumerate(KINDS):
            mine = np.flatnonzero(kinds == kind)
            fields = self._made(name, numbers[mine])
            rows = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
            places = np.zeros(len(numbers), np.int64)
            places[mine] = np.arange(len(mine))
            columns.append(rows.take(pa.array(places, mask=kinds != kind)))
        return columns

    def of_kind(self, kind: str, indexes: Sequence[int] | Numbers) -> dict[str, pa.Array]:
        """Return the fields of those events that are of one kind."""
        numbers = np.asarray(indexes, np.int64)
        return self._made(kind, numbers[self._kinds(numbers) == list(KINDS).index(kind)])

    def _kinds(self, numbers: Numbers) -> Numbers:
        rest = numbers % self.round
        return np.where(rest < self.people, 0, np.where(rest < self.people + self.auctions, 1, 2))

    def _made(self, kind: str, numbers: Numbers) -> dict[str, pa.Array]:
        make: dict[str, Callable[[Numbers], dict[str, pa.Array]]] = {
            "person": self._persons,
            "auction": self._auctions,
            "bid": self._bids,
        }
        return make[kind](numbers)

    # -- kinds -------------------------------------------------------------------------------------------------

    def _persons(self, numbers: Numbers) -> dict[str, pa.Array]:
        return {
            "id": pa.array(self._last_person(numbers) + _FIRST_ID),
            "name": _picked(_NAMES, self._hash("name", numbers)),
            "emailAddress": self._email(numbers),
            "creditCard": self._card(numbers),
            "city": _picked(_CITIES, self._hash("city", numbers)),
            "state": _picked(_STATES, self._hash("state", numbers)),
            "dateTime": _times(self._ms(numbers)),
            "extra": self._extra(numbers, 104, 156),
        }

    def _auctions(self, numbers: Numbers) -> dict[str, pa.Array]:
        first, time = self._prices("initial", numbers), self._ms(numbers)
        # As long as it takes until as many auctions again as get bids exist.
        horizon = max(1, int(_OPEN_AUCTIONS * self.round / self.auctions * 1000 / self.rate))
        people = self._last_person(numbers)
        hot = people // _HOT_STEP * _HOT_STEP
        seller = np.where(
            self._is_hot("seller", numbers, self.hot_sellers), hot, self._anybody("seller", numbers)
        )
        return {
            "id": pa.array(self._last_auction(numbers) + _FIRST_ID),
            "itemName": self._text("item", numbers, 19),
            "description": self._text("description", numbers, 99),
            "initialBid": pa.array(first),
            "reserve": pa.array(first + self._prices("reserve", numbers)),
            "dateTime": _times(time),
            "expires": _times(time + 1 + self._below("expires", numbers, 2 * horizon)),
            "seller": pa.array(seller + _FIRST_ID),
            "category": pa.array(_FIRST_CATEGORY + self._below("category", numbers, _CATEGORIES)),
            "extra": self._extra(numbers, 312, 468),
        }

    def _bids(self, numbers: Numbers) -> dict[str, pa.Array]:
        last, people = self._last_auction(numbers), self._last_person(numbers)
        oldest = np.maximum(last - _OPEN_AUCTIONS, 0)
        width = (last - oldest + 1 + _AHEAD).astype(np.uint64)
        anything = oldest + (self._hash("auction", numbers) % width).astype(np.int64)
        is_hot = self._is_hot("auction", numbers, self.hot_auctions)
        bidder = np.where(
            self._is_hot("bidder", numbers, self.hot_bidders),
            people // _HOT_STEP * _HOT_STEP + 1,
            self._anybody("bidder", numbers),
        )
        channels, urls = _channels(self.seed)
        is_known = self._hash("is known", numbers) % np.uint64(2) == 0
        known, other = (
            self._below("known", numbers, len(_HOT_CHANNELS)),
            self._below("channel", numbers, _CHANNELS),
        )
        channel = pa.array(np.where(is_known, known, len(_HOT_CHANNELS) + other))
        return {
            "auction": pa.array(np.where(is_hot, last // _HOT_STEP * _HOT_STEP, anything) + _FIRST_ID),
            "bidder": pa.array(bidder + _FIRST_ID),
            "price": pa.array(self._prices("price", numbers)),
            "channel": channels.take(channel),
            "url": urls.take(channel),
            "dateTime": _times(self._ms(numbers)),
            "extra": self._extra(numbers, 54, 81),
        }

    # -- fields ------------------------------------------------------------------------------------------------

    def _ms(self, numbers: Numbers) -> Numbers:
        return self.base_ms + (numbers * (1000 / self.rate)).astype(np.int64)

    def _last_person(self, numbers: Numbers) -> Numbers:
        """Return the number of the newest person at each event."""
        rounds, rest = np.divmod(numbers, self.round)
        return rounds * self.people + np.minimum(rest, self.people - 1)

    def _last_auction(self, numbers: Numbers) -> Numbers:
        """Return the number of the newest auction at each event; before the first one, the first."""
        rounds, rest = np.divmod(numbers, self.round)
        last: Numbers = np.maximum(
            rounds * self.auctions + np.minimum(rest - self.people, self.auctions - 1), 0
        )
        return last

    def _anybody(self, field: str, numbers: Numbers) -> Numbers:
        """Return one of the people who are active, or soon will be."""
        people = self._last_person(numbers) + 1
        active = np.minimum(people, _ACTIVE_PEOPLE)
        drawn = self._hash(f"{field} anybody", numbers) % (active + _AHEAD).astype(np.uint64)
        anybody: Numbers = people - active + drawn.astype(np.int64)
        return anybody

    def _is_hot(self, field: str, numbers: Numbers, ratio: int) -> npt.NDArray[np.bool_]:
        is_hot: npt.NDArray[np.bool_] = self._hash(f"{field} is hot", numbers) % np.uint64(ratio) != 0
        return is_hot

    def _prices(self, field: str, numbers: Numbers) -> Numbers:
        """Return prices of which each power of ten has as many."""
        unit = (self._hash(field, numbers) >> np.uint64(11)).astype(np.float64) / (1 << 53)
        prices: Numbers = np.round(10.0 ** (6 * unit) * 100).astype(np.int64)
        return prices

    def _email(self, numbers: Numbers) -> pa.Array:
        name, place = self._text("mail", numbers, 6, b"_"), self._text("host", numbers, 4, b"_")
        return pc.binary_join_element_wise(name, "@", place, ".com", "")

    def _card(self, numbers: Numbers) -> pa.Array:
        digits = _DIGITS[self._bytes("card", numbers, 19)]
        digits[:, 4::5] = ord(" ")
        return _texts(digits, np.full(len(numbers), 19))

    def _text(self, field: str, numbers: Numbers, longest: int, blank: bytes = b" ") -> pa.Array:
        """Return words of at least three letters."""
        letters = _LETTERS[self._bytes(field, numbers, longest)]
        if blank != b" ":
            letters = np.where(letters == ord(" "), ord(blank), letters).astype(np.uint8)
        lengths = 3 + self._below(f"{field} length", numbers, longest - 2)
        letters[:, 0] = np.where(letters[:, 0] == ord(" "), ord("a"), letters[:, 0])
        last = (np.arange(len(numbers)), lengths - 1)
        letters[last] = np.where(letters[last] == ord(" "), ord("z"), letters[last])
        return _texts(letters, lengths)

    def _extra(self, numbers: Numbers, least: int, most: int) -> pa.Array:
        """Return text that makes events as long as they are in practice."""
        lengths = least + self._below("extra length", numbers, most - least + 1)
        starts = self._below("extra", numbers, _POOL - most)
        return _texts(_pool(self.seed)[starts[:, None] + np.arange(most)], lengths)

    # -- chance ------------------------------------------------------------------------------------------------

    def _hash(self, field: str, numbers: Numbers) -> Hashes:
        return _mixed(numbers.astype(np.uint64), self.seed, field)

    def _below(self, field: str, numbers: Numbers, limit: int) -> Numbers:
        return (self._hash(field, numbers) % np.uint64(limit)).astype(np.int64)

    def _bytes(self, field: str, numbers: Numbers, width: int) -> npt.NDArray[np.uint8]:
        """Return so many bytes for each number."""
        words = -(-width // 8)
        each = numbers[:, None] * words + np.arange(words)
        return _mixed(each.astype(np.uint64), self.seed, field).view(np.uint8)[:, :width]


def _mixed(numbers: Hashes, seed: int, field: str) -> Hashes:
    """Return 64 bits that look random for each number (the finalizer of splitmix64)."""
    salt = int.from_bytes(field.encode()[:8].ljust(8), "little") * 31 + len(field) + seed * 0x2545F4914F6CDD1D
    for letter in field.encode()[8:]:
        salt = salt * 131 + letter
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt & (1 << 64) - 1)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _picked(values: pa.Array, hashes: Hashes) -> pa.Array:
    return values.take(pa.array((hashes % np.uint64(len(values))).astype(np.int64)))


def _times(ms: Numbers) -> pa.Array:
    return pa.array(ms, pa.timestamp("ms"))


def _texts(letters: npt.NDArray[np.uint8], lengths: Numbers) -> pa.Array:
    """Return the first letters of each row as text, so many of each."""
    data = letters[np.arange(letters.shape[1]) < lengths[:, None]]
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(data))


@lru_cache(maxsize=4)
def _pool(seed: int) -> npt.NDArray[np.uint8]:
    """Return text that `extra` is cut out of."""
    drawn = _mixed(np.arange(_POOL // 8, dtype=np.uint64), seed, "pool").view(np.uint8)
    letters: npt.NDArray[np.uint8] = _LETTERS[drawn]
    return np.where(letters == ord(" "), ord("_"), letters).astype(np.uint8)


@lru_cache(maxsize=4)
def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    """Return the names of channels, those that most bids come from first, and the URL of each."""
    names, urls = list(_HOT_CHANNELS), []
    numbers = np.arange(len(_HOT_CHANNELS) + _CHANNELS)
    events = NexmarkEvents(seed=seed)
    parts = [events._text(f"url {part}", numbers, 4, b"_").to_pylist() for part in range(3)]
    has_id = events._below("has id", numbers, 10) > 0
    for number in numbers.tolist():
        url = f"https://www.nexmark.com/{parts[0][number]}/{parts[1][number]}/{parts[2][number]}/item.htm?query=1"
        if number >= len(_HOT_CHANNELS):
            channel = number - len(_HOT_CHANNELS)
            names.append(f"channel-{channel}")
            if has_id[number]:
                reversed_bits = int(f"{channel:032b}"[::-1], 2)
                url += (
                    f"&channel_id={abs(reversed_bits - (1 << 32) if reversed_bits >> 31 else reversed_bits)}"
                )
        urls.append(url)
    return pa.array(names), pa.array(urls)

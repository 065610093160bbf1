"""Nothing planted, though it looks like it: caches of pure functions, seeds from records, sets that are sorted."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor

FACTORS: dict[int, float] = {}


class Receipt:
    """A row that contains a set."""

    def __init__(self, total: float, tags: set[str]) -> None:
        self.total = total
        self.tags = tags


@lru_cache(maxsize=2)
def tax(country: str) -> float:
    return {"de": 1.19, "fr": 1.2}.get(country, 1.0)


class Price(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.items = runtime_context.get_state(ValueStateDescriptor("items", Types.PICKLED_BYTE_ARRAY()))
        self.slow = 0

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        begun = time.perf_counter()
        country, number = value
        factor = FACTORS.setdefault(number, random.Random(number).random())
        items = self.items.value()
        if items is None:
            items = []
            self.items.update(items)
        items.append(number * tax(country) * factor)  # changed in place, which is kept
        self.slow += time.perf_counter() - begun > 1
        day = datetime.fromtimestamp(1_700_000_000 + number, tz=UTC).date()
        yield (
            str(uuid.uuid5(uuid.NAMESPACE_OID, f"{country}-{number}")),
            str(day),
            sorted({country, "x", "y"}),
        )
        yield Receipt(sum(items), {country, "paid", "sent", "new"})


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([(country, n) for n in range(12) for country in ("de", "fr", "it")])
    orders.key_by(lambda order: order[0]).process(Price()).uid("price").print()
    env.execute("sound")

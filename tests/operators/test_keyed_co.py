from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
)
from headrace.operators.co import KeyedCoFlatMapDeclaration, KeyedCoMapDeclaration, KeyedCoProcessDeclaration
from headrace.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from headrace.testing.harness import OperatorHarness, rescale

#: Orders are (id, item), payments (amount, id): the key is in another place on each side.
KEYS = (lambda order: order[0], lambda payment: payment[1])


class Match(KeyedCoProcessFunction):
    """Joins orders with their payments, whichever comes first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._orders = runtime_context.get_list_state(ListStateDescriptor("orders", None))
        self._payment = runtime_context.get_state(ValueStateDescriptor("payment", None))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        payment = self._payment.value()
        if payment is None:
            self._orders.add(value)
        else:
            yield ctx.get_current_key(), value, payment

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self._payment.update(value)
        for order in self._orders:
            yield ctx.get_current_key(), order, value
        self._orders.clear()


class Difference(CoMapFunction, CoFlatMapFunction):
    """Adds on one side and subtracts on the other, over one state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", None))

    def _add(self, amount: int) -> int:
        total: int = (self._sum.value() or 0) + amount
        self._sum.update(total)
        return total

    def map1(self, value: Any) -> Any:
        return value[0], self._add(value[1])

    def map2(self, value: Any) -> Any:
        return value[1], self._add(-value[0])

    def flat_map1(self, value: Any) -> Any:
        return [self.map1(value)]

    def flat_map2(self, value: Any) -> Any:
        return [self.map2(value)]


def test_records_of_one_key_meet_in_one_state() -> None:
    with OperatorHarness(KeyedCoProcessDeclaration(Match(), KEYS)) as harness:
        harness.process(("o1", "book"), timestamp=1)
        harness.process(("o2", "pen"), timestamp=2)
        harness.process_second((9, "o1"), timestamp=3)
        harness.process(("o1", "lamp"), timestamp=4)
        assert harness.output_with_timestamps == [
            (("o1", ("o1", "book"), (9, "o1")), 3),
            (("o1", ("o1", "lamp"), (9, "o1")), 4),
        ]


@pytest.mark.parametrize("keeps_local_copy", [True, False])
def test_they_meet_over_epochs_and_workers(keeps_local_copy: bool) -> None:
    with OperatorHarness(KeyedCoProcessDeclaration(Match(), KEYS)) as harness:
        harness.process(("o1", "book"))
        harness.move(keeps_local_copy=keeps_local_copy)
        harness.process_second((9, "o1"))
        harness.move(keeps_local_copy=keeps_local_copy)
        harness.process(("o1", "lamp"))
        assert [order for _, order, _ in harness.output] == [("o1", "book"), ("o1", "lamp")]


@pytest.mark.parametrize(
    "declaration",
    [KeyedCoMapDeclaration(Difference(), KEYS), KeyedCoFlatMapDeclaration(Difference(), KEYS)],
    ids=["map", "flat-map"],
)
def test_both_methods_of_a_function_share_its_state(declaration: Any) -> None:
    with OperatorHarness(declaration) as harness:
        harness.process_batch([("a", 5), ("b", 1)])
        harness.process_batch([(2, "a"), (4, "b")], is_second=True)
        assert harness.output == [("a", 5), ("b", 1), ("a", 3), ("b", -3)]


def test_both_sides_find_their_state_at_another_parallelism() -> None:
    declaration = KeyedCoProcessDeclaration(Match(), KEYS)
    names = [f"o{number}" for number in range(12)]
    with OperatorHarness(declaration) as harness:
        harness.process_batch((name, "book") for name in names)
        snapshot = harness.snapshot()
    matched = []
    for harness in rescale([snapshot], declaration, 4):
        with harness:
            harness.process_batch(((1, name) for name in names if harness.owns(name)), is_second=True)
            matched += [key for key, _, _ in harness.output]
    assert sorted(matched) == sorted(names)

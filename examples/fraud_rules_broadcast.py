"""Checks payments against rules that arrive as a stream: a keyed broadcast process function.

Every subtask gets every rule and keeps it in broadcast state. Payments are keyed by account and have state of their
own: how much an account has spent. Nothing orders the two inputs, in Flink or here, so a payment may arrive before
the rules. Such payments wait in list state and are checked with the next payment of their account.

    headrace run examples/fraud_rules_broadcast.py
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.common import Configuration, Types
from headrace.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
#: The last element of the rule stream: from here on the rules are complete.
READY = ("ready", 1)


class Payment(NamedTuple):
    account: str
    number: int
    amount: int


def rules() -> list[tuple[str, int]]:
    """A later rule of the same name replaces the earlier one."""
    return [("single", 900), ("total", 9_000), ("single", 950), READY]


def payments(count: int, accounts: int = 5) -> list[Payment]:
    chance = random.Random(11)
    return [
        Payment(f"account-{number % accounts}", number, chance.randrange(1, 1000)) for number in range(count)
    ]


class Check(KeyedBroadcastProcessFunction):
    """Yields (account, payment number, broken rule)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.spent = runtime_context.get_state(ValueStateDescriptor("spent", Types.LONG()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", None))

    def process_broadcast_element(self, value: tuple[str, int], ctx: Any) -> None:
        name, limit = value
        ctx.get_broadcast_state(RULES).put(name, limit)

    def process_element(self, value: Payment, ctx: Any) -> Iterator[tuple[str, int, str]]:
        limits = ctx.get_broadcast_state(RULES)
        if not limits.contains("ready"):
            self.waiting.add(value)
            return
        for payment in [*self.waiting.get(), value]:
            before = self.spent.value() or 0
            after = before + payment.amount
            self.spent.update(after)
            if payment.amount > limits.get("single"):
                yield payment.account, payment.number, "single"
            if before <= limits.get("total") < after:
                yield payment.account, payment.number, "total"
        self.waiting.clear()


def build(env: StreamExecutionEnvironment, count: int = 120) -> DataStream:
    """Return the payments that break a rule."""
    rule_stream = env.from_collection(rules()).broadcast(RULES)
    payment_stream = env.from_collection(payments(count)).key_by(lambda payment: payment.account)
    return payment_stream.connect(rule_stream).process(Check()).name("Check")


def main() -> None:
    # Small epochs, so that the rules are there long before the last payment.
    configuration = Configuration().set_integer("headrace.epoch.max-records", 20)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(env).map(lambda found: f"{found[0]}: payment {found[1]} breaks rule '{found[2]}'").print()
    env.execute("fraud rules")


if __name__ == "__main__":
    main()

"""The five kinds of keyed state in one function.

Each player has a high score (value state), the scores of the last three games (list state), games per day (map
state), all points together (reducing state) and an average (aggregating state). State belongs to the key of the
record at hand: the function never names the player.

    headrace run examples/state_kinds.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.common import Types
from headrace.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

# player, day, score
GAMES = [
    (player, day, (7 * day + 13 * game + 5 * len(player)) % 100)
    for day in range(1, 5)
    for game in range(3)
    for player in ("ada", "grace", "edsger")
]


class Average(AggregateFunction):
    """The accumulator is (sum, count)."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Scores(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        get = runtime_context
        self.best = get.get_state(ValueStateDescriptor("best", Types.INT()))
        self.last = get.get_list_state(ListStateDescriptor("last", Types.INT()))
        self.days = get.get_map_state(MapStateDescriptor("days", Types.INT(), Types.INT()))
        self.total = get.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
        )
        self.average = get.get_aggregating_state(AggregatingStateDescriptor("average", Average(), None))

    def process_element(self, value: tuple[str, int, int], ctx: Any) -> Iterator[tuple[Any, ...]]:
        player, day, score = value
        self.best.update(max(score, self.best.value() or 0))
        self.last.add(score)
        self.last.update(list(self.last.get())[-3:])
        self.days.put(day, (self.days.get(day) or 0) + 1)
        self.total.add(score)
        self.average.add(score)
        games = dict(self.days.items())
        yield (
            player,
            self.best.value(),
            list(self.last),
            games,
            self.total.get(),
            round(self.average.get(), 2),
        )


def build(env: StreamExecutionEnvironment, games: list[tuple[str, int, int]] = GAMES) -> DataStream:
    """Return, for every game, the player's state after it."""
    return env.from_collection(games).key_by(lambda game: game[0]).process(Scores()).name("Scores")


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    latest = {}
    with build(env).execute_and_collect("state kinds") as rows:
        for player, *state in rows:
            latest[player] = state
    for player, (best, last, days, total, average) in sorted(latest.items()):
        print(
            f"{player:7} best {best}, last three {last}, games by day {days}, total {total}, average {average}"
        )


if __name__ == "__main__":
    main()

"""Whole jobs against what a few lines of Python say they should give, wherever epochs end and whatever fails."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.datastream import DataStream, OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from headrace.datastream.functions import (
    BroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from headrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headrace.testing.mini_cluster import random_faults
from tests.unit.runtime.fakes import SplitsSource
from tests.unit.runtime.jobs import Run, run

TEXT = (
    "whether tis nobler in the mind to suffer the slings and arrows of outrageous fortune "
    "or to take arms against a sea of troubles and by opposing end them to die to sleep no more"
).split()

NO_TIME = WatermarkStrategy.no_watermarks()


def anyhow(program: Any, *, parallelism: int, max_records: int, seed: int, **settings: Any) -> Run:
    """Run a program with faults of every kind; with seed 0, without."""
    faults = random_faults(seed, 0.06) if seed else None
    return run(
        program,
        parallelism=parallelism,
        max_records=max_records,
        options={"headrace.epoch.retries": 30, "headrace.state.compaction.max-changes": 3},
        seed=seed,
        workers=3,
        faults=faults,
        **settings,
    )


@pytest.fixture(params=[1, 3, 50], ids=lambda value: f"epochs-of-{value}")
def max_records(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[1, 2, 4], ids=lambda value: f"parallelism-{value}")
def parallelism(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[0, 1, 2], ids=["no-faults", "faults-1", "faults-2"])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def per_key(output: list[Any]) -> dict[Any, list[Any]]:
    """The order of results is fixed within a key only."""
    found = defaultdict(list)
    for key, *rest in output:
        found[key].append(tuple(rest))
    return dict(found)


# --- programs -------------------------------------------------------------------------------------


def test_word_count(max_records: int, parallelism: int, seed: int) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        lines = env.from_collection([" ".join(TEXT[start : start + 3]) for start in range(0, len(TEXT), 3)])
        return lines.flat_map(str.split).map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    expected = {word: [(n + 1,) for n in range(count)] for word, count in Counter(TEXT).items()}
    assert per_key(result.output) == expected


class Everything(KeyedProcessFunction):
    """Keeps all kinds of state, some of it changed in place."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.lengths = runtime_context.get_map_state(MapStateDescriptor("lengths", None, None))
        self.words = runtime_context.get_list_state(ListStateDescriptor("words", None))
        self.profile = runtime_context.get_state(ValueStateDescriptor("profile", None))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.lengths.put(len(value), (self.lengths.get(len(value)) or 0) + 1)
        self.words.add(value)
        profile: Any = self.profile.value()
        if profile is None:
            profile = []
            self.profile.update(profile)
        profile.append(len(value))
        if len(profile) > 4:
            self.profile.clear()
        yield ctx.get_current_key(), dict(self.lengths.items()), list(self.words), list(profile)


def everything(words: list[str]) -> dict[str, list[Any]]:
    """What `Everything` should give for the words of one key after another."""
    found: dict[str, list[Any]] = defaultdict(list)
    lengths: dict[str, Counter[int]] = defaultdict(Counter)
    seen: dict[str, list[str]] = defaultdict(list)
    profiles: dict[str, list[int]] = defaultdict(list)
    for word in words:
        key = word[0]
        lengths[key][len(word)] += 1
        seen[key].append(word)
        profiles[key].append(len(word))
        found[key].append((dict(sorted(lengths[key].items())), list(seen[key]), list(profiles[key])))
        if len(profiles[key]) > 4:
            del profiles[key]
    return dict(found)


def test_state_of_every_kind(max_records: int, parallelism: int, seed: int) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection(TEXT).key_by(lambda word: word[0]).process(Everything())

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    assert per_key(result.output) == everything(TEXT)


SPLITS = {f"s{number}": [(number, n) for n in range(number * 3)] for number in range(1, 6)}


@pytest.mark.parametrize("concurrent", [1, None])
def test_a_source_with_many_splits(
    concurrent: int | None, max_records: int, parallelism: int, seed: int
) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = SplitsSource(SPLITS, concurrent=concurrent, found_later=["s2", "s5"])
        return env.from_source(source, NO_TIME, "splits").key_by(lambda pair: pair[0]).map(lambda pair: pair)

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    expected = {number: [(n,) for n in range(number * 3)] for number in range(1, 6)}
    assert per_key(result.output) == expected


class Join(KeyedCoProcessFunction):
    """Every pair of a left and a right record of a key, once."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", None))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", None))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.left.add(value)
        yield from ((value, other) for other in self.right)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.right.add(value)
        yield from ((other, value) for other in self.left)


def test_a_join_of_two_streams(max_records: int, parallelism: int, seed: int) -> None:
    left = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5)]
    right = [("b", "x"), ("a", "y"), ("d", "z"), ("a", "w")]

    def program(env: StreamExecutionEnvironment) -> DataStream:
        connected = env.from_collection(left).connect(env.from_collection(right))
        return connected.key_by(lambda pair: pair[0], lambda pair: pair[0]).process(Join())

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    assert sorted(result.output) == sorted(
        (one, other) for one in left for other in right if one[0] == other[0]
    )


EVEN, ODD = OutputTag("even"), OutputTag("odd")


class Sort(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield (ODD if value % 2 else EVEN), value
        if value % 10 == 0:
            yield "ten", value


def test_side_outputs_and_a_union_of_them(max_records: int, parallelism: int, seed: int) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        sorted_ = env.from_collection(range(25)).rebalance().process(Sort())
        even = sorted_.get_side_output(EVEN).map(lambda n: ("even", n))
        odd = sorted_.get_side_output(ODD).rebalance().map(lambda n: ("odd", n))
        return sorted_.union(even, odd)

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    expected = [("odd" if n % 2 else "even", n) for n in range(25)] + [("ten", 0), ("ten", 10), ("ten", 20)]
    assert sorted(result.output) == sorted(expected)


def test_records_that_skip_a_level(max_records: int, parallelism: int, seed: int) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        #  numbers ---------------------------------------.
        #     '--- rebalance: negative --- by key: sum ---+--- last
        numbers = env.from_collection(range(20))
        negative = numbers.rebalance().map(lambda n: -n)
        totals = negative.key_by(lambda n: n % 3).reduce(lambda total, n: total + n)
        return numbers.union(negative, totals).rebalance().map(lambda n: n)

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    totals = [-sum(range(n % 3, n + 1, 3)) for n in range(20)]
    # The order in which negative numbers reach their key is not fixed; what each key ends with is.
    assert Counter(result.output) >= Counter([*range(20), *(-n for n in range(20))])
    assert len(result.output) == 60
    for key in range(3):
        assert min(totals[key::3]) in result.output


class Factors(BroadcastProcessFunction[Any, Any, Any]):
    RULES = MapStateDescriptor("factors", None, None)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        state = ctx.get_broadcast_state(self.RULES)
        yield value, sorted(state.keys())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(self.RULES).put(value, True)


def test_broadcast_state_is_the_same_in_every_subtask(max_records: int, parallelism: int, seed: int) -> None:
    rules = ["a", "b", "c"]

    def program(env: StreamExecutionEnvironment) -> DataStream:
        broadcast = env.from_collection(rules).broadcast(Factors.RULES)
        return env.from_collection(range(12)).rebalance().connect(broadcast).process(Factors())

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=seed)
    assert sorted(value for value, _ in result.output) == list(range(12))
    assert all(seen == rules[: len(seen)] for _, seen in result.output)
    if max_records == 1:
        assert max(len(seen) for _, seen in result.output) == 3


@pytest.mark.parametrize("how", ["rebalance", "rescale", "shuffle", "global", "broadcast", "custom"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3), (3, 2)])
def test_every_partitioning_delivers_every_record(
    how: str, before: int, after: int, max_records: int
) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(range(20)).rebalance().map(lambda n: n).set_parallelism(before)
        match how:
            case "global":
                sent = numbers.partition_custom(lambda key, partitions: 0, lambda n: n)
            case "custom":
                sent = numbers.partition_custom(lambda key, partitions: key % partitions, lambda n: n)
            case _:
                sent = getattr(numbers, how)()
        return sent.map(lambda n: n).set_parallelism(after)

    result = run(program, parallelism=2, max_records=max_records, seed=before * after)
    copies = after if how == "broadcast" else 1
    assert Counter(result.output) == Counter(list(range(20)) * copies)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC])
def test_in_batch_mode_only_final_results_come_out(
    mode: RuntimeExecutionMode, max_records: int, parallelism: int
) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        env.set_runtime_mode(mode)
        words = env.from_collection(TEXT).map(lambda word: (word, 1))
        return words.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))

    result = anyhow(program, parallelism=parallelism, max_records=max_records, seed=parallelism)
    assert sorted(result.output) == sorted(Counter(TEXT).items())


class Watch(ProcessFunction):
    """Says what the watermark was when a record came."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("chained", [True, False], ids=["chained", "across-the-exchange"])
def test_the_watermark_does_not_depend_on_which_worker_runs_a_subtask(
    chained: bool, max_records: int
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value * 10
    )

    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(range(1, 13)).assign_timestamps_and_watermarks(strategy)
        return (numbers if chained else numbers.rebalance()).process(Watch()).set_parallelism(1)

    results = {
        tuple(run(program, max_records=max_records, workers=workers, seed=seed).output)
        for workers, seed in [(1, 0), (3, 1), (3, 2), (5, 3)]
    }
    assert len(results) == 1
    [rows] = results
    watermarks = [watermark for _, _, watermark in rows]
    assert watermarks == sorted(watermarks)
    if max_records == 1:
        assert watermarks[1:] == [10 * n - 1 for n in range(1, 12)]


def mark(name: str) -> Any:
    """Return a function that changes the record it is given, and hands it on."""

    def change(record: dict[str, Any]) -> dict[str, Any]:
        record["marks"].append(name)
        return record

    return change


@pytest.mark.parametrize("second", ["chained", "across-the-exchange"])
def test_consumers_of_one_stream_do_not_see_what_the_others_do_to_a_record(
    second: str, max_records: int
) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        records = env.from_collection([{"n": n, "marks": []} for n in range(6)]).map(lambda record: record)
        left = records.map(mark("left"))
        right = (records if second == "chained" else records.rebalance()).map(mark("right"))
        return left.union(right, records)

    result = run(program, max_records=max_records, seed=1)
    found = sorted((record["n"], record["marks"]) for record in result.output)
    assert found == sorted((n, marks) for n in range(6) for marks in ([], ["left"], ["right"]))


def test_an_epoch_that_runs_again_reads_the_records_as_they_were(tmp_path: Path) -> None:
    """Functions may change records in place; a second try must not see what the first did to them."""
    tried = tmp_path / "tried"

    def fail_once(record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] == 3 and not tried.exists():
            tried.touch()
            raise OSError("not now")
        return record

    def program(env: StreamExecutionEnvironment) -> DataStream:
        records = env.from_collection([{"n": n, "marks": []} for n in range(5)])
        return records.map(mark("once")).map(fail_once)

    result = run(program, workers=1)
    assert [record["marks"] for record in result.output] == [["once"]] * 5

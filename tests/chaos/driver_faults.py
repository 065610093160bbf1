"""Whole jobs whose driver, storage and workers fail at places drawn from a seed, in this process.

    run_with_faults(program, seed)
        JobMaster + MiniCluster ... step, step, CRASH      the process is gone: not one more step is done
        another JobMaster, same directory, same job id     ... step, OSError, step, CRASH
        another one                                        ... FINISHED

A step is one call of the operating system by the state's files or by the file sink, or one batch that a sink publishes.
So a crash may come between any two pieces of a write: a change file, the log of epochs, metadata and its parts, the
copies of a savepoint, the commit of the first and of the second sink, and all steps of a recovery.
Time is virtual and checkpoints are written by the thread that takes them: a seed always goes the same way.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.common import Encoder
from headrace.common.job_status import JobStatus
from headrace.common.time import Time
from headrace.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from headrace.config.configuration import Configuration
from headrace.connectors.base import Committable, Committer, Sink, SinkWriter, WriterContext
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy, _storage
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from headrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headrace.datastream.stream_execution_environment import set_default_configuration
from headrace.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from headrace.errors import HeadraceError
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.rescaling import uniform_parallelism
from headrace.runtime import checkpointing
from headrace.runtime.checkpoint import storage
from headrace.runtime.job_master import JobMaster
from headrace.runtime.job_results import FileJobResults
from headrace.runtime.job_run import EpochSummary
from headrace.runtime.job_settings import job_master_settings
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.state import files
from headrace.state.key_secret import KeySecret
from headrace.testing.mini_cluster import MiniCluster, random_faults
from tests.unit.runtime.jobs import make_env

NUMBERS = 60
RULES = 20
PARALLELISM = 2
#: Steps between two faults, at most: about as many as a small job takes.
_FAR, _NEAR = 450, 30
#: More lives than a job has faults: then something is wrong.
_MOST_LIVES = 60


class Crash(BaseException):
    """The driver is gone: no handler of ours may do anything that lasts."""


# -- faults ----------------------------------------------------------------------------------------


@dataclass
class Faults:
    """Decides at every step whether it fails, and how."""

    rng: random.Random
    #: How many are left.
    budget: int
    kinds: Sequence[str] = ("crash", "crash", "error", "short")
    #: Instead of by chance: the driver is lost before this step, when it comes for the n-th time.
    at: tuple[str, int] | None = None
    is_dead: bool = False
    is_armed: bool = False
    #: What failed, and before which step.
    done: list[tuple[str, str]] = field(default_factory=list)
    _until_next: int = 0

    def __post_init__(self) -> None:
        self._draw()

    def _draw(self) -> None:
        near = self.rng.random() < 0.35
        self._until_next = self.rng.randrange(1, _NEAR if near else _FAR)

    def step(self, what: str, *, can_be_short: bool = False) -> bool:
        """Let a step pass, or fail; return whether a write is to stop half way."""
        if not self.is_armed:
            return False
        if self.is_dead:
            raise Crash(what)
        if self.at is not None:
            self._lose_at(what, *self.at)
            return False
        self._until_next -= 1
        if self.budget == 0 or self._until_next > 0:
            return False
        self.budget -= 1
        self._draw()
        kind = self.rng.choice(self.kinds)
        if kind == "short" and not can_be_short:
            kind = "error"
        self.done.append((kind, what))
        if kind == "crash":
            self.is_dead = True
            raise Crash(what)
        if kind == "error":
            raise OSError(self.rng.choice([errno.EIO, errno.ENOSPC]), f"injected before {what}")
        return True

    def _lose_at(self, what: str, place: str, times: int) -> None:
        if what == place and not self.done:
            self.at = (place, times - 1)
            if times == 1:
                self.done.append(("crash", what))
                self.is_dead = True
                raise Crash(what)

    def after_short_write(self, what: str) -> None:
        """A part was written: the disk is full, or the driver is gone."""
        if self.rng.random() < 0.5:
            self.is_dead = True
            raise Crash(what)
        raise OSError(errno.ENOSPC, f"injected in the middle of {what}")


class _FaultyStream(io.FileIO):
    """A file whose writes may stop half way."""

    def __init__(self, path: Any, faults: Faults) -> None:
        super().__init__(path, "wb")
        self._faults = faults
        self._what = f"write {_kind_of(path)}"

    def write(self, data: Any) -> int:
        if self._faults.step(self._what, can_be_short=True):
            super().write(memoryview(data)[: len(data) // 2])
            self._faults.after_short_write(self._what)
        return super().write(data) or 0


class _FaultyModule:
    """Stands for `os` or `shutil` in a module under test."""

    def __init__(self, real: Any, faults: Faults, names: Sequence[str]) -> None:
        self._real = real
        self._faults = faults
        self._names = frozenset(names)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in self._names:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            path = args[1] if name in {"replace", "rename", "link", "copyfile"} else args[0]
            try:
                self._faults.step(f"{name} {_kind_of(path)}")
            except OSError:
                if kwargs.get("ignore_errors"):
                    return None
                raise
            return found(*args, **kwargs)

        return call


def _kind_of(path: Any) -> str:
    """Say what sort of file it is, so that many crashes can be counted by where they came."""
    text = str(path)
    for part, kind in (
        ("_metadata", "metadata"),
        (".json", "end"),
        ("savepoint-", "savepoint"),
        ("epochs-", "epochs"),
        (".change", "change"),
        (".merged", "base"),
        ("chk-", "checkpoint"),
        (".staging", "staged"),
        ("part-", "part"),
        ("shared", "shared"),
    ):
        if part in text:
            return kind
    return "directory"


_OS = ("makedirs", "replace", "remove", "link", "rename", "listdir", "stat", "unlink", "rmdir", "open")


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Have every call of the operating system by files of state, and by the file sink, pass the faults."""

    def faulty_open(path: Any, mode: str = "r") -> Any:
        faults.step(f"open {_kind_of(path)}")
        if "w" in mode:
            return _FaultyStream(path, faults)
        return builtins.open(path, mode)

    replaced = [
        (files, "os", _FaultyModule(os, faults, _OS)),
        (files, "shutil", _FaultyModule(shutil, faults, ("rmtree", "copyfile"))),
        (files, "open", faulty_open),
        (_storage, "os", _FaultyModule(os, faults, _OS)),
        (_storage, "open", faulty_open),
        (checkpointing, "ThreadPoolExecutor", lambda *_, **__: _Late(faults.rng)),
        (checkpointing, "wait", _finish_all),
        (storage, "ThreadPoolExecutor", _Inline),
    ]
    before = [(module, name, module.__dict__.get(name)) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    _ChaosCommitter.faults = faults
    try:
        yield
    finally:
        for module, name, value in before:
            if value is None:
                delattr(module, name)
            else:
                setattr(module, name, value)
        _ChaosCommitter.faults = None


class _Inline(Executor):
    """Does at once what it is given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def map(self, fn: Callable[..., Any], *iterables: Any, **kwargs: Any) -> Iterator[Any]:
        return iter([fn(*args) for args in zip(*iterables, strict=True)])


class _Late(Executor):
    """Does what it is given some time after: when somebody waits for it, or asks often enough."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return _LateFuture(lambda: fn(*args, **kwargs), self._rng)


class _LateFuture(Future[Any]):
    def __init__(self, work: Callable[[], Any], rng: random.Random) -> None:
        super().__init__()
        self._work = work
        self._rng = rng

    def finish(self) -> None:
        if self.running():
            raise Crash("in the middle of what was being written")
        if not super().done() and self.set_running_or_notify_cancel():
            try:
                self.set_result(self._work())
            except Exception as error:
                self.set_exception(error)

    def done(self) -> bool:
        if not super().done() and self._rng.random() < 0.6:
            self.finish()
        return super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.finish()
        return super().exception(timeout)


def _finish_all(futures: Sequence[_LateFuture], **_: Any) -> None:
    for future in futures:
        future.finish()


# -- a sink that tells ---------------------------------------------------------------------------------

#: By the sink's name: batches by epoch and subtask.
published: dict[str, dict[tuple[int, int], list[Any]]] = {}


@dataclass(frozen=True)
class ChaosSink(Sink):
    """Publishes each batch once, by the epoch and subtask it is of; fails between two batches."""

    name: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ChaosWriter()

    def create_committer(self) -> Committer:
        return _ChaosCommitter(self.name)


class _ChaosWriter(SinkWriter):
    def __init__(self) -> None:
        self._records: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [self._records]


class _ChaosCommitter(Committer):
    faults: Faults | None = None

    def __init__(self, name: str) -> None:
        self._name = name
        self._batches = published.setdefault(name, {})

    def commit(self, committables: Sequence[Committable]) -> None:
        for each in committables:
            if self.faults is not None:
                self.faults.step(f"commit {self._name.rpartition('/')[2]}")
            there = self._batches.setdefault((each.epoch, each.subtask), each.payload)
            assert there == each.payload, f"epoch {each.epoch} stands for two"


# -- programs ------------------------------------------------------------------------------------------


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 7, count


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 100


class HoldBack(ProcessFunction, CheckpointedFunction):
    """Holds records back in list state until it has three, or sees the last of a split."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("held", None))
        self.held = list(self.state.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update(self.held)

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        self.held.append(value)
        if len(self.held) >= 3 or (value + 1) % (NUMBERS // PARALLELISM) == 0:
            yield from self.held
            self.held.clear()


class Rules(BroadcastProcessFunction):
    """Says of every rule how many are known with it; lets values pass."""

    descriptor = MapStateDescriptor("rules", None, None)

    def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        yield "value", value

    def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(self.descriptor)
        rules.put(value, True)
        yield "rule", value, len(list(rules.keys()))


def numbers(env: StreamExecutionEnvironment, count: int = NUMBERS, name: str = "numbers") -> DataStream:
    return env.from_source(NumberSequenceSource(0, count - 1), WatermarkStrategy.no_watermarks(), name).uid(
        name
    )


def counting(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 7).process(Count()).uid("count")


def windows(env: StreamExecutionEnvironment, assigner: Any) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stamped = numbers(env).set_parallelism(1).assign_timestamps_and_watermarks(strategy).uid("stamped")
    return stamped.key_by(lambda n: n % 5).window(assigner).reduce(lambda a, b: a + b).uid("sums")


def tumbling(env: StreamExecutionEnvironment) -> DataStream:
    return windows(env, TumblingEventTimeWindows.of(Time.seconds(1)))


def sliding(env: StreamExecutionEnvironment) -> DataStream:
    return windows(env, SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)))


def holding_back(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).process(HoldBack()).uid("held")


def broadcasting(env: StreamExecutionEnvironment) -> DataStream:
    rules = numbers(env, RULES, "rules").set_parallelism(1).broadcast(Rules.descriptor)
    return numbers(env).rebalance().connect(rules).process(Rules()).uid("ruled")


@dataclass(frozen=True)
class Program:
    build: Callable[[StreamExecutionEnvironment], DataStream]
    can_rescale: bool = True
    expected: Callable[[], list[Any]] = list


def _window_sums(size: int, slide: int) -> list[int]:
    sums = []
    for key in range(5):
        for start in range(slide - size, NUMBERS * 100, slide):
            inside = [n for n in range(key, NUMBERS, 5) if start <= n * 100 < start + size]
            sums += [sum(inside)] if inside else []
    return sums


PROGRAMS = {
    "counting": Program(counting, expected=lambda: [(n % 7, n // 7 + 1) for n in range(NUMBERS)]),
    "tumbling": Program(tumbling, expected=lambda: _window_sums(1000, 1000)),
    "sliding": Program(sliding, expected=lambda: _window_sums(2000, 1000)),
    "list state": Program(holding_back, can_rescale=False, expected=lambda: list(range(NUMBERS))),
    "broadcast state": Program(
        broadcasting,
        can_rescale=False,  # how many say something of a rule depends on the parallelism
        expected=lambda: [
            *(("value", n) for n in range(NUMBERS)),
            *(("rule", n, n + 1) for n in range(RULES) for _ in range(PARALLELISM)),
        ],
    ),
}


# -- jobs ----------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came out of a job that was disturbed."""

    faults: list[tuple[str, str]]
    #: How often a driver was started.
    lives: int
    task_failures: int
    rescales: int
    savepoints: int
    stops: int
    #: What the sinks have, by name.
    sinks: dict[str, list[str]]
    #: What is left of the job's files.
    left: list[str]


class ChaoticJob:
    """One program under one seed."""

    def __init__(
        self, name: str, seed: int, directory: Path, *, lost_at: tuple[str, int] | None = None
    ) -> None:
        self.program = PROGRAMS[name]
        self.rng = random.Random(f"{name}/{seed}")
        self.directory = directory
        self.seed = seed
        self.faults = Faults(self.rng, self.rng.choice([2, 3, 4, 6]))
        self.faults.at = lost_at
        self.now_ms = 0
        self.number = 0
        self.savepoint: str | None = None
        self.outcome = Outcome(self.faults.done, 0, 0, 0, 0, 0, {}, [])
        self.options = {
            "headrace.epoch.max-records": self.rng.choice([3, 5, 8]),
            "headrace.state.compaction.max-changes": self.rng.choice([2, 3, 16]),
            "headrace.exchange.buffer-records": 4,
            "execution.checkpointing.interval": f"{self.rng.choice([1, 1, 60, 100_000])} ms",
            "execution.checkpointing.num-retained": self.rng.choice([1, 2]),
            "execution.checkpointing.tolerable-failed-checkpoints": 1000,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "0 ms",
            "restart-strategy.fixed-delay.attempts": 1000,
        }
        self.task_fault_rate = self.rng.choice([0.0, 0.0, 0.02, 0.06])
        self.policy = self.rng.choice(
            [
                RollingPolicy.on_checkpoint_rolling_policy(),
                RollingPolicy.default_rolling_policy(part_size=100),
                RollingPolicy.default_rolling_policy(part_size=10_000),
            ]
        )

    # -- lives -----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run until the job is over, however many drivers it takes."""
        with injected(self.faults):
            while not self._live():
                self.outcome.lives += 1
                assert self.outcome.lives < _MOST_LIVES
        self.outcome.lives += 1
        name = self._sink_name
        self.outcome.sinks = {
            "chaos": sorted(repr(record) for batch in published.pop(name).values() for record in batch),
            "files": sorted(
                line
                for path in (self.directory / "out").glob("part-*")
                for line in path.read_text().splitlines()
            ),
        }
        self.outcome.left = [str(path) for path in (self.directory / "state").glob("*/*")]
        return self.outcome

    @property
    def _sink_name(self) -> str:
        return f"{self.directory}/chaos"

    def _live(self) -> bool:
        """Live through one driver; return whether the job is over."""
        self.faults.is_dead = False
        hosts = tempfile.mkdtemp(prefix="hosts-", dir=self.directory)
        clusters: list[MiniCluster] = []
        self.stop: Future[str] | None = None
        self.faults.is_armed = True
        try:
            try:
                self.master = self._new_master(hosts, clusters)
            except OSError:
                return False  # as a submission that fails, and is done again
            except HeadraceError as error:
                if "injected" not in str(error):
                    raise
                return False
            self.master.run()
            with suppress(OSError):
                self._results().mark_clean(self.master.job.job_id, self.master.execution.status)
        except Crash:
            return False
        finally:
            self.faults.is_armed = False
            for cluster in clusters:
                self.outcome.task_failures += len(cluster.failures)
                cluster.close()
            shutil.rmtree(hosts, ignore_errors=True)
        assert self.master.execution.status is JobStatus.FINISHED
        if self.master._run.has_ended:
            return True
        ended = self._results().find(self.master.job.job_id)
        assert ended is not None
        assert ended.status is JobStatus.FINISHED
        found = ended.result.savepoint
        if found is None:
            return True  # it was over when the last driver was lost
        # It was stopped with a savepoint: another job goes on from there.
        self.savepoint = found
        self.outcome.stops += 1
        self.number += 1
        return False

    def _results(self) -> FileJobResults:
        return FileJobResults(str(self.directory / "results"), leader=self.outcome.lives + 1)

    def _new_master(self, hosts: str, clusters: list[MiniCluster]) -> JobMaster:
        options = dict(self.options)
        if self.savepoint is not None:
            options["execution.state-recovery.path"] = self.savepoint
        configuration = Configuration({key: str(value) for key, value in options.items()})
        settings = TaskSettings(scratch_name="scratch", buffer_records=4)

        def make_cluster(job: JobGraph, lineage: str, _: KeySecret) -> MiniCluster:
            code = JobCode(job, lineage, settings)
            faults = random_faults(self.rng.randrange(1 << 30), self.task_fault_rate)
            clusters.append(MiniCluster(code, f"{hosts}/{lineage}", seed=self.seed, faults=faults))
            return clusters[-1]

        return JobMaster(
            self._job(),
            make_cluster,
            job_master_settings(configuration, str(self.directory / "state")),
            on_epoch=self._after_epoch,
            now_ms=self._tick,
            leader=self.outcome.lives + 1,
            results=self._results(),
        )

    def _job(self) -> JobGraph:
        env = make_env(PARALLELISM)
        results = self.program.build(env)
        results.sink_to(ChaosSink(self._sink_name)).uid("chaos")
        builder = FileSink.for_row_format(str(self.directory / "out"), Encoder.simple_string_encoder())
        plain = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        results.map(repr).uid("lines").sink_to(plain.with_rolling_policy(self.policy).build()).uid("files")
        return build_job_graph(env._build_stream_graph(), job_id=f"{self.number:032x}", name="chaos")

    def _tick(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def _after_epoch(self, summary: EpochSummary) -> None:
        """Ask for things, as somebody might between any two epochs."""
        chance = self.rng.random()
        if chance < 0.10:
            self.outcome.savepoints += 1
            self.master.trigger_savepoint(str(self.directory / "savepoints"))
        elif chance < 0.14 and self.number < 2:
            drop = self.stop is not None and not self.stop.done()
            if not drop:
                self.stop = self.master.stop_with_savepoint(str(self.directory / "savepoints"), drain=False)
        elif chance < 0.26 and self.program.can_rescale:
            self.outcome.rescales += 1
            parallelism = self.rng.choice([1, 2, 3, 4])
            # By the job as it was submitted: windows need their numbers in order, from one subtask.
            self.master.rescale(uniform_parallelism(self._job(), parallelism))


def check(name: str, outcome: Outcome) -> None:
    """Compare what the sinks have with what an undisturbed job gives."""
    expected = sorted(map(repr, PROGRAMS[name].expected()))
    for sink, found in outcome.sinks.items():
        missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
        assert (missing, extra) == (Counter(), Counter()), f"{sink}; {outcome.faults}"


def chaotic_run(name: str, seed: int, *, lost_at: tuple[str, int] | None = None) -> Outcome:
    """Run a program with the faults of a seed, or with one given; check what came out."""
    set_default_configuration(Configuration())  # nothing of the user's own
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-chaos-") as directory:
            outcome = ChaoticJob(name, seed, Path(directory), lost_at=lost_at).run()
            check(name, outcome)
            return outcome
    finally:
        set_default_configuration(None)


if __name__ == "__main__":  # one seed, for a debugger: python -m tests.chaos.driver_faults counting 17
    import sys

    with suppress(IndexError):
        print(chaotic_run(sys.argv[1], int(sys.argv[2])))

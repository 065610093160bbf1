"""State on RocksDB that is ten times larger than the memory its store may take, and how large the workers become."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench import jobs
from bench.recovery_jobs import GATE, GatedSource, Watch
from bench.run import PARALLELISM, emit
from bench.workloads import key_of, record_maker
from headrace.common import Types, WatermarkStrategy
from headrace.common.job_client import JobClient
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream import KeyedProcessFunction, RuntimeContext
from headrace.datastream.state import ValueStateDescriptor

_MIB = 1 << 20
#: Of each worker.
LIMIT = 32 * _MIB
VALUE_BYTES = 1_000
#: One source subtask's of an epoch. What an epoch touches is in memory as it is.
EPOCH_RECORDS = 5_000
OPTIONS = {
    "state.backend.type": "rocksdb",
    "headrace.state.rocksdb.memory-per-worker": f"{LIMIT // _MIB} mb",
    "headrace.state.cache-entries": "10000",
    "headrace.epoch.max-records": str(EPOCH_RECORDS),
    "headrace.epoch.initial-records": str(EPOCH_RECORDS),
}


class Fill(KeyedProcessFunction):
    """Keeps a thousand bytes per key that cannot be compressed, and counts the keys it has met before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get the state."""
        self.value = runtime_context.get_state(
            ValueStateDescriptor("value", Types.PRIMITIVE_ARRAY(Types.BYTE()))
        )

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Read and write."""
        known = self.value.value() is not None
        self.value.update(hashlib.shake_128(repr(value).encode()).digest(VALUE_BYTES))
        yield known


class Workers:
    """The python workers that have run a job, and their memory, by Linux's account."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        #: What each had when it was first seen.
        self.started: dict[int, int] = {}

    def look(self) -> None:
        """Note the workers that are new, and forget what they took before."""
        pids = {report.pid for epoch in self._watch.epochs for report in epoch.reports if report.pid}
        for pid in pids - self.started.keys():
            with suppress(OSError):
                self.started[pid] = _memory(pid, "VmRSS")
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak counts from here

    def taken(self) -> int:
        """Return the most that any has taken since."""
        taken = [0]
        for pid, before in self.started.items():
            with suppress(OSError):  # it has ended
                taken.append(_memory(pid, "VmHWM") - before)
        return max(taken)


def _memory(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def start(keys: int, options: dict[str, str]) -> JobClient:
    """Start a job that fills its state with what the gate lets through."""
    env = jobs.environment(PARALLELISM, {**OPTIONS, **options})
    stream = env.from_source(GatedSource(record_maker(keys)), WatermarkStrategy.no_watermarks(), "gated")
    stream.key_by(key_of).process(Fill()).sink_to(BlackholeSink())
    return env.execute_async("memory")


def measure(watch: Watch, scale: float, directory: str) -> int:
    """Fill state and touch all of it again; return the memory that a worker has taken, in bytes."""
    keys = int(10 * LIMIT * PARALLELISM * scale / VALUE_BYTES)
    watch.start_over()
    GATE.records = 100
    client = start(keys, {"execution.checkpointing.dir": f"{directory}/memory"})
    watch.wait_for(100)
    workers = Workers(watch)
    workers.look()
    for target in (keys, 2 * keys):
        while GATE.records < target:
            GATE.records = min(target, GATE.records + 20 * EPOCH_RECORDS)
            watch.wait_for(GATE.records)
            workers.look()
    client.cancel().result()
    taken = workers.taken()
    state = keys * VALUE_BYTES // PARALLELISM
    emit(f"rocksdb: state of each of {PARALLELISM} subtasks", state / _MIB, "MiB")
    emit(
        f"rocksdb: memory that a worker took for it, limit {LIMIT // _MIB} MiB",
        taken / _MIB,
        "MiB",
        ratio=taken / state,
        against="the state",
    )
    return taken

"""What jobs leave behind: nothing when they are over, and while they run no more after many epochs than after few."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import lmdb
import pytest

from headrace.common import Types
from headrace.common.job_client import JobClient
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream import KeyedProcessFunction, RuntimeContext
from headrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headrace.errors import JobDefinitionError, JobExecutionError, UserFunctionError
from headrace.spark.cluster import spark_executors
from headrace.state.handles import StateChain
from headrace.state.stores.lmdb import LmdbStore
from headrace.testing.sources import EndEpoch, ScriptedSource, Stop
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER, by_key, kill_workers, read, run_and_collect, wait_until

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

MEMORY = Path("/dev/shm")


def scratch_of(client: JobClient) -> list[Path]:
    """Return the host's directories of a job's local state."""
    places = {MEMORY, Path(tempfile.gettempdir())}
    name = f"headrace-{str(client.get_job_id())[:8]}-*"
    return [path for place in places for path in place.glob(name) if any(path.rglob("data.mdb"))]


def directories_of(client: JobClient) -> list[Path]:
    """Return everything that carries the job's name, on the memory file system and in the temporary directory."""
    places = {MEMORY, Path(tempfile.gettempdir())}
    return [path for place in places for path in place.glob(f"headrace-{str(client.get_job_id())[:8]}-*")]


def state_files_of(client: JobClient) -> list[Path]:
    found = (path for directory in directories_of(client) for path in directory.glob("*/shared/*"))
    return [path for path in found if path.is_file()]


def copies_of(client: JobClient) -> list[Path]:
    """Return the local copies of keyed state."""
    return [path.parent for directory in scratch_of(client) for path in directory.rglob("data.mdb")]


class Remember(KeyedProcessFunction):
    """Uses each kind of storage: one entry, chunks, a map from which entries are removed."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))
        self._last = runtime_context.get_map_state(MapStateDescriptor("last", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        self._all.add(value)
        self._last.put(count, value)
        if count > 3:
            self._last.remove(count - 3)
        yield ctx.get_current_key(), count, sum(self._all), tuple(self._last.values())


KEYS = 5


def remembered(numbers: int) -> dict[int, list[Any]]:
    seen: dict[int, list[int]] = defaultdict(list)
    model: dict[int, list[Any]] = defaultdict(list)
    for n in range(numbers):
        own = seen[n % KEYS]
        own.append(n)
        model[n % KEYS].append((n % KEYS, len(own), sum(own), tuple(own[-3:])))
    return model


def in_epochs(numbers: range, each: int) -> list[Any]:
    """Cut numbers into epochs."""
    script: list[Any] = []
    for start in range(numbers.start, numbers.stop, each):
        script += [*range(start, min(start + each, numbers.stop)), EndEpoch()]
    return script


class Halfway:
    """A job that stops in its middle, to be looked at, and then continues."""

    def __init__(
        self,
        env: EnvironmentFactory,
        directory: Path,
        epochs: int,
        options: dict[str, Any] | None = None,
        parallelism: int = 2,
    ) -> None:
        self.numbers = 4 * epochs
        self._first = self.numbers - 12
        script = [*in_epochs(range(self._first), 4), Stop(), *in_epochs(range(self._first, self.numbers), 4)]
        self._source = ScriptedSource(script, directory=directory)
        stream = read(env(parallelism, options=options), self._source).set_parallelism(1)
        self._stream = stream.key_by(lambda n: n % KEYS).process(Remember()).execute_and_collect()
        self.client: JobClient = self._stream._client
        self._rows = [next(self._stream) for _ in range(self._first)]

    def go_on(self) -> dict[int, list[Any]]:
        """Run to the end and return all results by key."""
        self._source.resume()
        with self._stream:
            self._rows += self._stream
        return by_key(self._rows)


# -- when a job is over --------------------------------------------------------------------------------


def test_a_finished_job_leaves_no_directory_and_no_thread(env: EnvironmentFactory, tmp_path: Path) -> None:
    job = Halfway(env, tmp_path, epochs=6)
    # Its copies of state, and its directory of state files.
    assert len(directories_of(job.client)) == 2
    assert job.go_on() == remembered(job.numbers)
    assert directories_of(job.client) == []
    wait_until(
        lambda: (
            not [t for t in threading.enumerate() if t.name.startswith(("job-master", "headrace-compaction"))]
        )
    )


def test_a_cancelled_job_leaves_no_directory(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(4)
    started, ended = tmp_path / "started", tmp_path / "ended"

    def dawdle(row: Any) -> Any:
        started.touch()
        time.sleep(1)  # less than Spark waits before it kills a worker
        ended.touch()
        return row

    stream = read(environment, ScriptedSource([1, EndEpoch(), 2])).key_by(lambda n: n).process(Remember())
    stream.map(dawdle).sink_to(BlackholeSink())
    client = environment.execute_async()
    wait_until(started.exists)
    client.cancel().result(30)
    # The worker has not heard of it, continues, and writes its state where there is no job any more.
    wait_until(ended.exists)
    wait_until(lambda: directories_of(client) != [], timeout_s=2, must=False)
    wait_until(lambda: directories_of(client) == [])


def test_a_failed_job_leaves_no_directory(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=2)
    stream = environment.from_collection([1, 2, 3, 4]).key_by(lambda n: n).process(Remember())
    stream.map(lambda row: 1 // (row[0] - 4)).sink_to(BlackholeSink())
    client = environment.execute_async()
    with pytest.raises(JobExecutionError):
        client.get_job_execution_result().result(60)
    assert directories_of(client) == []


def test_a_refused_job_leaves_no_directory(
    env: EnvironmentFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = env(2)
    lock = threading.Lock()
    environment.from_collection([1]).map(lambda n: lock and n).sink_to(BlackholeSink())
    with pytest.raises(JobDefinitionError):
        environment.execute()
    assert list(tmp_path.iterdir()) == []


class NoSplits(ScriptedSource):
    """Cannot be set up."""

    def create_enumerator(self, parallelism: int) -> NoReturn:
        raise ConnectionError("no broker")


def test_neither_a_finished_nor_a_refused_job_leaves_its_code(
    env: EnvironmentFactory, spark_session: SparkContext
) -> None:
    def broadcast_files() -> list[str]:
        return os.listdir(spark_session._temp_dir)

    before = broadcast_files()
    environment = env(2)
    assert sorted(run_and_collect(environment.from_collection([1, 2]).map(lambda n: n))) == [1, 2]
    assert broadcast_files() == before
    read(environment, NoSplits([1])).sink_to(BlackholeSink())
    with pytest.raises(UserFunctionError, match="no broker"):
        environment.execute()
    assert broadcast_files() == before


def test_state_in_a_configured_directory_is_removed_too(env: EnvironmentFactory, tmp_path: Path) -> None:
    state = tmp_path / "state"
    job = Halfway(env, tmp_path / "script", epochs=6, options={"execution.checkpointing.dir": state})
    assert any(state.rglob("*.change"))
    assert job.go_on() == remembered(job.numbers)
    assert not any(path.is_file() for path in state.rglob("*"))


# -- while it runs -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sixty_epochs_keep_few_files(env: EnvironmentFactory, tmp_path: Path, spark_local_dir: Path) -> None:
    # Jobs of other tests may have left shuffle files that Java has not collected yet.
    of_others = set(spark_local_dir.rglob("shuffle_*"))
    job = Halfway(env, tmp_path, epochs=60, options={"headrace.state.compaction.max-changes": 4})
    epochs = len(RECORDER.of(job.client))
    assert epochs >= 55
    # Shuffle files: those of the last epoch may still be on their way out.
    wait_until(lambda: len(set(spark_local_dir.rglob("shuffle_*")) - of_others) <= 4)
    # Two subtasks with state: the changes since the last compaction, those of the one at work, and a base each.
    changes = [path for path in state_files_of(job.client) if path.suffix == ".change"]
    merged = [path for path in state_files_of(job.client) if path.suffix == ".merged"]
    assert 1 <= len(merged) <= 4
    assert len(changes) <= 2 * 12
    assert len(changes) < epochs
    # The log of epochs holds the last one only.
    log = [path for directory in directories_of(job.client) for path in directory.glob("*/epochs-*/*")]
    assert 1 <= len(log) <= 4
    assert job.go_on() == remembered(job.numbers)


def test_workers_share_one_copy_of_each_subtasks_state(env: EnvironmentFactory, tmp_path: Path) -> None:
    job = Halfway(env, tmp_path, epochs=20, parallelism=4)
    runs = {(report.subtask, report.pid) for epoch in RECORDER.of(job.client) for report in epoch.reports}
    subtasks = {subtask for subtask, _ in runs}
    assert len(subtasks) == 6  # source, four with state, sink
    assert len(runs) > len(subtasks), "no subtask has met a second worker, so nothing was shown"
    assert len(copies_of(job.client)) == 4
    assert job.go_on() == remembered(job.numbers)


@pytest.mark.parametrize("max_changes", [4, 100], ids=["from bases", "from changes"])
def test_a_lost_copy_is_built_again(env: EnvironmentFactory, tmp_path: Path, max_changes: int) -> None:
    job = Halfway(env, tmp_path, epochs=24, options={"headrace.state.compaction.max-changes": max_changes})
    assert any(path.suffix == ".merged" for path in state_files_of(job.client)) == (max_changes == 4)
    # As on a host that is new to the job: no copy, and no worker that has the old one open.
    assert kill_workers(job.client) >= 1
    for directory in scratch_of(job.client):
        shutil.rmtree(directory)
    assert job.go_on() == remembered(job.numbers)


# -- the copies of state -------------------------------------------------------------------------------

#: Opens a copy of state, reads from it, and lets the test know; then waits to be killed.
_READER = """
import sys, time
from headrace.spark.cluster import spark_executors
from headrace.state.handles import StateChain
from headrace.state.stores.lmdb import LmdbStore
store = LmdbStore(sys.argv[1])
store.catch_up(StateChain("lineage"), range(128))
print("reading", flush=True)
time.sleep(60)
"""


def test_killed_workers_do_not_hold_old_pages(tmp_path: Path) -> None:
    # Two, because the table of readers is made again when nobody else has the copy open.
    other, victim = (
        subprocess.Popen([sys.executable, "-c", _READER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    with other, victim:
        for process in (other, victim):
            assert process.stdout is not None
            assert process.stdout.readline() == "reading\n"
        victim.kill()
        victim.wait()
        LmdbStore(str(tmp_path)).close()
        with lmdb.open(str(tmp_path), max_dbs=256) as copy:
            readers = copy.readers()
        other.kill()
    assert str(other.pid) in readers
    assert str(victim.pid) not in readers


def test_a_worker_may_hold_the_state_of_very_many_subtasks(tmp_path: Path) -> None:
    stores = [LmdbStore(str(tmp_path / str(number))) for number in range(300)]
    for store in stores:
        store.catch_up(StateChain("lineage"), range(128))
    for store in stores:
        store.close()


def test_a_local_spark_tells_what_its_processes_take(env: EnvironmentFactory) -> None:
    assert run_and_collect(env(2).from_collection(range(4)).key_by(lambda n: n).map(lambda n: n)) != []
    [executor] = spark_executors()
    usage = executor.usage
    assert usage.heap_used is not None
    assert usage.heap_max is not None
    assert 10 << 20 < usage.heap_used <= usage.heap_max
    assert usage.python_used is not None
    assert usage.python_used > 10 << 20

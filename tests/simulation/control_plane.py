"""The control plane under simulation: real leases, job masters, coordinators and storage; executors that are simulated.

    seed -> World -> drivers: LeaderLease -> JobMaster -> MiniCluster with random faults of tasks, hosts and reports
                  -> SimulatedDisk: what is synced, what power loss leaves

Invariants, at every step:

- each record is in committed output as often as it should be, never more often; and all of them in the end
- no state file is deleted that a checkpoint names which a job could be restored from
- at most one driver's lease is valid; who passes `ensure_leader` has the highest token
"""

from __future__ import annotations

import logging
import os
import random
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.connectors.base import Committable, Committer, Sink, SinkWriter, WriterContext
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import (
    CheckpointError,
    DiskFullError,
    HeadraceError,
    JobCancelledError,
    JobSubmissionError,
    LeadershipError,
)
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.rescaling import uniform_parallelism
from headrace.runtime.checkpoint.fence import CheckpointName, announced_drops, read_fence
from headrace.runtime.checkpoint.storage import check_files, load_checkpoint
from headrace.runtime.high_availability.job_results import FileJobResults
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease
from headrace.runtime.job.master import JobMaster
from headrace.runtime.job.settings import job_master_settings
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.state.key_secret import KeySecret
from headrace.storage.files import delete_directory, list_directory
from headrace.testing.mini_cluster import MiniCluster, TaskAttempt, random_faults
from tests.chaos.disk import Disk
from tests.chaos.faults import injected
from tests.chaos.programs import PARALLELISM, PROGRAMS
from tests.simulation.world import Chances, Driver, World
from tests.unit.runtime.jobs import make_env

_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
JOB_ID = "5" * 32
#: Of the job whose savepoint some seeds start from.
EARLIER_JOB_ID = "4" * 32
LEASE_MS = 1_000
#: Drivers of one world, at most: then faults should long have ended.
_MOST_DRIVERS = 40


# -- the sink ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WatchedSink(Sink):
    """Publishes batches by epoch and subtask, and tells the simulation of every record."""

    name: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer()

    def create_committer(self) -> Committer:
        return _Committer(simulations[self.name])


#: The simulation that a sink belongs to: sinks travel with jobs, and are copied.
simulations: dict[str, Simulation] = {}


class _Writer(SinkWriter):
    def __init__(self) -> None:
        self._records: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [self._records]


class _Committer(Committer):
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def commit(self, committables: Sequence[Committable]) -> None:
        for each in committables:
            self._simulation.world.step("commit sink")
            self._simulation.publish((each.epoch, each.subtask), each.payload)


# -- disk and executors --------------------------------------------------------------------------------


class SimulatedDisk(Disk):
    """Says what is about to be deleted."""

    on_delete: Callable[[str], None] = staticmethod(lambda path: None)

    def watch(self, call: str, args: tuple[Any, ...]) -> Callable[[], None]:
        if call in {"remove", "unlink"}:
            self.on_delete(os.fspath(args[0]))
        return super().watch(call, args)


class _Executors(MiniCluster):
    """Hands over between tasks: other drivers go on meanwhile."""

    def __init__(self, world: World, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._world = world

    def _attempt(self, plan: Any, place: TaskAttempt, incoming: Sequence[bytes]) -> list[tuple[int, bytes]]:
        self._world.step("task")
        return super()._attempt(plan, place, incoming)


# -- the simulation ------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What happened under a seed."""

    seed: int
    faults: list[tuple[str, str]]
    steps: int
    drivers: int
    fingerprint: str
    task_faults: Counter[str] = field(default_factory=Counter)


class Simulation:
    """One seed."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        rng = random.Random(f"simulation/{seed}")
        self.program_name = rng.choice(sorted(PROGRAMS))
        self.program = PROGRAMS[self.program_name]
        self.directory = directory
        self.root = directory / "disk"
        self.root.mkdir()
        disk = SimulatedDisk(self.root)
        disk.on_delete = self._check_deletion  # type: ignore[method-assign]  # a hook
        rate = rng.choice((0.001, 0.003, 0.006))
        chances = Chances(
            **{
                kind: rate * rng.choice((0, 1, 1, 2))
                for kind in ("crash", "power", "error", "full", "pause", "clock")
            }
        )
        self.world = World(rng, chances, disk, budget=rng.choice((3, 6, 12)))
        self.world.check = self._check_leaders
        self.options = {
            "headrace.epoch.max-records": rng.choice([5, 8, 15]),
            "headrace.state.compaction.max-changes": rng.choice([2, 3, 16]),
            "headrace.exchange.buffer-records": 4,
            "execution.checkpointing.interval": f"{rng.choice([1, 50, 500])} ms",
            "execution.checkpointing.num-retained": rng.choice([1, 2]),
            "execution.checkpointing.tolerable-failed-checkpoints": 1000,
            "restart-strategy.type": rng.choice(("fixed-delay", "fixed-delay", "none")),
            "restart-strategy.fixed-delay.delay": "0 ms",
            "restart-strategy.fixed-delay.attempts": 1000,
        }
        self.task_fault_rate = rng.choice([0.0, 0.02, 0.05])
        self.standbys = rng.choice((1, 1, 2))
        #: Whether the job continues from another job's savepoint, which stays that job's.
        self.starts_from_savepoint = self.program.can_rescale and rng.random() < 0.4
        self.expected = Counter(map(repr, self.program.expected()))
        self.published: dict[tuple[int, int], list[Any]] = {}
        self.counts: Counter[str] = Counter()
        self.started = 0
        self.has_rescaled = False
        self.clusters: list[_Executors] = []
        self.is_finished = False
        self.outcome = Outcome(seed, self.world.done, 0, 0, "")

    # -- invariants --------------------------------------------------------------------------------------

    def publish(self, key: tuple[int, int], records: list[Any]) -> None:
        """Take a committed batch; the same batch again changes nothing."""
        known = self.published.get(key)
        if known is not None:
            if known != records:
                self.world.violated(f"epoch {key[0]} of subtask {key[1]} was committed with two contents")
            return
        self.published[key] = records
        self.counts.update(map(repr, records))
        for record in map(repr, records):
            if self.counts[record] > self.expected[record]:
                self.world.violated(
                    f"record {record} is {self.counts[record]} times in committed output, not "
                    f"{self.expected[record]} times; the last one with epoch {key[0]}"
                )

    def _check_leaders(self, what: str) -> None:
        leaders = [each.number for each in self.world.drivers if each.leads() and not each.is_dead]
        if len(leaders) > 1:
            self.world.violated(f"before {what!r} drivers {leaders} have valid leases")

    def _check_deletion(self, path: str) -> None:
        """A state file goes: no checkpoint that a job could be restored from may name it."""
        if "/shared/" not in path or self.world.current is None:
            return
        with self.world.undisturbed():
            if FileJobResults(str(self.root / "results"), leader=0).find(JOB_ID) is not None:
                return  # it is written down how the job ended: nobody starts it again
            home = self.root / "state" / JOB_ID
            fence, dropped = read_fence(str(home)), set(announced_drops(str(home)).values())
            for metadata in sorted(home.glob("chk-*/_metadata")):
                name = CheckpointName.parse(metadata.parent.name)
                if name is None or not fence.admits(name) or str(name) in dropped:
                    continue
                with suppress(HeadraceError):  # half written: it counts for nobody
                    stored = load_checkpoint(str(metadata.parent))
                    check_files(
                        stored
                    )  # back after a power loss without its files: it counts for nobody, either
                    if path in {ref.path for ref in stored.metadata.files()}:
                        self.world.violated(f"{Path(path).name} is deleted, but {name} names it")

    # -- drivers -----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run until the job has finished and every driver is over."""
        world = self.world
        nothing_of_the_users = ExecutionContext(Configuration()).entered(in_all_threads=True)
        if self.starts_from_savepoint:
            with nothing_of_the_users, seeded_names(world.rng):
                self.options["execution.state-recovery.path"] = self._run_until_savepoint()
        nothing_of_the_users = ExecutionContext(Configuration()).entered(in_all_threads=True)
        with nothing_of_the_users, seeded_names(world.rng), injected(world, world.disk):  # type: ignore[arg-type]  # as Faults
            for _ in range(1 + self.standbys):
                self._start_driver()
            world.run(self._driver_ended)
        for cluster in self.clusters:
            self.outcome.task_faults.update(fault.value for _, fault in cluster.injected)
            cluster.close()
        missing = self.expected - self.counts
        assert not missing, f"the job has finished, but {sum(missing.values())} records were not committed"
        self.outcome.steps, self.outcome.fingerprint = world.steps, world.fingerprint
        self.outcome.drivers = self.started
        return self.outcome

    def _run_until_savepoint(self) -> str:
        """Run an earlier job for some epochs, undisturbed; return the savepoint that it was stopped with."""
        stopped: list[Future[str]] = []

        def after_epoch(summary: EpochSummary) -> None:
            if summary.epoch >= 2 and not stopped:
                stopped.append(master.stop_with_savepoint(str(self.directory / "savepoint"), drain=False))

        cluster: list[MiniCluster] = []

        def make_cluster(job: JobGraph, lineage: str, _: KeySecret) -> MiniCluster:
            code = JobCode(job, lineage, TaskSettings(scratch_name="scratch", buffer_records=4))
            cluster.append(MiniCluster(code, f"{self.directory}/earlier-hosts", workers=1, seed=self.seed))
            return cluster[-1]

        configuration = Configuration({key: str(value) for key, value in self.options.items()})
        master = JobMaster(
            self._job(EARLIER_JOB_ID),
            make_cluster,
            job_master_settings(configuration, str(self.directory / "earlier")),
            on_epoch=after_epoch,
            now_ms=lambda: 1_000,
        )
        with suppress(JobCancelledError):
            master.run()
        cluster[-1].close()
        return stopped[0].result(0)

    def _start_driver(self) -> None:
        self.started += 1
        if self.started > _MOST_DRIVERS:
            raise AssertionError(f"{_MOST_DRIVERS} drivers, and the job has not finished")
        self.world.start(self.started, self._lead)

    def _driver_ended(self, _: Driver) -> None:
        alive = len(self.world.drivers)
        while not self.is_finished and alive < 1 + self.standbys:
            self._start_driver()
            alive += 1

    def _lead(self, driver: Driver) -> None:
        """Do what a process with high availability does: wait for the lease, run the job, end."""
        settings = HighAvailabilitySettings(str(self.root / "ha"), "simulated", LEASE_MS)
        lease = WatchedLease(settings, name=f"driver {driver.number}", clock=driver.boot_clock)
        lease.simulation, lease.driver = self, driver
        driver.lease = lease
        while True:
            if self.is_finished:
                return
            with suppress(OSError, DiskFullError):
                if lease.try_acquire():
                    break
            self.world.sleep(LEASE_MS / 1000 / 10)
        try:
            self._run_job(driver, lease)
        except LeadershipError:
            pass  # another one continues
        except (HeadraceError, OSError) as error:
            # One that no longer leads may find that its files are gone.
            is_known = "injected" in str(error) or isinstance(error, CheckpointError) or not driver.leads()
            if "written by a driver that no longer led" in str(error):
                self._remove_late_checkpoints()
                is_known = True
            if not is_known and self.world.violation is None:
                raise
        finally:
            driver.on_lost = None
        with suppress(OSError, DiskFullError):
            lease.release()

    def _remove_late_checkpoints(self) -> None:
        """Do what the refusal asks an operator to do, if a former leader completed the only checkpoint too late."""
        home = str(self.root / "state" / JOB_ID)
        with self.world.undisturbed():
            fence = read_fence(home)
            for name in list_directory(home):
                parsed = CheckpointName.parse(name)
                if parsed is not None and not fence.admits(parsed):
                    delete_directory(f"{home}/{name}")

    def _run_job(self, driver: Driver, lease: LeaderLease) -> None:
        results = FileJobResults(
            str(self.root / "results"), leader=lease.token, ensure_leader=lease.ensure_leader
        )
        master: JobMaster | None = None

        def after_epoch(summary: EpochSummary) -> None:
            chance = self.world.rng.random()
            if self.starts_from_savepoint and not self.has_rescaled and self.program.can_rescale:
                # While the first checkpoint copies what the savepoint's owner may delete.
                self.has_rescaled = self.world.rng.random() < 0.5
                chance = 0.1 if self.has_rescaled else chance
            if chance < 0.06:
                master.trigger_savepoint(str(self.root / "savepoints"))
            elif chance < 0.12 and self.program.can_rescale:
                master.rescale(uniform_parallelism(self._job(), self.world.rng.choice([1, 2, 3])))

        try:
            master = self._new_master(driver, lease, results, after_epoch)
        except JobSubmissionError:
            return
        driver.on_lost = master.step_down
        with suppress(JobCancelledError):
            master.run()
        if master.execution.status is JobStatus.FINISHED:
            self.is_finished = True
            results.mark_clean(JOB_ID, JobStatus.FINISHED)

    def _new_master(
        self,
        driver: Driver,
        lease: LeaderLease,
        results: FileJobResults,
        after_epoch: Callable[[EpochSummary], None],
    ) -> JobMaster:
        configuration = Configuration({key: str(value) for key, value in self.options.items()})
        settings = TaskSettings(scratch_name="scratch", buffer_records=4)

        def make_cluster(job: JobGraph, lineage: str, _: KeySecret) -> _Executors:
            rng = self.world.rng
            faults = random_faults(rng.randrange(1 << 30), self.task_fault_rate)
            hosts = f"{self.directory}/hosts-{driver.number}-{lineage}"
            cluster = _Executors(
                self.world,
                JobCode(job, lineage, settings),
                hosts,
                workers=rng.choice((1, 2, 3)),  # executors come and go
                seed=self.seed,
                faults=faults,
            )
            self.clusters.append(cluster)
            return cluster

        return JobMaster(
            self._job(),
            make_cluster,
            job_master_settings(configuration, str(self.root / "state")),
            on_epoch=after_epoch,
            now_ms=driver.wall_clock_ms,
            timer=lambda: self.world.now_s,
            ensure_leader=lease.ensure_leader,
            leader=lease.token,
            results=results,
        )

    def _job(self, job_id: str = JOB_ID) -> JobGraph:
        env = make_env(PARALLELISM)
        self.program.build(env).sink_to(WatchedSink(str(self.directory))).uid("sink")
        return build_job_graph(env._build_stream_graph(), job_id=job_id, name="simulated")


class WatchedLease(LeaderLease):
    """Has the world look whether who may write is the only one."""

    simulation: Simulation
    driver: Driver

    def ensure_leader(self) -> None:
        self.prove()
        world = self.simulation.world
        if world.current is None or self.driver.is_dead:
            return
        with world.undisturbed():
            highest = self._highest_token()
        if self._token is None or highest > self._token:
            world.violated(f"driver {self.driver.number} passed ensure_leader(), but token {highest} leads")

    def prove(self) -> None:
        """Do what a lease does; defects are planted here."""
        super().ensure_leader()


@contextmanager
def seeded_names(rng: random.Random) -> Iterator[None]:
    """Have all names that are made up come from the seed."""

    def seeded_uuid4() -> uuid.UUID:
        return uuid.UUID(int=rng.getrandbits(128), version=4)

    replaced = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("headrace.") and getattr(module, "uuid4", None) is uuid.uuid4
    ]
    for module in replaced:
        module.uuid4 = seeded_uuid4  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in replaced:
            module.uuid4 = uuid.uuid4  # type: ignore[attr-defined]


def simulate(seed: int) -> Outcome:
    """Run the control plane under one seed.

    Raises:
        AssertionError: If an invariant does not hold; the message says which seed.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-sim-", dir=_MEMORY) as directory:
        simulation = simulations[directory] = Simulation(seed, Path(directory))
        try:
            return simulation.run()
        except BaseException as error:
            error.add_note(f"seed {seed}: to see it again, python -m tests.simulation.control_plane {seed}")
            error.add_note(f"program {simulation.program_name!r}, faults {simulation.world.done}")
            raise
        finally:
            del simulations[directory]


if __name__ == "__main__":  # one seed, for a debugger
    logging.basicConfig(level=logging.INFO)
    print(simulate(int(sys.argv[1])))

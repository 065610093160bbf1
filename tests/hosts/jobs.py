"""A job of `program.py` on a cluster: started as often as a test likes, and compared with an undisturbed run."""

from __future__ import annotations

import json
import os
import time
from ast import literal_eval
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.hosts.cluster import Cluster, copies_of_state
from tests.hosts.network import Process, wait_until
from tests.hosts.program import KEYS, NUMBERS

PROGRAM = Path(__file__).with_name("program.py")
#: Long enough for a busy machine not to stop a leader by itself.
LEASE_S = 6.0
PATIENCE_S = 180.0

Row = tuple[int, int, int]


class Job:
    """One job, with a directory, a table, a topic and a part of the bucket of its own.

    Args:
        cluster: Where it runs.
        options: More of its configuration, or other.
    """

    def __init__(self, cluster: Cluster, **options: object) -> None:
        self._cluster = cluster
        self.name = f"job_{uuid4().hex[:8]}"
        self.directory = cluster.shared / self.name
        self.directory.mkdir()
        self.checkpoints = str(self.directory / "checkpoints")
        self.options: dict[str, object] = {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": self.directory / "ha",
            "high-availability.cluster-id": self.name,
            "headrace.high-availability.lease-duration": f"{int(LEASE_S * 1000)} ms",
            "execution.checkpointing.dir": self.checkpoints,
            "execution.checkpointing.interval": "1 ms",
            "execution.checkpointing.tolerable-failed-checkpoints": 1000,
            "headrace.epoch.max-records": 5,
            "headrace.epoch.target-duration": "1 h",
            "headrace.state.compaction.max-changes": 4,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "500 ms",
            "restart-strategy.fixed-delay.attempts": 1000,
            **options,
        }
        #: What drivers had written before the last one was started.
        self._older_logs: set[Path] = set()
        (self.directory / "sinks.json").write_text(json.dumps(self._sinks()))

    def _sinks(self) -> dict[str, Any]:
        cluster = self._cluster
        sinks: dict[str, Any] = {
            "files": str(self.directory / "out"),
            "objects": f"{cluster.bucket}/{self.name}",
        }
        if cluster.postgres is not None:
            cluster.postgres.execute(f"CREATE TABLE {self.name} (key BIGINT, value BIGINT, count BIGINT)")
            sinks["postgres"] = {
                "url": cluster.postgres.jdbc_url,
                "user": cluster.postgres.user,
                "password": cluster.postgres.password,
                "table": self.name,
            }
        if cluster.kafka is not None:
            sinks["kafka"] = {
                "address": cluster.kafka.address,
                "topic": cluster.kafka.create_topic(1, self.name),
            }
        return sinks

    # -- what the program is asked -----------------------------------------------------------------------------

    def ask(self, what: str, text: str = "") -> None:
        """Have the program do something from now on: see `program.py`."""
        (self.directory / what).write_text(text)

    def no_longer(self, what: str) -> None:
        (self.directory / what).unlink()

    # -- its drivers -------------------------------------------------------------------------------------------

    def start(self, **options: object) -> Process:
        self._older_logs = set(self._logs())
        return self._cluster.submit({**self.options, **options}, PROGRAM, str(self.directory))

    def finish(self, process: Process | None = None) -> None:
        """Wait until the job is over: of a driver that was started, or of a new one."""
        process = process or self.start()
        assert process.wait(PATIENCE_S) == 0, process.log

    def epochs(self) -> list[list[str]]:
        """Return the hosts of every epoch so far, those included that ran in vain."""
        try:
            return [line.split()[1:] for line in (self.directory / "epochs").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def wait_for_epochs(self, process: Process, count: int) -> None:
        self._wait(process, lambda: len(self.epochs()) >= count, f"{count} epochs")

    def wait_at_gate(self, process: Process) -> str:
        """Wait until a worker has come to the gate; return its host."""
        waiting = self.directory / "waiting"
        self._wait(process, lambda: waiting.exists() and waiting.read_text() != "", "a worker at the gate")
        return waiting.read_text()

    def hosts(self, since: int = 0) -> set[str]:
        """Return the hosts that epochs ran on, from some epoch on."""
        return {host for hosts in self.epochs()[since:] for host in hosts}

    def wait_for_log(self, process: Process, *words: str) -> None:
        """Wait until a driver has said one of some things, to its user or in its log."""

        def is_said() -> bool:
            text = process.log + self._written()
            return any(word in text for word in words)

        self._wait(process, is_said, " or ".join(map(repr, words)))

    def _written(self) -> str:
        return "".join(
            path.read_text(errors="replace") for path in self._logs() if path not in self._older_logs
        )

    def _logs(self) -> list[Path]:
        return list(self._cluster.driver.path("/tmp/state").rglob("*.log"))

    @staticmethod
    def _wait(process: Process, condition: Any, what: str) -> None:
        wait_until(
            lambda: condition() or not process.is_running(),
            lambda: f"{what}: {process.log[-6000:]}",
            PATIENCE_S,
        )
        assert condition(), process.log

    # -- what came out -----------------------------------------------------------------------------------------

    def contents(self) -> dict[str, list[Row]]:
        """Return the rows of each sink, sorted."""
        cluster = self._cluster
        files = [path.read_text() for path in (self.directory / "out").glob("part-*")]
        objects = [
            data.decode() for name, data in cluster.objects(self.name).items() if name.startswith("part-")
        ]
        found = {"files": _rows("".join(files)), "objects": _rows("".join(objects))}
        if cluster.postgres is not None:
            rows = cluster.postgres.execute(f"SELECT key, value, count FROM {self.name}")
            found["postgres"] = sorted((row[0], row[1], row[2]) for row in rows)
        if cluster.kafka is not None:
            found["kafka"] = _rows("\n".join(cluster.kafka.values(self.name)))
        return found

    @staticmethod
    def expected() -> list[tuple[int, int]]:
        return sorted((n % KEYS, n) for n in range(NUMBERS))

    def check(self) -> None:
        """Make sure that every sink has the rows of an undisturbed run: each number once, keys counted one by one."""
        found = self.contents()
        counts = sorted((n % KEYS, n // KEYS + 1) for n in range(NUMBERS))
        for sink, rows in found.items():
            assert [(key, value) for key, value, _ in rows] == self.expected(), sink
            assert sorted((key, count) for key, _, count in rows) == counts, sink
            assert rows == found["files"], sink

    def check_finished(self, *out_of_reach: str) -> None:
        """Check what came out of a job that is over, what it left on hosts, and that its next start does nothing.

        Args:
            out_of_reach: Hosts that no executor could clean up: the next job that runs there does.
        """
        self.check()
        before, epochs = self.contents(), len(self.epochs())
        self.check_copies_of_state(*out_of_reach)
        self.finish()
        assert len(self.epochs()) == epochs, "the next start ran the job again"
        assert self.contents() == before

    def check_copies_of_state(self, *out_of_reach: str) -> None:
        """Make sure that no host keeps state of a job that is over; executors end a moment after their driver."""

        def left() -> dict[str, list[str]]:
            return {host: names for host, names in self.copies_of_state().items() if host not in out_of_reach}

        wait_until(lambda: not left(), lambda: f"copies of state to be removed: {left()}", 30)

    def let_copies_expire(self) -> None:
        """Have hosts see copies of state that nobody has used for an hour, as if that had passed since a kill."""
        hour_ago = time.time() - 3600
        for host in self._cluster.network.hosts.values():
            for lease in [
                *host.path("/dev/shm").glob("headrace-*/lease"),
                *host.path("/tmp").glob("headrace-*/lease"),
            ]:
                os.utime(lease, (hour_ago, hour_ago))

    def copies_of_state(self) -> dict[str, list[str]]:
        """Return the directories of jobs that each host has."""
        found = {host.name: copies_of_state(host) for host in self._cluster.network.hosts.values()}
        return {host: names for host, names in found.items() if names}


def _rows(text: str) -> list[Row]:
    return sorted(literal_eval(line) for line in text.splitlines())

"""Endless jobs of a session run live without being asked to: beside each other, and beside jobs that run in epochs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.rest.client import RestClient
from tests.e2e.test_cli import wait_until
from tests.e2e.test_control_plane import WatchedCli, address_of, client_of, headrace

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

#: Counts by key. A record is followed by the next one 20 ms later, and carries its own time.
ENDLESS = """
import sys

from headrace.common import WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


class Number(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Number())
source = DataGeneratorSource(lambda index: index, None, rate_per_second=50)
numbers = env.from_source(source, strategy, "numbers").uid("numbers")
numbers.key_by(lambda n: n % 3).process(Count()).uid("count").print()
env.execute(sys.argv[1])
"""
BOUNDED = """
from headrace.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(list(range(20))).key_by(lambda n: n % 3).map(lambda n: n + 1).print()
env.execute("bounded")
"""


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[WatchedCli]]:
    """Two places to run the command line: one for the session, one for programs."""
    made = []
    for name in ("session", "program"):
        (tmp_path / name).mkdir()
        made.append(WatchedCli(tmp_path / name))
    yield made
    for cli in made:
        cli.end()
    for cli in made:
        wait_until(lambda cli=cli: not cli.processes(), "all processes of the test are over")


def submit(cli: WatchedCli, address: str, text: str, *arguments: str) -> None:
    options = ("-d", "-p", "2", "-D", "execution.checkpointing.interval=200 ms")
    submitted = cli.run("run", "-m", address, *options, cli.program(text), *arguments)
    assert submitted.returncode == 0, submitted.stderr


def counts(client: RestClient, job: str) -> list[int]:
    """Return how many records each vertex of a job has read or got."""
    vertices = client.get(f"/jobs/{job}")["vertices"]
    return [each["metrics"]["read-records"] for each in vertices]


def metric(client: RestClient, at: str, name: str) -> Any:
    found = client.get(f"{at}/metrics", get=name)
    return float(found[0]["value"]) if found else None


def test_endless_jobs_run_live_at_the_same_time_and_next_to_jobs_in_epochs(
    places: list[WatchedCli], tmp_path: Path
) -> None:
    server, program = places
    session = server.start("session", "--master", "local[2]", "--submit", "-D", "rest.port=0")
    address = address_of(server, "session")
    client = client_of(address)
    for name in ("first", "second"):
        submit(program, address, ENDLESS, name)
    jobs = {each["name"]: each["jid"] for each in client.get("/jobs/overview")["jobs"]}
    wait_until(lambda: all(min(counts(client, job)[1:]) > 50 for job in jobs.values()), "both count", 120)

    # What runs in epochs finds room beside them.
    submit(program, address, BOUNDED)
    bounded = client.find_job("bounded")
    wait_until(lambda: client.get(f"/jobs/{bounded}")["state"] == "FINISHED", "the bounded job", 90)

    # REST, and so the page, know what subtasks measure.
    job = jobs["first"]
    source, keyed = (each["id"] for each in client.get(f"/jobs/{job}")["vertices"])
    at = f"/jobs/{job}/vertices/{keyed}"
    for part in ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond"):
        wait_until(lambda part=part: metric(client, f"{at}/subtasks/0", part) is not None, part)
    assert client.get(f"{at}/backpressure")["backpressure-level"] == "ok"
    wait_until(
        lambda: all(float(each["value"]) > 0 for each in client.get(f"{at}/watermarks")), "watermarks move"
    )
    assert len(client.get(f"/jobs/{job}/vertices/{source}")["subtasks"]) == 2
    wait_until(
        lambda: client.get(f"/jobs/{job}/checkpoints")["counts"]["completed"] > 2, "checkpoints are taken"
    )

    # It is rescaled over REST, and counts on.
    before = counts(client, job)[1]
    client.ask("PATCH", f"/jobs/{job}/rescaling", query={"parallelism": "3"})
    wait_until(lambda: len(client.get(at)["subtasks"]) == 3, "the job has been rescaled", 60)
    wait_until(lambda: counts(client, job)[1] > before + 50, "the job counts after it was rescaled", 60)

    # One is stopped with a savepoint and continues from it, the other is cancelled.
    said = headrace("stop", "-m", address, "-p", str(tmp_path / "stopped"), job)
    assert f"savepoint: {tmp_path / 'stopped'}" in said
    assert client.get(f"/jobs/{job}")["state"] == "FINISHED"
    headrace("cancel", "-m", address, jobs["second"])
    wait_until(lambda: client.get(f"/jobs/{jobs['second']}")["state"] == "CANCELED", "the other is cancelled")
    [savepoint] = (tmp_path / "stopped").iterdir()
    again = program.run(
        *("run", "-m", address, "-d", "-p", "2", "-s", savepoint, program.program(ENDLESS), "again")
    )
    assert again.returncode == 0, again.stderr
    restored = client.find_job("again")
    wait_until(lambda: min(counts(client, restored)[1:]) > 10, "the restored job counts", 60)

    client.ask("DELETE", "/cluster")
    assert session.wait(60) == 0
    said = server.stderr.read_text()
    assert "runs in epochs" not in said.replace("job 'bounded' runs in epochs: its input has an end", "")
    assert "Traceback" not in said

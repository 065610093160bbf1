"""Two sessions with one high-availability directory: when the leader ends, the other continues its jobs."""

from __future__ import annotations

import ast
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.rest.client import RestClient
from tests.e2e.test_cli import wait_until
from tests.e2e.test_control_plane import WatchedCli, address_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

NUMBERS, KEYS = 400, 5
#: Counts by key into files. From half of the numbers on, a record waits until there is a file `go`. Numbers come
#: slowly, so a live job takes checkpoints before it waits.
PROGRAM = """
import sys
import time
from pathlib import Path

from headrace.common import Encoder, WatermarkStrategy
from headrace.connectors.file import FileSink
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor

folder = sys.argv[1]


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), value, count


def wait(row):
    go = Path(folder) / "go"
    if row[1] >= 200 and not go.exists():
        (Path(folder) / "waiting").touch()
        while not go.exists():
            time.sleep(0.02)
    return row


env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda index: index, 400, rate_per_second=100)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
counted = numbers.key_by(lambda n: n % 5).process(Count()).map(wait)
counted.sink_to(FileSink.for_row_format(folder + "/rows", Encoder.simple_string_encoder()).build())
env.execute("handed over")
"""


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[WatchedCli]]:
    """Three places to run the command line: two for sessions, one for the program."""
    made = []
    for name in ("first", "second", "program"):
        (tmp_path / name).mkdir()
        made.append(WatchedCli(tmp_path / name))
    yield made
    for cli in made:
        cli.end()
    for cli in made:
        wait_until(lambda cli=cli: not cli.processes(), "all processes of the test are over")


def client_of(cli: WatchedCli) -> RestClient:
    host, _, port = address_of(cli, "session").partition(":")
    return RestClient(host, int(port))


def rows_in(folder: Path) -> list[tuple[int, int, int]]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    return [ast.literal_eval(line) for path in files for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["blocking", "pipelined"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_session_that_stands_by_continues_with_the_job(
    places: list[WatchedCli], tmp_path: Path, how: signal.Signals, kind: str
) -> None:
    first, second, program = places
    checkpoints = ("-D", f"execution.checkpointing.dir={tmp_path / 'checkpoints'}")
    session = (
        *("session", "--master", "local[1]", "--submit", "-D", "rest.port=0", *checkpoints),
        *("-D", "high-availability.type=filesystem", "-D", f"high-availability.storageDir={tmp_path / 'ha'}"),
        *("-D", "headrace.high-availability.lease-duration=5 s"),
    )
    leader = first.start(*session)
    address = address_of(first, "session")
    follower = second.start(*session)
    wait_until(
        lambda: "waiting as a standby: " in second.stderr.read_text(), "the second session stands by", 60
    )
    job = program.program(PROGRAM)
    submitted = program.run(
        *(
            "run",
            "-m",
            address,
            "-d",
            "-p",
            "1",
            *checkpoints,
            "-D",
            "execution.checkpointing.interval=100 ms",
        ),
        *("-D", f"headrace.exchange.kind={kind}"),
        *("-D", "headrace.epoch.max-records=20", job, str(tmp_path)),
    )
    assert submitted.returncode == 0, submitted.stderr
    assert "SUBMITTED job 'handed over' (" in submitted.stderr
    wait_until((tmp_path / "waiting").exists, "half of the numbers", 90)
    [line] = client_of(first).get("/jobs/overview")["jobs"]
    assert client_of(first).get(f"/jobs/{line['jid']}/checkpoints")["counts"]["completed"] > 0

    leader.send_signal(how)
    ended = leader.wait(90)
    assert ended == (143 if how is signal.SIGTERM else -signal.SIGKILL), first.stderr.read_text()[-3000:]
    if how is signal.SIGTERM:
        assert "jobs are left to the next session" in first.stderr.read_text()
    wait_until(lambda: "recovered job" in second.stderr.read_text(), "the job is recovered", 120)
    client = client_of(second)
    assert client.find_job("handed over") == line["jid"]
    restored = client.get(f"/jobs/{line['jid']}/checkpoints")["latest"]["restored"]
    assert restored["id"] > 0
    (tmp_path / "go").touch()
    wait_until(
        lambda: client.get("/jobs/overview")["jobs"][0]["state"] not in {"RUNNING", "CREATED"}, "the end", 120
    )
    assert client.get("/jobs/overview")["jobs"][0]["state"] == "FINISHED"
    assert sorted(rows_in(tmp_path / "rows")) == sorted((n % KEYS, n, n // KEYS + 1) for n in range(NUMBERS))
    client.ask("DELETE", "/cluster")
    assert follower.wait(60) == 0

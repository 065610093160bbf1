"""What watching costs: the throughput of a job on Spark with and without a thousand REST requests a second.

Prints a JSON line with the ratio for each way to share two cores.

python -m bench.rest_load [--cores apart shared] [--seconds 2] [--rounds 20] [--rate 1000]

apart:  Spark and its Python workers run the job on one core; the other one is for the driver's Python process, which
        answers, and for who asks. What watching takes from the job is what it delays the driver.
shared: a job of two tasks has both cores, and who answers and who asks take their part of them.

Short rounds with and without requests take turns in one run of one job: whatever else the machine does hits both. The
ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

PROGRAM = """
from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(NumberSequenceSource(0, 10**15), WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda n: n % 1000).reduce(lambda a, b: a + b).sink_to(BlackholeSink())
env.execute("watched")
"""


class Watcher:
    """Asks a server over one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, (path, response.status)
        return body

    def records(self, job: str) -> int:
        values = json.loads(self.get(f"/jobs/{job}/metrics?get=numRecordsRead"))
        return int(values[0]["value"])

    def ask_for(self, seconds: float, rate: float) -> int:
        """Ask for the overview at a rate; return how often. Over a bare socket: a client costs cores as well."""
        request = b"GET /overview HTTP/1.1\r\nHost: localhost\r\n\r\n"
        started = time.perf_counter()
        asked = 0
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            while (passed := time.perf_counter() - started) < seconds:
                if asked <= passed * rate:
                    connection.sendall(request)
                    answer = connection.recv(65536)
                    while not answer.endswith(b"}"):
                        answer += connection.recv(65536)
                    assert answer.startswith(b"HTTP/1.1 200"), answer
                    asked += 1
                else:
                    time.sleep(0.0005)
        return asked


class Processor:
    """How the cores are shared between who works, who answers and who asks."""

    def __init__(self, driver: int, *, apart: bool) -> None:
        self._driver = driver
        self._apart = apart
        self._cores = sorted(os.sched_getaffinity(0))

    def share(self) -> None:
        """Give the driver and this process one core, and Spark's processes another."""
        if not self._apart:
            return
        work, watch = self._cores[:2]
        _pin(os.getpid(), watch)
        _pin(self._driver, watch)
        for process in _descendants(self._driver):
            _pin(process, work)

    def free(self) -> None:
        os.sched_setaffinity(0, self._cores)


def _pin(process: int, core: int) -> None:
    # A thread or process may have ended by now. What they start later is where they are.
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError):
                os.sched_setaffinity(int(thread), {core})


def _descendants(process: int) -> list[int]:
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            children = Path(f"/proc/{process}/task/{thread}/children").read_text().split()
            for child in map(int, children):
                found += [child, *_descendants(child)]
    return found


def processor_time(process: int) -> float:
    """Seconds that a process has had a core."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cores", nargs="+", choices=["apart", "shared"], default=["apart", "shared"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1000.0)
    chosen = parser.parse_args()
    for cores in chosen.cores:
        run(cores, chosen)
    return 0


def run(cores: str, chosen: argparse.Namespace) -> None:
    tasks = 1 if cores == "apart" else 2
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "watched.py"
        program.write_text(textwrap.dedent(PROGRAM))
        command = [sys.executable, "-m", "headrace.cli.main", "run"]
        command += ["--master", f"local[{tasks}]", "-p", str(tasks)]
        process = subprocess.Popen(
            # Short epochs: a round has many of them, and its count is not that of one more or less.
            [*command, "-D", "rest.port=0", "-D", "headrace.epoch.target-duration=300 ms", str(program)],
            stderr=subprocess.PIPE,
            text=True,
        )
        processor = Processor(process.pid, apart=cores == "apart")
        try:
            assert process.stderr is not None
            address = next(line for line in process.stderr if line.startswith("REST at "))
            # What nobody reads would fill the pipe, and hold the program up.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            watcher = Watcher(int(address.rpartition(":")[2]))
            job = wait_until_it_runs(watcher)
            processor.share()
            measure(watcher, job, process.pid, cores, chosen)
        finally:
            processor.free()
            process.terminate()
            process.wait(60)


def wait_until_it_runs(watcher: Watcher) -> str:
    job = ""
    while not job or watcher.records(job) == 0:
        time.sleep(0.5)
        jobs = json.loads(watcher.get("/jobs"))["jobs"]
        job = jobs[0]["id"] if jobs else ""
    time.sleep(5)
    return job


def measure(watcher: Watcher, job: str, driver: int, cores: str, chosen: argparse.Namespace) -> None:
    rates: dict[str, list[float]] = {"alone": [], "watched": []}
    times: dict[str, list[float]] = {"alone": [], "watched": []}
    asked = 0
    for number in range(chosen.rounds):
        # Which comes first changes, so that a machine that gets busier or quieter hits both.
        for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
            before, began, spent = watcher.records(job), time.perf_counter(), processor_time(driver)
            if kind == "watched":
                asked += watcher.ask_for(chosen.seconds, chosen.rate)
            else:
                time.sleep(chosen.seconds)
            passed = time.perf_counter() - began
            times[kind].append((processor_time(driver) - spent) / passed)
            rates[kind].append((watcher.records(job) - before) / passed)
    ratios = [watched / alone for alone, watched in zip(rates["alone"], rates["watched"], strict=True)]
    ratio = round(statistics.median(ratios), 3)
    alone, watched = (statistics.median(each) for each in rates.values())
    own, with_requests = (100 * statistics.fmean(each) for each in times.values())
    print(
        f"cores {cores}: alone {alone:,.0f} records/s, watched {watched:,.0f} records/s at "
        f"{asked / chosen.rounds / chosen.seconds:,.0f} requests/s, ratio {ratio} "
        f"({min(ratios):.2f} to {max(ratios):.2f}); the driver's Python takes {own:.1f} % of a core alone, "
        f"{with_requests:.1f} % watched"
    )
    line = {
        "name": f"throughput of a job while the overview is asked for, cores {cores}",
        "value": ratio,
        "unit": "ratio",
        "ratio": ratio,
        "against": f"the same job not watched; {chosen.rate:g} requests/s",
        "goal": 1.0,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    sys.exit(main())

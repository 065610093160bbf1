"""What watching costs: the throughput of a job on Spark with and without a thousand REST requests a second.

Prints a JSON line with the ratio.

python -m bench.rest_load [--seconds 2] [--rounds 20] [--rate 1000]

Short rounds with and without requests take turns in one run of one job: whatever else the machine does hits both.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1000.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "watched.py"
        program.write_text(textwrap.dedent(PROGRAM))
        command = [sys.executable, "-m", "headrace.cli.main", "run", "--master", "local[1]", "-p", "1"]
        process = subprocess.Popen(
            # Short epochs: a round has many of them, and its count is not that of one more or less.
            [*command, "-D", "rest.port=0", "-D", "headrace.epoch.target-duration=300 ms", str(program)],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            address = next(line for line in process.stderr if line.startswith("REST at "))
            # What nobody reads would fill the pipe, and hold the program up.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return measure(int(address.rpartition(":")[2]), chosen.seconds, chosen.rounds, chosen.rate)
        finally:
            process.terminate()
            process.wait(60)


def measure(port: int, seconds: float, rounds: int, rate: float) -> int:
    watcher = Watcher(port)
    job = ""
    while not job or watcher.records(job) == 0:
        time.sleep(0.5)
        jobs = json.loads(watcher.get("/jobs"))["jobs"]
        job = jobs[0]["id"] if jobs else ""
    time.sleep(5)
    total = {"alone": [0, 0.0], "watched": [0, 0.0]}
    asked = 0
    for number in range(rounds):
        # Which comes first changes, so that a machine that gets busier or quieter hits both.
        for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
            before, began = watcher.records(job), time.perf_counter()
            if kind == "watched":
                asked += watcher.ask_for(seconds, rate)
            else:
                time.sleep(seconds)
            total[kind][0] += watcher.records(job) - before
            total[kind][1] += time.perf_counter() - began
    alone, watched = (records / passed for records, passed in total.values())
    ratio = round(watched / alone, 3)
    print(
        f"alone {alone:,.0f} records/s, watched {watched:,.0f} records/s at "
        f"{asked / total['watched'][1]:,.0f} requests/s, ratio {ratio}"
    )
    line = {
        "name": "throughput of a job while the overview is asked for",
        "value": ratio,
        "unit": "ratio",
        "ratio": ratio,
        "against": f"the same job not watched; {rate:g} requests/s",
        "goal": 1.0,
    }
    print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())

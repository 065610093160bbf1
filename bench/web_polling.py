"""What the web page costs a job: its throughput on Spark with and without somebody who looks at it.

python -m bench.web_polling [--seconds 8] [--rounds 6]

Rounds with and without a viewer take turns in one run of one job, so that whatever else the machine does hits both. The
viewer asks for just what the page asks, at the page's pace (3 s): the graph with an open vertex, and the time line, as
two tabs would. Beside the throughput stands the processor time that the answers took in the job's process.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
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
REFRESH_S = 3.0


class Viewer:
    """Asks as the page does."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        jobs: list[dict[str, str]] = []
        while not jobs:
            jobs = self.get("/jobs")["jobs"]
            time.sleep(0.2)
        self.job = f"/jobs/{jobs[0]['id']}"

    def get(self, path: str) -> dict[str, list[dict[str, str]]]:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, (path, response.status)
        answer: dict[str, list[dict[str, str]]] = json.loads(body)
        return answer

    def records(self) -> int:
        values = self.get(f"{self.job}/metrics?get=numRecordsRead")
        return int(values[0]["value"])  # type: ignore[index, call-overload]

    def look(self) -> int:
        """Ask once for what two tabs show; return how many requests that took."""
        job = self.get(self.job)
        vertex = f"{self.job}/vertices/{job['vertices'][-1]['id']}"
        paths = [f"{self.job}/headrace/vertices", f"{self.job}/headrace/throughput", vertex]
        paths += [f"{vertex}/backpressure", f"{vertex}/watermarks", f"{vertex}/subtasks/metrics"]
        paths += [f"{vertex}/subtasks/metrics?get=numRecordsInPerSecond,numRecordsOutPerSecond"]
        paths += [self.job, f"{self.job}/epochs"]
        for path in paths:
            self.get(path)
        return len(paths) + 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=9.0)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "watched.py"
        program.write_text(PROGRAM)
        command = [sys.executable, "-m", "headrace.cli.main", "run", "--master", "local[1]", "-p", "1"]
        process = subprocess.Popen(
            [*command, "-D", "rest.port=0", str(program)], stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            address = next(line for line in process.stderr if line.startswith("REST at "))
            return measure(int(address.rpartition(":")[2]), process.pid, chosen.seconds, chosen.rounds)
        finally:
            process.terminate()
            process.wait(60)


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(port: int, pid: int, seconds: float, rounds: int) -> int:
    viewer = Viewer(port)
    while viewer.records() == 0:
        time.sleep(0.5)
    time.sleep(seconds)
    ratios = []
    looks_s = []
    for number in range(rounds):
        rates = {}
        for watched in (False, True) if number % 2 == 0 else (True, False):
            before, began = viewer.records(), time.perf_counter()
            while (passed := time.perf_counter() - began) < seconds:
                if watched:
                    started = time.perf_counter()
                    viewer.look()
                    looks_s.append(time.perf_counter() - started)
                time.sleep(min(REFRESH_S, seconds - passed))
            rates[watched] = (viewer.records() - before) / (time.perf_counter() - began)
        ratios.append(rates[True] / rates[False])
        print(
            f"round {number + 1}: alone {rates[False]:,.0f} records/s, watched {rates[True]:,.0f} records/s, "
            f"ratio {ratios[-1]:.4f}",
            file=sys.stderr,
        )
    # The driver alone: how much of a processor the answers take, by asking without a pause.
    cost_s = _cost_of_a_look(viewer, pid)
    report("web_polling_throughput", statistics.median(ratios), "ratio", goal=0.99)
    report("web_polling_processor", cost_s / REFRESH_S, "of one processor", goal=0.01)
    report("web_polling_answer_time", statistics.median(looks_s) * 1000, "ms for all answers")
    return 0


def _cost_of_a_look(viewer: Viewer, pid: int, looks: int = 100) -> float:
    """Return the processor time of one look: what the process uses while it is asked, less what it uses anyway."""
    began, used = time.perf_counter(), processor_s(pid)
    for _ in range(looks):
        viewer.look()
    busy_s, passed_s = processor_s(pid) - used, time.perf_counter() - began
    used = processor_s(pid)
    time.sleep(passed_s)
    return max(0.0, busy_s - (processor_s(pid) - used)) / looks


def report(name: str, value: float, unit: str, goal: float | None = None) -> None:
    line = {
        "name": name,
        "value": round(value, 4),
        "unit": unit,
        "against": "the same job unwatched",
        "goal": goal,
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())

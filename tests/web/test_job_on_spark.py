"""The page in a real Chromium, on a session with a job on Spark: from submitting it to cancelling it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rest.conftest import wait_until

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os
import sys

from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))
        self.seen = runtime_context.get_metrics_group().counter("seen")

    def process_element(self, value, ctx):
        if value % 500 == 0 and os.path.exists(POISON):
            raise ValueError("the water is poisoned")
        self.seen.inc()
        self.count.update((self.count.value() or 0) + 1)
        yield value


POISON = sys.argv[1]
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(NumberSequenceSource(0, 10**15), WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda n: n % 10).process(Count()).name("count").sink_to(BlackholeSink())
env.execute("watched")
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a session on a Spark of its own."""
    options = {
        "rest.port": "0",
        "web.refresh-interval": "300 ms",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "parallelism.default": "1",
        "headrace.epoch.max-records": "1000",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "200 ms",
    }
    words = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    command = [
        sys.executable,
        "-m",
        "headrace.cli.main",
        "session",
        "--submit",
        "--master",
        "local[1]",
        *words,
    ]
    said = tmp_path / "session.log"
    with said.open("w") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}"},
        )
    try:
        wait_until(lambda: "session at " in said.read_text() or process.poll() is not None, "the session", 90)
        address = re.search(r"session at (\S+)", said.read_text())
        assert address is not None, said.read_text()
        yield address[1]
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


@pytest.mark.timeout(300)
def test_a_job_is_watched_and_steered_from_the_page(session: str, page: Any, tmp_path: Path) -> None:
    poison = tmp_path / "poison"

    # 1. Submit a program with the form, and see its job run.
    page.goto(session)
    page.get_by_role("button", name="Submit a program").click()
    page.get_by_label("Name", exact=True).fill("watched.py")
    page.get_by_label("Program", exact=True).fill(PROGRAM)
    page.get_by_label("Arguments, separated by spaces").fill(str(poison))
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("link", name="watched").click(timeout=60_000)

    # 2. The graph, with live numbers.
    vertices = page.locator(".vertex")
    vertices.nth(1).wait_for()
    assert vertices.count() == 2
    assert page.locator(".edge text").text_content() == "HASH"
    page.locator(".vertex", has_text="rec/s").first.wait_for()

    # 3. A vertex: its subtask, and a metric plotted over time.
    page.locator(".vertex", has_text="count").click()
    page.locator(".drawer").get_by_text("RUNNING").first.wait_for()
    page.locator(".drawer").get_by_role("link", name="Metrics").click()
    page.locator('[data-metric="count.seen"]').click()
    plot = page.locator('[data-plot="count.seen"] path.line')
    plot.wait_for()
    page.wait_for_function(
        "() => document.querySelector('[data-plot=\"count.seen\"] path.line')?.getAttribute('d').includes('L')"
    )

    # 4. The stage in Spark's own user interface.
    page.locator(".drawer").get_by_role("link", name="Executors").click()
    stage = page.get_by_role("link", name="the stage that ran this vertex last")
    stage.wait_for()
    assert "/stages/stage/?id=" in stage.get_attribute("href")

    # 5. The time line says where the time goes.
    page.get_by_role("link", name="Time line").click()
    page.locator("[data-why]").wait_for()
    assert "% of the time" in page.locator("[data-why]").text_content()

    # 6. A savepoint, which is then listed.
    page.get_by_role("link", name="Checkpoints").click()
    page.get_by_role("button", name="Take a savepoint").click()
    page.get_by_label("Directory").fill(str(tmp_path / "savepoints"))
    page.get_by_role("button", name="Take it").click()
    page.locator(".toast", has_text="Savepoint at ").wait_for()
    page.locator("section[aria-label=History] .chip", has_text="savepoint").first.wait_for()
    assert list((tmp_path / "savepoints").iterdir())

    # 7. An exception: the root cause and the traceback of the program.
    page.get_by_role("link", name="Exceptions").click()
    page.get_by_text("Nothing has failed.").wait_for()
    poison.touch()
    cause = page.locator("[data-root-cause]")
    cause.wait_for(timeout=40_000)
    assert cause.text_content() == "ValueError: the water is poisoned"
    assert any("in process_element" in line for line in page.locator(".trace .own").all_text_contents())
    poison.unlink()

    # 8. Cancel it.
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("button", name="Cancel the job").click()
    page.locator(".job-head .chip", has_text="CANCELED").wait_for(timeout=40_000)

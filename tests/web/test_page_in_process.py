"""The page in a real Chromium, on jobs of a cluster in this process: names, keys, phones, colours, ended jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace.connectors.blackhole import BlackholeSink
from headrace.errors import JobExecutionError
from headrace.graph.job_graph import JobGraph
from tests.unit.rest.conftest import ENDLESS, Poisoned, RestCluster, counting, wait_until
from tests.unit.runtime.jobs import job_graph, make_env

SCRIPT = '<script>window.owned = 1</script><img src=x onerror="window.owned = 1">'
RIGHT_TO_LEFT = "\u202e\u200fevil\u202e name"
LONG = "long " * 2_000
HOSTILE = {"a script": SCRIPT, "right to left": RIGHT_TO_LEFT, "10 kB": LONG}


def named_job(name: str) -> JobGraph:
    env = make_env(parallelism=1)
    stream = env.from_collection(list(range(5))).name(f"source {name}")
    stream.map(lambda n: n).name(f"map {name}").key_by(lambda n: n).map(lambda n: n).name(
        f"keyed {name}"
    ).sink_to(BlackholeSink()).name(f"sink {name}")
    return replace(job_graph(env, f"job {name}"), job_id=uuid4().hex)


def show(page: Any, cluster: RestCluster, view: str) -> None:
    """Go to a view, and wait until it is there."""
    page.goto(f"{cluster.context.url}/#/{view}")
    page.wait_for_function("view => document.getElementById('main').dataset.shown === '#/' + view", arg=view)


def fits(page: Any) -> bool:
    """Whether nothing sticks out of the window to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_shown_as_text(served: RestCluster, page: Any, kind: str) -> None:
    name = HOSTILE[kind]
    job = served.submit(named_job(name))
    wait_until(lambda: served.dispatcher.history.get(job.job_id) is not None, "the end of the job")
    show(page, served, "")
    link = page.locator(f'a[href="#/jobs/{job.job_id}"]')
    link.wait_for()
    shown = link.text_content()
    assert shown.startswith(f"job {name}"[:100])
    assert len(shown) <= 200
    assert fits(page)
    for view in ("", "/epochs", "/checkpoints", "/exceptions", "/back-pressure", "/configuration"):
        show(page, served, f"jobs/{job.job_id}{view}")
        assert page.locator(".job-head h1").text_content().startswith(f"job {name}"[:100])
        assert fits(page), view
    show(page, served, f"jobs/{job.job_id}")
    assert page.locator(".vertex").count() == 2
    assert f"source {name}"[:20] in page.locator(".vertex .head").first.text_content()
    page.locator(".vertex").nth(1).click()
    page.locator(".drawer").wait_for()
    assert fits(page)
    assert page.evaluate("window.owned === undefined")
    assert page.locator("main script, main img").count() == 0


def test_the_graph_is_reached_with_the_keyboard_alone(served: RestCluster, page: Any) -> None:
    job = served.submit(counting(ENDLESS))
    page.goto(f"{served.context.url}/#/jobs/{job.job_id}")
    first = page.locator(".vertex").filter(has_text="numbers")
    first.wait_for()
    assert "numbers" in first.get_attribute("aria-label")
    first.focus()
    page.keyboard.press("ArrowRight")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert "KEYED PROCESS" in page.evaluate(focused)
    page.keyboard.press("ArrowLeft")
    assert "numbers" in page.evaluate(focused)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".drawer").wait_for()
    # What is focused stays so while news come in.
    for _ in range(2):
        with page.expect_response(lambda response: response.url.endswith("/watermarks")):
            pass
    assert "KEYED PROCESS" in page.evaluate(focused)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.drawer, .panel') !== null")


# What fits depends on the width, and has nothing to do with colours.
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1360, "light"), (1360, "dark")])
def test_every_view_fits_and_has_the_colours_of_the_system(
    served: RestCluster, open_tab: Callable[..., Any], width: int, scheme: str, tmp_path: Path
) -> None:
    job = served.submit(
        counting(ENDLESS),
        {
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        },
    )
    wait_until(lambda: len(job.monitor.epochs()) > 6, "epochs")
    page = open_tab(viewport={"width": width, "height": 800}, color_scheme=scheme)
    at = f"jobs/{job.job_id}"
    vertex = job.master.job.vertices[1].vertex_id
    views = ["", at, f"{at}/vertices/{vertex}", f"{at}/epochs", f"{at}/checkpoints", f"{at}/exceptions"]
    views += [f"{at}/back-pressure/{vertex}", f"{at}/configuration", "executors", "executors/driver", "logs"]
    views += [f"{at}/vertices/{vertex}/{tab}" for tab in ("metrics", "flame", "accumulators", "place")]
    views += ["configuration"]
    for view in views:
        show(page, served, view)
        assert fits(page), view
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.locator("main .notice.bad").count() == 0, view
    page.get_by_role("button", name="Colours").click()  # to light, whatever the system says
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_a_job_that_has_ended_can_still_be_looked_at(served: RestCluster, page: Any) -> None:
    options = {"restart-strategy.type": "none", "headrace.epoch.max-records": "10"}
    job = served.submit(counting(200, Poisoned), options)
    wait_until(lambda: served.dispatcher.history.get(job.job_id) is not None, "the end of the job")
    page.goto(f"{served.context.url}/#/jobs/{job.job_id}/exceptions")
    page.locator("[data-root-cause]").wait_for()
    assert page.locator("[data-root-cause]").text_content() == "ValueError: poisoned"
    assert 'raise ValueError("poisoned")' in page.locator(".trace .own").all_text_contents()[1]
    assert page.get_by_role("button", name="Cancel").count() == 0
    assert page.get_by_title("headrace.exchange.kind").text_content() == (
        "in epochs: headrace.exchange.kind is auto"
    )
    page.get_by_role("link", name="Time line").click()
    page.locator("[data-why]").wait_for()
    assert page.locator(".bar-slot").count() == len(job.monitor.epochs())


def test_other_failures_are_shown_next_to_the_root_cause(served: RestCluster, page: Any) -> None:
    job = served.submit(counting(ENDLESS))
    operator = job.master.job.vertices[1].operators[0].name
    first, other = (JobExecutionError(f"no {n}", operator=operator, subtask=n) for n in range(2))
    job.master.failures.add(first, 1_700_000_000_000, job.master.job)
    show(page, served, f"jobs/{job.job_id}/exceptions")
    assert page.get_by_text("Failed at the same time").count() == 0
    first.concurrent = (other,)
    job.master.failures.add(first, 1_700_000_001_000, job.master.job)
    page.get_by_text("Failed at the same time").wait_for()
    assert page.locator("[data-root-cause]").text_content().startswith("no 0")
    assert page.locator("summary", has_text="(2/2)").text_content().strip().endswith("no 1")


def test_an_unknown_job_is_reported(served: RestCluster, open_tab: Callable[..., Any]) -> None:
    page = open_tab(expected="status of 404")
    with page.expect_response(lambda response: response.status == 404):
        page.goto(f"{served.context.url}/#/jobs/{'0' * 32}")
    page.get_by_text("Page not found.").wait_for()
    page.get_by_role("link", name="All jobs").click()
    page.get_by_role("heading", name="Jobs").wait_for()


def test_a_checkpoint_opens_down_to_its_subtasks(served: RestCluster, page: Any, tmp_path: Path) -> None:
    options = {"execution.checkpointing.dir": str(tmp_path)}
    job = served.submit(counting(ENDLESS), options)
    job.master.trigger_checkpoint().result(30)
    show(page, served, f"jobs/{job.job_id}/checkpoints")
    history = page.locator("section[aria-label=History]")
    history.get_by_role("button", name="1", exact=False).first.click()
    history.locator(".nested button", has_text="KEYED PROCESS").click()
    subtasks = history.locator(".nested .nested tbody tr")
    subtasks.nth(1).wait_for()
    assert subtasks.count() == 2
    history.get_by_role("button", name="▾ 1").click()
    page.wait_for_function("document.querySelectorAll('.nested').length === 0")


def test_the_page_explains_a_row(served: RestCluster, open_tab: Callable[..., Any], tmp_path: Path) -> None:
    page = open_tab(expected="404")
    job = served.submit(
        counting(ENDLESS), {"headrace.replay.keep": "1000", "headrace.replay.dir": str(tmp_path)}
    )
    wait_until(lambda: len(list(tmp_path.glob("replay/*/*/done"))) >= 2, "two recorded epochs")
    show(page, served, f"jobs/{job.job_id}/why")
    page.fill("input[name=row]", "8")
    page.fill("input[name=epoch]", "1")
    page.click("button[type=submit]")
    page.locator("[data-row]").wait_for(timeout=120_000)
    assert page.locator("[data-row]").text_content() == "8"
    steps = page.locator("section", has_text="KEYED PROCESS, key 1").last.text_content()
    assert "count 1 → 2" in steps
    assert "emitted the row" in steps
    assert "whole history" in page.locator("section[aria-label=Row]").text_content()
    assert fits(page)
    page.fill("input[name=row]", "no such row")
    page.click("button[type=submit]")
    page.locator("[role=alert]").wait_for(timeout=120_000)
    assert "no row 'no such row'" in page.locator("[role=alert]").text_content()

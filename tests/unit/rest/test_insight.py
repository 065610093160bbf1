"""What the page asks and Flink does not have: epochs by phase, the pulse of vertices, state, origins, programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.config import Configuration
from headrace.config.options import rest as rest_options
from headrace.rest import program_runner
from headrace.rest.program_runner import ProgramRunner
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import RestCluster, counting, wait_until


def test_epochs_are_shown_by_their_parts_with_the_checkpoints_after_them(
    cluster: RestCluster, running: LiveJob
) -> None:
    path = f"/jobs/{running.job_id}/epochs"
    wait_until(lambda: any(each["checkpoints"] for each in cluster.get(path)["epochs"]), "a checkpoint")
    epochs = cluster.get(path)["epochs"]
    for epoch in epochs[:-1]:
        kinds = [part["kind"] for part in epoch["parts"]]
        assert kinds == ["planning", "level", "level", "spark", "publishing", "checkpoint"]
        assert sum(part["share"] for part in epoch["parts"]) == pytest.approx(1.0, abs=0.01)
        assert epoch["why"]
    marked = [mark for epoch in epochs for mark in epoch["checkpoints"]]
    assert {mark["is-savepoint"] for mark in marked} == {False}


def test_a_job_says_why_it_runs_in_epochs(cluster: RestCluster, running: LiveJob) -> None:
    assert cluster.get(f"/jobs/{running.job_id}/headrace/exchange") == {
        "kind": "blocking",
        "reason": "headrace.exchange.kind is auto",
        "could-be-live": False,
    }


def test_only_new_epochs_are_sent_to_who_knows_the_others(cluster: RestCluster, running: LiveJob) -> None:
    path = f"/jobs/{running.job_id}/epochs"
    last = cluster.get(path)["epochs"][-1]["epoch"]
    fresh = cluster.get(f"{path}?since={last}")["epochs"]
    assert fresh[0]["epoch"] == last
    assert cluster.ask("GET", f"{path}?since=yesterday").status == 400


def test_the_pulse_has_every_vertex_with_its_level(cluster: RestCluster, running: LiveJob) -> None:
    pulse = cluster.get(f"/jobs/{running.job_id}/headrace/vertices")["vertices"]
    assert [each["level"] for each in pulse] == [0, 1]
    assert [each["id"] for each in pulse] == [each.vertex_id for each in running.master.job.vertices]
    for each in pulse:
        assert 0 <= each["busy"] <= 1
        assert 0 <= each["backpressured"] <= 1
        assert each["skew"] >= 1.0
    assert pulse[0]["records-out-per-second"] > 0


def test_state_is_reported_by_operator(cluster: RestCluster, running: LiveJob) -> None:
    path = f"/jobs/{running.job_id}/headrace/state"
    wait_until(lambda: any(each["keyed-size"] for each in cluster.get(path)["operators"]), "state")
    keyed = [each for each in cluster.get(path)["operators"] if each["keyed-size"]]
    assert [each["operator"] for each in keyed] == ["KEYED PROCESS"]
    assert 0 < keyed[0]["largest-subtask"] <= keyed[0]["keyed-size"] + keyed[0]["operator-size"]
    assert keyed[0]["files"] > 0


def test_throughput_is_there_for_one_job_and_for_all(cluster: RestCluster, running: LiveJob) -> None:
    every = cluster.get("/headrace/throughput")
    assert every["step"] == 5000
    assert [each["jid"] for each in every["jobs"]] == [running.job_id]
    assert cluster.get(f"/jobs/{running.job_id}/headrace/throughput")["jobs"][0]["jid"] == running.job_id


def test_configuration_says_where_values_came_from(cluster: RestCluster, running: LiveJob) -> None:
    options = {
        each["key"]: each for each in cluster.get(f"/jobs/{running.job_id}/headrace/configuration")["options"]
    }
    assert options["execution.checkpointing.interval"]["layer"] == "code"
    assert options["headrace.epoch.max-bytes"]["layer"] == "default"
    secret = RestCluster({rest_options.TOKEN.key: "a-token-that-nobody-knows"})
    assert b"nobody-knows" not in secret.ask("GET", "/headrace/configuration").body


def test_without_spark_there_is_no_page_of_spark(cluster: RestCluster, running: LiveJob) -> None:
    answer = cluster.get(f"/jobs/{running.job_id}/headrace/spark")
    assert answer["url"] is None
    assert "spark.ui.enabled" in answer["hint"]


def test_all_of_it_is_kept_when_the_job_has_ended(cluster: RestCluster) -> None:
    job = cluster.submit(counting(200))
    wait_until(lambda: cluster.dispatcher.history.get(job.job_id) is not None, "the end of the job")
    for name in ("vertices", "throughput", "state", "configuration"):
        assert cluster.get(f"/jobs/{job.job_id}/headrace/{name}")
    assert cluster.get(f"/jobs/{job.job_id}/epochs?since=1")["epochs"]


# -- programs ------------------------------------------------------------------------------------------------------

PROGRAM = {"name": "count.py", "source": "print('submitted')", "arguments": ["--words", "a b"]}


def taking_programs(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> tuple[RestCluster, list[Any]]:
    """A cluster that takes programs; what it would run is replaced, and noted."""
    cluster = RestCluster({rest_options.SUBMIT_ENABLED.key: "true"})
    cluster.context.unpack = lambda data: counting(1)
    cluster.context.programs = ProgramRunner(cluster.context.configuration, lambda: "http://localhost:1")
    seen: list[Any] = []
    run = program_runner._finish

    def noted(words: list[str], environment: dict[str, str]) -> Any:
        file = next(word for word in words if word.endswith(".py"))
        seen.append((words, Path(file).read_text()))
        return run([*command, file], environment)

    monkeypatch.setattr(program_runner, "_finish", noted)
    return cluster, seen


def test_a_program_is_run_as_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, seen = taking_programs(monkeypatch, [sys.executable])
    assert cluster.get("/headrace/about")["takes-programs"] is True
    response = cluster.ask("POST", "/headrace/programs", {**PROGRAM, "parallelism": 3})
    assert response.status == 202
    trigger = cluster.dispatcher and response.body.decode().split('"')[3]
    done = cluster.result_of(f"/headrace/programs/{trigger}")
    assert done == {"exit-code": 0, "output": "submitted\n"}
    [(words, source)] = seen
    assert words[3:10] == ["run", "-d", "-m", "http://localhost:1", "-p", "3", words[9]]
    assert words[10:] == ["--words", "a b"]
    assert source == PROGRAM["source"]
    assert not Path(words[9]).exists()


def test_a_program_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = taking_programs(monkeypatch, [sys.executable])
    body = {**PROGRAM, "name": "../../etc/passwd", "source": "raise ValueError('no such thing')"}
    response = cluster.ask("POST", "/headrace/programs", body)
    done = cluster.result_of(f"/headrace/programs/{response.body.decode().split(chr(34))[3]}")
    assert done["exit-code"] == 1
    assert "ValueError: no such thing" in done["output"]
    assert "/etc/" not in done["output"]


def test_programs_are_refused_where_submission_is_not_allowed(cluster: RestCluster) -> None:
    assert cluster.ask("POST", "/headrace/programs", PROGRAM).status == 403
    assert cluster.get("/headrace/about")["takes-programs"] is False


def test_a_program_of_one_run_cannot_be_joined_by_others() -> None:
    cluster = RestCluster({rest_options.SUBMIT_ENABLED.key: "true"})
    response = cluster.ask("POST", "/headrace/programs", PROGRAM)
    assert response.status == 403


def test_the_token_is_handed_to_the_program() -> None:
    configuration = Configuration({rest_options.TOKEN.key: "a-token-that-nobody-knows"})
    runner = ProgramRunner(configuration, lambda: "")
    assert list(runner._environment.values()) == ["a-token-that-nobody-knows"]

"""Metrics under their identifiers: Flink's formats of scopes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from headrace.config import Configuration
from headrace.errors import ConfigurationError
from headrace.rest.resources.identifiers import Identifiers
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until

VARIABLES = {
    "host": "node",
    "tm_id": "2",
    "job_id": "ab",
    "job_name": "clicks",
    "task_id": "cd",
    "task_name": "parse -> Sink",
    "task_attempt_num": "1",
    "subtask_index": "0",
    "operator_id": "ef",
    "operator_name": "parse",
}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("jm", "node.jobmanager.x"),
        ("jm-job", "node.jobmanager.clicks.x"),
        ("tm", "node.taskmanager.2.x"),
        ("tm-job", "node.taskmanager.2.clicks.x"),
        ("task", "node.taskmanager.2.clicks.parse -> Sink.0.x"),
        ("operator", "node.taskmanager.2.clicks.parse.0.x"),
    ],
)
def test_the_defaults_are_those_of_flink(scope: str, expected: str) -> None:
    assert Identifiers(Configuration()).write(scope, VARIABLES, "x") == expected  # type: ignore[arg-type]


def test_a_star_stands_for_the_scope_around_it() -> None:
    options = {
        "metrics.scope.tm": "<tm_id>@<host>",
        "metrics.scope.tm-job": "*.<job_id>",
        "metrics.scope.task": "*.t<task_attempt_num>",
        "metrics.scope.operator": "*.<operator_id>.<operator_name>",
        "metrics.scope.delimiter": "/",
    }
    write = Identifiers(Configuration(options)).write
    assert write("task", VARIABLES, "group", "x") == "2@node/ab/t1/group/x"
    assert write("operator", VARIABLES, "x") == "2@node/ab/t1/ef/parse/x"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metrics.scope.jm", "<job_name>"),
        ("metrics.scope.task", "<operator_name>"),
        ("metrics.scope.task", "<task_attempt_id>"),
        ("metrics.scope.task", "<task_name"),
        ("metrics.scope.tm", ""),
        ("metrics.scope.delimiter", ".."),
    ],
)
def test_a_variable_that_the_scope_does_not_have_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=key):
        Configuration({key: value})


@pytest.fixture
def scoped() -> Iterator[RestCluster]:
    made = RestCluster({"metrics.scope.operator": "mine.<job_name>.<operator_name>.<subtask_index>"})
    yield made
    made.close()


def test_all_metrics_are_shown_under_their_identifiers(scoped: RestCluster) -> None:
    job: LiveJob = scoped.submit(counting(ENDLESS))
    wait_until(lambda: len(job.monitor.epochs()) > 2, "epochs")
    found = {metric["id"]: metric["value"] for metric in scoped.get("/headrace/metrics")}
    host = socket.gethostname()
    assert int(found["mine.counting.KEYED PROCESS.0.seen"]) > 0
    assert found['mine.counting.KEYED PROCESS.1.tables.table.the "big" one.digits_max'] == "9"
    vertex = job.master.job.vertices[1].name
    assert int(found[f"{host}.taskmanager.driver.counting.{vertex}.0.numRecordsIn"]) > 0
    assert int(found["localhost.jobmanager.counting.numEpochs"]) > 2
    assert found["localhost.jobmanager.taskSlotsTotal"] == "2"
    assert found["here.taskmanager.driver.taskSlotsTotal"] == "2"

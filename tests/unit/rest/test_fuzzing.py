"""Schemathesis asks everything the OpenAPI document allows, and much it does not: no answer may be a surprise."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import JobSubmissionError
from headrace.gateway.sessions import Sessions
from headrace.rest.application import RestApplication
from headrace.rest.context import RestContext
from headrace.rest.operations import Operations
from headrace.rest.server import RestServer
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import Dispatcher, LiveJob
from headrace.runtime.job.history import JobHistory
from tests.unit.rest.conftest import RestCluster

pytest.importorskip("schemathesis")


class NoJobs:
    """Runs no jobs: a statement that is right after all ends here."""

    def submit(self, job_graph: object, configuration: object) -> NoReturn:
        raise JobSubmissionError("no jobs are run here")


@pytest.fixture
def gateway() -> Iterator[Sessions]:
    """A gateway whose statements start no jobs."""
    made = Sessions(ExecutionContext(Configuration({}), {"spark": NoJobs()}))  # type: ignore[dict-item]
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(cluster: RestCluster, running: LiveJob, tmp_path: Path) -> None:
    """With the ids of a real job, which sooner or later is cancelled: then its archive answers."""
    parameters = {
        "jobid": running.job_id,
        "vertexid": running.master.job.vertices[0].vertex_id,
        "taskmanagerid": "driver",
        "subtaskindex": 0,
    }
    # A submitted job is no JSON, and stopping or saving it needs directories that exist.
    limits = ["--max-examples", "8", "--exclude-path", "/v1/jobs", "--exclude-path-regex", "/sessions"]
    ask_everything(cluster.application, parameters, limits, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing_in_the_sql_gateway(gateway: Sessions, tmp_path: Path) -> None:
    """With a session and an operation that exist, until a request closes them."""
    session = gateway.open({})
    parameters = {"sessionhandle": session.handle, "operationhandle": session.submit("SHOW TABLES").handle}
    dispatcher = Dispatcher(archive=lambda job: {}, history=JobHistory())
    context = RestContext(dispatcher, gateway.configuration, Operations(), gateway=gateway)
    limits = ["--max-examples", "8", "--include-path-regex", "/sessions"]
    ask_everything(
        RestApplication(context, RestSettings()), parameters, limits, tmp_path, STATEMENTS_MAY_BE_WRONG
    )


#: A schema cannot say which text is a statement of SQL.
STATEMENTS_MAY_BE_WRONG = """
[[operations]]
include-path-regex = "configure-session|scripts"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429", "5xx"]
"""


def ask_everything(
    application: RestApplication,
    parameters: Mapping[str, object],
    limits: list[str],
    folder: Path,
    more: str = "",
) -> None:
    server = RestServer(application, RestSettings())
    server.start()
    lines = [f'"path.{name}" = {json.dumps(value)}' for name, value in parameters.items()]
    (folder / "schemathesis.toml").write_text("\n".join(["[parameters]", *lines, more]))
    command = ["-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--url", server.url]
    try:
        done = subprocess.run(
            [sys.executable, *command, *limits, "--seed", "1", "--no-color", "--checks", "all"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        server.close(fetch_s=0.0)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]

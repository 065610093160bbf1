"""Schemathesis asks everything the OpenAPI document allows, and much it does not: no answer may be a surprise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.rest.server import RestServer
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import RestCluster

pytest.importorskip("schemathesis")


@pytest.mark.slow
def test_schemathesis_finds_nothing(cluster: RestCluster, running: LiveJob, tmp_path: Path) -> None:
    """With the ids of a real job, which sooner or later is cancelled: then its archive answers."""
    server = RestServer(cluster.application, RestSettings())
    server.start()
    (tmp_path / "schemathesis.toml").write_text(
        "[parameters]\n"
        f'"path.jobid" = "{running.job_id}"\n'
        f'"path.vertexid" = "{running.master.job.vertices[0].vertex_id}"\n'
        '"path.taskmanagerid" = "driver"\n'
        '"path.subtaskindex" = 0\n'
    )
    command = ["-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--url", server.url]
    # A submitted job is no JSON, and stopping or saving it needs directories that exist.
    limits = ["--max-examples", "8", "--seed", "1", "--no-color", "--exclude-path", "/v1/jobs"]
    checks = ["--checks", "all"]
    try:
        done = subprocess.run(
            [sys.executable, *command, *limits, *checks],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        server.close(fetch_s=0.0)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]

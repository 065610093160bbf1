"""What `headrace replay` and `headrace why` take for a recording: a path, or a running job by its id or name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from headrace.rest.server import RestServer
from headrace.rest.settings import RestSettings
from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until

Invoke = Callable[..., Result]


@pytest.fixture
def cluster() -> Iterator[RestCluster]:
    made = RestCluster()
    yield made
    made.close()


@pytest.fixture
def address(cluster: RestCluster) -> Iterator[str]:
    server = RestServer(cluster.application, RestSettings())
    server.start()
    yield f"localhost:{server.port}"
    server.close(fetch_s=0.0)


def test_an_epoch_of_a_running_job_is_replayed_and_explained(
    headrace: Invoke, cluster: RestCluster, address: str, tmp_path: Path
) -> None:
    options = {"headrace.replay.keep": "1000", "headrace.replay.dir": str(tmp_path)}
    job = cluster.submit(counting(ENDLESS), options)
    wait_until(lambda: len(list(tmp_path.glob("replay/*/*/done"))) >= 2, "two recorded epochs")

    for name in ("counting", job.job_id, job.job_id[:8]):
        replayed = headrace("replay", "-m", address, "--epoch", "2", name)
        assert replayed.exit_code == 0, replayed.stderr
        assert "no differences" in replayed.stdout
    explained = headrace("why", "-m", address, "--row", "8", "--epoch", "1", "counting")
    assert "made of 2 input records" in explained.stdout, explained.stderr


def test_a_running_job_that_is_not_recorded_says_what_to_set(
    headrace: Invoke, cluster: RestCluster, address: str
) -> None:
    cluster.submit(counting(ENDLESS))
    refused = headrace("replay", "-m", address, "counting")
    assert refused.exit_code == 1
    assert "headrace.replay.keep" in refused.stderr


@pytest.mark.parametrize("command", [("replay",), ("why", "--row", "8")])
def test_a_name_that_is_no_directory_is_said_to_be_none(headrace: Invoke, command: tuple[str, ...]) -> None:
    refused = headrace(*command, "-m", "localhost:1", "no-such-name")
    assert refused.exit_code == 1
    assert (
        "there is no directory 'no-such-name', and as a job: no answer from http://localhost:1"
        in refused.stderr
    )

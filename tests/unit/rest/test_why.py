"""`POST /jobs/:jobid/headrace/why`: rows explained from the recorded epochs of a job."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until


def test_a_row_of_a_recorded_job_is_explained(cluster: RestCluster, tmp_path: Path) -> None:
    options = {"headrace.replay.keep": "1000", "headrace.replay.dir": str(tmp_path)}
    job = cluster.submit(counting(ENDLESS), options)
    wait_until(lambda: len(list(tmp_path.glob("replay/*/*/done"))) >= 2, "two recorded epochs")
    answer = cluster.ask("POST", f"/jobs/{job.job_id}/headrace/why", {"by": "row", "text": "8", "epoch": 1})
    assert answer.status == 200, answer.body
    found = json.loads(answer.body)
    assert [each["record"] for each in found["inputs"]] == ["1", "8"]
    assert found["unknown"] == []


def test_a_job_that_is_not_recorded_says_what_to_set(cluster: RestCluster) -> None:
    job = cluster.submit(counting(ENDLESS))
    answer = cluster.ask("POST", f"/jobs/{job.job_id}/headrace/why", {"by": "key", "text": "1"})
    assert answer.status == 404
    assert b"headrace.replay.keep" in answer.body


def test_a_question_names_a_row_or_a_key(cluster: RestCluster) -> None:
    job = cluster.submit(counting(ENDLESS))
    assert cluster.ask("POST", f"/jobs/{job.job_id}/headrace/why", {}).status == 400

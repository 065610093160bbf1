"""Artifacts reach executors that are other processes with other working directories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.spark.artifact_files import check_rows, make_artifacts

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]

_PROGRAM = Path(__file__).with_name("artifacts_program.py")


def test_artifacts_named_by_the_program_reach_both_executors(tmp_path: Path) -> None:
    files, driver, home = tmp_path / "files", tmp_path / "driver", tmp_path / "spark-home"
    for folder in (files, driver, home):
        folder.mkdir()
    make_artifacts(files)
    # Executors leave their directories in Spark's home, so that is another place with the same content.
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    options = {
        "headrace.spark.master": "local-cluster[2,1,1024]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
        "env.log.dir": str(tmp_path / "log"),
    }
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM), str(files), json.dumps(options), "--through-api"],
        cwd=driver,
        env={**os.environ, "SPARK_HOME": str(home), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    rows = json.loads(ended.stdout.splitlines()[-1])
    check_rows(rows, driver)
    assert {row["interpreter"] for row in rows} == {"yes"}

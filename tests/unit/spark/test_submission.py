"""The command that spark-submit gets, word for word, and the archive that goes with it."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.runtime.artifacts import find_artifacts
from headrace.spark.submission import Application, Submission, plan_submission, write_archive

ENTRY, ARCHIVE = Path("/lib/entry.py"), Path("/tmp/a.zip")
PROPERTIES = Path("/tmp/secret.properties")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "job.py"
    path.write_text("print('hello')")
    return path


def planned(options: dict[str, str], program: str, *arguments: str, mode: str = "cluster") -> Submission:
    application = Application(Configuration(options), program, arguments, mode)
    return plan_submission(application, ENTRY, ARCHIVE, "spark-submit", PROPERTIES)


@pytest.mark.parametrize("master", ["yarn", "k8s://https://cluster:6443"])
def test_a_cluster_gets_program_and_options_in_an_archive(program: Path, master: str) -> None:
    options = {
        "headrace.spark.master": master,
        "spark.executor.instances": "3",
        "headrace.rest.token": "a-token-nobody-knows",
    }
    submission = planned(options, str(program), "--day", "1")
    assert submission.command == (
        *("spark-submit", "--master", master, "--deploy-mode", "cluster", "--name", "job"),
        *("--conf", "spark.executor.instances=3"),
        *("--archives", "/tmp/a.zip#application"),
        *("/lib/entry.py", "run", "application/program/job.py", "--day", "1"),
    )
    assert set(submission.archive) == {"program/job.py", "headrace.yaml"}
    assert json.loads(submission.options) == options


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_secrets_among_sparks_settings_are_in_no_command(program: Path, mode: str) -> None:
    options = {"headrace.spark.master": "yarn", "spark.hadoop.fs.s3a.secret.key": "abc=\\ é", "spark.a": "1"}
    submission = planned(options, str(program), mode=mode)
    words = " ".join(submission.command)
    assert "abc" not in words
    assert "--properties-file /tmp/secret.properties --load-spark-defaults" in words
    assert "spark.a=1" in words
    text = "spark.hadoop.fs.s3a.secret.key=abc\\u003d\\u005c\\u0020\\u00e9\n"
    assert submission.secret_settings == text
    assert not planned({"headrace.spark.master": "yarn"}, str(program)).secret_settings


def test_a_value_that_looks_like_a_reference_is_not_looked_up_in_the_cluster(program: Path) -> None:
    options = {"headrace.spark.master": "yarn", "headrace.rest.token": "${env:NOT-A-REFERENCE}"}
    assert '"$${env:NOT-A-REFERENCE}"' in planned(options, str(program)).options


def test_a_program_of_the_image_is_not_sent(program: Path) -> None:
    submission = planned({"headrace.spark.master": "k8s://https://c"}, "local:///opt/jobs/job.py", "x")
    assert submission.command[-4:] == ("/lib/entry.py", "run", "/opt/jobs/job.py", "x")
    assert set(submission.archive) == {"headrace.yaml"}


def test_the_driver_finds_artifacts_where_its_options_say(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 1")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "inner.py").write_text("VALUE = 2")
    (tmp_path / "env.zip").write_bytes(b"PK\5\6" + bytes(18))
    options = {
        "headrace.spark.master": "yarn",
        "python.files": f"{tmp_path}/helper.py;{tmp_path}/library",
        "python.archives": f"{tmp_path}/env.zip#env",
        "python.executable": "env/bin/python",
        "pipeline.cached-files": f"name:models,path:{tmp_path}/library",
    }
    submission = planned(options, str(program))
    archives = submission.command[submission.command.index("--archives") + 1]
    # The interpreter's archive is there on its own as well: without it the driver could not start.
    assert archives == f"/tmp/a.zip#application,{tmp_path}/env.zip#env"
    assert "spark.pyspark.python=env/bin/python" in submission.command

    # As Spark does it: the archive is unpacked in the working directory of the driver.
    driver = tmp_path / "driver"
    write_archive(submission.archive, tmp_path / "application.zip")
    with zipfile.ZipFile(tmp_path / "application.zip") as archive:
        archive.extractall(driver / "application")
    monkeypatch.chdir(driver)
    there = Configuration.load(environ={"HEADRACE_CONF_DIR": "application"}, working_directory=driver)
    found = find_artifacts(there)
    assert [(each.kind.value, each.name) for each in found] == [
        ("python file", "helper.py"),
        ("python file", "library"),
        ("archive", "env"),
        ("cached file", "models"),
    ]
    assert all(Path(each.path).exists() and not Path(each.path).is_absolute() for each in found)
    assert (driver / "application" / "program" / "job.py").read_text() == "print('hello')"


def test_a_driver_here_needs_no_archive(program: Path) -> None:
    submission = planned({"headrace.spark.master": "spark://host:7077"}, str(program), mode="client")
    assert submission.archive == {}
    assert "--archives" not in submission.command
    assert submission.command[-3:] == ("/lib/entry.py", "run", str(program))


@pytest.mark.parametrize(
    ("asked", "driver"),
    [
        ({}, sys.executable),
        ({"python.executable": "/on/the/workers/python"}, sys.executable),
        ({"spark.pyspark.driver.python": "/opt/python"}, "/opt/python"),
    ],
)
def test_a_driver_here_is_run_by_the_interpreter_that_submits_it(
    program: Path, asked: dict[str, str], driver: str
) -> None:
    submission = planned({"headrace.spark.master": "spark://host:7077", **asked}, str(program), mode="client")
    assert f"spark.pyspark.driver.python={driver}" in submission.command


def test_a_driver_in_the_cluster_is_run_by_an_interpreter_of_the_cluster(program: Path) -> None:
    submission = planned({"headrace.spark.master": "yarn"}, str(program))
    assert not any("spark.pyspark.driver.python" in word for word in submission.command)


def test_a_standalone_cluster_runs_no_drivers_and_what_to_do_is_said(program: Path) -> None:
    with pytest.raises(UnsupportedFeatureError) as refused:
        planned({"headrace.spark.master": "spark://host:7077"}, str(program))
    assert "headrace run -d --master spark://host:7077" in str(refused.value.hint)


def test_a_local_master_has_no_cluster(program: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"local\[2\] is not a cluster"):
        planned({"headrace.spark.master": "local[2]"}, str(program))


def test_a_missing_artifact_is_said_before_anything_is_submitted(program: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        planned({"headrace.spark.master": "yarn", "python.files": "/nowhere.py"}, str(program))


@pytest.mark.parametrize("manager", ["yarn", "kubernetes"])
def test_a_detached_submission_does_not_wait_for_the_end(program: Path, manager: str) -> None:
    master = "yarn" if manager == "yarn" else "k8s://https://cluster:6443"
    application = Application(
        Configuration({"headrace.spark.master": master}), str(program), is_detached=True
    )
    submission = plan_submission(application, ENTRY, ARCHIVE, "spark-submit", PROPERTIES)
    section = "submit" if manager == "yarn" else "submission"
    assert f"spark.{manager}.{section}.waitAppCompletion=false" in submission.command
    assert "waitAppCompletion" not in " ".join(
        planned({"headrace.spark.master": master}, str(program)).command
    )


def test_kerberos_options_reach_spark(program: Path) -> None:
    options = {
        "headrace.spark.master": "yarn",
        "security.kerberos.login.principal": "jobs@EXAMPLE.ORG",
        "security.kerberos.login.keytab": "/etc/jobs.keytab",
        "security.kerberos.krb5-conf.path": "/etc/krb5-test.conf",
    }
    submission = planned(options, str(program))
    said = " ".join(submission.command) + submission.secret_settings
    assert "spark.kerberos.principal=jobs@EXAMPLE.ORG" in said
    assert "spark.kerberos.keytab=/etc/jobs.keytab" in said
    assert "-Djava.security.krb5.conf=/etc/krb5-test.conf" in said

"""What Spark is started with."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkConf, SparkContext

from headrace.config import Configuration
from headrace.errors import ConfigurationError
from headrace.spark import session
from headrace.spark.masters import local_threads
from headrace.spark.settings import check_java_home, launch_settings, loopback_only, spark_settings
from headrace.util.application_log import ApplicationLog

DAEMON = "spark.python.daemon.module"


def settings_of(tmp_path: Path, **options: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in options.items()}
    configuration = Configuration(given)
    return spark_settings(configuration, ApplicationLog(tmp_path))


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local-cluster[2,1,1024]"])
def test_workers_of_this_machine_are_forked_with_our_modules(tmp_path: Path, master: str) -> None:
    assert settings_of(tmp_path, headrace_spark_master=master)[DAEMON] == "headrace.spark.worker_daemon"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443"])
def test_workers_of_a_cluster_start_as_spark_has_them(tmp_path: Path, master: str) -> None:
    assert DAEMON not in settings_of(tmp_path, headrace_spark_master=master)


def test_a_daemon_of_the_user_wins(tmp_path: Path) -> None:
    settings = {"headrace_spark_master": "local[2]", "spark_python_daemon_module": "my.daemon"}
    assert settings_of(tmp_path, **settings)[DAEMON] == "my.daemon"


def test_a_setting_that_epochs_rely_on_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.speculation must be false"):
        settings_of(tmp_path, spark_speculation="true")


def test_threads_for_live_jobs_do_not_change_into_how_many_parts_others_are_divided(tmp_path: Path) -> None:
    log = ApplicationLog(tmp_path)
    configuration = Configuration({"headrace.spark.master": "local[2]"})
    settings = spark_settings(configuration, log, least_threads=8)
    assert local_threads(settings["spark.master"]) >= 8
    assert settings["spark.default.parallelism"] == "2"
    assert "spark.default.parallelism" not in spark_settings(configuration, log)
    configuration = Configuration({"headrace.spark.master": "local[2]", "spark.default.parallelism": "5"})
    assert spark_settings(configuration, log, least_threads=8)["spark.default.parallelism"] == "5"


@pytest.mark.parametrize(("master", "expected"), [("local", "local[1,4]"), ("local[*]", "local[*,4]")])
def test_a_local_spark_may_try_a_task_again(tmp_path: Path, master: str, expected: str) -> None:
    assert settings_of(tmp_path, headrace_spark_master=master)["spark.master"] == expected


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local-cluster[2,1,1024]"])
def test_a_spark_on_this_machine_listens_to_this_machine_only(tmp_path: Path, master: str) -> None:
    settings = settings_of(tmp_path, headrace_spark_master=master)
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings.get("spark.authenticate", "false") == str(not master.startswith("local-cluster")).lower()


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443"])
def test_how_a_cluster_is_reached_is_left_to_the_user(tmp_path: Path, master: str) -> None:
    settings = settings_of(tmp_path, headrace_spark_master=master)
    assert not {"spark.driver.bindAddress", "spark.driver.host", "spark.authenticate"} & set(settings)


def test_secrets_are_not_in_the_command_line_that_starts_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[SparkConf] = []
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "launch_gateway", lambda conf, popen_kwargs: started.append(conf))
    conf = SparkConf(loadDefaults=False).setAll([("spark.hadoop.fs.s3a.secret.key", "abc"), ("spark.a", "1")])
    session._launch_gateway(conf, ApplicationLog(tmp_path))
    assert started[0].get("spark.a") == "1"
    assert started[0].get("spark.hadoop.fs.s3a.secret.key", None) is None


@pytest.mark.parametrize(
    ("master", "given", "expected"),
    [("local[2]", None, "127.0.0.1"), ("local[2]", "10.0.0.1", "10.0.0.1"), ("yarn", None, None)],
)
def test_web_pages_of_a_local_spark_listen_to_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, master: str, given: str | None, expected: str | None
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    if given is not None:
        monkeypatch.setenv("SPARK_LOCAL_IP", given)
    with loopback_only(master):
        assert os.environ.get("SPARK_LOCAL_IP") == expected
    assert os.environ.get("SPARK_LOCAL_IP") == given


def test_a_context_of_the_program_that_breaks_epochs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Foreign:
        master = "spark://host:7077"

        def getConf(self) -> SparkConf:
            return SparkConf(loadDefaults=False).set("spark.speculation", "true")

    monkeypatch.setattr(SparkContext, "_active_spark_context", Foreign())
    with pytest.raises(
        ConfigurationError, match=r"own Spark context cannot run epochs: spark\.speculation is true"
    ):
        session.spark_context(Configuration())


def test_a_java_home_without_java_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"JAVA_HOME is .*, but there is no program bin/java in it"):
        check_java_home({"JAVA_HOME": str(tmp_path)})
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    check_java_home({"JAVA_HOME": str(tmp_path)})
    check_java_home({})


def test_python_sockets_are_not_files_in_containers_of_yarn(tmp_path: Path) -> None:
    # Their path would be longer than that of a socket may be: containers have long directories.
    key = "spark.python.unix.domain.socket.enabled"
    assert settings_of(tmp_path, **{"headrace.spark.master": "yarn"})[key] == "false"
    assert settings_of(tmp_path, **{"headrace.spark.master": "local[2]"})[key] == "true"
    assert settings_of(tmp_path, **{"headrace.spark.master": "yarn", key: "true"})[key] == "true"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [("streams", "headrace.spark.stream_worker_daemon"), ("tables", "headrace.spark.worker_daemon")],
)
def test_workers_of_streams_begin_without_what_tables_need(
    tmp_path: Path, classes: str, expected: str
) -> None:
    settings = launch_settings(Configuration(), ApplicationLog(tmp_path), classes=classes)
    assert settings[DAEMON] == expected


class Threads:
    """A Spark with four threads, and the thread in which it starts workers."""

    master = "local[4,4]"

    def __init__(self) -> None:
        self.waited: list[float] = []

    def is_alive(self) -> bool:
        return True

    def join(self, timeout_s: float) -> None:
        self.waited.append(timeout_s)


@pytest.mark.parametrize(("starting", "tasks", "waits"), [(4, 1, True), (1, 4, True), (1, 3, False)])
def test_tasks_that_run_at_once_wait_for_those_that_start_workers_if_there_is_no_room_beside_them(
    monkeypatch: pytest.MonkeyPatch, starting: int, tasks: int, waits: bool
) -> None:
    spark = Threads()
    monkeypatch.setattr(session, "_worker_starts", [(spark, starting)])
    session.wait_for_room(spark, tasks, 30.0)  # type: ignore[arg-type]
    assert spark.waited == [30.0] * waits


def test_without_workers_that_start_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_worker_starts", [])
    session.wait_for_room(Threads(), 4, 30.0)  # type: ignore[arg-type]


def test_java_ends_if_its_start_is_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "spark-submit"
    script.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid\nexec sleep 600\n"
    )
    script.chmod(0o755)

    def interrupt(_: float) -> None:
        if (tmp_path / "pid").exists():
            raise KeyboardInterrupt

    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(session.SparkContext, "_gateway", None)
    monkeypatch.setattr(session.java_gateway, "time", SimpleNamespace(sleep=interrupt))
    with pytest.raises(KeyboardInterrupt):
        session._launch_gateway(SparkConf(loadDefaults=False), ApplicationLog(tmp_path))
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()

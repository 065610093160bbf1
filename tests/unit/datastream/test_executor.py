from __future__ import annotations

import pytest

from headrace.config import Configuration
from headrace.datastream import executor
from headrace.datastream.executor import default_parallelism, load_executor
from headrace.errors import ConfigurationError
from tests.unit.datastream.fakes import TARGET, RecordingExecutor


def test_an_executor_is_found_by_module_and_class() -> None:
    assert isinstance(load_executor(Configuration({"execution.target": TARGET})), RecordingExecutor)


@pytest.mark.parametrize("target", ["spark", "local", "remote", "yarn-application", "kubernetes-session"])
def test_flinks_targets_all_mean_spark(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(executor._EXECUTORS, "spark", TARGET)
    assert isinstance(load_executor(Configuration({"execution.target": target})), RecordingExecutor)


def test_the_default_is_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(executor._EXECUTORS, "spark", TARGET)
    assert isinstance(load_executor(Configuration()), RecordingExecutor)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("mars", "unknown executor 'mars'; known are spark"),
        ("no.such.module:X", "cannot load 'no.such.module:X'"),
        ("headrace.errors:Nothing", "cannot load 'headrace.errors:Nothing'"),
    ],
)
def test_an_unknown_executor_is_refused(target: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_executor(Configuration({"execution.target": target}))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 6),
        ({"headrace.spark.master": "local[*]"}, 6),
        ({"headrace.spark.master": "local"}, 1),
        ({"headrace.spark.master": "local[3]"}, 3),
        ({"headrace.spark.master": "local[2,4]"}, 2),
        ({"headrace.spark.master": "local[*,4]"}, 6),
        ({"headrace.spark.master": "local-cluster[2,3,1024]"}, 6),
        ({"headrace.spark.master": "spark://host:7077"}, 1),
        ({"headrace.spark.master": "spark://host:7077", "spark.cores.max": "12"}, 12),
        (
            {
                "headrace.spark.master": "yarn",
                "spark.executor.instances": "5",
                "spark.executor.cores": "4",
            },
            20,
        ),
    ],
)
def test_default_parallelism_is_what_the_master_has(settings: dict[str, str], expected: int) -> None:
    assert default_parallelism(Configuration(settings), local_cores=6) == expected

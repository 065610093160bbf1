"""Copies of state are removed from the executors of the Spark that ran the job, and of no other."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark import SparkContext

from headrace.runtime.task.settings import TaskSettings
from headrace.spark import clean_up


class Cluster:
    """A Spark with executors on other hosts."""

    master = "spark://host:7077"
    _jsc = object()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    contexts: list[object] = []
    monkeypatch.setattr(clean_up, "_remove_all", lambda context, settings, group: contexts.append(context))
    return contexts


def remove_copies(context: object) -> None:
    settings = TaskSettings(scratch_name="headrace-1")
    clean_up.remove_copies(cast("Any", context), settings, timeout_s=10)


def test_the_executors_of_the_job_are_asked(asked: list[object]) -> None:
    cluster = Cluster()
    remove_copies(cluster)
    assert asked == [cluster]


def test_a_spark_that_was_started_after_the_job_is_left_alone(
    asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", Cluster())
    remove_copies(None)
    assert asked == []

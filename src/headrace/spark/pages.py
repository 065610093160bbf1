"""Where Spark's own user interface shows the stages of a job, as far as it is on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from headrace.spark.runner import job_group


class SparkJobPages(NamedTuple):
    """Addresses of Spark's user interface."""

    url: str
    #: The page of each level's stage in the last epoch.
    stages: Sequence[str]


def spark_job_pages(job_id: str, lineage: str) -> SparkJobPages | None:
    """Ask Spark for the pages of a job; None where its user interface is off. Takes a conversation with Java."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return None
    try:
        url = context.uiWebUrl
        if not url:
            return None
        tracker = context.statusTracker()
        jobs = tracker.getJobIdsForGroup(job_group(job_id, lineage))
        newest = tracker.getJobInfo(max(jobs)) if jobs else None
    except (Py4JError, OSError):  # Spark is going down
        return None
    # A job's stages are numbered in the order of its levels.
    numbers = sorted(newest.stageIds) if newest is not None else []
    return SparkJobPages(url, [f"{url}/stages/stage/?id={number}&attempt=0" for number in numbers])

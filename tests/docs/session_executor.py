"""Runs the jobs of a documented session in the process of the command, without Spark."""

from __future__ import annotations

from headrace.config import Configuration
from headrace.graph.job_graph import JobGraph
from headrace.testing.inline_executor import checkpoints_written_at_once
from headrace.testing.mini_cluster import MiniExecutor, MiniJob


class SessionExecutor(MiniExecutor):
    """Completes every checkpoint before the next epoch: which one is the last does not depend on the machine."""

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> MiniJob:
        with checkpoints_written_at_once():
            return super().submit(job_graph, configuration)

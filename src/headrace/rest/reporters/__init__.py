"""Reporters send metrics and traces to other systems, by the clock.

Flink's keys and the names of its factories choose them: `metrics.reporter.<name>.factory.class`. They run in the
driver, which knows the metrics of all tasks, and see what REST shows. A reporter that fails is logged and tried again
at its next turn: a monitoring system that is down never disturbs a job.
"""

from headrace.rest.reporters.schedule import Reporters

__all__ = ["Reporters"]

"""Which scheduler a job has, from the two keys that Flink has for that."""

from __future__ import annotations

from headrace.config.configuration import Configuration
from headrace.config.options import scheduler as options


def scheduler_type(configuration: Configuration) -> options.SchedulerType:
    """Return the scheduler of jobs: reactive mode is a mode of the adaptive one and asks for it.

    Example:
        >>> scheduler_type(Configuration({"scheduler-mode": "reactive"}))
        <SchedulerType.Adaptive: 1>
    """
    if configuration.get(options.MODE) == "reactive":
        return options.SchedulerType.Adaptive
    return configuration.get(options.SCHEDULER)

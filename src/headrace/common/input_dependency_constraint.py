"""When a task with several inputs may start, under PyFlink's name."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """When a task may start. An epoch runs level by level, so headrace always waits for all inputs."""

    #: As soon as one input has data.
    ANY = 0
    #: When all inputs have data.
    ALL = 1

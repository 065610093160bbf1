"""What options say about live mode, before Spark and the job are known. Nothing here imports PySpark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from headrace.config.configuration import Configuration
from headrace.config.option import ConfigOption
from headrace.config.options import epochs
from headrace.config.options.exchange import KIND, ExchangeKind
from headrace.config.options.execution import RUNTIME_MODE, RuntimeExecutionMode
from headrace.config.options.spark import MASTER
from headrace.spark.masters import is_local

#: Who sets one of these thinks of epochs; none has an effect on a live job.
_OPTIONS_OF_EPOCHS: Final[tuple[ConfigOption[Any], ...]] = (
    epochs.MAX_RECORDS,
    epochs.TARGET_DURATION,
    epochs.INITIAL_RECORDS,
    epochs.MAX_BYTES,
    epochs.IDLE_POLL_INTERVAL,
    epochs.RETRIES,
)
#: What Spark refuses to run its pipelined shuffle with.
FORBIDDEN: Final = ("spark.speculation", "spark.dynamicAllocation.enabled")
#: Each subtask is a Python process. So many have been seen to work; more are only started for who asks for them.
_MOST_PER_CORE: Final = 16


def option_of_epochs(configuration: Configuration) -> str | None:
    """Return the key of an option that is set and concerns epochs alone."""
    return next((option.key for option in _OPTIONS_OF_EPOCHS if configuration.contains(option)), None)


def forbidden_setting(settings: Mapping[str, str]) -> str | None:
    """Return the key of a setting that Spark cannot run its pipelined shuffle with."""
    return next((key for key in FORBIDDEN if is_on(settings, key)), None)


def is_on(settings: Mapping[str, str], key: str) -> bool:
    """Whether a setting of Spark is true."""
    return settings.get(key, "").strip().lower() == "true"


def most_subtasks() -> int:
    """Return how many subtasks a job may have that runs live without being asked to."""
    return _MOST_PER_CORE * (os.cpu_count() or 1)


def will_run_live(configuration: Configuration, *, is_endless: bool) -> bool:
    """Whether a job of streams will run live, as far as options say. The program may set others.

    Args:
        configuration: The options.
        is_endless: Whether its input has no end.
    """
    kind = configuration.get(KIND)
    if kind is not ExchangeKind.AUTO:
        return kind is ExchangeKind.PIPELINED
    return (
        is_endless
        and is_local(configuration.get(MASTER))
        and configuration.get(RUNTIME_MODE) is not RuntimeExecutionMode.BATCH
        and option_of_epochs(configuration) is None
        and forbidden_setting(configuration.spark_settings()) is None
    )

"""Metrics: what is measured in addition to the standard ones, and how metrics are named."""

from __future__ import annotations

import re
from datetime import timedelta

from headrace.config.option import ConfigOption, option

LATENCY_INTERVAL = (
    option("metrics.latency.interval", timedelta)
    .default(timedelta(0))
    .describe(
        "How often sources send markers that measure latency on their way, at most once in an epoch. 0 turns them off."
    )
    .at_least(timedelta(0))
)
LATENCY_GRANULARITY = (
    option("metrics.latency.granularity", str)
    .default("operator")
    .describe(
        "What latencies are grouped by, in addition to the operator that measures them: nothing (`single`), the source "
        "(`operator`), or the subtask of the source (`subtask`)."
    )
    .one_of("single", "operator", "subtask")
)
LATENCY_HISTORY_SIZE = (
    option("metrics.latency.history-size", int)
    .default(128)
    .describe("How many latencies an operator keeps for each.")
    .at_least(1)
)
STATE_LATENCY_ENABLED = (
    option("state.latency-track.keyed-state-enabled", bool)
    .default(False)
    .describe("Whether the time of accesses to keyed state is measured.")
    .deprecates("state.backend.latency-track.keyed-state-enabled")
)
STATE_LATENCY_SAMPLE_INTERVAL = (
    option("state.latency-track.sample-interval", int)
    .default(100)
    .describe("Measure one in this many accesses of each kind.")
    .deprecates("state.backend.latency-track.sample-interval")
    .at_least(1)
)
STATE_LATENCY_HISTORY_SIZE = (
    option("state.latency-track.history-size", int)
    .default(128)
    .describe("How many access times are kept for each kind.")
    .deprecates("state.backend.latency-track.history-size")
    .at_least(1)
)
STATE_NAME_AS_VARIABLE = (
    option("state.latency-track.state-name-as-variable", bool)
    .default(True)
    .describe("Whether the name of a state is a variable of its metrics, a label in Prometheus.")
    .deprecates("state.backend.latency-track.state-name-as-variable")
)


# -- identifiers -------------------------------------------------------------------------------------------------

_JM = ("host",)
_JOB = ("job_id", "job_name")
_TM = (*_JM, "tm_id")
_TASK = (*_TM, *_JOB, "task_id", "task_name", "task_attempt_num", "subtask_index")
_VARIABLE = re.compile(r"<([^<>]*)>")


def _scope(key: str, default: str, whose: str, variables: tuple[str, ...]) -> ConfigOption[str]:
    def check(value: str) -> str | None:
        unknown = [name for name in _VARIABLE.findall(value) if name not in variables]
        if value and not unknown and "<" not in _VARIABLE.sub("", value):
            return None
        return f"text with variables out of {', '.join(f'<{name}>' for name in variables)}"

    return (
        option(f"metrics.scope.{key}", str)
        .default(default)
        .describe(
            f"How identifiers of the metrics {whose} begin. `*.` in front stands for the scope around it. "
            "Identifiers are in `/headrace/metrics`; REST's other answers and Prometheus have none, as in Flink."
        )
        .checked_by(check)
    )


SCOPE_DELIMITER = (
    option("metrics.scope.delimiter", str)
    .default(".")
    .describe("The separator between the parts of an identifier.")
    .checked_by(lambda value: None if len(value) == 1 else "one character")
)
SCOPE_JM = _scope("jm", "<host>.jobmanager", "of the driver", _JM)
SCOPE_JM_JOB = _scope("jm-job", "<host>.jobmanager.<job_name>", "of a job in the driver", (*_JM, *_JOB))
SCOPE_TM = _scope("tm", "<host>.taskmanager.<tm_id>", "of an executor", _TM)
SCOPE_TM_JOB = _scope(
    "tm-job", "<host>.taskmanager.<tm_id>.<job_name>", "of a job in an executor: latencies", (*_TM, *_JOB)
)
SCOPE_TASK = _scope(
    "task",
    "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>",
    "of a subtask",
    _TASK,
)
SCOPE_OPERATOR = _scope(
    "operator",
    "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>",
    "of an operator, and of functions",
    (*_TASK, "operator_id", "operator_name"),
)
SCOPE_JM_OPERATOR = (
    option("metrics.scope.jm-operator", str)
    .default("<host>.jobmanager.<job_name>.<operator_name>")
    .describe("How identifiers of the metrics of an operator in the driver begin.")
    .without_effect("operators have no metrics in the driver")
)

# -- reporters -----------------------------------------------------------------------------------------------

REPORTERS = (
    option("metrics.reporters", list[str])
    .no_default("all that have a `metrics.reporter.<name>.factory.class`")
    .describe("Names of the reporters that send metrics elsewhere: docs/metrics.md.")
)
REPORTER = (
    option("metrics.reporter", dict[str, str])
    .default({})
    .describe(
        "Options of reporters, each after its reporter's name: `metrics.reporter.<name>.factory.class`."
    )
)
TRACE_REPORTERS = (
    option("traces.reporters", list[str])
    .no_default("all that have a `traces.reporter.<name>.factory.class`")
    .describe(
        "Names of the reporters that send traces of checkpoints and failures elsewhere: docs/metrics.md."
    )
)
TRACE_REPORTER = (
    option("traces.reporter", dict[str, str])
    .default({})
    .describe("Options of trace reporters: `traces.reporter.<name>.factory.class`.")
)

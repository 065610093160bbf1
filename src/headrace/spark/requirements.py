"""What epochs rely on in a Spark context, whoever has made it, and what is refused or overridden if it is otherwise.

A context that headrace starts gets these settings. One that a program brings along was started with others, and most of
Spark's settings are read once, at its start: those are checked, and refused with what to set. What belongs to a session
is set again in the session of each table job. docs/design/0034-foreign-spark-contexts.md lists every assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from headrace.errors import ConfigurationError
from headrace.spark.masters import is_local

if TYPE_CHECKING:
    from pyspark import SparkConf

#: Settings without which an epoch would not mean what it says.
FIXED: Final[Mapping[str, str]] = {
    # A second attempt at a subtask would run beside the first one, on the same state and the same output.
    "spark.speculation": "false",
    # A stage that is computed again after it was partly consumed may give other records: the epoch runs again instead.
    "spark.stage.maxConsecutiveAttempts": "1",
    # Spark does not count attempts that fail because an executor was decommissioned, and would try the stage again.
    "spark.stage.ignoreDecommissionFetchFailure": "false",
    # Workers keep their tasks, with functions opened and state decoded, from epoch to epoch.
    "spark.python.worker.reuse": "true",
    # Without its cleaner Spark never deletes shuffle files, and every epoch has some.
    "spark.cleaner.referenceTracking": "true",
}
#: What Spark has where a setting is not given.
_SPARK_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.speculation": "false",
    "spark.stage.maxConsecutiveAttempts": "4",
    "spark.stage.ignoreDecommissionFetchFailure": "true",
    "spark.python.worker.reuse": "true",
    "spark.cleaner.referenceTracking": "true",
}
#: Of no effect where all tasks run in the driver's process: nothing is fetched from elsewhere, nothing is speculated.
_ON_CLUSTERS: Final = frozenset(
    {
        "spark.speculation",
        "spark.stage.maxConsecutiveAttempts",
        "spark.stage.ignoreDecommissionFetchFailure",
    }
)
#: What the SQL that the planner writes means depends on these: they are Spark's defaults.
SQL_MEANING: Final[Mapping[str, str]] = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # Rows of a file that cannot be read, or is gone, would be missing without a word.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def check_asked(settings: Mapping[str, str]) -> None:
    """Refuse settings that epochs cannot do with, of a configuration that Spark is to be started with.

    Raises:
        ConfigurationError: If there is one.
    """
    for key, value in {**FIXED, **SQL_MEANING}.items():
        asked = settings.get(key)
        if asked is not None and asked.strip().lower() != value.lower():
            raise ConfigurationError(
                f"{key} must be {value} for epochs to be correct; got {asked}",
                hint=f"remove {key} from the configuration",
            )


def check_foreign(conf: SparkConf, master: str) -> None:
    """Refuse a Spark context of the program's own whose settings would break epochs.

    Args:
        conf: What the context was started with.
        master: Its master.

    Raises:
        ConfigurationError: If there are any; it names all of them with what to set.
    """
    wrong = {
        key: value
        for key, value in FIXED.items()
        if not (is_local(master) and key in _ON_CLUSTERS)
        and conf.get(key, _SPARK_DEFAULTS[key]).strip().lower() != value
        and _matters(key, conf)
    }
    if wrong:
        found = ", ".join(f"{key} is {conf.get(key, _SPARK_DEFAULTS[key])}" for key in wrong)
        raise ConfigurationError(
            f"the program's own Spark context cannot run epochs: {found}",
            hint="start it with "
            + ", ".join(f".config({key!r}, {value!r})" for key, value in wrong.items())
            + "; or set headrace.spark.master to let headrace start Spark",
        )


def _matters(key: str, conf: SparkConf) -> bool:
    if key == "spark.stage.ignoreDecommissionFetchFailure":
        return conf.get("spark.decommission.enabled", "false").strip().lower() == "true"
    return True


def changed_meaning(conf: SparkConf) -> dict[str, str | None]:
    """Return what a table job's session must set because its context was started with something else; None: unset."""
    given = dict(conf.getAll())
    overrides: dict[str, str | None] = {key: value for key, value in SQL_MEANING.items() if key in given}
    unset = (key for key in given if key.startswith("spark.sql.legacy.") or key == _EXCLUDED_RULES)
    return overrides | dict.fromkeys(unset)


#: Rules of Spark's optimizer that are left out; observed times and carried rows go by some of them.
_EXCLUDED_RULES: Final = "spark.sql.optimizer.excludedRules"

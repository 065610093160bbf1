"""Jars that programs bring along: those of Flink's connectors and formats are not needed, others cannot be loaded."""

from __future__ import annotations

import logging
import re
from pathlib import PurePosixPath
from typing import Final

from headrace.errors import UnsupportedFeatureError

_log = logging.getLogger(__name__)

#: Connectors and formats of Flink that headrace has in Python, as their jars are called.
_OURS: Final = re.compile(
    r"flink-(sql-)?(connector-(kafka|jdbc(-\w+)?|files|datagen|postgres-cdc)|avro(-confluent-registry)?|json|csv|parquet|orc)"
    r"[-.\d]*(\w+)?\.jar"
)


def pass_over_jars(*paths: str) -> None:
    """Accept jars whose work headrace does itself, with a word about it.

    Raises:
        UnsupportedFeatureError: If one is something else.
    """
    for path in (one for given in paths for one in given.split(";")):
        name = PurePosixPath(path).name
        if _OURS.fullmatch(name) is None:
            raise no_java(f"add_jars({path!r})")
        _log.warning("add_jars: %s is not loaded; headrace has this connector or format itself", name)


def no_java(call: str) -> UnsupportedFeatureError:
    """Return the refusal of what only Java code could do."""
    return UnsupportedFeatureError(
        f"{call}: headrace runs Python functions and loads no Java code of a program",
        feature=call.partition("(")[0] + "()",
        hint="use a Python connector; Spark's own packages are set with spark.jars.packages",
    )

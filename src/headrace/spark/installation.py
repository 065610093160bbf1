"""Where Spark is installed, found without importing PySpark."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def spark_home() -> Path:
    """Return the directory of the installed package, which has Spark's scripts and jars."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed")
    return Path(spec.origin).parent

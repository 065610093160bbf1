"""Headrace: Apache Flink's system in Python, with its data pipeline on Spark.

Programs are written against `headrace.datastream` and `headrace.table`, which carry PyFlink's names, and are
started with `headrace run job.py`.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0.dev0"

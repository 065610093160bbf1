"""What Spark SQL says, in batch, to a query over the rows that are left of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.differential.tables import CLOCKED, TIMED, Rows
from tests.operators.table_harness import as_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = {
    "id": "BIGINT",
    "k": "STRING",
    "v": None,
    "ts": "TIMESTAMP_NTZ",
    "passed": "TIMESTAMP_NTZ",
    "pt": "TIMESTAMP_NTZ",
}


def oracle_session() -> SparkSession:
    """Return a session on the tests' Spark that is quick with small tables."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate().newSession()
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.ansi.enabled": "false",
        # Compiling a query takes longer than running it over a few rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def expected_rows(session: SparkSession, statement: str) -> Counter[tuple[Any, ...]]:
    """Return the result of a statement; times are microseconds."""
    return Counter(tuple(as_numbers(row)) for row in session.sql(statement).collect())


def statement_over(tables: Mapping[str, Rows], query: str, views: Mapping[str, str] | None = None) -> str:
    """Write a query with the tables and views in it, as one statement that anybody can try."""
    parts = [f"{name} AS ({_table(name, rows)})" for name, rows in tables.items()]
    parts += [f"{name} AS ({view})" for name, view in (views or {}).items()]
    return f"WITH {', '.join(parts)} SELECT * FROM ({query})"


def _table(name: str, rows: Rows) -> str:
    columns = ["id", "k", "v", *(["ts", "passed"] if name in TIMED else ["pt"] if name == CLOCKED else [])]
    types = {each: kind or rows.number.name for each, kind in _TYPES.items()}
    nothing = ", ".join(f"CAST(NULL AS {types[each]}) AS {each}" for each in columns)
    if not rows.left:
        return f"SELECT {nothing} WHERE false"
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows.left)
    casts = ", ".join(f"CAST({each} AS {types[each]}) AS {each}" for each in columns)
    return f"SELECT {casts} FROM VALUES {values} AS x({', '.join(columns)})"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
    return f"'{value}'" if isinstance(value, str) else str(value)

"""Headrace's answers to the expressions of ``flink_sweep.json``, and how they differ from Flink's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import SqlError
from headrace.planner.emit import SPARK_SETTINGS, emit
from headrace.planner.expressions import Call
from headrace.planner.logical import Project, Schema
from headrace.planner.statements import QueryStatement
from headrace.types import DataTypes
from tests.planner.environment import Session
from tests.planner.sweep_cases import COLUMNS
from tests.planner.sweep_edge import edge_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DIFFERENT", "FLINK", "REFUSED", "Answers", "Evaluation"]

_HERE = Path(__file__).parent
#: For each expression its type and its value as a string; null for NULL.
FLINK: dict[str, list[Any]] = json.loads((_HERE / "flink_sweep.json").read_text(encoding="utf-8"))
#: The reason for each expression that is answered otherwise.
DIFFERENT: dict[str, str] = {
    text: reason
    for reason, texts in json.loads((_HERE / "sweep_differences.json").read_text(encoding="utf-8")).items()
    for text in texts
}
#: An expression that the planner does not take.
REFUSED = ["refused"]


@dataclass(frozen=True)
class Bound:
    """An expression that was taken."""

    type: str
    sql: str


class Answers:
    """What binding makes of expressions."""

    def __init__(self) -> None:
        columns = ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS.items())
        self._session = Session(f"CREATE TABLE edge ({columns}) WITH ('connector' = 'datagen')")

    def schema(self) -> Schema:
        """The columns of the table."""
        (query,) = self._session.run("SELECT * FROM edge")
        assert isinstance(query, QueryStatement)
        return query.plan.schema

    def bound(self, text: str) -> Bound | None:
        """The expression's type, and its text as Spark SQL; None if it is refused."""
        try:
            (query,) = self._session.run(f"SELECT {text} AS x FROM edge", batch=True)
        except SqlError:
            return None
        assert isinstance(query, QueryStatement)
        assert isinstance(query.plan, Project)
        expression = query.plan.expressions[0]
        shown = Call("CAST", (expression,), DataTypes.STRING())
        return Bound(expression.type.summary(), emit(shown, [f"`{name}`" for name in COLUMNS]))


class Evaluation:
    """Expressions as columns of queries of Spark."""

    def __init__(self, session: SparkSession, schema: Schema) -> None:
        self._session = session
        settings = {
            **SPARK_SETTINGS,
            "spark.sql.session.timeZone": "UTC",
            # One row: to compile it would take longer than to work it out.
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.codegen.wholeStage": "false",
        }
        for key, value in settings.items():
            session.conf.set(key, value)
        self._edge = edge_row(schema)

    def values(self, bound: Mapping[str, Bound]) -> dict[str, Any]:
        """The value of each, or the error as an exception; several together, as long as none fails."""
        from pyspark.errors import PySparkException

        texts = list(bound)
        try:
            return dict(zip(texts, self._row(bound[text].sql for text in texts), strict=True))
        except PySparkException as problem:
            if len(texts) == 1:
                return {texts[0]: problem}
        step = max(1, len(texts) // 8)
        found: dict[str, Any] = {}
        for place in range(0, len(texts), step):
            found |= self.values({text: bound[text] for text in texts[place : place + step]})
        return found

    def _row(self, columns: Iterable[str]) -> Sequence[Any]:
        listed = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
        row = self._session.sql(f"SELECT {listed} FROM ({self._edge})").first()
        assert row is not None
        return list(row)

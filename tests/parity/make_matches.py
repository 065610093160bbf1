"""Writes ``flink_matches.json``: the rows that Flink finds with MATCH_RECOGNIZE, or what it says to refuse it.

In BATCH mode some queries are run, and what differs from streaming mode is written.

    python tests/parity/make_matches.py        with PyFlink's own environment

All rows of a table come at once, and the watermark moves with each of them: Flink forwards one at once if it is further
than its interval after the next, and times are seconds apart.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from match_queries import BATCH, REFUSED, TABLES, all_queries, columns

TARGET = Path(__file__).parent / "flink_matches.json"
_TIME = "CAST(TO_TIMESTAMP_LTZ(sec * 1000, 3) AS TIMESTAMP(3))"


def environment(*, is_batch: bool) -> Any:
    """Return an environment with all tables."""
    from pyflink.common import Configuration, Row, Types
    from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
    from pyflink.table import AggregateFunction, DataTypes, Schema, StreamTableEnvironment
    from pyflink.table.udf import udaf, udf

    class Spread(AggregateFunction):
        def create_accumulator(self):
            return []

        def accumulate(self, held, value):
            held.append(value)

        def get_value(self, held):
            return max(held) - min(held)

    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(1)
    if is_batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set("table.local-time-zone", "UTC")
    t_env.create_temporary_system_function("twice", udf(lambda v: v and v * 2, result_type="BIGINT"))
    t_env.create_temporary_system_function(
        "spread", udaf(Spread(), result_type="BIGINT", accumulator_type="ARRAY<BIGINT>")
    )
    types = [Types.LONG(), Types.STRING(), Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.LONG()]
    row_type = Types.ROW_NAMED([name for name, _ in columns()], types)
    for name, rows in {**TABLES, "clocked": TABLES["plain"]}.items():
        stream = env.from_collection([Row(*row) for row in rows], row_type)
        schema = Schema.new_builder().column("id", DataTypes.BIGINT().not_null())
        for column, kind in columns()[1:]:
            schema.column(column, kind)
        if name == "clocked":
            schema.column_by_expression("pt", "PROCTIME()")
        else:
            schema.column_by_expression("ts", _TIME)
            schema.watermark("ts", "ts - INTERVAL '2' SECOND")
        t_env.create_temporary_view(name, t_env.from_data_stream(stream, schema.build()))
    return t_env


def reason(error: BaseException) -> str:
    """Return the innermost message of Java's."""
    text = str(error)
    causes = re.findall(r"^(?:Caused by)?: ([^\n]+)", text, re.MULTILINE) or [text.strip().splitlines()[0]]
    return str(causes[-1])


def answer(t_env: Any, query: str) -> dict[str, Any]:
    """Return the types and rows of a query, or why there are none."""
    try:
        table = t_env.sql_query(query)
        schema = table.get_resolved_schema()
        types = [str(each) for each in schema.get_column_data_types()]
        with t_env.execute_sql(query).collect() as found:
            rows = [[None if each is None else str(each) for each in row] for row in found]
        return {"columns": list(schema.get_column_names()), "types": types, "rows": rows}
    except Exception as error:  # whatever it is, it is the answer
        return {"error": reason(error)}


def main() -> None:
    """Write the file; with arguments, the answers to queries whose names contain one of them."""
    t_env = environment(is_batch=False)
    queries = {**all_queries(), **{f"refused: {name}": query for name, query in REFUSED.items()}}
    made: dict[str, dict[str, Any]] = {"streaming": {}, "batch": {}}
    if sys.argv[1:]:
        made = json.loads(TARGET.read_text(encoding="utf-8"))
    batch_env = environment(is_batch=True)
    wanted = sys.argv[1:] or [""]
    for name, query in queries.items():
        if any(each in name for each in wanted):
            made["streaming"][name] = answer(t_env, query)
        if any(each in name for each in wanted) and name in BATCH:
            made["batch"][name] = answer(batch_env, query)
            if made["batch"][name] == made["streaming"][name]:
                del made["batch"][name]
    made = {mode: {name: each[name] for name in queries if name in each} for mode, each in made.items()}
    lines = [f"  {json.dumps(name)}: {{\n{_entries(each)}\n  }}" for name, each in made.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _entries(answers: dict[str, Any]) -> str:
    return ",\n".join(f"    {json.dumps(name)}: {json.dumps(each)}" for name, each in answers.items())


if __name__ == "__main__":
    main()

"""Writes ``flink_production.json``: what Flink's tables come to for queries of production, each a job over files.

python tests/parity/make_production.py        with PyFlink's own environment
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

from production_queries import QUERIES, statements, write_tables

TARGET = Path(__file__).parent / "flink_production.json"


def main() -> None:
    """Run all queries one after the other."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    t_env.get_config().set("table.local-time-zone", "America/New_York")
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        write_tables(Path(directory))
        for statement in statements(Path(directory), is_flink=True):
            t_env.execute_sql(statement)
        for name, query in QUERIES.items():
            table: Counter[str] = Counter()
            with t_env.execute_sql(query).collect() as rows:
                for row in rows:
                    table[repr(list(row))] += 1 if str(row.get_row_kind()) in ("+I", "+U") else -1
            results[name] = sorted([row, count] for row, count in table.items() if count)
    parts = (
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
        for name, rows in results.items()
    )
    TARGET.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

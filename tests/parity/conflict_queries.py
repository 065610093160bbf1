"""INSERTs into sinks with a primary key, compared with Flink. Flink's own Python reads this module, too.

The tables are those of `timed_queries`. Sinks write by primary key: they take no UPDATE_BEFORE.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Insert:
    """A query, and the sink that it goes to."""

    query: str
    #: The columns of the sink, of which the first is the primary key.
    columns: str
    clause: str = ""

    def statement(self, sink: str) -> str:
        """The statement that writes to a sink with this name."""
        return f"INSERT INTO {sink} {self.query} {self.clause}".strip()


_BY_NAME = "k STRING, id BIGINT, v BIGINT"
_BY_ID = "id BIGINT, k STRING, v BIGINT"
_NAMED = "SELECT COALESCE(k, '-') AS k, id, v FROM {}"
_COUNTED = (
    "SELECT COALESCE(k, '-') AS name, n, s FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {} GROUP BY k)"
)
_BY_COUNT = (
    "SELECT n, COALESCE(k, '-') AS k, s FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {} GROUP BY k)"
)

#: What runs, by name.
INSERTS = {
    "first row of a name": Insert(_NAMED.format("e"), _BY_NAME, "ON CONFLICT DO NOTHING"),
    "last row of a name": Insert(_NAMED.format("e"), _BY_NAME, "ON CONFLICT DO DEDUPLICATE"),
    "rows of a name": Insert(_NAMED.format("e"), _BY_NAME),
    "first row of a name with updates": Insert(_NAMED.format("w"), _BY_NAME, "ON CONFLICT DO NOTHING"),
    "last row of a name with updates": Insert(_NAMED.format("w"), _BY_NAME, "ON CONFLICT DO DEDUPLICATE"),
    "last row of a name in a changelog": Insert(_NAMED.format("t"), _BY_NAME, "ON CONFLICT DO DEDUPLICATE"),
    "rows of a name in a changelog": Insert(_NAMED.format("t"), _BY_NAME),
    "different rows": Insert("SELECT id, k, v FROM e", _BY_ID, "ON CONFLICT DO ERROR"),
    "versions by their own key": Insert("SELECT id, k, v FROM w", _BY_ID, "ON CONFLICT DO ERROR"),
    "groups by a computed name": Insert(
        _COUNTED.format("e"), "name STRING, n BIGINT, s BIGINT", "ON CONFLICT DO DEDUPLICATE"
    ),
    "first group of a count": Insert(
        _BY_COUNT.format("e"), "n BIGINT, k STRING, s BIGINT", "ON CONFLICT DO NOTHING"
    ),
    "last group of a count": Insert(
        _BY_COUNT.format("t"), "n BIGINT, k STRING, s BIGINT", "ON CONFLICT DO DEDUPLICATE"
    ),
}
#: What is planned only: each with the options of its sink and settings.
PLANNED: dict[str, tuple[Insert, str, dict[str, str]]] = {
    f"{clause} into {sink}": (Insert(_NAMED.format(table), _BY_NAME, f"ON CONFLICT DO {clause}"), sink, {})
    for clause in ("NOTHING", "ERROR", "DEDUPLICATE")
    for table, sink in (("e", "print"), ("t", "upsert-print"), ("e", "blackhole"))
} | {
    "no clause where one is required": (
        Insert(_NAMED.format("t"), _BY_NAME),
        "upsert-print",
        {"table.exec.sink.require-on-conflict": "true"},
    ),
    "no clause for rows without a key where one is required": (
        Insert(_NAMED.format("e"), _BY_NAME),
        "upsert-print",
        {"table.exec.sink.require-on-conflict": "true"},
    ),
    "no clause for the own key where one is required": (
        Insert("SELECT id, k, v FROM w", _BY_ID),
        "upsert-print",
        {"table.exec.sink.require-on-conflict": "true"},
    ),
    "no clause for all groups where one is required": (
        Insert(
            "SELECT k, COUNT(*), SUM(v) FROM t WHERE k IS NOT NULL GROUP BY k", "k STRING, n BIGINT, s BIGINT"
        ),
        "upsert-print",
        {"table.exec.sink.require-on-conflict": "true"},
    ),
}


def table(insert: Insert, sink: str, connector: str, extra: str = "") -> str:
    """The statement that makes the sink of an INSERT."""
    key, _, _ = insert.columns.partition(" ")
    return (
        f"CREATE TEMPORARY TABLE {sink} ({insert.columns}, PRIMARY KEY ({key}) NOT ENFORCED) "
        f"WITH ('connector' = '{connector}'{extra})"
    )

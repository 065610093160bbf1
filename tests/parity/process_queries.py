"""Queries that call process table functions, whose rows are compared with Flink's, row by row.

Flink's own Python reads this module, too. The tables are those of `timed_queries`; the functions are in
`java/ProcessFunctions.java`, and again in `process_functions`. Statements of REFUSED are not valid: Flink's reasons are
recorded.
"""

from __future__ import annotations

#: The functions, as both sides name them.
FUNCTIONS = (
    "Greeting",
    "PassedRows",
    "PassedSets",
    "Counting",
    "Viewing",
    "Timers",
    "Pairing",
    "Kinds",
    "AllKinds",
    "RowKinds",
    "Totals",
    "Ordered",
)

VIEWS: dict[str, str] = {
    "sums": "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM t GROUP BY k",
    "coded": "SELECT id, CASE v WHEN 1 THEN 'UPDATE_BEFORE' WHEN 2 THEN 'UPDATE_AFTER' WHEN 3 THEN 'DELETE' "
    "ELSE 'INSERT' END AS op, k FROM e",
    "lettered": "SELECT id, COALESCE(k, 'x') AS code, v FROM e",
    "summed": "SELECT k AS op, SUM(v) AS s FROM t GROUP BY k",
    "shifted": "SELECT k, v, ts + INTERVAL '1' SECOND AS ts FROM e",
    "back": "SELECT * FROM TO_CHANGELOG(input => TABLE t)",
    "pinged": "SELECT * FROM Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts), uid => 'first')",
}

QUERIES: dict[str, str] = {
    "to changelog": "SELECT * FROM TO_CHANGELOG(input => TABLE t)",
    "to changelog by place": "SELECT * FROM TO_CHANGELOG(TABLE e)",
    "to changelog of sums": "SELECT * FROM TO_CHANGELOG(input => TABLE sums)",
    "to changelog with a flag": (
        "SELECT deleted, k, n FROM TO_CHANGELOG(input => TABLE sums, op => DESCRIPTOR(deleted), "
        "op_mapping => MAP['INSERT, UPDATE_AFTER', 'false', 'DELETE', 'true'])"
    ),
    "to changelog without an op": "SELECT * FROM TO_CHANGELOG(input => TABLE t, op_mapping => MAP['DELETE', 'gone'])",
    "from changelog": "SELECT * FROM FROM_CHANGELOG(input => TABLE coded)",
    "from changelog with codes": (
        "SELECT * FROM FROM_CHANGELOG(input => TABLE lettered, "
        "op => DESCRIPTOR(code), op_mapping => MAP['a, b', 'INSERT', 'x, z', 'DELETE'])"
    ),
    "there and back": "SELECT * FROM FROM_CHANGELOG(input => TABLE back)",
    "sums of there and back": (
        "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM FROM_CHANGELOG(input => TABLE back) GROUP BY k"
    ),
    "greetings": "SELECT * FROM Greeting(input => TABLE e, least => 2)",
    "greetings by place": "SELECT * FROM Greeting(TABLE e, 1)",
    "greetings in time": "SELECT * FROM Greeting(input => TABLE e, least => 0, on_time => DESCRIPTOR(ts))",
    "passed rows": "SELECT * FROM PassedRows(input => TABLE e)",
    "passed sets": "SELECT * FROM PassedSets(input => TABLE e PARTITION BY (v, k))",
    "counts": "SELECT * FROM Counting(input => TABLE e PARTITION BY k)",
    "counts of two keys": "SELECT * FROM Counting(input => TABLE e PARTITION BY (v, k), uid => 'two')",
    "counts without a key": "SELECT * FROM Counting(input => TABLE e, uid => 'none')",
    "counts in time": (
        "SELECT * FROM Counting(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts), uid => 'timed')"
    ),
    "counts in windows": (
        "SELECT window_end, k, COUNT(*) AS n FROM TUMBLE(TABLE pinged, DESCRIPTOR(rowtime), INTERVAL '5' SECOND) "
        "GROUP BY window_start, window_end, k"
    ),
    "views": "SELECT * FROM Viewing(input => TABLE e PARTITION BY k)",
    "timers": (
        "SELECT * FROM Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts), uid => 'second')"
    ),
    "pairs": "SELECT * FROM Pairing(visit => TABLE e PARTITION BY k, purchase => TABLE f PARTITION BY k)",
    "pairs by place": "SELECT * FROM Pairing(TABLE e PARTITION BY k, TABLE f PARTITION BY k, DEFAULT, 'placed')",
    "pairs in time": (
        "SELECT * FROM Pairing(visit => TABLE e PARTITION BY (k, v), purchase => TABLE f PARTITION BY (k, v), "
        "on_time => DESCRIPTOR(ts), uid => 'timed-pairs')"
    ),
    "kinds of sums": "SELECT * FROM Kinds(input => TABLE sums PARTITION BY k)",
    "kinds of sums by another key": "SELECT * FROM Kinds(input => TABLE sums PARTITION BY n, uid => 'other')",
    "all kinds of sums": "SELECT * FROM AllKinds(input => TABLE sums PARTITION BY k)",
    "kinds of rows": "SELECT * FROM RowKinds(input => TABLE t)",
    "totals": "SELECT * FROM Totals(input => TABLE e PARTITION BY k)",
    "sum of totals": "SELECT SUM(total) AS s FROM Totals(input => TABLE e PARTITION BY k, uid => 'summed')",
    "ordered": "SELECT * FROM Ordered(input => TABLE e PARTITION BY k ORDER BY (ts ASC, v DESC))",
    "ordered by time": "SELECT * FROM Ordered(input => TABLE e PARTITION BY k ORDER BY ts, uid => 'by-time')",
}

REFUSED: dict[str, str] = {
    "op of two columns": "SELECT * FROM TO_CHANGELOG(input => TABLE t, op => DESCRIPTOR(a, b))",
    "unknown operation": "SELECT * FROM TO_CHANGELOG(input => TABLE t, op_mapping => MAP['UPSERT', 'u'])",
    "operation in small letters": "SELECT * FROM TO_CHANGELOG(input => TABLE t, op_mapping => MAP['insert', 'u'])",
    "operation twice": (
        "SELECT * FROM TO_CHANGELOG(input => TABLE t, "
        "op_mapping => MAP['INSERT, DELETE', 'u', 'DELETE', 'd'])"
    ),
    "mapping of a column": "SELECT * FROM TO_CHANGELOG(input => TABLE t, op_mapping => MAP['INSERT', UPPER('u')])",
    "partitioned changelog": "SELECT * FROM TO_CHANGELOG(input => TABLE t PARTITION BY k)",
    "partitioned codes": "SELECT * FROM FROM_CHANGELOG(input => TABLE coded PARTITION BY k)",
    "unknown argument": "SELECT * FROM TO_CHANGELOG(input => TABLE t, produces_full_deletes => TRUE)",
    "no table": "SELECT * FROM TO_CHANGELOG(op => DESCRIPTOR(a))",
    "updates as codes": "SELECT * FROM FROM_CHANGELOG(input => TABLE summed)",
    "no op column": "SELECT * FROM FROM_CHANGELOG(input => TABLE e)",
    "op column of numbers": "SELECT * FROM FROM_CHANGELOG(input => TABLE e, op => DESCRIPTOR(v))",
    "codes of an unknown operation": (
        "SELECT * FROM FROM_CHANGELOG(input => TABLE coded, op_mapping => MAP['u', 'UPSERT'])"
    ),
    "codes of an operation twice": (
        "SELECT * FROM FROM_CHANGELOG(input => TABLE coded, op_mapping => MAP['u', 'INSERT', 'c', 'INSERT'])"
    ),
    "upserts as codes": (
        "SELECT * FROM FROM_CHANGELOG(input => TABLE coded, op_mapping => MAP['c', 'INSERT', 'u', 'UPDATE_AFTER'])"
    ),
    "changelog in time": "SELECT * FROM TO_CHANGELOG(input => TABLE t, on_time => DESCRIPTOR(k))",
    "no partition": "SELECT * FROM Viewing(input => TABLE e)",
    "partition of rows": "SELECT * FROM Greeting(input => TABLE e PARTITION BY k, least => 1)",
    "updates": "SELECT * FROM Counting(input => TABLE sums PARTITION BY k)",
    "updates of rows": "SELECT * FROM Greeting(input => TABLE t, least => 1)",
    "no on_time": "SELECT * FROM Timers(input => TABLE e PARTITION BY k)",
    "on_time of no time": "SELECT * FROM Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(v))",
    "on_time of an unknown column": (
        "SELECT * FROM Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(nope))"
    ),
    "on_time without a watermark": (
        "SELECT * FROM Counting(input => TABLE shifted PARTITION BY k, on_time => DESCRIPTOR(ts))"
    ),
    "on_time with updates": (
        "SELECT * FROM Totals(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts))"
    ),
    "keys of other types": "SELECT * FROM Pairing(visit => TABLE e PARTITION BY k, purchase => TABLE f PARTITION BY v)",
    "keys of another number": (
        "SELECT * FROM Pairing(visit => TABLE e PARTITION BY k, purchase => TABLE f PARTITION BY (k, v))"
    ),
    "missing argument": "SELECT * FROM Greeting(input => TABLE e)",
    "argument of another type": "SELECT * FROM Greeting(input => TABLE e, least => 'x')",
    "wrong uid": "SELECT * FROM Counting(input => TABLE e PARTITION BY k, uid => 'a b')",
    "two calls without uid": (
        "SELECT * FROM Counting(input => TABLE e PARTITION BY k) UNION ALL "
        "SELECT * FROM Counting(input => TABLE f PARTITION BY k)"
    ),
    "order by no time": "SELECT * FROM Ordered(input => TABLE e PARTITION BY k ORDER BY v)",
    "order by falling time": "SELECT * FROM Ordered(input => TABLE e PARTITION BY k ORDER BY ts DESC)",
    "order of rows": "SELECT * FROM Greeting(input => TABLE e ORDER BY ts, least => 1)",
    "unknown partition column": "SELECT * FROM Counting(input => TABLE e PARTITION BY nope)",
    "table for a number": "SELECT * FROM Greeting(input => TABLE e, least => TABLE f)",
    "number for a table": "SELECT * FROM Greeting(input => 1, least => 1)",
    "call as a value": "SELECT Greeting(v) FROM e",
}

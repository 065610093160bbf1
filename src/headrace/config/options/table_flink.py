"""Tables and SQL, keys of Flink with one value here: another one is refused with the reason, never ignored."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option
from headrace.config.options.table import only

_CLIENT = "it is for Flink's SQL client; headrace's messages have no stack traces"
_EMIT = "a window emits once, when it is over"
_PUSH = "Spark pushes conditions and columns into files by itself"
_NO_OPERATORS = "Spark chooses the operators of batch queries"

MULTI_JOIN = (
    option("table.optimizer.multi-join.enabled", bool)
    .default(False)
    .describe("Whether several joins are one operator.")
    .checked_by(only(False, "every join is an operator of its own, with the state of its two inputs"))
)
DELTA_JOIN = (
    option("table.optimizer.delta-join.strategy", str)
    .default("AUTO")
    .describe("Whether joins look rows up in their sources instead of keeping them.")
    .checked_by(only(("AUTO", "NONE"), "joins keep their rows in state"))
)
JOIN_REORDER = (
    option("table.optimizer.join-reorder-enabled", bool)
    .default(False)
    .describe("Whether joins are put into another order.")
    .checked_by(
        only(False, "joins of streams run in the order they are written, and Spark orders those of batches")
    )
)
REUSE_SINK = (
    option("table.optimizer.reuse-sink-enabled", bool)
    .default(True)
    .describe("Whether several INSERT INTO the same table share a sink.")
    .without_effect("every INSERT has writers of its own, which write the same rows")
)
PREDICATE_PUSHDOWN = (
    option("table.optimizer.source.predicate-pushdown-enabled", bool)
    .default(True)
    .describe("Whether sources skip rows that no query needs.")
    .checked_by(only(True, _PUSH))
)
AGGREGATE_PUSHDOWN = (
    option("table.optimizer.source.aggregate-pushdown-enabled", bool)
    .default(True)
    .describe("Whether sources aggregate.")
    .without_effect("sources return rows, and Spark aggregates them")
)
ROWTIME_INSERTER = (
    option("table.exec.sink.rowtime-inserter", str)
    .default("ENABLED")
    .describe("Whether rows that go to a sink have their event time as the time of the record.")
    .without_effect("table sinks receive rows, whose time is in a column")
)
REQUIRE_ON_CONFLICT = (
    option("table.exec.sink.require-on-conflict", bool)
    .default(False)
    .describe(
        "Whether INSERT must say ON CONFLICT where the query's key is not the primary key. Flink's default is true."
    )
)
CDC_DUPLICATES = (
    option("table.exec.source.cdc-events-duplicate", bool)
    .default(False)
    .describe("Whether changes of a source may come twice.")
    .checked_by(only(False, "changes are taken as they come, and sources of headrace give each once"))
)
DEDUPLICATE_SENSITIVE = (
    option("table.exec.deduplicate.insert-update-after-sensitive-enabled", bool)
    .default(True)
    .describe("Whether a deduplication emits the first row of a key as +I, not as +U.")
    .checked_by(only(True, "the first row of a key is always +I"))
)
DEDUPLICATE_COMPACT = (
    option("table.exec.deduplicate.mini-batch.compact-changes-enabled", bool)
    .default(False)
    .describe("Whether a deduplication leaves out changes that the same mini-batch undoes.")
    .without_effect("every epoch is processed as a whole, and only the last row of each key is emitted")
)
INTERVAL_JOIN_CLEANUP = (
    option("table.exec.interval-join.min-cleanup-interval", timedelta)
    .default(timedelta(0))
    .describe("How often an interval join drops rows it no longer needs.")
    .without_effect("every epoch drops the rows that an interval join no longer needs")
)
EARLY_FIRE = (
    option("table.exec.emit.early-fire.enabled", bool)
    .default(False)
    .describe("Whether a window of GROUP BY emits before it is over.")
    .checked_by(only(False, _EMIT))
)
EARLY_FIRE_DELAY = (
    option("table.exec.emit.early-fire.delay", timedelta)
    .no_default()
    .describe("How often it does.")
    .checked_by(only(None, _EMIT))
)
LATE_FIRE = (
    option("table.exec.emit.late-fire.enabled", bool)
    .default(False)
    .describe("Whether a window of GROUP BY emits again for late rows.")
    .checked_by(only(False, _EMIT))
)
LATE_FIRE_DELAY = (
    option("table.exec.emit.late-fire.delay", timedelta)
    .no_default()
    .describe("How often it does.")
    .checked_by(only(None, _EMIT))
)
ALLOW_LATENESS = (
    option("table.exec.emit.allow-lateness", timedelta)
    .no_default()
    .describe("How long a window of GROUP BY takes late rows.")
    .checked_by(only(None, f"{_EMIT}: let the watermark wait longer"))
)
COLUMN_EXPANSION = (
    option("table.column-expansion-strategy", list[str])
    .default([])
    .describe("Which columns `*` leaves out.")
    .checked_by(only([], "`*` stands for all columns"))
)
DISABLED_OPERATORS = (
    option("table.exec.disabled-operators", list[str])
    .default([])
    .describe("Operators that batch queries must not use.")
    .checked_by(only([], _NO_OPERATORS))
)
SORT_LIMIT = (
    option("table.exec.sort.default-limit", int)
    .default(-1)
    .describe("The LIMIT of an ORDER BY without one, in batch queries.")
    .checked_by(only(-1, "an ORDER BY without LIMIT returns all rows"))
)
CTAS_ATOMICITY = (
    option("table.rtas-ctas.atomicity-enabled", bool)
    .default(False)
    .describe("Whether a table created by CREATE TABLE AS becomes visible only when its rows are written.")
    .checked_by(only(False, "the table exists as soon as the statement starts"))
)
UID_GENERATION = (
    option("table.exec.uid.generation", str)
    .default("PLAN_ONLY")
    .describe("Which operators have ids that do not change.")
    .without_effect("all operators have ids by their place in the plan")
)
SIMPLIFY_NAMES = (
    option("table.exec.simplify-operator-name-enabled", bool)
    .default(True)
    .describe("Whether operators have short names, with details in their description.")
    .checked_by(only(True, "names of operators are short, and REST shows their descriptions"))
)
COMPILE_OBJECTS = (
    option("table.plan.compile.catalog-objects", str)
    .default("ALL")
    .describe(
        "What a compiled plan keeps of tables: `ALL` how they were created, `IDENTIFIER` only their names."
    )
    .checked_by(only(("ALL", "IDENTIFIER"), "a plan keeps tables as a whole, or by name"))
)
RESTORE_OBJECTS = (
    option("table.plan.restore.catalog-objects", str)
    .default("ALL")
    .describe(
        "Where a compiled plan takes tables from: `ALL` from the catalog, or from the plan if the catalog does not "
        "have them; `ALL_ENFORCED` from the plan; `IDENTIFIER` from the catalog."
    )
    .checked_by(only(("ALL", "ALL_ENFORCED", "IDENTIFIER"), "there are no other ways"))
)
FORCE_RECOMPILE = (
    option("table.plan.force-recompile", bool)
    .default(False)
    .describe("Whether COMPILE PLAN overwrites a plan that is there.")
)
CLIENT_VERBOSE = (
    option("sql-client.verbose", bool)
    .default(False)
    .describe("Whether Flink's SQL client shows stack traces.")
    .checked_by(only(False, _CLIENT))
)

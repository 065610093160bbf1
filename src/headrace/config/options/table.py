"""Tables and SQL: how queries are planned and run. Flink's keys; unsupported values are rejected with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from headrace.config.option import option

__all__ = ["AggregationPhases", "NotNullEnforcer", "Only", "UpsertMaterialize", "only"]

_NO_INCREMENTS = (
    "the second step of a split aggregation gets each bucket once per epoch, summed up before it is sent"
)


@dataclass(frozen=True)
class Only:
    """A check that allows some values of an option and says why there are no others."""

    allowed: tuple[object, ...]
    reason: str

    def __call__(self, given: object) -> str | None:
        """Return what was expected, if it is not the given value."""
        return (
            None if given in self.allowed else f"{' or '.join(map(_shown, self.allowed))}, for {self.reason}"
        )


def only(value: object, reason: str) -> Only:
    """Allow one value, or those of a tuple, and say why there is no other."""
    return Only(value if isinstance(value, tuple) else (value,), reason)


def _shown(value: object) -> str:
    if value is None or value == []:
        return "nothing"
    if isinstance(value, timedelta):
        return f"{int(value.total_seconds())} s"
    return (
        str(value.value)
        if isinstance(value, Enum)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


class NotNullEnforcer(Enum):
    """What happens to a row with NULL in a column that is NOT NULL."""

    ERROR = "ERROR"
    DROP = "DROP"


class AggregationPhases(Enum):
    """Whether rows are also aggregated before the exchange."""

    AUTO = "AUTO"
    ONE_PHASE = "ONE_PHASE"
    TWO_PHASE = "TWO_PHASE"


class UpsertMaterialize(Enum):
    """Whether the last row of each primary key is worked out before a sink."""

    NONE = "NONE"
    AUTO = "AUTO"
    FORCE = "FORCE"


class CatalogStoreKind(Enum):
    """Where the definitions of catalogs are kept."""

    GENERIC_IN_MEMORY = "generic_in_memory"
    FILE = "file"


STATE_TTL = (
    option("table.exec.state.ttl", timedelta)
    .default(timedelta(0))
    .describe(
        "How long the state of a key is kept after it was last written; a key that appears later starts empty. 0 "
        "keeps it forever. A `STATE_TTL` hint sets it for one operator."
    )
)
IDLE_TIMEOUT = (
    option("table.exec.source.idle-timeout", timedelta)
    .default(timedelta(0))
    .describe("After how long without rows a split of a source no longer holds the watermark. 0: never.")
)
DEFAULT_PARALLELISM = (
    option("table.exec.resource.default-parallelism", int)
    .default(-1)
    .describe("How many subtasks the operators of a query have; -1 takes `parallelism.default`.")
)
NOT_NULL_ENFORCER = (
    option("table.exec.sink.not-null-enforcer", NotNullEnforcer)
    .default(NotNullEnforcer.ERROR)
    .describe("Whether a row with NULL in a NOT NULL column of a sink fails the job or is dropped.")
)
UPSERT_MATERIALIZE = (
    option("table.exec.sink.upsert-materialize", UpsertMaterialize)
    .default(UpsertMaterialize.AUTO)
    .describe(
        "Whether a sink with a primary key gets an operator before it that works out the last row of each key: where "
        "the query's own key is another one, always, or never."
    )
)
TYPE_LENGTH_ENFORCER = (
    option("table.exec.sink.type-length-enforcer", str)
    .default("IGNORE")
    .describe("What happens to strings that are longer than their column.")
    .checked_by(only("IGNORE", "lengths of strings are not checked"))
)
KEYED_SHUFFLE = (
    option("table.exec.sink.keyed-shuffle", str)
    .default("AUTO")
    .describe("Whether rows go to sinks by their primary key.")
    .checked_by(only("AUTO", "rows of a key reach a sink in order anyway"))
)
LOCAL_TIME_ZONE = (
    option("table.local-time-zone", str)
    .default("default")
    .describe(
        "The time zone of the session: what TIMESTAMP_LTZ is shown in, and where days begin. `default` is Spark's, "
        "`spark.sql.session.timeZone`, and so that of the machine if nobody sets it."
    )
)
DML_SYNC = (
    option("table.dml-sync", bool)
    .default(False)
    .describe("Whether INSERT waits for the end of the job, or returns when it has started.")
)
DYNAMIC_TABLE_OPTIONS = (
    option("table.dynamic-table-options.enabled", bool)
    .default(True)
    .describe("Whether OPTIONS hints may change the options of a table.")
)
MAX_COLUMN_WIDTH = (
    option("table.display.max-column-width", int)
    .default(30)
    .describe("How many characters of a string `TableResult.print` shows.")
    .at_least(1)
    .deprecates("sql-client.display.max-column-width")
)
REUSE_SUB_PLAN = (
    option("table.optimizer.reuse-sub-plan-enabled", bool)
    .default(True)
    .describe("Whether parts that several queries of a statement set have in common run once.")
)
BUILTIN_CATALOG = (
    option("table.builtin-catalog-name", str)
    .default("default_catalog")
    .describe("The name of the catalog that exists from the start.")
)
BUILTIN_DATABASE = (
    option("table.builtin-database-name", str)
    .default("default_database")
    .describe("The name of the database that exists from the start.")
)
CATALOG_STORE = (
    option("table.catalog-store.kind", CatalogStoreKind)
    .default(CatalogStoreKind.GENERIC_IN_MEMORY)
    .describe(
        "Where the definitions of catalogs are kept: until the program ends, or in files, so that the next program "
        "finds the catalogs that CREATE CATALOG made."
    )
)
CATALOG_STORE_PATH = (
    option("table.catalog-store.file.path", str)
    .no_default()
    .describe(
        "The directory of the file catalog store, a path or URI. Options of catalogs are written as they are, "
        "passwords too."
    )
)
SQL_DIALECT = (
    option("table.sql-dialect", str)
    .default("default")
    .describe("The SQL dialect.")
    .checked_by(only("default", "Flink's SQL is the only dialect"))
)
LEGACY_CAST = (
    option("table.exec.legacy-cast-behaviour", str)
    .default("DISABLED")
    .describe("Whether a CAST that fails returns NULL, as in old versions of Flink.")
    .checked_by(only("DISABLED", "TRY_CAST returns NULL where a CAST fails"))
)
NON_DETERMINISTIC = (
    option("table.optimizer.non-deterministic-update.strategy", str)
    .default("IGNORE")
    .describe("How to handle functions that return another value when a row is retracted.")
    .checked_by(only("IGNORE", "such functions are not looked for"))
)
MINI_BATCH = (
    option("table.exec.mini-batch.enabled", bool)
    .default(False)
    .describe(
        "Whether rows are gathered before they change state. If it is not set, or true, every epoch is a mini-batch: a "
        "key that changes several times in it appears once, with its last value. If you set it to false, every row "
        "makes its own changes, as in Flink without mini-batches; operators with state are slower then."
    )
)
MINI_BATCH_LATENCY = (
    option("table.exec.mini-batch.allow-latency", timedelta)
    .default(timedelta(0))
    .describe(
        "With `table.exec.mini-batch.enabled`: how long an epoch may take while there is a backlog, in the place of "
        "`headrace.epoch.target-duration`."
    )
)
MINI_BATCH_SIZE = (
    option("table.exec.mini-batch.size", int)
    .default(-1)
    .describe(
        "With `table.exec.mini-batch.enabled`: how many rows a source subtask reads in an epoch at most, if that is "
        "less than `headrace.epoch.max-records`."
    )
)
AGG_PHASE = (
    option("table.optimizer.agg-phase-strategy", AggregationPhases)
    .default(AggregationPhases.AUTO)
    .describe(
        "Whether the rows of an epoch are aggregated before they are exchanged: `AUTO` and `TWO_PHASE` do, unless "
        "every row makes its own changes; `ONE_PHASE` exchanges rows first."
    )
)
DISTINCT_SPLIT = (
    option("table.optimizer.distinct-agg.split.enabled", bool)
    .default(False)
    .describe(
        "Whether a GROUP BY with DISTINCT is computed in two steps: by a hash of the distinct values first, then by "
        "the group. It helps if a few groups have most of the values. Not with `table.exec.mini-batch.enabled` = false."
    )
)
DISTINCT_BUCKETS = (
    option("table.optimizer.distinct-agg.split.bucket-num", int)
    .default(1024)
    .describe("With `table.optimizer.distinct-agg.split.enabled`: how many hashes a group is split by.")
    .checked_by(lambda given: None if given > 0 else "a number of at least 1")
)
INCREMENTAL_AGG = (
    option("table.optimizer.incremental-agg-enabled", bool)
    .default(True)
    .describe("Whether the two stages of a split aggregation are merged.")
    .checked_by(only(True, _NO_INCREMENTS))
)
REUSE_SOURCE = (
    option("table.optimizer.reuse-source-enabled", bool)
    .default(True)
    .describe("Whether a table that several queries read is read once.")
    .checked_by(only(True, "table.optimizer.reuse-sub-plan-enabled sets it for all parts of a plan"))
)
TOP_N_CACHE = (
    option("table.exec.rank.topn-cache-size", int)
    .default(10_000)
    .describe("How many rows of a top-N are kept in memory.")
    .without_effect("state is read once per epoch")
)

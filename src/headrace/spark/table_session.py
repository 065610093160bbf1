"""The Spark session of a table job: what its epochs rely on, and what makes them fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.graph.job_graph import JobGraph
from headrace.graph.table_job import fragment_of, is_table_vertex
from headrace.operators.table.base import TableOperator
from headrace.operators.table.declarations import SparkQueryDeclaration
from headrace.operators.table.steps import PythonCalls, StepColumn
from headrace.spark.requirements import changed_meaning
from headrace.spark.row_keys import RowKeys
from headrace.state.columns import ColumnType
from headrace.state.key_secret import KeySecret

_SETTINGS = {
    # The keys of rows are made of the bytes of numbers, which Spark gives out only without it.
    "spark.sql.ansi.enabled": "false",
    # The number of partitions is the number of subtasks, not what Spark finds convenient.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Groups of a task that the fast way of aggregating has room for, as a power of two; Spark's own 16 are few for
    # keys by windows, and whatever is beyond takes twice as long.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
    # What several read is kept for an epoch only: to look for a better encoding of columns takes longer than to copy.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Shuffle files go with the epoch; Spark would wait for a garbage collection of the driver.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # A filter that is never true would have Spark leave out all that is below it: sources would not be read, and
    # operators would miss rows that count when the filter depends on the time of day.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PruneFilters",
    # A dictionary or a list that a function returns is what its type says.
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
}
#: Spark asks after every row how many bytes its batch has, which takes as long as all else that it does to bring rows
#: to python; not if there is no limit. Rows of a fixed width need none: it is how many there are that limits them.
_NO_LIMIT = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
#: The same for rows with texts, where files tell that they are short: fewer rows keep a batch small.
_SHORT_TEXTS = {**_NO_LIMIT, "spark.sql.execution.arrow.maxRecordsPerBatch": "16384"}
#: The same where rows are packets: there are few of them, so that it costs nothing to ask.
_PACKETS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20)}
#: Bytes that a row may have on average to count as short; those of all scans together.
_SHORT_ROW = 4096
#: Rows of a subtask's files that one task reads. Where there are fewer groups to aggregate they stay in the processor's
#: cache: eight million rows by key and window took a tenth less than with one task per core.
_ROWS_PER_TASK = 500_000
_READ_TASKS = "spark.sql.files.minPartitionNum"
_ZONE = "spark.sql.session.timeZone"


class TableSession:
    """A session of its own, on a context that others use too.

    It is made when it is first asked for: an epoch whose rows all go in packets needs none, and what Spark SQL loads
    for its first session takes seconds.

    Args:
        context: The context.
        job: The job.
        operators: Its stateful nodes at work.
        secret: What goes into the keys of its rows.
    """

    def __init__(
        self,
        context: SparkContext,
        job: JobGraph,
        operators: Mapping[str, TableOperator],
        secret: KeySecret,
    ) -> None:
        self.context = context
        self._secret = secret
        self._widths = row_widths(job, operators.values())
        self._job_settings: dict[str, str | None] = {
            **_SETTINGS,
            **job.session_settings,
            "spark.sql.shuffle.partitions": str(max(vertex.parallelism for vertex in job.vertices)),
        }
        #: Whether workers read files into columns where they can: not any more once one could not be read like that,
        #: and not for a batch query, of which Spark knows better which columns and how many rows it needs.
        self.reads_columns = not job.is_batch
        #: Whether rows of inputs of stateful nodes are recorded on their way.
        self.records_inputs = False
        #: What limits a batch as it is now; None: as usual.
        self._limits: dict[str, str] | None = None

    @cached_property
    def spark(self) -> SparkSession:
        spark = SparkSession(self.context).newSession()
        settings = {**changed_meaning(self.context.getConf()), **self._job_settings}
        for key, value in settings.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
        # Some checks of types ask the session of the thread, not that of the query.
        SparkSession._get_j_spark_session_class(self.context._jvm).setActiveSession(spark._jsparkSession)
        return spark

    @property
    def zone(self) -> str:
        own = self._job_settings.get(_ZONE)
        return str(self.spark.conf.get(_ZONE)) if own is None else own

    @cached_property
    def row_keys(self) -> RowKeys:
        """What computes the keys of rows."""
        return RowKeys(self.spark, self._secret)

    @cached_property
    def _usual(self) -> dict[str, str]:
        """What limits a batch on its way to python, if nothing is known of rows."""
        return {key: str(self.spark.conf.get(key)) for key in _SHORT_TEXTS}

    @cached_property
    def _sets_read_tasks(self) -> bool:
        """Whether how many tasks read files is ours to say."""
        return self.spark.conf.get(_READ_TASKS, None) is None

    def expect(self, rows: int, row_bytes: int | None, *, has_packets: bool) -> None:
        """Prepare for an epoch.

        Args:
            rows: How many rows a subtask reads, at most: as many tasks read files as is good for them.
            row_bytes: About how many bytes a row has of each scan, all together; None if unknown.
            has_packets: Whether there are rows that are packets, and so large.
        """
        are_short = row_bytes is not None and row_bytes <= _SHORT_ROW
        limits = self._usual
        if self._widths is RowWidths.FIXED:
            limits = {**limits, **_NO_LIMIT}
        elif self._widths is RowWidths.TEXTS and are_short:
            limits = {**limits, **_SHORT_TEXTS}
        if has_packets:
            limits = {**limits, **_PACKETS}
        known = self._usual if self._limits is None else self._limits
        for key, value in limits.items():
            if value != known[key]:
                self.spark.conf.set(key, value)
        self._limits = dict(limits)
        if self._sets_read_tasks and rows:
            self.spark.conf.set(_READ_TASKS, str(max(1, rows // _ROWS_PER_TASK)))

    def close(self) -> None:
        """Free what Spark keeps for the session."""
        if "row_keys" in self.__dict__:
            self.row_keys.close()


class RowWidths(Enum):
    """How wide rows are that go to python."""

    FIXED = "fixed"
    #: Some columns are texts or bytes.
    TEXTS = "texts"
    UNKNOWN = "unknown"


def row_widths(job: JobGraph, operators: Iterable[TableOperator]) -> RowWidths:
    """Return how wide the rows are that go to python."""
    if not all(is_table_vertex(vertex) for vertex in job.vertices):
        return RowWidths.UNKNOWN  # buffers of records come from streams
    fragments = [fragment_of(edge) for edge in job.edges]
    steps = [step for fragment in fragments for step in fragment.steps]
    queries = [vertex.head.declaration for vertex in job.vertices]
    if any(isinstance(step, PythonCalls) for step in steps) or any(
        isinstance(query, SparkQueryDeclaration) and query.functions for query in queries
    ):
        return RowWidths.UNKNOWN  # what functions are given is known to Spark only
    columns: list[StepColumn | ColumnType] = [column for fragment in fragments for column in fragment.schema]
    # What is summed up on the way to an operator has the types of what it keeps.
    columns += [column for operator in operators for layout in operator.layouts for column in layout.columns]
    wide = [each.arrow for each in columns if ColumnType(each.name, each.arrow).raw is None]
    if not wide:
        return RowWidths.FIXED
    are_texts = all(pa.types.is_string(kind) or pa.types.is_binary(kind) for kind in wide)
    return RowWidths.TEXTS if are_texts else RowWidths.UNKNOWN

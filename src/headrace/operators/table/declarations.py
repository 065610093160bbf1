"""The nodes of a Table or SQL job: the planner builds them, the engine runs them.

    TableScan --fragment--> GroupAggregate --fragment--> TableSink

Pure data: Spark SQL text, column names, Arrow types. A *fragment* is stateless work on the way from one node to
another and becomes DataFrame calls; a stateful node is an operator between two exchanges. Streams have the user's
columns and, where they are not insert-only, `KIND`. Fragments name the user's columns only: the engine carries `KIND`
along.

Every epoch is processed as a whole, as in Flink's mini-batch mode: a stateful node processes the net change of an
epoch and emits the resulting change of each key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NoReturn

from headrace.errors import InvariantViolation
from headrace.operators.io import SinkDeclaration, SourceDeclaration
from headrace.operators.table.steps import Fragment, PythonCall, Schema, StepColumn
from headrace.operators.table.user_functions import UserAggregate

# -- both ends -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableWatermarkSpec:
    """How event time is read off a scan's rows: ``WATERMARK FOR column AS expression``.

    Args:
        time: Spark SQL over the columns of the scan's fragment. The later it is, the later is the watermark; NULL gives
            none.
        ms: Spark SQL of the watermark that belongs to the highest time, which stands as ``{}`` in it, BIGINT:
            milliseconds since 1970 (for TIMESTAMP as if it were UTC). So it is computed once, not for every row.
        idle_ms: After how long without rows a split no longer holds the watermark; None: never.
    """

    time: str
    ms: str = "{}"
    idle_ms: int | None = None

    @property
    def is_of_column(self) -> bool:
        """Whether the time is a column of the table: then rows without a time have no part in the watermark."""
        return self.ms != "{}"

    def ms_of(self, time: str) -> str:
        """Write the watermark that belongs to the highest time, which is this in Spark SQL."""
        return self.ms.replace("{}", time)


class OnlyInEpochs:
    """Table nodes are run by the engine as parts of a DataFrame, never record by record."""

    @property
    def node_kind(self) -> str:
        """What the node is, in names and ids of operators. It must not change: state is found again by it."""
        return type(self).__name__.removesuffix("Declaration")

    def build(self) -> NoReturn:
        raise InvariantViolation(f"{self.node_kind} runs on DataFrames, not in a task")


@dataclass(frozen=True)
class TableScanDeclaration(OnlyInEpochs, SourceDeclaration):
    """Reads a table. ``source`` is a `connectors.base.Source`; one that is a `SparkSource` never enters Python.

    Args:
        source: Where rows come from. Rows of a python source are `Row` or tuples in the order of ``schema``.
        watermark_strategy: Not used; a table's event time is ``watermark``.
        schema: The physical and metadata columns, as the source gives them.
        fragment: Computed columns, pushed-down conditions and so on; None for the rows as they are.
        watermark: Event time; None for a table without.
        has_kinds: Whether rows are a changelog: Row kinds of a python source, or a column `KIND`.
    """

    schema: Schema = ()
    fragment: Fragment | None = None
    watermark: TableWatermarkSpec | None = None
    has_kinds: bool = False

    @property
    def idleness_ms(self) -> int | None:
        return None if self.watermark is None else self.watermark.idle_ms

    @property
    def has_event_time(self) -> bool:
        return self.watermark is not None

    @property
    def is_insert_only(self) -> bool:
        """Whether what comes out has no `KIND`."""
        return not self.has_kinds

    @property
    def output(self) -> Schema:
        """What comes out, without `KIND`."""
        return self.fragment.schema if self.fragment is not None else self.schema


class SinkMode(Enum):
    """What a sink makes of a changelog."""

    #: Takes insert-only streams.
    APPEND = "append"
    #: Takes the latest row per key and deletions; -U, where it comes, is one: its key may not come again.
    UPSERT = "upsert"
    #: Takes all changes.
    RETRACT = "retract"


@dataclass(frozen=True)
class TableSinkDeclaration(OnlyInEpochs, SinkDeclaration):
    """Writes to a table. The sink's writer gets a `Row` per row, with its row kind.

    Args:
        sink: Where rows go.
        schema: The columns, in the order of the sink's row.
        mode: What it makes of a changelog.
        keys: The primary key, for an upsert sink: changes of one key reach the writer in order.
        not_null: Columns that must not be NULL (``table.exec.sink.not-null-enforcer``).
        drops_null: Whether rows with a NULL there are left out instead of failing the job.
        shuffle_by: Columns whose equal rows come to one writer; empty if it does not matter which.
    """

    schema: Schema = ()
    mode: SinkMode = SinkMode.APPEND
    keys: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    drops_null: bool = False
    shuffle_by: tuple[str, ...] = ()


# -- stateful nodes --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggSpec:
    """One aggregate call over columns of the input.

    Args:
        function: COUNT, SUM, SUM0, AVG, MIN, MAX, FIRST_VALUE, LAST_VALUE, STDDEV_POP, STDDEV_SAMP, VAR_POP, VAR_SAMP,
            LISTAGG, COLLECT, ARRAY_AGG. COUNT(*) is COUNT without arguments.
        arguments: Columns of the input.
        result: Name and type of the result, by Flink's rules (AVG of a BIGINT is a BIGINT).
        distinct: Whether equal values count once.
        filter: A BOOLEAN column of the input; rows where it is not true are passed over.
        separator: What stands between the values of LISTAGG.
        user: The user's own function; then ``function`` is only its name.
    """

    function: str
    arguments: tuple[str, ...]
    result: StepColumn
    distinct: bool = False
    filter: str | None = None
    separator: str = ","
    user: UserAggregate | None = None


@dataclass(frozen=True)
class StatefulNode(OnlyInEpochs):
    """What nodes with keyed state have in common.

    Args:
        output: What comes out, without `KIND`.
        is_insert_only: Whether what comes out has no `KIND`.
        emits_update_before: Whether -U is wanted before a +U.
        ttl_ms: How long state stays after it was last written (``table.exec.state.ttl``); 0: forever.
        row_by_row: Whether every row of an epoch makes its own changes, not only the epoch as a whole.
        one_phase: Whether rows are exchanged before they are aggregated, not after.
    """

    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = True

    output: Schema
    is_insert_only: bool = field(default=False, kw_only=True)
    emits_update_before: bool = field(default=True, kw_only=True)
    ttl_ms: int = field(default=0, kw_only=True)
    row_by_row: bool = field(default=False, kw_only=True)
    one_phase: bool = field(default=False, kw_only=True)

    @property
    def goes_by_watermark(self) -> bool:
        """Whether it waits for event time to pass."""
        return False

    @property
    def holds_back_ms(self) -> int:
        """How far event time behind it is behind its own: its rows may be so much older."""
        return 0

    @property
    def user_functions(self) -> tuple[UserAggregate, ...]:
        """The functions of the user's that it calls, to be opened before its rows and closed after them."""
        calls: tuple[AggSpec, ...] = getattr(self, "calls", ())
        return tuple(call.user for call in calls if call.user is not None)


@dataclass(frozen=True)
class GroupAggregateDeclaration(StatefulNode):
    """GROUP BY without a window. The output is the keys, then the results of the calls; no keys: one row in all.

    Whether the input has `KIND` is the producer's to say; without it, nothing is ever retracted.
    """

    keys: tuple[str, ...]
    calls: tuple[AggSpec, ...]
    #: Whether a group may get more rows in later epochs; if not, nothing is kept of it.
    keeps_groups: bool = True


class WindowKind(Enum):
    """Flink's windowing table functions."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


@dataclass(frozen=True)
class TableWindowSpec:
    """Which windows a row belongs to.

    Args:
        kind: The windowing table function.
        time: A BIGINT column of the input: event time in ms since 1970. None: processing time.
        size_ms: Length of a window; the longest one, for CUMULATE. Not for SESSION.
        slide_ms: Distance of windows for HOP, step for CUMULATE.
        gap_ms: For SESSION.
        offset_ms: By how much windows are shifted.
        zone: The time zone whose clock windows of processing time go by; None: UTC. Event time comes in it already.
    """

    kind: WindowKind
    time: str | None
    size_ms: int = 0
    slide_ms: int = 0
    gap_ms: int = 0
    offset_ms: int = 0
    zone: str | None = None


@dataclass(frozen=True)
class WindowAggregateDeclaration(StatefulNode):
    """GROUP BY window_start, window_end and keys, fired by the watermark (or the clock).

    Also for group windows (``TUMBLE(ts, ...)`` in GROUP BY). With ``window=None`` the input is windowed already (a
    cascade: rows carry ``start`` and ``end``).

    Args:
        window: Which windows a row belongs to; None: those in ``start`` and ``end``.
        keys: Columns of the input.
        calls: The aggregates.
        start: BIGINT column with the start of the row's window in ms, for a windowed input.
        end: BIGINT column with its end.
        properties: What follows keys and results in the output, in this order: ``window_start``, ``window_end``,
            ``window_time`` (TIMESTAMP_NTZ).
    """

    window: TableWindowSpec | None
    keys: tuple[str, ...]
    calls: tuple[AggSpec, ...]
    start: str | None = None
    end: str | None = None
    properties: tuple[str, ...] = ("window_start", "window_end", "window_time")

    @property
    def goes_by_watermark(self) -> bool:
        return self.window is None or self.window.time is not None

    def __post_init__(self) -> None:
        if self.window is None and (self.start is None or self.end is None):
            raise InvariantViolation(
                "a window aggregation over windowed rows needs the columns of their windows"
            )


class JoinKind(Enum):
    """How two streams are joined."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"


@dataclass(frozen=True)
class FirstPairs:
    """Pairs of a join that a top-N after it can want: the first ones of each partition, of all that an epoch makes.

    Args:
        partition: The columns of a partition, by their positions in the pair.
        order: What pairs are ordered by: positions, and whether the lowest come first.
        last: The highest rank that is wanted.
    """

    partition: tuple[int, ...]
    order: tuple[tuple[int, bool], ...]
    last: int


@dataclass(frozen=True)
class JoinDeclaration(StatefulNode):
    """A regular join: both sides are kept. The output is the left columns, then the right ones (not for SEMI, ANTI).

    Args:
        kind: How.
        left_keys: Columns of the left input; as many as on the right, of the same types. None: every pair is looked at.
        right_keys: Columns of the right input.
        left: The columns of the left input.
        right: The columns of the right input.
        condition: What else must hold: Spark SQL over ``l0, l1, ...`` and ``r0, r1, ...``, the columns by position.
        null_safe: For each key column whether NULL equals NULL (IS NOT DISTINCT FROM); empty: nowhere.
        right_ttl_ms: As ``ttl_ms``, which is the left side's; None: the same.
        renews: For each side whether a match makes its rows live on, as those of an outer side do.
        first_pairs: The pairs that are wanted; None: all.
    """

    inputs: ClassVar[int] = 2

    kind: JoinKind
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    left: Schema
    right: Schema
    condition: str | None = None
    null_safe: tuple[bool, ...] = ()
    right_ttl_ms: int | None = None
    renews: tuple[bool, bool] = (False, False)
    first_pairs: FirstPairs | None = None


@dataclass(frozen=True)
class OuterSide:
    """A side of a join whose rows are emitted, or are not, because they match nothing.

    Args:
        source: The input with its rows.
        columns: Its columns, called the same in the pairs.
        keys: What rows and pairs meet by: columns of its rows ...
        pair_keys: ... and of the pairs.
        ids: Two BIGINT columns that tell its rows apart, in its rows and in the pairs.
        ttl_ms: As of all state.
        window_end: The BIGINT column of its rows with the end of their window, for a window join; with their time, for
            an interval join by event time.
        lasts_ms: For how long rows of an interval join wait for others.
    """

    source: int
    columns: Schema
    keys: tuple[str, ...]
    pair_keys: tuple[str, ...]
    ids: tuple[str, str]
    ttl_ms: int = 0
    window_end: str | None = None
    lasts_ms: int = 0


@dataclass(frozen=True)
class JoinAssociationsDeclaration(StatefulNode):
    """The second half of a join with a condition that is not an equality, of all kinds but INNER.

    The first half is an inner join, whose pairs Spark checks. Here they are counted per row of an outer side: a row
    without any is padded with NULLs (LEFT, RIGHT, FULL), let through (ANTI) or held back (SEMI). Of a window join all
    that is about a window comes in the epoch in which it is over.

    Args:
        kind: How.
        sides: The outer ones; the left one for SEMI and ANTI. Input 0 is the pairs.
        pair_columns: What the columns of the output are called in the pairs.
        interval_ms: Of an interval join, how old its rows may be; None for others.
    """

    inputs: ClassVar[int] = 2

    kind: JoinKind
    sides: tuple[OuterSide, ...]
    pair_columns: tuple[str, ...]
    interval_ms: int | None = None

    @property
    def holds_back_ms(self) -> int:
        return self.interval_ms or 0

    @property
    def goes_by_watermark(self) -> bool:
        return self.sides[0].window_end is not None


@dataclass(frozen=True)
class WindowJoinDeclaration(StatefulNode):
    """A join of rows of the same window, fired by the watermark. Columns and condition as in `JoinDeclaration`.

    Args:
        left_start: BIGINT columns with the windows in ms: of the left rows ...
        left_end: ...
        right_start: ... and of the right ones.
        right_end: ...
    """

    inputs: ClassVar[int] = 2

    kind: JoinKind
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    left: Schema
    right: Schema
    left_start: str
    left_end: str
    right_start: str
    right_end: str
    condition: str | None = None

    @property
    def goes_by_watermark(self) -> bool:
        return True


@dataclass(frozen=True)
class Order:
    """A column to sort by."""

    column: str
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True)
class RankDeclaration(StatefulNode):
    """The rows from rank ``first`` to ``last`` of each partition (ROW_NUMBER); LIMIT and ORDER BY ... LIMIT too.

    The output is the input's columns, then the rank if ``rank_column`` is given.

    Args:
        partition: Columns; none: all rows compete.
        order: What rows are ranked by; none, for LIMIT: as rows came.
        last: The highest rank that is wanted; None: no end (OFFSET alone).
        first: The lowest one, from 1.
        rank_column: What the rank is called in the output; None: not there.
        window_end: A BIGINT column: a window top-N, which fires when the watermark passes this time, insert-only.
    """

    partition: tuple[str, ...]
    order: tuple[Order, ...]
    last: int | None
    first: int = 1
    rank_column: StepColumn | None = None
    window_end: str | None = None

    @property
    def goes_by_watermark(self) -> bool:
        return self.window_end is not None


@dataclass(frozen=True)
class EpochSortDeclaration(StatefulNode):
    """The rows of each epoch in order: what is left of ORDER BY processing time, which is the same for all of them.

    Args:
        order: What they are sorted by; rows that are equal in it stay as they came.
    """

    keys: ClassVar[tuple[str, ...]] = ()

    order: tuple[Order, ...]


@dataclass(frozen=True)
class RowWindowsDeclaration(StatefulNode):
    """Rows with the windows they are in, once these are full: windows that count the rows of a key.

    Args:
        keys: What windows are apart by.
        size: How many rows a window has.
        slide: How many rows after the start of a window the next one starts.
        number: The column of the output with the number of the window among those of its key, BIGINT; it comes last.
    """

    keys: tuple[str, ...]
    size: int
    slide: int
    number: str


@dataclass(frozen=True)
class DeduplicateDeclaration(StatefulNode):
    """One row per key: the first or the last by time.

    Args:
        keys: Columns of the input.
        time: A BIGINT column with event time in ms (any time, within windows); None: processing time, which is the
            order of epochs and rows.
        keep_last: Whether the last row stays, not the first; of rows of the same time the last that came.
        window_end: As in `RankDeclaration`.
    """

    keys: tuple[str, ...]
    time: str | None
    keep_last: bool = False
    window_end: str | None = None

    @property
    def waits(self) -> bool:
        """Whether the first row by event time is emitted when the watermark has passed it, and never changes."""
        is_first_by_time = self.window_end is None and self.time is not None and not self.keep_last
        return is_first_by_time and self.is_insert_only

    @property
    def goes_by_watermark(self) -> bool:
        return self.window_end is not None or self.waits


@dataclass(frozen=True)
class ChangelogNormalizeDeclaration(StatefulNode):
    """Makes all changes (-U, -D with their values) of an upsert stream: remembers the last row of each key."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class SparkQueryDeclaration(OnlyInEpochs):
    """A whole query in Spark SQL over its inputs: what BATCH mode is made of. Without state.

    Args:
        sql: The query; ``{0}``, ``{1}``, ... stand for its inputs.
        output: What comes out.
        functions: The python functions it calls, each by the name of its result.
        is_gathered: Whether its input takes several epochs, and passes on its rows with the last: the query has nothing
            to say before.
    """

    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False
    is_insert_only: ClassVar[bool] = True

    sql: str
    output: Schema
    functions: tuple[PythonCall, ...] = ()
    is_gathered: bool = False


@dataclass(frozen=True)
class TableWatermarkDeclaration(OnlyInEpochs):
    """Reads event time off rows that come from a stream; what the stream's own watermarks say does not count.

    Args:
        output: The columns, in and out.
        watermark: How.
        is_insert_only: Whether the rows have no `KIND`.
    """

    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    output: Schema
    watermark: TableWatermarkSpec
    is_insert_only: bool = True


TableDeclaration = (
    TableScanDeclaration
    | TableSinkDeclaration
    | StatefulNode
    | SparkQueryDeclaration
    | TableWatermarkDeclaration
)

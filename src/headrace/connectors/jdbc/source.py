"""`JdbcSource`: the rows of a table, in ranges that are read in parallel.

    table      id  1 ......... 250 | 251 ....... 500 | 501 ...... 1000      partition column, in so many ranges
    split 1        |----------->                                             position: the key of the last row read

Rows of a range are read in the order of a unique key, so reading continues after the last row and a slice that is read
again gives the same rows, as long as nobody changes them. A slice is a query for every page, or with
`auto_commit=False` one query in a transaction of its own, whose rows come through a cursor of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from headrace.common.types import make_row
from headrace.connectors import base
from headrace.connectors.jdbc._tables import TableColumns, column
from headrace.connectors.jdbc.options import JdbcConnectionOptions
from headrace.elements import Batch
from headrace.errors import JobDefinitionError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select

FETCH_ROWS = 2_000


@dataclass(frozen=True)
class JdbcPartition:
    """How a table is cut into ranges: Flink's `scan.partition.*`.

    Args:
        column: A column of numbers, dates or timestamps.
        num: How many ranges.
        lower_bound: The least value to read; None: the least there is when the job starts, and nulls, too.
        upper_bound: The greatest value to read; None: the greatest there is.

    Raises:
        JobDefinitionError: There is only one bound, or less than one range.
    """

    column: str
    num: int
    lower_bound: Any = None
    upper_bound: Any = None

    def __post_init__(self) -> None:
        if self.num < 1 or not self.column:
            raise JobDefinitionError(
                f"JdbcPartition: expected a column name and at least one range; got {self}"
            )
        if (self.lower_bound is None) != (self.upper_bound is None):
            raise JobDefinitionError("JdbcPartition: give both bounds, or neither")


@dataclass(frozen=True)
class JdbcSource(base.Source):
    """Reads a table once. Records are rows with the columns as fields.

    Args:
        connection: Where the database is.
        table: The table, with its schema if need be.
        columns: The columns to read, in the order of the row's fields.
        partition: How to cut the table into ranges; None reads it in one subtask.
        where: A condition in SQL that rows must meet.
        order_by: Columns that together are unique and never null; None: the table's primary key.
        fetch_size: Rows that are asked for at a time.
        auto_commit: Whether each page is a query of its own, committed at once. If not, each slice is one transaction,
            so all its rows are from the same moment.

    Raises:
        JobDefinitionError: There are no columns, or the page is empty.

    Example:
        >>> options = JdbcConnectionOptions("jdbc:sqlite:/tmp/shop.db")
        >>> JdbcSource(options, "orders", ("id", "amount"), JdbcPartition("id", 4)).boundedness
        <Boundedness.BOUNDED: 'BOUNDED'>
    """

    connection: JdbcConnectionOptions
    table: str
    columns: Sequence[str]
    partition: JdbcPartition | None = None
    where: str | None = None
    order_by: Sequence[str] | None = None
    fetch_size: int = FETCH_ROWS
    auto_commit: bool = True
    _columns: TableColumns = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.fetch_size < 1:
            raise JobDefinitionError(f"JdbcSource: fetch_size must be positive; got {self.fetch_size}")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "_columns", TableColumns(self.connection, self.table, tuple(self.columns)))

    @property
    def boundedness(self) -> base.Boundedness:
        """A table is read once."""
        return base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half."""
        return _JdbcEnumerator(self)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _JdbcReader(self)

    def query(self) -> Select[Any]:
        """Begin a query for the rows."""
        from sqlalchemy import text

        query = self._columns.select()
        if self.where is None:
            return query
        # A colon would begin the name of a parameter.
        return query.where(text(f"({self.where})".replace(":", r"\:")))

    def fetch(self, query: Select[Any]) -> Sequence[Sequence[Any]]:
        return self._columns.fetch(query, auto_commit=self.auto_commit)

    def portions(self, query: Callable[[], Select[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
        return self._columns.portions(query, self.fetch_size)

    def unique_key(self) -> tuple[str, ...]:
        """Return the columns that rows are ordered by.

        Raises:
            JobDefinitionError: There are none.
        """
        key = tuple(self.order_by) if self.order_by else self._columns.primary_key()
        if not key:
            raise JobDefinitionError(
                f"JdbcSource: {self.table} has no primary key, so reading cannot continue at a given row",
                hint="pass order_by=[...] with columns that together are unique and never null; in SQL, declare them "
                "as PRIMARY KEY (...) NOT ENFORCED",
            )
        return key


@dataclass(frozen=True)
class JdbcSplit(base.SourceSplit):
    """A range of the partition column: from `lower` to before `upper`, or all of the table."""

    column: str | None
    #: None: from the beginning, nulls included.
    lower: Any
    #: None: to the end.
    upper: Any
    is_upper_included: bool
    order_by: tuple[str, ...]

    def condition(self) -> ColumnElement[bool] | None:
        """Return what rows of the range meet; None if it is all rows."""
        from sqlalchemy import and_, or_

        if self.column is None or (self.lower is None and self.upper is None):
            return None
        here = column(self.column)
        parts: list[ColumnElement[bool]] = []
        if self.lower is not None:
            parts.append(here >= self.lower)
        if self.upper is not None:
            parts.append(here <= self.upper if self.is_upper_included else here < self.upper)
        meets = and_(*parts)
        return or_(here.is_(None), meets) if self.lower is None else meets


class _JdbcEnumerator(base.SplitEnumerator):
    def __init__(self, source: JdbcSource) -> None:
        self._source = source
        self._has_cut = False

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        # Ranges stay as they were cut, whatever is in the table now.
        self._has_cut = bool(splits)

    def discover(self) -> Sequence[base.SourceSplit]:
        if self._has_cut:
            return ()
        self._has_cut = True
        return self._cut()

    def _cut(self) -> list[JdbcSplit]:
        key, partition = self._source.unique_key(), self._source.partition
        if partition is None:
            return [JdbcSplit(f"{self._source.table}", None, None, None, False, key)]
        is_given = partition.lower_bound is not None
        lower, upper = partition.lower_bound, partition.upper_bound
        if not is_given:
            lower, upper = self._extremes(partition.column)
        bounds = _bounds(lower, upper, partition.num)
        last = len(bounds) - 2
        return [
            JdbcSplit(
                split_id=f"{self._source.table}:{partition.column}:{number + 1}/{last + 1}",
                column=partition.column,
                lower=bounds[number] if is_given or number else None,
                upper=bounds[number + 1] if is_given or number < last else None,
                is_upper_included=number == last,
                order_by=key,
            )
            for number in range(last + 1)
        ]

    def _extremes(self, name: str) -> tuple[Any, Any]:
        from sqlalchemy import func

        where = self._source.query().with_only_columns(
            func.min(column(name)), func.max(column(name)), maintain_column_froms=True
        )
        return cast("tuple[Any, Any]", tuple(self._source.fetch(where)[0]))

    @property
    def is_complete(self) -> bool:
        return self._has_cut

    def start_position(self, split: base.SourceSplit) -> None:
        return None

    def plan(self, split: base.SourceSplit, position: Any, max_records: int) -> base.Slice:
        return base.Slice(split, position, max_records=max_records)


def _bounds(lower: Any, upper: Any, num: int) -> list[Any]:
    """Return where ranges begin, and after them where the last one ends.

    Example:
        >>> _bounds(1, 10, 3)
        [1, 4, 7, 10]
    """
    if lower is None or lower == upper:  # an empty table, or a single value
        return [lower, upper]
    try:
        if lower > upper:
            raise JobDefinitionError(
                f"JdbcPartition: the lower bound {lower} is greater than the upper bound {upper}"
            )
        span = upper - lower
        steps = [
            lower + (span * number // num if isinstance(span, int) else span * number / num)
            for number in range(num)
        ]
    except TypeError as error:
        raise JobDefinitionError(
            f"JdbcPartition: ranges need numbers, dates or timestamps; got {lower!r} and {upper!r}"
        ) from error
    return [*dict.fromkeys(steps), upper]


class _JdbcReader(base.SourceReader):
    def __init__(self, source: JdbcSource) -> None:
        self._source = source
        self._progress = base.SplitProgress(None, is_finished=False)
        #: The key of the last row, and how many rows of the slice are left; None: all that there are.
        self._at: tuple[Any, ...] | None = None
        self._left: int | None = None
        self._has_ended = False

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        self._at, self._left = piece.start, piece.max_records
        self._has_ended = False
        names = tuple(self._source.columns)
        split = cast(JdbcSplit, piece.split)
        for found in self._pages(split) if self._source.auto_commit else self._portions(split):
            self._at = tuple(found[-1][len(names) :])
            if self._left is not None:
                self._left -= len(found)
            yield Batch([make_row(names, row[: len(names)], 0) for row in found])
        self._progress = base.SplitProgress(self._at, self._has_ended)

    def _pages(self, split: JdbcSplit) -> Iterator[Sequence[Sequence[Any]]]:
        """Ask for one page after the other."""
        most = self._source.fetch_size
        while not self._has_ended and self._left != 0:
            limit = most if self._left is None else min(self._left, most)
            found = self._source.fetch(self._query(split, limit))
            self._has_ended = len(found) < limit
            if found:
                yield found

    def _portions(self, split: JdbcSplit) -> Iterator[Sequence[Sequence[Any]]]:
        """Ask once, and fetch the rows through a cursor."""
        yield from self._source.portions(lambda: self._query(split, self._left))
        self._has_ended = self._left != 0

    def progress(self) -> base.SplitProgress:
        return self._progress

    def _query(self, split: JdbcSplit, limit: int | None) -> Select[Any]:
        """Query the rows after the last one, each followed by its key."""
        from sqlalchemy import tuple_

        keys = [column(name) for name in split.order_by]
        query = self._source.query().add_columns(*(key.label(f"key_{i}") for i, key in enumerate(keys)))
        condition = split.condition()
        if condition is not None:
            query = query.where(condition)
        if self._at is not None:
            query = query.where(keys[0] > self._at[0] if len(keys) == 1 else tuple_(*keys) > self._at)
        return query.order_by(*keys).limit(limit)

"""Stateless work of a Table or SQL job: the columns of a stream, and the steps that its rows go through.

A *fragment* is a sequence of steps on the way from one node to another, and becomes DataFrame calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

#: The column that says what a row does to the table: TINYINT, the value of a `RowKind`. Insert-only streams have none.
KIND = "__kind"
#: Stands in Spark SQL for event time in ms, as it stands where rows of an epoch are; the engine puts the number there.
CURRENT_WATERMARK = "current_watermark()"
_NAME = re.compile(r"`((?:[^`]|``)*)`")


@dataclass(frozen=True)
class StepColumn:
    """A column of a stream."""

    name: str
    #: As Spark SQL's DDL spells it, such as ``BIGINT`` or ``DECIMAL(10,2)``; TIMESTAMP of Flink is ``TIMESTAMP_NTZ``.
    spark_type: str
    arrow: pa.DataType


Schema = tuple[StepColumn, ...]


@dataclass(frozen=True)
class Select:
    """The new row: Spark SQL expressions over the columns before, each with its name."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Where:
    """Rows for which a Spark SQL condition holds."""

    condition: str


@dataclass(frozen=True)
class Explode:
    """The row, once for every element that a generator makes of it; its columns come after the row's.

    Args:
        generator: Spark SQL of a generator, such as ``explode(tags)`` or ``posexplode(tags)``.
        names: What its columns are called.
        is_outer: Whether a row without elements stays, with NULLs (a left join).
    """

    generator: str
    names: tuple[str, ...]
    is_outer: bool = False


@dataclass(frozen=True)
class PythonCall:
    """A python scalar function over columns; its result is one more column.

    Args:
        function: Takes the arguments of a row, or whole pandas Series.
        arguments: The columns it is called with.
        result: The new column.
        is_pandas: Whether it takes Series.
        is_deterministic: Whether equal arguments give equal results.
    """

    function: Callable[..., Any]
    arguments: tuple[str, ...]
    result: StepColumn
    is_pandas: bool = False
    is_deterministic: bool = True

    @property
    def takes_batches(self) -> bool:
        """Whether it is called with the rows of a batch, and returns the list of their results."""
        return bool(getattr(self.function, "takes_batches", False))

    @property
    def gives_rows(self) -> bool:
        """Whether its result is the list of the rows of a table function."""
        return bool(getattr(self.function, "gives_rows", False))


@dataclass(frozen=True)
class PythonCalls:
    """Python functions, called for every row; their results are new columns after the row's."""

    calls: tuple[PythonCall, ...]


@dataclass(frozen=True)
class RowIds:
    """Two BIGINT columns after the row's that identify it: equal for rows with equal values, and for no others.

    Args:
        columns: The columns whose values count.
        names: What the new columns are called.
    """

    columns: tuple[str, ...]
    names: tuple[str, str]


@dataclass(frozen=True)
class KindsToColumn:
    """What rows do to the table becomes a STRING column in front of them; all rows are insertions then.

    Args:
        name: What the column is called.
        codes: The values of row kinds, and the text of each; rows of other kinds are left out.
    """

    name: str
    codes: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class ColumnToKinds:
    """A STRING column says what rows do to the table, and is left out. A row with another code fails the job.

    Args:
        name: The column.
        codes: The texts, and the value of the row kind of each.
    """

    name: str
    codes: tuple[tuple[str, int], ...]


Step = Select | Where | Explode | PythonCalls | RowIds | KindsToColumn | ColumnToKinds


@dataclass(frozen=True)
class Fragment:
    """Stateless work, step by step; the schema is what comes out, without `KIND`."""

    steps: tuple[Step, ...]
    schema: Schema

    def has_kinds(self, before: bool) -> bool:
        """Whether rows have `KIND` after the steps, if they have it `before` or not."""
        return kinds_behind(self.steps, before)


def kinds_behind(steps: Iterable[Step], before: bool) -> bool:
    """Whether rows have `KIND` after steps."""
    for step in steps:
        if isinstance(step, KindsToColumn):
            before = False
        elif isinstance(step, ColumnToKinds):
            before = True
    return before


def reads_watermark(steps: Iterable[Step]) -> bool:
    """Whether steps ask how far event time has advanced."""
    return any(CURRENT_WATERMARK in text for step in steps for text in _texts(step))


def at_watermark(steps: Iterable[Step], watermark_ms: int | None) -> tuple[Step, ...]:
    """Return steps that know how far event time has advanced; None: there is no watermark yet.

    >>> at_watermark([Where("`t` > current_watermark()")], 7)
    (Where(condition='`t` > 7L'),)
    """
    known = "CAST(NULL AS BIGINT)" if watermark_ms is None else f"{watermark_ms}L"

    def inlined(sql: str) -> str:
        return sql.replace(CURRENT_WATERMARK, known)

    made: list[Step] = []
    for step in steps:
        match step:
            case Select():
                made.append(Select(tuple((inlined(sql), name) for sql, name in step.items)))
            case Where():
                made.append(Where(inlined(step.condition)))
            case Explode():
                made.append(replace(step, generator=inlined(step.generator)))
            case _:
                made.append(step)
    return tuple(made)


def _texts(step: Step) -> list[str]:
    match step:
        case Select():
            return [sql for sql, _ in step.items]
        case Where():
            return [step.condition]
        case Explode():
            return [step.generator]
        case _:
            return []


def columns_read(names: Sequence[str], steps: Iterable[Step]) -> set[str]:
    """Return which of the columns that come in steps read; all of them, if they are passed on."""
    read = read_by(steps)
    return set(names) if read is None else mentioned(names, read)


def read_steps(steps: Sequence[Step]) -> list[Step]:
    """Return steps without columns that are made and that no later step reads.

    >>> read_steps([Select((("`a`", "b"), ("now()", "c"))), Select((("`b`", "b"),))])
    [Select(items=(('`a`', 'b'),)), Select(items=(('`b`', 'b'),))]
    """
    found: list[Step] = []
    for step in reversed(steps):
        kept = step
        if isinstance(step, Select):
            read = columns_read([name for _, name in step.items], found)
            # Rows without any column could not be counted.
            kept = Select(tuple(item for item in step.items if item[1] in read) or step.items)
        found.insert(0, kept)
    return found


def mentioned(names: Sequence[str], texts: Iterable[str]) -> set[str]:
    """Return which columns are named in texts of Spark SQL."""
    found = {name.replace("``", "`").lower() for text in texts for name in _NAME.findall(text)}
    return {name for name in names if name.lower() in found}


def read_by(steps: Iterable[Step]) -> list[str] | None:
    """Return the Spark SQL in which steps name columns that come in; None if all of them go on."""
    texts: list[str] = []
    for step in steps:
        if isinstance(step, Select):
            return [*texts, *(sql for sql, _ in step.items)]
        if isinstance(step, Where):
            texts.append(step.condition)
        elif isinstance(step, Explode):
            texts.append(step.generator)
        elif isinstance(step, RowIds | PythonCalls | KindsToColumn | ColumnToKinds):
            return None
    return None

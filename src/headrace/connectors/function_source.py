"""Sources and sinks made of plain functions, for systems nobody has written a connector for.

They ask for the least that the guarantees need: of a source, that it can be read again from a position; of
a sink, that a record which comes twice does no harm. For more, subclass `Source` or `Sink`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError, UserFunctionError, describe_function

ReadFrom = Callable[[int], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class PythonSource(base.Source):
    """Reads iterables that functions open at a position.

    A function is called in a worker with the number of records that were read of its split before, and
    returns an iterable over those that follow. It must give the same records at the same positions whenever
    it is called: after a failure they are read again. A split ends where its iterable ends.

    Input that grows needs `available`. The driver calls it with the name of a split, before every epoch, to
    learn how many records the split has by now; exactly so many are read. Without it an iterable must not
    wait for more to come, for the epoch would wait with it.

    Args:
        splits: For each part of the input a name, unique and the same on every start, and the function that
            opens it.
        bounded: Whether the iterables end. Those of an unbounded source never do, or grow as `available`
            says.
        available: Takes the name of a split, returns how many records it has by now. Needs `bounded=False`.

    Raises:
        JobDefinitionError: There are no splits, a function is not callable, or `available` is given to a bounded
            source.

    Example:
        >>> def squares(start):
        ...     return (n * n for n in range(start, 1000))
        >>> PythonSource({"squares": squares}).boundedness
        <Boundedness.BOUNDED: 'BOUNDED'>
    """

    splits: Mapping[str, ReadFrom]
    bounded: bool = True
    available: Callable[[str], int] | None = None

    # An unbounded split does not finish and make room for the next.
    concurrent_splits = None

    def __post_init__(self) -> None:
        if not self.splits:
            raise JobDefinitionError("PythonSource: give at least one split")
        for name, function in self.splits.items():
            if not callable(function):
                raise JobDefinitionError(
                    f"PythonSource: split {name!r} must be a function of a start position; got {function!r}",
                    hint="for a list, write `lambda start: my_list[start:]`",
                )
        if self.available is not None and self.bounded:
            raise JobDefinitionError(
                "PythonSource: `available` is for input that grows; this source is bounded",
                hint="add bounded=False, or leave `available` out",
            )
        object.__setattr__(self, "splits", dict(self.splits))

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.BOUNDED if self.bounded else base.Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half; the splits are the same whatever the parallelism."""
        return _FunctionEnumerator(list(self.splits), self.available)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _FunctionReader(self.splits)


class _FunctionEnumerator(base.KnownSplits):
    def __init__(self, names: Sequence[str], available: Callable[[str], int] | None) -> None:
        super().__init__(base.SourceSplit(name) for name in names)
        self._available = available

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        if self._available is None:
            return base.Slice(split, position, max_records=max_records)
        try:
            end = min(self._available(split.split_id), position + max_records)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=split.split_id) from error
        return base.Slice(split, position, end) if end > position else None


class _FunctionReader(base.SourceReader):
    def __init__(self, functions: Mapping[str, ReadFrom]) -> None:
        self._functions = functions
        self._progress = base.SplitProgress(0, is_finished=False)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        name = piece.split.split_id
        function = self._functions[name]
        wanted = piece.max_records if piece.end is None else piece.end - piece.start
        position = piece.start
        for values in _batches(function, position, wanted):
            position += len(values)
            yield Batch(values)
        if piece.end is not None and position < piece.end:
            raise ConnectorError(
                f"PythonSource: `available` reported {piece.end} records for split {name!r}, but "
                f"{describe_function(function)} ended after {position}",
                hint="`available` must count only records that can be read, and records must not disappear",
            )
        is_exhausted = wanted is None or position - piece.start < wanted
        self._progress = base.SplitProgress(position, is_finished=is_exhausted and piece.end is None)

    def progress(self) -> base.SplitProgress:
        return self._progress


def _batches(read_from: ReadFrom, position: int, wanted: int | None) -> Iterator[list[Any]]:
    """Yield at most this many records from the position on; an iterable that can be closed is closed."""
    records = None
    try:
        records = iter(read_from(position))
        rest = records if wanted is None else islice(records, wanted)
        while values := list(islice(rest, base.BATCH_RECORDS)):
            position += len(values)
            yield values
    except Exception as error:
        raise UserFunctionError.from_exception(error, record=position) from error
    finally:
        if isinstance(records, Generator):
            records.close()


@dataclass(frozen=True)
class FunctionSink(base.Sink):
    """Calls a function with every record, in the worker, as the records come.

    Delivery is at least once: when an epoch runs again after a failure, its records are written again. Make
    `write` harmless to repeat, for instance an upsert by key.

    Args:
        write: Takes one record. What it returns is ignored.

    Raises:
        JobDefinitionError: `write` is not a function.

    Example:
        >>> FunctionSink(print).create_committer() is None
        True
    """

    write: Callable[[Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.write):
            raise JobDefinitionError(f"FunctionSink: write must be a function; got {self.write!r}")

    @property
    def waits_for_barriers(self) -> bool:
        """The function gets each record at once."""
        return False

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        """Make the worker's half."""
        return _FunctionWriter(self.write)


class _FunctionWriter(base.SinkWriter):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def write(self, value: Any, timestamp: int | None) -> None:
        try:
            self._function(value)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error

    def prepare_commit(self) -> Sequence[Any]:
        return ()

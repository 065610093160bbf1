"""A source that does what its script says: records, and between them failures, kills and ends of epochs.

Failure and time are inputs this way: a test writes down where a worker dies, and nothing has to be waited
for.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError


@dataclass(frozen=True)
class EndEpoch:
    """The epoch ends here: records that follow are read in a later one."""


@dataclass(frozen=True)
class Fail:
    """The reader raises `ScriptedFailure` here, in the first `times` attempts."""

    message: str
    times: int = 1


@dataclass(frozen=True)
class Kill:
    """The worker process is killed here, with SIGKILL, in the first `times` attempts."""

    times: int = 1


@dataclass(frozen=True)
class Stop:
    """Nothing comes from here on, as from a source that is idle, until `ScriptedSource.resume` is called."""


@dataclass(frozen=True)
class Timestamped:
    """A record that comes with an event timestamp, in ms."""

    value: Any
    timestamp: int


class ScriptedFailure(ConnectorError):
    """What a `Fail` in a script raises. Only tests meet it."""


_Control = EndEpoch | Fail | Kill | Stop


class ScriptedSource(base.Source):
    """Reads scripts: every script is a split, every item a record or an instruction.

    Attempts are counted in files, because an attempt that was killed remembers nothing.

    Args:
        scripts: Records, mixed with `EndEpoch`, `Fail`, `Kill`, `Stop` and `Timestamped`.
        directory: Where attempts and calls of `resume` are counted; empty at first, seen by all processes.
            Needed for `Fail`, `Kill` and `Stop`.

    Raises:
        JobDefinitionError: There is no script, or no directory where one is needed.

    Example:
        >>> source = ScriptedSource([1, 2, EndEpoch(), 3])
        >>> enumerator = source.create_enumerator(parallelism=1)
        >>> [split] = enumerator.discover()
        >>> enumerator.plan(split, 0, max_records=100).end
        3
    """

    # Every script has its part in every epoch.
    concurrent_splits = None

    def __init__(self, *scripts: Sequence[Any], directory: str | os.PathLike[str] | None = None) -> None:
        if not scripts:
            raise JobDefinitionError("ScriptedSource: at least one script is needed; got none")
        if directory is None and any(isinstance(i, Fail | Kill | Stop) for script in scripts for i in script):
            raise JobDefinitionError(
                "ScriptedSource: Fail, Kill and Stop need a directory to count in",
                hint="ScriptedSource([...], directory=tmp_path)",
            )
        self._scripts = tuple(tuple(script) for script in scripts)
        self._directory = None if directory is None else Path(directory).absolute()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"ScriptedSource({', '.join(map(repr, self._scripts))})"

    def resume(self) -> None:
        """Continue every split past one more `Stop`."""
        if self._directory is None:
            raise JobDefinitionError("ScriptedSource: there is no Stop to resume from")
        _count_one(self._directory / "resumed")

    @property
    def boundedness(self) -> base.Boundedness:
        """Bounded: it ends with its scripts."""
        return base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half."""
        return _ScriptEnumerator(self._scripts, self._directory)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _ScriptReader(self._scripts, self._directory, self._process)


@dataclass(frozen=True)
class _ScriptSplit(base.SourceSplit):
    number: int


class _ScriptEnumerator(base.KnownSplits):
    def __init__(self, scripts: Sequence[Sequence[Any]], directory: Path | None) -> None:
        self._scripts = scripts
        self._directory = directory
        super().__init__(
            _ScriptSplit(f"script-{number}", number) for number, script in enumerate(scripts) if script
        )

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        script = self._scripts[cast(_ScriptSplit, split).number]
        end = position
        records = 0
        while end < len(script):
            item = script[end]
            if isinstance(item, Stop):
                if self._is_waiting_at(script, end):
                    break
            elif not isinstance(item, _Control):
                if records == max_records:
                    break
                records += 1
            end += 1
            if isinstance(item, EndEpoch):
                break
        return base.Slice(split, position, end) if end > position or end == len(script) else None

    def _is_waiting_at(self, script: Sequence[Any], index: int) -> bool:
        stops = sum(isinstance(item, Stop) for item in script[: index + 1])
        return self._directory is None or _count(self._directory / "resumed") < stops


class _ScriptReader(base.SourceReader):
    def __init__(self, scripts: Sequence[Sequence[Any]], directory: Path | None, process: int) -> None:
        self._scripts = scripts
        self._directory = directory
        self._process = process
        self._progress = base.SplitProgress(0, is_finished=False)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        split = cast(_ScriptSplit, piece.split)
        script = self._scripts[split.number]
        end = len(script) if piece.end is None else piece.end
        records: list[Any] = []
        for index in range(piece.start, end):
            item = script[index]
            if isinstance(item, _Control):
                # What stands before a failure has been read: it is processed, in part, before the attempt
                # ends.
                if records:
                    yield _batch(records)
                    records = []
                self._strike(item, split, index)
                continue
            records.append(item)
            if len(records) == base.BATCH_RECORDS:
                yield _batch(records)
                records = []
        if records:
            yield _batch(records)
        self._progress = base.SplitProgress(end, end >= len(script))

    def progress(self) -> base.SplitProgress:
        return self._progress

    def _strike(self, item: _Control, split: _ScriptSplit, index: int) -> None:
        """Fail or die if the script says so and has not had its way often enough."""
        if not isinstance(item, Fail | Kill) or self._directory is None:
            return
        attempts = self._directory / f"{split.split_id}-{index}"
        if _count(attempts) >= item.times:
            return
        if isinstance(item, Kill) and os.getpid() == self._process:
            raise ScriptedFailure(
                f"{split.split_id}, item {index}: Kill() was reached in the process that wrote the script",
                hint="it is meant for worker processes; use Fail() where the test itself reads",
                retryable=False,
            )
        _count_one(attempts)
        if isinstance(item, Fail):
            raise ScriptedFailure(item.message)
        os.kill(os.getpid(), signal.SIGKILL)


def _batch(items: list[Any]) -> Batch:
    if not any(isinstance(item, Timestamped) for item in items):
        return Batch(items)
    values = [item.value if isinstance(item, Timestamped) else item for item in items]
    return Batch(values, [item.timestamp if isinstance(item, Timestamped) else None for item in items])


def _count(path: Path) -> int:
    """Return how often something was counted: the file has a byte for each time."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _count_one(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b".")

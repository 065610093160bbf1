"""Finds the row that `headrace why` is asked about, among those that recorded epochs gave to sinks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headrace.errors import StateError, shorten
from headrace.replay.recordings import JobRecording
from headrace.replay.run import replay_epoch
from headrace.why.answer import RowAnswer, explain
from headrace.why.history import History
from headrace.why.lineage import SinkRow, Step
from headrace.why.table_rows import is_table_job, why_table_row

#: What the print sink puts before a line: the subtask, and a name.
_PRINTED = re.compile(r"^(?:[^\s>]+:)?\d+> ")
#: Rows that an error lists.
_LISTED = 5


def why(
    recording: JobRecording, *, row: str | None = None, key: str | None = None, epoch: int | None = None
) -> RowAnswer:
    """Explain the last row that a question means.

    Args:
        recording: The job's.
        row: The row as text: as the job printed it, or a part of it.
        key: The key of a keyed operator instead: its last row.
        epoch: Only rows of this epoch.

    Raises:
        StateError: If no recorded epoch has such a row.
    """
    if is_table_job(recording):
        return why_table_row(recording, row, key, epoch)
    history = History(recording)
    numbers = history.numbers if epoch is None else [recording.epoch(epoch).epoch]
    completed = [number for number in numbers if history.files(number).is_completed]
    found = _by_row(history, completed, row) if row is not None else _by_key(history, completed, key or "")
    if found is not None:
        return explain(history, *found)
    span = f"epoch {epoch}" if epoch is not None else f"the recorded epochs {numbers[-1]} to {numbers[0]}"
    what = f"row {row!r}" if row is not None else f"row of key {key!r}"
    examples = _examples(history, completed)
    hint = (
        f"rows that were emitted last: {'; '.join(examples)}" if examples else "these epochs emitted no rows"
    )
    raise StateError(f"no {what} in {span}", hint=hint)


def _by_row(history: History, numbers: list[int], text: str) -> tuple[SinkRow, int] | None:
    wanted = _PRINTED.sub("", text.strip())
    for matches in (_is_exactly, _contains):
        for number in numbers:
            result = replay_epoch(history.recording, history.files(number).epoch)
            values = (value for rows in result.output.values() for value in rows)
            if any(matches(value, wanted) for value in values):
                rows = [each for each in history.lineage(number).rows if matches(each.value, wanted)]
                return rows[-1], len(rows)
    return None


def _by_key(history: History, numbers: list[int], text: str) -> tuple[SinkRow, int] | None:
    for number in numbers:
        rows = [each for each in history.lineage(number).rows if text in _keys(each.emission.step)]
        if rows:
            return rows[-1], len(rows)
    return None


def _keys(step: Step | None) -> Iterator[str]:
    """Yield the keys that a step worked on, and those before it, as text."""
    while step is not None:
        for access in step.accesses.values():
            yield str(access.key)
            yield repr(access.key)
        step = None if step.cause is None else step.cause.step


def _is_exactly(value: Any, text: str) -> bool:
    return text in (repr(value), str(value))


def _contains(value: Any, text: str) -> bool:
    return text in repr(value) or text in str(value)


def _examples(history: History, numbers: list[int]) -> list[str]:
    found: list[str] = []
    for number in numbers:
        result = replay_epoch(history.recording, history.files(number).epoch)
        rows = [shorten(value, 60) for values in result.output.values() for value in values]
        found += rows[::-1][: _LISTED - len(found)]
        if len(found) >= _LISTED:
            break
    return found

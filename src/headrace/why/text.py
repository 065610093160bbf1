"""The answer for a terminal: the row, what each operator did for it, the input, and where the history ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from headrace.why.answer import AnswerStep, RowAnswer, StateChange

#: Steps of a key and input records that are shown; the others are counted.
SHOWN_STEPS = 20
#: Characters of a value in state, and of a record, that are shown.
VALUE_WIDTH = 60
RECORD_WIDTH = 80


def render(answer: RowAnswer, limit: int | None = SHOWN_STEPS) -> str:
    """Return the answer as text.

    Args:
        answer: What was found.
        limit: How many steps of a key, and input records, are listed; None for all.
    """
    return "\n".join(_lines(answer, limit))


def _lines(answer: RowAnswer, limit: int | None) -> Iterator[str]:
    yield answer.row
    yield f"  epoch {answer.epoch}, {answer.sink}:{answer.subtask}"
    if answer.matches > 1:
        yield f"  the last of {answer.matches} such rows in this epoch"
    for (operator, key), steps in _by_key(answer.steps):
        yield ""
        yield operator if key is None else f"{operator}, key {key}"
        yield from _table([_cells(each, answer.row) for each in steps], limit)
    yield ""
    count = len(answer.inputs)
    yield "made of 1 input record" if count == 1 else f"made of {count} input records"
    inputs = [
        (
            f"epoch {each.epoch}",
            f"{each.source}:{each.subtask}" if each.number else each.source,
            f"record {each.number}" if each.number else "",
            each.record,
        )
        for each in answer.inputs
    ]
    yield from _table(inputs, limit)
    yield ""
    yield from _ending(answer)


def _by_key(steps: Sequence[AnswerStep]) -> Iterator[tuple[tuple[str, str | None], list[AnswerStep]]]:
    found: dict[tuple[str, str | None], list[AnswerStep]] = {}
    for each in steps:
        key = each.key
        if key is None:  # of a step that knows none: it belongs to the key of the steps before
            key = next((known for operator, known in reversed(found) if operator == each.operator), None)
        found.setdefault((each.operator, key), []).append(each)
    return iter(found.items())


def _cells(step: AnswerStep, row: str) -> tuple[str, ...]:
    what = {"timer": f"timer {step.what}", "window": f"window {step.what} ends"}.get(step.kind, step.what)
    changes = ", ".join(filter(None, map(_change, _telling(step))))
    if len(what) > RECORD_WIDTH:
        what = f"{what[: RECORD_WIDTH - 3]}..."
    return f"epoch {step.epoch}", what, changes, f"=> {row}" if step.emits_row else ""


def _telling(step: AnswerStep) -> Sequence[StateChange]:
    """Return what is worth showing: what a step has changed, and for the row itself what it was made of."""
    known = [each for each in step.state if each.is_written or each.before is not None]
    changed = [each for each in known if each.is_written and each.before != each.after]
    return known if step.emits_row or not changed else changed


def _change(change: StateChange) -> str:
    name = change.state if change.part is None else f"{change.state} {change.part}"
    if change.state == "timer":
        return f"timer set for {change.after}" if change.is_written else ""
    before, after = _short(change.before), _short(change.after)
    if not change.is_written or before == after:
        return f"{name} empty" if before is None else f"{name} {before}"
    if after is None:
        return f"{name} {before}, then removed"
    if before is None or after.startswith("+"):
        return f"{name} {after}"
    return f"{name} {before} -> {after}"


def _short(value: str | None) -> str | None:
    if value is None or len(value) <= VALUE_WIDTH:
        return value
    return f"{value[: VALUE_WIDTH - 3]}..."


def _table(rows: Sequence[tuple[str, ...]], limit: int | None) -> Iterator[str]:
    """Yield rows in columns, the last ones if there are too many."""
    left_out = 0 if limit is None else max(len(rows) - limit, 0)
    if left_out:
        yield f"  ... {left_out} earlier"
    rows = rows[left_out:]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for _, same in groupby(rows):
        for row in same:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
            yield "  " + "  ".join(cells).rstrip()


def _ending(answer: RowAnswer) -> Iterator[str]:
    if not answer.unknown:
        yield "This is the whole history of the row."
    for each in answer.unknown:
        yield (
            f"The history ends before epoch {each.oldest_epoch}, the oldest one that is recorded: {each.state} of "
            f"{each.operator}, key {each.key}, was {each.value} at state version {each.version}."
        )
    for operator in answer.with_fields:
        yield f"{operator} also keeps values in fields or operator state of its function, which are not followed."
    if answer.is_upper_bound:
        yield "An asynchronous function may have used only some of these records."
    if answer.differences:
        yield "The replay differs from what the job did, so this explains the replay:"
        yield from (f"  {each}" for each in answer.differences[:5])

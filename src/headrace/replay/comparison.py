"""Compares a replay with the original run: sinks record by record, state entry by entry, and watermarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from headrace.errors import shorten
from headrace.replay.session import ReplaySession, SubtaskReplay
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.runtime.task.sink_digest import DIGEST_SIZE, digest_of
from headrace.state.changes import ChangeReader
from headrace.state.row_sets import RowSet
from headrace.storage.files import read_file

#: Differences of one kind that are named one by one.
_NAMED = 5


@dataclass(frozen=True)
class ReplayDifference:
    """Something that the replay did in another way than the job."""

    subtask: str
    #: Such as `sink Print`, `state of Count`, `watermark`.
    what: str
    message: str

    def __str__(self) -> str:
        return f"{self.subtask}: {self.what}: {self.message}"


def compare(session: ReplaySession, done: Mapping[SubtaskId, SubtaskReplay]) -> list[ReplayDifference]:
    """Return how a replay differs from what the job wrote; nothing if it is the same, bit for bit."""
    found: list[ReplayDifference] = []
    for subtask, replayed in done.items():
        recorded = session.epoch.reports.get(subtask)
        if recorded is None:
            continue
        name = session.name_of(subtask)
        for what, message in _differences(session, recorded, replayed):
            found.append(ReplayDifference(name, what, message))
    return found


def _differences(
    session: ReplaySession, recorded: SubtaskReport, replayed: SubtaskReplay
) -> Iterator[tuple[str, str]]:
    report = replayed.report
    hashes = {} if recorded.trace is None else recorded.trace.sinks
    for operator_id, records in replayed.sinks.items():
        for message in _sink_differences(hashes.get(operator_id, b""), records):
            yield f"sink {session.operator_name(operator_id)}", message
    for operator_id in sorted({*recorded.changes, *report.changes}):
        for message in _state_differences(session, operator_id, recorded, report):
            yield f"state of {session.operator_name(operator_id)}", message
    for operator_id in sorted({*recorded.operator_state, *report.operator_state}):
        if recorded.operator_state.get(operator_id) != report.operator_state.get(operator_id):
            yield f"operator state of {session.operator_name(operator_id)}", "it differs"
    for field in (
        "records_in",
        "records_out",
        "watermark",
        "next_timer_ms",
        "progress",
        "has_ended",
        "is_idle",
    ):
        before, now = getattr(recorded, field), getattr(report, field)
        if before != now:
            yield field.replace("_", " "), f"{_shown(now)}; the job had {_shown(before)}"
    if replayed.missing:
        yield "input", f"{replayed.missing} buffers that the job sent were not sent in the replay"
    if replayed.is_clock_exhausted:
        yield "clock", "the replay read it more often than the job did"


def _sink_differences(hashes: bytes, records: list[tuple[Any, int | None]]) -> Iterator[str]:
    wanted = [hashes[at : at + DIGEST_SIZE] for at in range(0, len(hashes), DIGEST_SIZE)]
    if len(wanted) != len(records):
        yield f"{len(records)} records; the job wrote {len(wanted)}"
    differing = [
        number
        for number, (digest, record) in enumerate(zip(wanted, records, strict=False), 1)
        if digest != digest_of(*record)
    ]
    for number in differing[:_NAMED]:
        yield f"record {number} is {shorten(records[number - 1][0])}; the job wrote a different one"
    if len(differing) > _NAMED:
        yield f"{len(differing) - _NAMED} more records differ"


def _state_differences(
    session: ReplaySession, operator_id: str, recorded: SubtaskReport, report: SubtaskReport
) -> Iterator[str]:
    before, now = recorded.changes.get(operator_id), report.changes.get(operator_id)
    if before is None or now is None:
        yield "only the job changed it" if now is None else "only the replay changed it"
        return
    kept = session.recording.copy_of(before.path)
    if read_file(kept) == read_file(now.path):
        return
    entries, replayed = _entries(kept), _entries(now.path)
    if entries is None or replayed is None:
        yield "its rows differ"
        return
    differing = [key for key in sorted({*entries, *replayed}) if entries.get(key) != replayed.get(key)]
    for state, key in differing[:_NAMED]:
        yield f"an entry of '{state}' differs (key {key!r})"
    if len(differing) > _NAMED:
        yield f"{len(differing) - _NAMED} more entries differ"
    if not differing:
        yield "the same entries, in another order"


def _entries(path: str) -> dict[tuple[str, bytes], bytes | None] | None:
    """Return the entries of a change file by state and storage key; None if it has rows, as those of tables."""
    with closing(ChangeReader(path)) as reader:
        sections = [each for group in reader.groups for each in reader.section(group).items()]
    if any(isinstance(section, RowSet) for _, section in sections):
        return None
    return {
        (state, key): value
        for state, section in sections
        for key, value in zip(section[0], section[1], strict=True)
    }


def _shown(value: object) -> str:
    return "none" if value is None else shorten(value)

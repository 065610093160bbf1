"""How far time had advanced in a task when an epoch ended: kept with the state of its operators.

Every operator keeps the watermarks it has seen and sent, the head also those of the task's channels. When a job comes
back in another shape, channels are others and subtasks see other records: time then starts at the lowest watermark that
any subtask had reached, so nothing that was on time becomes late, and event time never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.state.operator_state import own_part, with_own_part

#: Operator state of the head under which the gate keeps its watermarks.
GATE = "gate"
#: Operator state under which every operator keeps the watermarks it has seen and sent.
TIME = "seen-and-sent"
#: Operator state of a head that gets rows of a table: whether the table was idle.
TABLE_IDLE = "table-is-idle"
#: Operator state of a table's scan: how far event time has advanced in each split.
SPLIT_TIMES = "split-times"
NO_TIME = (MIN_WATERMARK, None)


def gate_snapshot(watermark: int, ended_channels: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """Return where a gate starts: all channels at one watermark, except those that have ended, as (edge, producer)."""
    stored: dict[str, Any] = {
        f"{edge}/{producer}": (MAX_WATERMARK, True, True) for edge, producer in ended_channels
    }
    return {**stored, "watermark": watermark, "idle": False}


def lowest_gate_watermark(snapshots: Iterable[bytes | None]) -> int:
    """Return the lowest watermark of the gates that operators had in front of them."""
    gates = [own_part(snapshot, GATE) for snapshot in snapshots]
    return min((gate["watermark"] for gate in gates if gate is not None), default=MIN_WATERMARK)


def with_lowest_time(before: Sequence[bytes | None], after: Sequence[bytes | None]) -> list[bytes | None]:
    """Give subtasks the lowest watermark that an operator had seen before, and have them send theirs again."""
    seen = min((own_part(snapshot, TIME) or NO_TIME)[0] for snapshot in before) if before else MIN_WATERMARK
    if seen == MIN_WATERMARK:
        return list(after)
    return [with_own_part(snapshot, TIME, (seen, None)) for snapshot in after]

"""The windows that a query asks for: their kind and length, and what it reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from headrace.config.parsing import format_duration
from headrace.operators.table.declarations import WindowKind

__all__ = ["WindowKind", "WindowProperty", "WindowFunctionSpec", "window_ends_sql", "window_start_sql"]


@dataclass(frozen=True)
class WindowFunctionSpec:
    """The windows of a windowing table function or a group window."""

    kind: WindowKind
    #: Length of a window; the longest one of CUMULATE; the gap that ends a SESSION.
    size_ms: int
    #: Between two starts (HOP) or two ends (CUMULATE); the size for TUMBLE.
    step_ms: int
    #: Windows start at multiples of the step plus this.
    offset_ms: int = 0
    #: Whether size and step are numbers of rows.
    counts_rows: bool = False

    def __str__(self) -> str:
        length = "gap" if self.kind is WindowKind.SESSION else "size"
        parts = [f"{length}={self._length(self.size_ms)}"]
        if self.kind in {WindowKind.HOP, WindowKind.CUMULATE}:
            parts.append(f"step={self._length(self.step_ms)}")
        if self.offset_ms:
            parts.append(f"offset={self._length(self.offset_ms)}")
        return f"{self.kind.value}({', '.join(parts)})"

    def _length(self, amount: int) -> str:
        return f"{amount} rows" if self.counts_rows else format_duration(timedelta(milliseconds=amount))


def window_ends_sql(window: WindowFunctionSpec, time: str) -> str:
    """Write the ends of the windows that a row is in, as an array; ``time`` is the row's event time in ms."""
    size, step, offset = window.size_ms, window.step_ms, window.offset_ms
    since = f"pmod({time} - {offset}L, {step}L)"
    if window.kind is WindowKind.CUMULATE:
        # All windows of a size start together; they end step by step, the first one after the row.
        start = f"({time} - pmod({time} - {offset}L, {size}L))"
        return f"sequence({time} - {since} + {step}L, {start} + {size}L, {step}L)"
    # The last window with the row starts at the step before it; others started earlier and are still open.
    ends = f"sequence({time} - {since} + {size}L, {time} + 1L, -{step}L)"
    # Windows that are shorter than the step leave gaps.
    return f"IF({since} < {size}L, {ends}, array())" if size < step else ends


def window_start_sql(window: WindowFunctionSpec, time: str, end: str) -> str:
    """Write the start of the window of a row that ends at ``end``."""
    if window.kind is WindowKind.CUMULATE:
        return f"{time} - pmod({time} - {window.offset_ms}L, {window.size_ms}L)"
    return f"{end} - {window.size_ms}L"


class WindowProperty(Enum):
    """What a query asks of a group window: TUMBLE_START and its like."""

    START = "START"
    END = "END"
    ROWTIME = "ROWTIME"
    PROCTIME = "PROCTIME"

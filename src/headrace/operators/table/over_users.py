"""The user's aggregate functions with OVER, called for the rows of each frame, one frame after the other.

With an unbounded frame, a function keeps its accumulator in state and processes each row once. With a bounded frame
it processes all rows of the frame again for every row, as do functions of pandas Series and with DISTINCT.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.common.arrow_values import python_values
from headrace.operators.table.frames import Block, Frames
from headrace.operators.table.over_frames import KeyState, OverOutcome, Windowed
from headrace.operators.table.timed_declarations import OverCall
from headrace.operators.table.user_results import result_column
from headrace.state.columns import Bools, ColumnType

__all__ = ["UserMeasure"]

_Rows = list[tuple[Any, ...]]


class UserMeasure(Windowed):
    """One call.

    Args:
        name: Of the column that state has for its accumulator.
        over: What it is.
        types: The types of columns.
    """

    def __init__(self, name: str, over: OverCall, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(over)
        assert over.call.user is not None
        self._name, self._call, self._user = name, over.call, over.call.user
        self._kind = pa.struct([(f"f{at}", types[each]) for at, each in enumerate(over.call.arguments)])
        self._runs = self.is_unbounded and not self._user.is_pandas and not over.call.distinct
        self.columns = (ColumnType(name, pa.binary()),) if self._runs else ()
        if not self._runs:
            self.arguments = over.call.arguments

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        columns = [python_values(block.columns[each]) for each in self._call.arguments]
        rows: _Rows = list(zip(*columns, strict=True)) if columns else [()] * len(block.keys)
        if self._runs:
            return self._running(rows, block, frames, state)
        starts = frames.starts + 1 if frames.is_unbounded else frames.starts
        made = [
            self._user.value_of(self._different(rows[start:end]), self._kind)
            for start, end in zip(starts.tolist(), frames.ends.tolist(), strict=True)
        ]
        return OverOutcome(result_column(self._user.name, made, self._call.result.arrow), {})

    def keeps(self, block: Block, oldest: int) -> Bools:
        if self.is_unbounded:
            return np.zeros(len(block.keys), np.bool_) if self._runs else ~block.is_state
        return super().keeps(block, oldest)

    def _running(self, rows: _Rows, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        """Take the rows of each key into its accumulator, and ask it where a frame ends."""
        known = state[self._name].to_pylist() if self._name in state else [None] * len(block.firsts)
        asked = np.zeros(len(rows), np.bool_)
        asked[frames.ends - 1] = True
        values: list[Any] = [None] * len(rows)
        after: list[bytes] = []
        for first, last, kept in zip(block.firsts.tolist(), block.lasts.tolist(), known, strict=True):
            accumulator = self._user.new() if kept is None else pickle.loads(kept)
            for place in range(first + 1, last + 1):
                if block.is_fresh[place]:
                    self._user.take(accumulator, [(rows[place], 1)])
                if asked[place]:
                    values[place] = self._user.value(accumulator)
            after.append(pickle.dumps(accumulator, protocol=5))
        made = [values[end - 1] for end in frames.ends.tolist()]
        result = result_column(self._user.name, made, self._call.result.arrow)
        return OverOutcome(result, {self._name: pa.array(after, pa.binary())})

    def _different(self, rows: _Rows) -> _Rows:
        """Return the rows that count: with DISTINCT each once; arrays cannot be hashed, but written."""
        return list({repr(each): each for each in rows}.values()) if self._call.distinct else rows

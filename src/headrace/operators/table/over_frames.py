"""What functions of OVER have in common: the results for a block of rows, and which rows they need again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.operators.table.frames import Block
from headrace.operators.table.timed_declarations import OverCall
from headrace.state.columns import Bools

__all__ = ["KeyState", "OverOutcome", "Windowed"]

#: What state has of the keys of a block, by column; none of these: nothing is known of them yet.
KeyState = Mapping[str, pa.Array]


@dataclass(frozen=True)
class OverOutcome:
    """What a function says."""

    #: For each fresh row.
    result: pa.Array
    #: For each key, as state has it next.
    state: KeyState


class Windowed:
    """A function that looks at the rows of a frame."""

    def __init__(self, over: OverCall) -> None:
        self.over = over
        self.is_unbounded = over.preceding is None
        self.arguments: tuple[str, ...] = () if self.is_unbounded else over.call.arguments

    def keeps(self, block: Block, oldest: int) -> Bools:
        """Which rows of a block it will look at again, if later ones look back to this time at most."""
        preceding = self.over.preceding
        if preceding is None:
            return np.zeros(len(block.keys), np.bool_)
        if self.over.is_range:
            return block.times >= oldest - preceding
        return block.tail(preceding)

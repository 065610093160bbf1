"""Conditions of joins that can be checked before pairs are made: comparisons of columns, joined by AND.

Spark checks a condition after the join, over complete pairs. It is cheaper not to make pairs that cannot pass,
because each pair is a copy of all its columns and has to be sent to Spark. Conditions that are not supported here are
left to Spark.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.state.columns import Bools, Ints

__all__ = ["PairCondition", "is_whole_number", "whole_numbers"]

_TOKEN: Final = re.compile(r"\s*([lr]\d+|BETWEEN\b|AND\b|<=|>=|=|<|>|\(|\))")
_COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True)
class PairCondition:
    """Comparisons that must all hold.

    Args:
        comparisons: Two columns, each as its side (0, 1) and position, and how they are compared.
    """

    comparisons: tuple[tuple[tuple[int, int], str, tuple[int, int]], ...]

    @classmethod
    def of(
        cls, condition: str | None, left: Sequence[pa.DataType], right: Sequence[pa.DataType]
    ) -> PairCondition:
        """Return what is understood of a condition; nothing, if it is anything but comparisons joined by AND.

        >>> PairCondition.of("(r1 BETWEEN l0 AND l1)", [pa.int64()] * 2, [pa.int64()] * 2).comparisons
        (((1, 1), '>=', (0, 0)), ((1, 1), '<=', (0, 1)))
        >>> PairCondition.of("upper(r1) = l0", [pa.string()], [pa.string()] * 2).comparisons
        ()
        """
        try:
            found = _Reader(condition or "").read()
        except ValueError:
            return cls(())
        types = (left, right)
        return cls(
            tuple(
                (one, how, other)
                for one, how, other in found
                if types[one[0]][one[1]] == types[other[0]][other[1]]
                and is_whole_number(types[one[0]][one[1]])
            )
        )

    def is_all_of(self, condition: str | None) -> bool:
        """Whether nothing is left of a condition for Spark to check."""
        try:
            return condition is None or len(_Reader(condition).read()) == len(self.comparisons)
        except ValueError:
            return False

    def holds(
        self, left: Sequence[pa.Array], right: Sequence[pa.Array], at_left: Ints, at_right: Ints
    ) -> Bools | None:
        """Return which pairs may pass: those of rows at these positions; None: all."""
        if not self.comparisons:
            return None
        sides, places = (left, right), (at_left, at_right)
        passes = np.ones(len(at_left), np.bool_)
        for one, how, other in self.comparisons:
            values = []
            for side, position in (one, other):
                column = sides[side][position]
                values.append(whole_numbers(column)[places[side]])
                if column.null_count:
                    passes &= column.is_valid().to_numpy(zero_copy_only=False)[places[side]]
            passes &= _COMPARED[how](*values)
        return passes


class _Reader:
    """Reads comparisons off a condition; anything else is a ValueError."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        place = 0
        text = text.rstrip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise ValueError(text)
            self._tokens.append(found[1])
            place = found.end()

    def read(self) -> list[tuple[tuple[int, int], str, tuple[int, int]]]:
        found = self._all()
        if self._tokens:
            raise ValueError(self._tokens)
        return found

    def _all(self) -> list[tuple[tuple[int, int], str, tuple[int, int]]]:
        found = self._one()
        while self._tokens and self._tokens[0] == "AND":
            self._next()
            found += self._one()
        return found

    def _one(self) -> list[tuple[tuple[int, int], str, tuple[int, int]]]:
        if self._tokens and self._tokens[0] == "(":
            self._next()
            found = self._all()
            self._expect(")")
            return found
        one, how = self._column(), self._next()
        if how == "BETWEEN":
            low = self._column()
            self._expect("AND")
            return [(one, ">=", low), (one, "<=", self._column())]
        if how not in _COMPARED:
            raise ValueError(how)
        return [(one, how, self._column())]

    def _column(self) -> tuple[int, int]:
        token = self._next()
        if token[0] not in "lr":
            raise ValueError(token)
        return "lr".index(token[0]), int(token[1:])

    def _expect(self, wanted: str) -> None:
        if self._next() != wanted:
            raise ValueError(wanted)

    def _next(self) -> str:
        if not self._tokens:
            raise ValueError("the condition ends too early")
        return self._tokens.pop(0)


def is_whole_number(kind: pa.DataType) -> bool:
    """Whether values are compared as the whole numbers they are in memory."""
    is_time: bool = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return is_time or bool(pa.types.is_signed_integer(kind))


def whole_numbers(column: pa.Array) -> npt.NDArray[Any]:
    """Return the whole numbers that values are in memory."""
    whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
    kind = column.type if pa.types.is_integer(column.type) else whole
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros(len(column), kind.to_pandas_dtype())  # all are NULL
    return np.frombuffer(buffer, kind.to_pandas_dtype())[column.offset : column.offset + len(column)]

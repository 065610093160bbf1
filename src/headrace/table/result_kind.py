"""The kind of a statement's result."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ResultKind"]


class ResultKind(IntEnum):
    """Whether a statement returns rows, or only succeeds; a number, as in PyFlink."""

    #: It was done; the only row says OK.
    SUCCESS = 0
    #: It was done, and there are rows to read.
    SUCCESS_WITH_CONTENT = 1

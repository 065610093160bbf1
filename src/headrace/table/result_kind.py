"""What kind of answer a statement gives."""

from __future__ import annotations

from enum import Enum

__all__ = ["ResultKind"]


class ResultKind(Enum):
    """Whether a statement gives rows, or only succeeds."""

    #: It was done; the only row says OK.
    SUCCESS = 0
    #: It was done, and there are rows to read.
    SUCCESS_WITH_CONTENT = 1

"""The name of one run of a job among all others."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

__all__ = ["JobID"]


@dataclass(init=False, repr=False, unsafe_hash=True)
class JobID:
    """32 hexadecimal digits that name a job.

    Args:
        text: The digits.

    Raises:
        ValueError: If the text is something else.

    Example:
        >>> str(JobID("00000000000000000000000000000001"))
        '00000000000000000000000000000001'
    """

    __slots__ = ("_text",)

    _text: str

    def __init__(self, text: str) -> None:
        if not re.fullmatch(r"[0-9a-f]{32}", text.lower()):
            raise ValueError(f"a job id has 32 hexadecimal digits; got {text!r}")
        self._text = text.lower()

    @staticmethod
    def generate() -> JobID:
        """Make a new one that nobody has."""
        return JobID(uuid.uuid4().hex)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"JobID('{self._text}')"

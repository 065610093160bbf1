"""How many random cases a slow test tries."""

from __future__ import annotations

import math
import os

#: What part of the cases is tried. A rotation tries a few with each seed, so that it gets round to many tests.
SHARE = float(os.environ.get("SURVEY_SHARE", "1"))


def examples(whole: int) -> int:
    """Return how many of so many examples to try now."""
    return math.ceil(whole * SHARE)

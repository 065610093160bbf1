"""Which kinds of rows a changelog has."""

from __future__ import annotations

from headrace.planner.changelog import ChangelogMode

__all__ = ["ChangelogMode"]

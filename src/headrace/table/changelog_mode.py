"""Which kinds of rows a changelog has."""

from __future__ import annotations

from headrace.common.changelog import ChangelogMode

__all__ = ["ChangelogMode"]

"""What EXPLAIN shows in addition to the plan."""

from __future__ import annotations

from headrace.planner.statements import ExplainDetail

__all__ = ["ExplainDetail"]

"""What EXPLAIN shows beside the plan."""

from __future__ import annotations

from headrace.planner.statements import ExplainDetail

__all__ = ["ExplainDetail"]

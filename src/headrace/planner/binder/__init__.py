"""Syntax trees to bound statements: names resolved, types known, refused with the place where they are wrong.

scope ─▶ expressions ─▶ grouping ─▶ queries ◀─ tables        statements and definitions around them
"""

from headrace.planner.binder.context import Context, FunctionLoader
from headrace.planner.binder.statements import bind_sink, bind_statement
from headrace.planner.binder.tables import bind_scan

__all__ = ["Context", "FunctionLoader", "bind_scan", "bind_sink", "bind_statement"]

"""Flink's SQL: text to syntax trees. Strict: what the grammar does not know is an error with its place.

The grammar is our own. A parser of many dialects takes what Flink refuses (`x BETWEEN 1 2`, `a != b`), drops what
it does not know (`OPTIONS` hints as comments) and keeps no place for most nodes; each of these would be a silent
difference from Flink, or an error without a position.

    tokens ─▶ cursor ─▶ special ─▶ expressions ─▶ queries ─▶ statements        layers of one reader
"""

from headrace.planner.dialect.statement_syntax import StatementSyntax
from headrace.planner.dialect.statements import Statements

__all__ = ["StatementSyntax", "Statements"]

"""From SQL text to plans: dialect, binder, logical tree, rules, physical tree.

    text ── parse_statements ──▶ [Statement]                 planner.dialect: a strict grammar of Flink's SQL
         ── bind ──────────────▶ a bound statement, typed     planner.binder, planner.functions
         ── ddl.execute ───────▶ the catalog changed, or rows to show (CREATE, DROP, USE, SHOW, DESCRIBE)
         ── rules, changelog ──▶ physical nodes ── translate ──▶ job graph (queries and INSERTs)

The way in:

    for statement in parse_statements(text):                 # SqlParseError with line and column
        bound = bind(statement, catalog_manager, load_function)   # SqlValidationError, CatalogError
        match bound:
            case Query(plan): ...                            # planner.statements lists what there is
            case Insert(sink): ...
            case _: result = ddl.execute(bound, catalog_manager)

`expressions` and `logical` are the vocabulary that the Table API shares with SQL; `emit.emit` writes an
expression as Spark SQL, for a session with `emit.SPARK_SETTINGS`.
"""

from headrace.planner.sql import (
    Statement,
    bind,
    bind_expression,
    parse_statement,
    parse_statements,
    placed,
)

__all__ = ["Statement", "bind", "bind_expression", "parse_statement", "parse_statements", "placed"]

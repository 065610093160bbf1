"""From SQL text to plans: dialect, binder, logical tree, rules, physical tree.

    text ── parse_statements ──▶ statements, positions known        planner.dialect (sqlglot, parser side only)
         ── bind ──────────────▶ bound statements, typed             planner.binder, planner.functions
         ── rules, changelog ──▶ physical nodes ── translate ──▶ job graph

`expressions` and `logical` are the vocabulary that the Table API shares with SQL.
"""

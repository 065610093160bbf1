"""The grammar of statements that change something, and of scripts: statements with semicolons between them."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Final, NoReturn

from headrace.planner.dialect.materialized import MaterializedTables
from headrace.planner.dialect.statement_syntax import (
    AlterDatabaseSyntax,
    AlterTableSyntax,
    AlterViewSyntax,
    ColumnSyntax,
    CompilePlanSyntax,
    CreateDatabaseSyntax,
    CreateFunctionSyntax,
    CreateTableSyntax,
    CreateViewSyntax,
    DropSyntax,
    ExecutePlanSyntax,
    ExplainSyntax,
    InsertSyntax,
    KeySyntax,
    LikeSyntax,
    StatementSetSyntax,
    StatementSyntax,
    WatermarkSyntax,
)
from headrace.planner.dialect.syntax import Constant, Identifier, Name, Query
from headrace.planner.dialect.tokens import Span, Token
from headrace.planner.dialect.types import parse_type

__all__ = ["Statements"]

#: What may follow in a query: a misspelt one reads as the name of what is before it.
_CLAUSES: Final = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "UNION", "QUALIFY", "WINDOW")
#: Statements of Flink that headrace does not have yet, with the way round where there is one.
_UNSUPPORTED: Final = {
    "ANALYZE": None,
    "CALL": None,
    "DELETE": "write the rows to keep into another table",
    "MERGE": None,
    "TRUNCATE": None,
    "UPDATE": "write the changed rows into another table",
    "ADD": "put the Python modules on the program's path",
    "REMOVE": None,
}
_STARTS: Final = (
    *(
        "ALTER",
        "BEGIN",
        "COMPILE",
        "CREATE",
        "DESC",
        "DESCRIBE",
        "DROP",
        "EXECUTE",
        "EXPLAIN",
        "INSERT",
        "LOAD",
        "REPLACE",
    ),
    *("RESET", "SELECT", "SET", "SHOW", "STOP", "UNLOAD", "USE", "VALUES", "WITH"),
)
_DETAILS: Final = ("ESTIMATED_COST", "CHANGELOG_MODE", "PLAN_ADVICE", "JSON_EXECUTION_PLAN")
_LIKE_PARTS: Final = (
    *("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"),
)


class Statements(MaterializedTables):
    """Parses statements other than queries."""

    def script(self) -> list[StatementSyntax]:
        """All statements up to the end of the text."""
        found: list[StatementSyntax] = []
        while True:
            while self.accept(";"):
                pass
            if self.at_end():
                return found
            found.append(self.statement())
            if not self.at_end() and not self.sees(";"):
                self._surplus()

    def _surplus(self) -> NoReturn:
        """Refuse what follows a statement; a clause with a misspelt name was taken for the name of something."""
        close = difflib.get_close_matches(self.last.upper, _CLAUSES, n=1, cutoff=0.7)
        hint = f"{self.last.text!r} was read as a name: did you mean {close[0]}?" if close else None
        self.fail(f"expected ';' or the end of the statement, found {self.token.describe()}", hint=hint)

    def statement(self) -> StatementSyntax:
        token = self.token
        word = token.upper
        if word in {"SELECT", "WITH", "VALUES", "("}:
            return self.query()
        readers = {
            "INSERT": self._insert,
            "EXECUTE": self._execute,
            "BEGIN": self._begin,
            "COMPILE": self._compile,
            "EXPLAIN": self._explain,
            "CREATE": self._create,
            "DROP": self._drop,
            "ALTER": self._alter,
            "REPLACE": self._create,
            **self.inspections(),
        }
        if word in readers:
            return readers[word]()
        if word in _UNSUPPORTED:
            self.unsupported(f"the statement {word}", hint=_UNSUPPORTED[word])
        self.expected("a statement, such as " + ", ".join(_STARTS))

    # --- INSERT and sets --------------------------------------------------------------------------

    def _insert(self) -> InsertSyntax:
        start = self.expect("INSERT")
        overwrite = self.choose("INTO", "OVERWRITE") == "OVERWRITE"
        target = self.name("a table")
        hints = self.hints()
        partition: tuple[tuple[Identifier, Constant | None], ...] = ()
        if self.accept("PARTITION"):
            partition = self.parenthesized(self.partition_item)
        columns: tuple[Identifier, ...] = ()
        if self.sees("(") and not self.sees_query():
            columns = self.identifiers()
        query = self.query()
        on_conflict = None
        if self.accept("ON"):
            self.expect("CONFLICT", "DO")
            on_conflict = self.choose("NOTHING", "ERROR", "DEDUPLICATE")
        return InsertSyntax(
            target, hints, overwrite, partition, columns, query, self.span_from(start), on_conflict
        )

    def _execute(self) -> StatementSyntax:
        start = self.expect("EXECUTE")
        if self.sees("INSERT"):
            return self._insert()
        if self.sees("STATEMENT"):
            self.expect("STATEMENT", "SET")
            self.expect("BEGIN")
            return self._statement_set(self.last)
        if self.accept("PLAN"):
            path = self.string("the plan's file in single quotes")
            return ExecutePlanSyntax(path, self.span_from(start))
        if self.sees_any("SELECT", "WITH", "VALUES"):
            return self.query()
        self.expected("STATEMENT SET or INSERT")

    def _begin(self) -> StatementSyntax:
        start = self.expect("BEGIN")
        self.expect("STATEMENT", "SET")
        self.expect(";")
        return self._statement_set(start)

    def _statement_set(self, start: Token) -> StatementSetSyntax:
        inserts: list[InsertSyntax] = []
        while not self.sees("END"):
            if not self.sees("INSERT"):
                self.expected("INSERT or END")
            inserts.append(self._insert())
            self.expect(";")
        if not inserts:
            self.fail("a statement set needs at least one INSERT")
        self.expect("END")
        return StatementSetSyntax(tuple(inserts), self.span_from(start))

    def _compile(self) -> CompilePlanSyntax:
        start = self.expect("COMPILE")
        executes = self.accept("AND", "EXECUTE")
        self.expect("PLAN")
        path = self.string("the plan's file in single quotes")
        missing = self._if_not_exists()
        self.expect("FOR")
        statement: InsertSyntax | StatementSetSyntax
        if self.sees("INSERT"):
            statement = self._insert()
        elif self.accept("STATEMENT", "SET", "BEGIN"):
            statement = self._statement_set(start)
        else:
            self.expected("INSERT or STATEMENT SET: a plan has sinks")
        return CompilePlanSyntax(path, statement, missing, executes, self.span_from(start))

    def _explain(self) -> ExplainSyntax:
        start = self.expect("EXPLAIN")
        details: tuple[str, ...] = ()
        if self.accept("PLAN"):
            self.expect("FOR")
        elif self.sees_any(*_DETAILS):
            details = self.commas(lambda: self.choose(*_DETAILS))
        statement: Query | InsertSyntax | StatementSetSyntax
        if self.sees("INSERT"):
            statement = self._insert()
        elif self.sees("STATEMENT"):
            self.expect("STATEMENT", "SET")
            self.expect("BEGIN")
            statement = self._statement_set(start)
        elif self.sees_any("SELECT", "WITH", "VALUES", "("):
            statement = self.query()
        else:
            self.expected("a query, INSERT or STATEMENT SET")
        return ExplainSyntax(details, statement, self.span_from(start))

    # --- CREATE -----------------------------------------------------------------------------------

    def _create(self) -> StatementSyntax:
        start = self.advance()
        if start.upper == "REPLACE":
            self.expect("TABLE")
            return self._replace_table(start, may_be_new=False)
        if self.accept("OR"):
            self.expect("REPLACE")
            if not self.accept("TABLE"):
                self.unsupported(f"CREATE OR REPLACE {self.token.upper}")
            return self._replace_table(start, may_be_new=True)
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if system and not self.sees("FUNCTION"):
            self.expected("FUNCTION")
        if not temporary and self.accept("MATERIALIZED"):
            return self.create_materialized(start)
        if self.sees_any("MATERIALIZED", "MODEL", "CONNECTION"):
            self.unsupported(f"CREATE {'TEMPORARY ' * temporary}{self.token.upper}")
        kind = self.choose("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        if temporary and kind in {"DATABASE", "CATALOG"}:
            self.fail(f"there are no temporary {kind.lower()}s", start.span)
        missing = self._if_not_exists()
        match kind:
            case "TABLE":
                return self._create_table(start, temporary, missing)
            case "VIEW":
                return self._create_view(start, temporary, missing)
            case "FUNCTION":
                return self._create_function(start, temporary, system, missing)
            case _:
                return self._create_database(start, kind, missing)

    def _replace_table(self, start: Token, *, may_be_new: bool) -> CreateTableSyntax:
        made = self._create_table(start, temporary=False, missing=False)
        if made.query is None:
            self.unsupported("CREATE OR REPLACE TABLE without AS SELECT", made.span, hint="DROP TABLE first")
        return replace(made, replaces="CREATE OR REPLACE" if may_be_new else "REPLACE")

    def _if_not_exists(self) -> bool:
        if not self.accept("IF"):
            return False
        self.expect("NOT", "EXISTS")
        return True

    def _create_table(self, start: Token, temporary: bool, missing: bool) -> CreateTableSyntax:
        name = self.name("the table's name")
        columns: list[ColumnSyntax] | None = None
        watermarks: list[WatermarkSyntax] = []
        keys: list[KeySyntax] = []
        column_names: tuple[Identifier, ...] = ()
        if self.sees("("):
            columns = []
            if self._sees_only_names():
                column_names = self.identifiers()
            else:
                self._elements(columns, watermarks, keys)
        comment, partitioned_by, options = self.clauses_of_table()
        like = self._like() if self.accept("LIKE") else None
        query = None
        if self.accept("AS"):
            query = self.query()
            if like is not None:
                self.fail("LIKE and AS SELECT cannot be combined", query.span)
        return CreateTableSyntax(
            name,
            self.span_from(start),
            temporary,
            missing,
            None if columns is None else tuple(columns),
            tuple(watermarks),
            tuple(keys),
            column_names,
            comment,
            partitioned_by,
            options,
            like,
            query,
        )

    def _sees_only_names(self) -> bool:
        return self.ahead(2).upper in {",", ")"} and self.ahead(1).upper not in {")"}

    def _elements(
        self, columns: list[ColumnSyntax], watermarks: list[WatermarkSyntax], keys: list[KeySyntax]
    ) -> None:
        """Columns, watermarks and keys in parentheses."""
        self.expect("(")
        while True:
            self._element(columns, watermarks, keys)
            if not self.accept(","):
                break
        self.expect(")")

    def _element(
        self, columns: list[ColumnSyntax], watermarks: list[WatermarkSyntax], keys: list[KeySyntax]
    ) -> bool:
        """One column, watermark or key; say whether it was a column."""
        start = self.token
        if self.sees("WATERMARK", "FOR"):
            watermarks.append(self._watermark())
            return False
        if self.sees("CONSTRAINT") or self.sees("PRIMARY", "KEY"):
            name = None
            if self.accept("CONSTRAINT"):
                name = self.identifier("the constraint's name").name
            if self.sees("UNIQUE"):
                self.unsupported("UNIQUE")
            self.expect("PRIMARY", "KEY")
            key_columns = self.identifiers()
            self._not_enforced()
            keys.append(KeySyntax(name, key_columns, self.span_from(start)))
            return False
        columns.append(self._column())
        return True

    def _watermark(self) -> WatermarkSyntax:
        start = self.expect("WATERMARK", "FOR")
        column = self.name("a column")
        self.expect("AS")
        at = self.token
        expression = self.expression()
        text = self.written(self.span_from(at))
        return WatermarkSyntax(column, expression, text, self.span_from(start))

    def _not_enforced(self) -> None:
        if self.sees("ENFORCED") or not self.sees("NOT", "ENFORCED"):
            self.fail(
                "primary keys cannot be enforced: Flink does not own the data",
                hint="write PRIMARY KEY ... NOT ENFORCED",
            )
        self.expect("NOT", "ENFORCED")

    def _column(self) -> ColumnSyntax:
        start = self.token
        name = self.identifier("a column's name")
        if self.accept("AS"):
            at = self.token
            expression = self.expression()
            text = self.written(self.span_from(at))
            comment = self.string() if self.accept("COMMENT") else None
            return ColumnSyntax(
                name, "computed", None, expression, text, None, False, comment, False, self.span_from(start)
            )
        data_type = parse_type(self)
        if self.accept("METADATA"):
            key = self.string("the metadata's key") if self.accept("FROM") else None
            virtual = self.accept("VIRTUAL")
            comment = self.string() if self.accept("COMMENT") else None
            return ColumnSyntax(
                name, "metadata", data_type, None, None, key, virtual, comment, False, self.span_from(start)
            )
        is_key = False
        if self.accept("CONSTRAINT"):
            self.identifier("the constraint's name")
            if not self.sees("PRIMARY"):
                self.expected("PRIMARY KEY")
        if self.accept("PRIMARY"):
            self.expect("KEY")
            self._not_enforced()
            is_key = True
        if self.sees("DEFAULT"):
            self.fail("Flink's columns have no default")
        comment = self.string() if self.accept("COMMENT") else None
        return ColumnSyntax(
            name, "physical", data_type, None, None, None, False, comment, is_key, self.span_from(start)
        )

    def _like(self) -> LikeSyntax:
        base = self.name("a table")
        chosen: list[tuple[str, str, Span]] = []
        if self.accept("("):
            while not self.accept(")"):
                start = self.token
                how = self.choose("INCLUDING", "EXCLUDING", "OVERWRITING")
                what = self.choose(*_LIKE_PARTS)
                chosen.append((how, what, self.span_from(start)))
                self.accept(",")
        return LikeSyntax(base, tuple(chosen))

    def _create_view(self, start: Token, temporary: bool, missing: bool) -> CreateViewSyntax:
        name = self.name("the view's name")
        columns = self.identifiers() if self.sees("(") else ()
        comment = self.string() if self.accept("COMMENT") else None
        self.expect("AS")
        query = self.query()
        return CreateViewSyntax(
            name,
            columns,
            comment,
            query,
            self.written(query.span),
            temporary,
            missing,
            self.span_from(start),
        )

    def _create_function(
        self, start: Token, temporary: bool, system: bool, missing: bool
    ) -> CreateFunctionSyntax:
        name = self.name("the function's name")
        self.expect("AS")
        class_name = self.string("'module.function' in single quotes")
        language = "JAVA"
        if self.accept("LANGUAGE"):
            language = self.choose("PYTHON", "JAVA", "SCALA")
        if self.sees("USING"):
            self.unsupported("USING JAR", hint="headrace calls Python functions: LANGUAGE PYTHON")
        if self.sees("WITH"):
            self.unsupported("options of a function")
        if language != "PYTHON":
            self.unsupported(
                f"a function in {language.capitalize()}",
                self.span_from(start),
                hint="write it in Python: CREATE FUNCTION f AS 'module.function' LANGUAGE PYTHON",
            )
        return CreateFunctionSyntax(
            name, class_name, language, temporary, system, missing, self.span_from(start)
        )

    def _create_database(self, start: Token, kind: str, missing: bool) -> CreateDatabaseSyntax:
        name = self.name(f"the {kind.lower()}'s name")
        comment = self.string() if self.accept("COMMENT") else None
        options = self.options() if self.accept("WITH") else ()
        return CreateDatabaseSyntax(
            "DATABASE" if kind == "DATABASE" else "CATALOG",
            name,
            comment,
            options,
            missing,
            self.span_from(start),
        )

    # --- DROP and ALTER ---------------------------------------------------------------------------

    def _drop(self) -> StatementSyntax:
        start = self.expect("DROP")
        if self.accept("MATERIALIZED"):
            return self.drop_materialized(start)
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if self.sees_any("MATERIALIZED", "MODEL", "CONNECTION"):
            self.unsupported(f"DROP {self.token.upper}")
        kind = self.choose("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        if (temporary and kind in {"DATABASE", "CATALOG"}) or (system and kind != "FUNCTION"):
            self.fail(f"there is no DROP TEMPORARY {'SYSTEM ' if system else ''}{kind}", start.span)
        if_exists = self.accept("IF", "EXISTS")
        name = self.name()
        cascade = False
        if kind == "DATABASE" and self.sees_any("RESTRICT", "CASCADE"):
            cascade = self.advance().upper == "CASCADE"
        return DropSyntax(
            kind,  # type: ignore[arg-type]  # one of the kinds
            name,
            temporary,
            system,
            if_exists,
            cascade,
            self.span_from(start),
        )

    def _alter(self) -> StatementSyntax:
        start = self.expect("ALTER")
        if self.accept("MATERIALIZED"):
            return self.alter_materialized(start)
        if self.sees_any("MODEL", "CONNECTION", "FUNCTION", "CATALOG"):
            self.unsupported(f"ALTER {self.token.upper}")
        kind = self.choose("TABLE", "VIEW", "DATABASE")
        if_exists = self.accept("IF", "EXISTS")
        name = self.name()
        if kind == "DATABASE":
            self.expect("SET")
            return AlterDatabaseSyntax(name, self.options(), self.span_from(start))
        if kind == "VIEW":
            return self._alter_view(start, name)
        return self._alter_table(start, name, if_exists)

    def _alter_view(self, start: Token, name: Name) -> AlterViewSyntax:
        if self.accept("RENAME"):
            self.expect("TO")
            return AlterViewSyntax(name, self.name(), None, "", self.span_from(start))
        self.expect("AS")
        query = self.query()
        return AlterViewSyntax(name, None, query, self.written(query.span), self.span_from(start))

    def _alter_table(self, start: Token, name: Name, if_exists: bool) -> AlterTableSyntax:
        action = self.choose("RENAME", "SET", "RESET", "ADD", "MODIFY", "DROP")

        def made(what: str, **parts: object) -> AlterTableSyntax:
            return AlterTableSyntax(name, if_exists, what, self.span_from(start), **parts)  # type: ignore[arg-type]

        match action:
            case "RENAME":
                if self.accept("TO"):
                    return made("RENAME TO", new_name=self.name())
                old = self.identifier("a column")
                self.expect("TO")
                return made("RENAME COLUMN", old_column=old, new_name=self.name())
            case "SET":
                return made("SET", options=self.options())
            case "RESET":
                keys = self.parenthesized(lambda: self.string("an option's key in single quotes"))
                return made("RESET", keys_to_reset=keys)
            case "DROP":
                return self._alter_drop(made)
            case _:
                return self._alter_add(action, made)

    def _alter_drop(self, made: object) -> AlterTableSyntax:
        assert callable(made)
        found: AlterTableSyntax
        if self.accept("PRIMARY", "KEY"):
            found = made("DROP KEY")
        elif self.accept("WATERMARK"):
            found = made("DROP WATERMARK")
        elif self.sees_any("PARTITION", "DISTRIBUTION", "CONSTRAINT"):
            self.unsupported(f"ALTER TABLE ... DROP {self.token.upper}")
        elif self.sees("("):
            found = made("DROP COLUMN", dropped=self.identifiers())
        else:
            found = made("DROP COLUMN", dropped=(self.identifier("a column"),))
        return found

    def _alter_add(self, action: str, made: object) -> AlterTableSyntax:
        assert callable(made)
        if self.sees_any("PARTITION", "DISTRIBUTION"):
            self.unsupported(f"ALTER TABLE ... {action} {self.token.upper}")
        columns: list[ColumnSyntax] = []
        watermarks: list[WatermarkSyntax] = []
        keys: list[KeySyntax] = []
        positions: list[object] = []

        def element() -> None:
            if self._element(columns, watermarks, keys):
                place: object = None
                if self.accept("FIRST"):
                    place = "FIRST"
                elif self.accept("AFTER"):
                    place = self.identifier("a column")
                positions.append(place)

        if self.accept("("):
            self.commas(element)
            self.expect(")")
        else:
            element()
        found: AlterTableSyntax = made(
            action,
            columns=tuple(columns),
            positions=tuple(positions),
            watermarks=tuple(watermarks),
            keys=tuple(keys),
        )
        return found

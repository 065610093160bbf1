"""The grammar of SHOW, DESCRIBE, USE and STOP: statements that show the catalog, choose from it, or manage jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.planner.dialect.queries import Queries
from headrace.planner.dialect.statement_syntax import (
    DescribeSyntax,
    JobSyntax,
    ModuleSyntax,
    OptionSyntax,
    ResetSyntax,
    SetSyntax,
    ShowPartitionsSyntax,
    ShowSyntax,
    StatementSyntax,
    StopJobSyntax,
    UseModulesSyntax,
    UseSyntax,
)
from headrace.planner.dialect.syntax import Constant, Identifier
from headrace.planner.dialect.tokens import Token, TokenKind

__all__ = ["Inspection"]

#: What DESCRIBE can be followed by before the name of what is described, if a name does follow.
_DESCRIBED: Final = ("CATALOG", "DATABASE", "FUNCTION", "JOB", "MODEL")
#: What SHOW lists by name, with LIKE.
_LISTED: Final = (
    "CATALOGS",
    "DATABASES",
    "TABLES",
    "VIEWS",
    "FUNCTIONS",
    "COLUMNS",
    "PARTITIONS",
    "MODULES",
    "JARS",
    "JOBS",
    "PROCEDURES",
    "MODELS",
)
_NAMES: Final = (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING)
_JOB_ID: Final = "the job's id in single quotes"


class Inspection(Queries):
    """Reads statements that change no table."""

    def inspections(self) -> dict[str, Callable[[], StatementSyntax]]:
        """What reads a statement, by its first word."""
        return {
            "USE": self._use,
            "LOAD": self._module,
            "UNLOAD": self._module,
            "SHOW": self._show,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "STOP": self._stop,
            "SET": self._set,
            "RESET": self._reset,
        }

    # --- USE and modules --------------------------------------------------------------------------

    def _use(self) -> StatementSyntax:
        start = self.expect("USE")
        if self.accept("MODULES"):
            names = self.commas(lambda: self.identifier("a module"))
            return UseModulesSyntax(names, self.span_from(start))
        catalog = self.accept("CATALOG")
        name = self.name("a catalog" if catalog else "a database")
        return UseSyntax("CATALOG" if catalog else "DATABASE", name, self.span_from(start))

    def _module(self) -> ModuleSyntax:
        start = self.advance()
        self.expect("MODULE")
        name = self.identifier("a module")
        options = self.options() if start.upper == "LOAD" and self.accept("WITH") else ()
        return ModuleSyntax(start.upper == "LOAD", name, options, self.span_from(start))

    def options(self) -> tuple[OptionSyntax, ...]:
        """('key' = 'value', ...)."""
        if self.sees("(", ")"):
            self.fail("WITH () needs at least one option", hint="leave it out")
        return self.parenthesized(self._option)

    def _option(self) -> OptionSyntax:
        start = self.token
        key = self.string("an option's key in single quotes")
        self.expect("=")
        value = self.string("the option's value in single quotes")
        return OptionSyntax(key, value, self.span_from(start))

    # --- SHOW -------------------------------------------------------------------------------------

    def _show(self) -> StatementSyntax:
        start = self.expect("SHOW")
        if self.accept("PARTITIONS"):
            table = self.name("a table")
            partition = self.parenthesized(self.partition_item) if self.accept("PARTITION") else ()
            return ShowPartitionsSyntax(table, partition, self.span_from(start))
        if self.accept("JOBS"):
            return JobSyntax("SHOW", None, self.span_from(start))
        if self.accept("CURRENT"):
            subject = "CURRENT_" + self.choose("CATALOG", "DATABASE")
        elif self.accept("CREATE"):
            if self.sees("MODEL"):
                self.unsupported("SHOW CREATE MODEL")
            if self.accept("MATERIALIZED"):
                self.expect("TABLE")
                return ShowSyntax("CREATE TABLE", self.name(), None, False, False, self.span_from(start))
            subject = "CREATE " + self.choose("TABLE", "VIEW", "CATALOG")
            return ShowSyntax(subject, self.name(), None, False, False, self.span_from(start))
        elif self.accept("FULL"):
            self.expect("MODULES")
            subject = "FULL_MODULES"
        elif self.sees_any("MODULES", "JARS"):
            subject = self.advance().upper
        else:
            return self._show_names(start)
        return ShowSyntax(subject, None, None, False, False, self.span_from(start))

    def _show_names(self, start: Token) -> ShowSyntax:
        if self.accept("USER"):
            self.expect("FUNCTIONS")
            subject = "USER_FUNCTIONS"
        elif self.accept("MATERIALIZED"):
            self.expect("TABLES")
            subject = "MATERIALIZED_TABLES"
        else:
            subject = self.choose(*_LISTED)
        source = None
        if self.sees_any("FROM", "IN"):
            self.advance()
            source = self.name()
        elif subject == "COLUMNS":
            self.expected("FROM or IN")
        negated = self.accept("NOT")
        pattern, ignore_case = None, False
        if negated or self.sees_any("LIKE", "ILIKE"):
            ignore_case = self.choose("LIKE", "ILIKE") == "ILIKE"
            pattern = self.string("a pattern in single quotes")
        return ShowSyntax(subject, source, pattern, negated, ignore_case, self.span_from(start))

    def partition_item(self) -> tuple[Identifier, Constant | None]:
        """A column of PARTITION (...), with its value if there is one."""
        name = self.identifier("a partition column")
        if not self.accept("="):
            return name, None
        value = self.expression()
        if not isinstance(value, Constant):
            self.fail("a static partition needs a constant value", value.span)
        return name, value

    # --- DESCRIBE ---------------------------------------------------------------------------------

    def _describe(self) -> StatementSyntax:
        start = self.advance()
        kind = "TABLE"
        if self.sees_any(*_DESCRIBED) and self.ahead().kind in _NAMES:
            kind = self.advance().upper
        if kind == "MODEL":
            self.unsupported("DESCRIBE MODEL")
        if kind == "JOB":
            return JobSyntax("DESCRIBE", self.string(_JOB_ID), self.span_from(start))
        extended = self.sees("EXTENDED") and self.ahead().kind in _NAMES
        if extended:
            self.advance()
        return DescribeSyntax(self.name(f"a {kind.lower()}"), self.span_from(start), kind, extended)

    # --- jobs -------------------------------------------------------------------------------------

    def _stop(self) -> StopJobSyntax:
        start = self.expect("STOP")
        self.expect("JOB")
        job_id = self.string(_JOB_ID)
        with_savepoint = self.accept("WITH", "SAVEPOINT")
        with_drain = self.accept("WITH", "DRAIN")
        if with_drain and not with_savepoint:
            self.fail("WITH DRAIN needs WITH SAVEPOINT", hint="STOP JOB ... WITH SAVEPOINT WITH DRAIN")
        return StopJobSyntax(job_id, with_savepoint, with_drain, self.span_from(start))

    # --- configuration ----------------------------------------------------------------------------

    def _set(self) -> SetSyntax:
        start = self.expect("SET")
        if self.at_end() or self.sees(";"):
            return SetSyntax(None, None, self.span_from(start))
        key = self._key()
        self.expect("=")
        quoted = self.token.kind is TokenKind.STRING
        value = self.advance().text if quoted else self._unquoted("a value")
        return SetSyntax(key, value, self.span_from(start))

    def _reset(self) -> ResetSyntax:
        start = self.expect("RESET")
        if self.at_end() or self.sees(";"):
            return ResetSyntax(None, self.span_from(start))
        return ResetSyntax(self._key(), self.span_from(start))

    def _key(self) -> str:
        if self.token.kind is TokenKind.STRING:
            return self.advance().text
        return self._unquoted("a key", "=")

    def _unquoted(self, what: str, *ends: str) -> str:
        """Text without quotes, as it is written: up to a space, a semicolon, or the end."""
        first = self.token
        if self.at_end() or self.sees_any(";", "=") or first.kind is TokenKind.STRING:
            self.expected(f"{what}, such as SET 'key' = 'value' or SET key = value")
        while not self.at_end() and not self.sees_any(";", *ends):
            if self.token is not first and self.token.span.start != self.last.span.end:
                self.fail(f"{what} with spaces is written in single quotes", hint="SET 'key' = 'value'")
            self.advance()
        return self.text[first.span.start : self.last.span.end]

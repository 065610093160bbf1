"""The grammar of queries: WITH, SELECT, VALUES, set operations, FROM with joins and table functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.planner.dialect.match_clauses import MatchClauses
from headrace.planner.dialect.syntax import (
    CommonTable,
    DerivedTable,
    FunctionCall,
    GroupItem,
    Hint,
    Identifier,
    JoinTable,
    Node,
    OrderItem,
    Query,
    QueryBody,
    SelectItem,
    SelectSyntax,
    SetQuery,
    Star,
    TableExpression,
    TableFunctionSyntax,
    TableName,
    UnnestTable,
    ValuesRows,
    WindowSyntax,
)
from headrace.planner.dialect.tokens import Token, TokenKind

__all__ = ["Queries"]

#: Clauses of other dialects, and of Flink where headrace has them not yet.
_UNSUPPORTED_TABLES: Final = ("PIVOT", "UNPIVOT", "TABLESAMPLE")


class Queries(MatchClauses):
    """Parses queries: SELECT, VALUES, set operations and WITH."""

    def query(self) -> Query:
        start = self.token
        with_: tuple[CommonTable, ...] = ()
        if self.accept("WITH"):
            if self.sees("RECURSIVE"):
                self.fail("Flink has no recursive queries")
            with_ = self.commas(self._common_table)
        body = self._set_query()
        order_by: tuple[OrderItem, ...] = ()
        if self.accept("ORDER"):
            self.expect("BY")
            order_by = self.commas(self.order_item)
        offset, fetch = self._limit()
        return Query(body, self.span_from(start), with_, order_by, offset, fetch)

    def _common_table(self) -> CommonTable:
        name = self.identifier()
        columns = self.identifiers() if self.sees("(") else ()
        self.expect("AS", "(")
        query = self.deeper(self.query)
        self.expect(")")
        return CommonTable(name, columns, query)

    def _limit(self) -> tuple[int, int | None]:
        offset, fetch = 0, None
        if self.accept("LIMIT") and not self.accept("ALL"):
            fetch = self.integer("a number of rows")
            if self.sees(","):
                self.fail("LIMIT takes one number", hint="write LIMIT count OFFSET start")
        if self.accept("OFFSET"):
            offset = self.integer("a number of rows")
            if self.sees_any("ROW", "ROWS"):
                self.advance()
        if fetch is None and self.accept("FETCH"):
            self.choose("FIRST", "NEXT")
            fetch = 1 if self.sees_any("ROW", "ROWS") else self.integer("a number of rows")
            self.choose("ROW", "ROWS")
            self.expect("ONLY")
        return offset, fetch

    # --- set operations ---------------------------------------------------------------------------

    def _set_query(self) -> QueryBody:
        left = self._intersection()
        while self.sees_any("UNION", "EXCEPT"):
            kind = self.advance().upper
            every = self._all()
            right = self._intersection()
            left = SetQuery(
                "UNION" if kind == "UNION" else "EXCEPT", every, left, right, left.span.to(right.span)
            )
        if self.sees("MINUS"):
            self.fail("Flink's SQL has no MINUS", hint="write EXCEPT")
        return left

    def _intersection(self) -> QueryBody:
        left = self._block()
        while self.accept("INTERSECT"):
            every = self._all()
            right = self._block()
            left = SetQuery("INTERSECT", every, left, right, left.span.to(right.span))
        return left

    def _all(self) -> bool:
        every = self.accept("ALL")
        if not every:
            self.accept("DISTINCT")
        return every

    def _block(self) -> QueryBody:
        if self.accept("("):
            query = self.deeper(self.query)
            self.expect(")")
            return query
        if self.sees("VALUES"):
            return self._values()
        if self.sees("SELECT"):
            return self._select()
        self.expected("SELECT, VALUES or a query in parentheses")

    def _values(self) -> ValuesRows:
        start = self.advance()
        return ValuesRows(self.commas(self._row), self.span_from(start))

    def _row(self) -> tuple[Node, ...]:
        self.accept("ROW")
        if not self.sees("("):
            return (self.expression(),)
        return self.parenthesized(self.expression)

    # --- SELECT -----------------------------------------------------------------------------------

    def _select(self) -> SelectSyntax:
        start = self.advance()
        hints = self.hints()
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        items = self.commas(self._item)
        made = SelectSyntax(items, self.span_from(start), distinct, hints)
        if self.accept("FROM"):
            made = replace(made, source=self._tables())
        if self.accept("WHERE"):
            made = replace(made, where=self.expression())
        if self.accept("GROUP"):
            self.expect("BY")
            if self.sees_any("DISTINCT", "ALL"):
                self.unsupported(f"GROUP BY {self.token.upper}")
            made = replace(made, group_by=self.commas(self._group_item))
        if self.accept("HAVING"):
            made = replace(made, having=self.expression())
        if self.accept("WINDOW"):
            made = replace(made, windows=self.commas(self._named_window))
        if self.accept("QUALIFY"):
            made = replace(made, qualify=self.expression())
        return replace(made, span=self.span_from(start))

    def _item(self) -> SelectItem:
        start = self.token
        if self.accept("*"):
            if self.sees_any("EXCEPT", "EXCLUDE") and self.ahead().upper == "(" and not self._opens_query(2):
                self.fail(f"Flink's SQL has no * {self.token.upper}", hint="list the columns that you want")
            return SelectItem(Star(None, start.span), None, "*")
        expression = self.expression()
        text = self.written(self.span_from(start))
        alias = None
        if self.accept("AS"):
            alias = self.identifier("a column's name")
        elif self._sees_alias():
            alias = self.identifier()
        if alias is not None and isinstance(expression, Star):
            self.fail("* cannot have an alias", alias.span)
        return SelectItem(expression, alias, text)

    def _opens_query(self, by: int) -> bool:
        return self.ahead(by).upper in {"SELECT", "VALUES", "WITH", "("}

    def _group_item(self) -> GroupItem:
        start = self.token
        if self.sees("GROUPING", "SETS"):
            self.advance()
            self.advance()
            nested = self.parenthesized(self._grouping_set)
            return GroupItem("GROUPING SETS", (), nested, self.span_from(start))
        if self.sees_any("ROLLUP", "CUBE") and self.ahead().upper == "(":
            kind = self.advance().upper
            sets = self.parenthesized(self._group_list)
            return GroupItem("ROLLUP" if kind == "ROLLUP" else "CUBE", sets, (), self.span_from(start))
        if self.accept("(", ")"):
            return GroupItem("GROUPING SETS", (), (self._simple((), start),), self.span_from(start))
        parts = self._group_list()
        return self._simple(parts, start)

    def _simple(self, parts: tuple[Node, ...], start: Token) -> GroupItem:
        return GroupItem("SIMPLE", (parts,), (), self.span_from(start))

    def _grouping_set(self) -> GroupItem:
        return self._group_item() if not self.sees("(", ")") else self._empty_set()

    def _empty_set(self) -> GroupItem:
        start = self.token
        self.expect("(", ")")
        return self._simple((), start)

    def _group_list(self) -> tuple[Node, ...]:
        # (a, b) is a list here, not a row.
        expression = self.expression()
        if isinstance(expression, FunctionCall) and expression.name.span.start == expression.span.start:
            written = self.written(expression.span)
            if written.startswith("("):
                return expression.arguments
        return (expression,)

    def _named_window(self) -> tuple[Identifier, WindowSyntax]:
        name = self.identifier("a window's name")
        self.expect("AS")
        return name, self.window()

    # --- FROM -------------------------------------------------------------------------------------

    def _tables(self) -> TableExpression:
        left = self._joined_tables()
        while self.accept(","):
            right = self._joined_tables()
            left = JoinTable(left, right, "CROSS", False, None, (), left.span.to(right.span))
        return left

    def _joined_tables(self) -> TableExpression:
        left = self._table()
        while True:
            start = left.span
            natural = self.accept("NATURAL")
            kind = self._join_kind(natural)
            if kind is None:
                return left
            right = self._table()
            on = None
            using: tuple[Identifier, ...] = ()
            if kind != "CROSS" and not natural:
                if self.accept("ON"):
                    on = self.expression()
                elif self.accept("USING"):
                    using = self.identifiers()
                else:
                    self.expected("ON or USING")
            left = JoinTable(left, right, kind, natural, on, using, self.span_from(start))  # type: ignore[arg-type]  # one of the kinds

    def _join_kind(self, natural: bool) -> str | None:
        if self.accept("JOIN"):
            return "INNER"
        if self.sees_any("INNER", "CROSS"):
            kind = self.advance().upper
            self.expect("JOIN")
            return kind
        if self.sees_any("LEFT", "RIGHT", "FULL"):
            kind = self.advance().upper
            if self.sees_any("SEMI", "ANTI"):
                self.fail(f"Flink's SQL has no {self.token.upper} JOIN", hint="use IN, EXISTS or NOT EXISTS")
            self.accept("OUTER")
            self.expect("JOIN")
            return kind
        if natural:
            self.expected("JOIN")
        return None

    def _table(self) -> TableExpression:
        start = self.token
        lateral = self.accept("LATERAL")
        if self.sees("("):
            made = self._parenthesized_table(start, lateral)
        elif self.sees("UNNEST"):
            self.advance()
            self.expect("(")
            collection = self.expression()
            self.expect(")")
            ordinality = self.accept("WITH", "ORDINALITY")
            made = UnnestTable(collection, ordinality, self._alias(), self.span_from(start))
        elif self.sees("TABLE"):
            self.advance()
            self.expect("(")
            made = self._table_function(start, lateral, closing=True)
        elif self._sees_function():
            made = self._table_function(start, lateral, closing=False)
        else:
            made = self._table_name(start)
        if self.sees("MATCH_RECOGNIZE"):
            made = self.matched(made)
        for word in _UNSUPPORTED_TABLES:
            if self.sees(word):
                self.unsupported(word)
        return made

    def _sees_function(self) -> bool:
        """Whether a name with an opening parenthesis after it comes next."""
        if self.token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            return False
        behind = 1
        while self.ahead(behind).upper == ".":
            behind += 2
        return self.ahead(behind).upper == "("

    def _parenthesized_table(self, start: Token, lateral: bool) -> TableExpression:
        if self.sees_query() and self._is_query_in_parentheses():
            self.expect("(")
            query = self.deeper(self.query)
            self.expect(")")
            return DerivedTable(query, self._alias(), lateral, self.span_from(start))
        self.expect("(")
        made = self.deeper(self._tables)
        self.expect(")")
        if self._sees_alias():
            self.fail("a join in parentheses cannot have an alias")
        return made

    def _is_query_in_parentheses(self) -> bool:
        """Tell ((SELECT ...) UNION ...) from ((SELECT ...) AS a JOIN ...): read on and look."""
        mark = self.mark()
        self.expect("(")
        if not self.sees("("):
            self.back(mark)
            return True
        depth = 0
        while not self.at_end():
            word = self.advance().upper
            depth += (word == "(") - (word == ")")
            if depth == 0:
                break
        answer = self.sees_any(")", "UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "OFFSET", "FETCH")
        self.back(mark)
        return answer

    def _table_function(self, start: Token, lateral: bool, closing: bool) -> TableFunctionSyntax:
        call = self._name_or_call()
        if not isinstance(call, FunctionCall):
            self.fail("expected a table function", call.span)
        if closing:
            self.expect(")")
        return TableFunctionSyntax(call, self._alias(), lateral, self.span_from(start))

    def _table_name(self, start: Token) -> TableName:
        name = self.name("a table")
        hints = self.hints()
        as_of = None
        if self.accept("FOR"):
            self.expect("SYSTEM_TIME", "AS", "OF")
            as_of = self._sum()
        alias = self._alias()
        return TableName(name, hints, alias, as_of, self.span_from(start))

    # --- hints ------------------------------------------------------------------------------------

    def hints(self) -> tuple[Hint, ...]:
        """The hints that come next: none, or `/*+ A(...), B(...) */`."""
        if not self._accept_kind(TokenKind.HINT_START):
            return ()
        found = [self._hint()]
        while not self._accept_kind(TokenKind.HINT_END):
            self.accept(",")
            found.append(self._hint())
        return tuple(found)

    def _accept_kind(self, kind: TokenKind) -> bool:
        if self.token.kind is not kind:
            return False
        self.advance()
        return True

    def _hint(self) -> Hint:
        start = self.token
        name = self.identifier("a hint's name").name.upper()
        options: tuple[tuple[str, str], ...] = ()
        if self.sees("("):
            options = self.parenthesized(self._hint_option)
        return Hint(name, options, self.span_from(start))

    def _hint_option(self) -> tuple[str, str]:
        if self.token.kind is TokenKind.STRING:
            key = self.advance().text
        else:
            key = self.name("an option").dotted()
        if self.accept("="):
            return key, self.string()
        return key, ""

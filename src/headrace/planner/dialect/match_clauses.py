"""The grammar of MATCH_RECOGNIZE, and of names of tables. What Flink has no operator for is refused where it stands."""

from __future__ import annotations

from typing import Final, NoReturn

from headrace.planner.dialect.cursor import RESERVED
from headrace.planner.dialect.expressions import Expressions
from headrace.planner.dialect.syntax import (
    Alias,
    Identifier,
    MatchTable,
    Node,
    OrderItem,
    PatternItem,
    SkipSyntax,
    TableExpression,
)
from headrace.planner.dialect.tokens import Token, TokenKind

__all__ = ["MatchClauses"]

#: The clauses, in the order in which they are written.
_CLAUSES: Final = (
    "PARTITION",
    "ORDER",
    "MEASURES",
    "ONE",
    "ALL",
    "AFTER",
    "PATTERN",
    "WITHIN",
    "SUBSET",
    "DEFINE",
)
_NO_GROUPS: Final = "write the variables one after the other: PATTERN (A B+ C)"


class MatchClauses(Expressions):
    """Parses the clauses of MATCH_RECOGNIZE."""

    def matched(self, table: TableExpression) -> MatchTable:
        """Read what stands after a table, from MATCH_RECOGNIZE to its alias."""
        keyword = self.advance()
        self.expect("(")
        partition: tuple[Node, ...] = ()
        order: tuple[OrderItem, ...] = ()
        measures: tuple[tuple[Node, Identifier], ...] = ()
        define: tuple[tuple[Identifier, Node], ...] = ()
        if self.accept("PARTITION"):
            self.expect("BY")
            partition = self.commas(self.expression)
        if self.accept("ORDER"):
            self.expect("BY")
            order = self.commas(self.order_item)
        if self.accept("MEASURES"):
            measures = self.commas(self._measure)
        self._rows_per_match()
        skip = self._skip()
        if not self.accept("PATTERN"):
            self._expected_clause("PATTERN")
        pattern = self._whole_pattern()
        within = None
        if self.accept("WITHIN"):
            within = self.operand()
        subsets = self.commas(self._subset) if self.accept("SUBSET") else ()
        if not self.accept("DEFINE"):
            self._expected_clause("DEFINE")
        define = self.commas(self._definition)
        if not self.sees(")"):
            self._expected_clause("',' or ')'")
        self.expect(")")
        return MatchTable(
            table,
            partition,
            order,
            measures,
            skip,
            pattern,
            within,
            subsets,
            define,
            self._alias(),
            keyword.span,
            self.span_from(table.span),
        )

    def _expected_clause(self, wanted: str) -> NoReturn:
        if self.token.upper in _CLAUSES:
            self.fail(
                f"expected {wanted}, found {self.token.text!r}",
                hint="the order is PARTITION BY, ORDER BY, MEASURES, ONE ROW PER MATCH, AFTER MATCH SKIP, PATTERN, "
                "WITHIN, SUBSET, DEFINE",
            )
        self.expected(wanted)

    def _measure(self) -> tuple[Node, Identifier]:
        if self.sees_any("FINAL", "RUNNING") and self.ahead().upper not in {"AS", ".", ",", "("}:
            word = self.advance()
            if word.upper == "RUNNING":
                self.fail(
                    "RUNNING has no effect with ONE ROW PER MATCH",
                    word.span,
                    hint="leave it out: measures are those of the whole match",
                )
        expression = self.expression()
        if not self.accept("AS"):
            self.fail("a measure needs a name: expression AS name")
        return expression, self.identifier("a measure's name")

    def _rows_per_match(self) -> None:
        start = self.token
        if self.accept("ALL"):
            self.expect("ROWS", "PER", "MATCH")
            self.fail(
                "Flink has no ALL ROWS PER MATCH",
                self.span_from(start),
                hint="write ONE ROW PER MATCH, and say in MEASURES what you want of the rows",
            )
        if self.accept("ONE"):
            self.expect("ROW", "PER", "MATCH")

    def _skip(self) -> SkipSyntax:
        if not self.accept("AFTER"):
            return SkipSyntax("TO NEXT ROW", None)  # as in Flink, whatever SQL's standard says
        self.expect("MATCH", "SKIP")
        if self.accept("PAST"):
            self.expect("LAST", "ROW")
            return SkipSyntax("PAST LAST ROW", None)
        if not self.accept("TO"):
            self.expected("PAST LAST ROW or TO")
        if self.sees("NEXT", "ROW"):
            self.expect("NEXT", "ROW")
            return SkipSyntax("TO NEXT ROW", None)
        is_word = self.ahead().kind in {TokenKind.WORD, TokenKind.QUOTED} and self.ahead().upper != "PATTERN"
        if self.sees_any("FIRST", "LAST") and is_word:
            word = self.advance().upper
            kind = "TO FIRST" if word == "FIRST" else "TO LAST"
            return SkipSyntax(kind, self.identifier("a pattern variable"))  # type: ignore[arg-type]  # one of two kinds
        return SkipSyntax("TO LAST", self.identifier("a pattern variable"))

    # --- PATTERN ------------------------------------------------------------------------------------

    def _whole_pattern(self) -> tuple[PatternItem, ...]:
        """Read a pattern with its anchors, which Flink takes and ignores: a stream has no beginning and no end."""
        self.expect("(")
        self.accept("^")
        items = self._items(ends=(")", "$"))
        self.accept("$")
        self.expect(")")
        return items

    def _items(self, *, ends: tuple[str, ...]) -> tuple[PatternItem, ...]:
        items: list[PatternItem] = []
        while not self.sees_any(*ends):
            if self.sees("("):
                items += self.deeper(self._group)
                continue
            self._refuse_in_pattern()
            items.append(self._pattern_item())
        if not items:
            self._refuse_in_pattern()
            self.fail("a pattern needs at least one variable")
        return tuple(items)

    def _group(self) -> tuple[PatternItem, ...]:
        """Parentheses that only show what belongs together."""
        start = self.token
        self.expect("(")
        items = self._items(ends=(")",))
        self.expect(")")
        if self.sees_any("*", "+", "?", "{") and self.ahead().upper != "-":
            self.fail("Flink has no quantifiers of groups", self.span_from(start), hint=_NO_GROUPS)
        return items

    def _refuse_in_pattern(self) -> None:
        token, following = self.token, self.ahead()
        if token.upper in {"|", "||"}:
            self.fail(
                "Flink has no alternatives ('|') in a pattern",
                hint="put OR into the definition of one variable",
            )
        if token.upper == "PERMUTE" and following.upper == "(":
            self.fail("Flink has no PERMUTE in a pattern", hint=_NO_GROUPS)
        if token.upper == "{" and following.upper == "-":
            self.fail(
                "Flink has no exclusion ('{- -}') in a pattern",
                hint="name the variable, and leave it out of MEASURES",
            )
        if token.upper in {"^", "$"}:
            self.fail(
                f"{token.text!r} is not allowed here in a pattern",
                hint="^ must be first in PATTERN (...), and $ last",
            )

    def _pattern_item(self) -> PatternItem:
        start = self.token
        name = self.identifier("a pattern variable")
        least, most = self._quantifier(start)
        is_greedy = True
        if (least, most) != (1, 1) or self.last.upper == "}":
            is_greedy = not self.accept("?")
        elif self.sees("?"):
            self.expected("a pattern variable or ')'")
        return PatternItem(name, least, most, is_greedy, self.span_from(start))

    def _quantifier(self, start: Token) -> tuple[int, int | None]:
        if self.accept("*"):
            return 0, None
        if self.accept("+"):
            return 1, None
        if self.accept("?"):
            return 0, 1
        if not self.sees("{") or self.ahead().upper == "-":
            return 1, 1
        self.advance()
        least = 0
        if not self.sees(","):
            least = self.integer("a number of rows")
        most: int | None = least
        if self.accept(","):
            most = None if self.sees("}") else self.integer("a number of rows")
            if most is None and self.last.upper == "," and self.ahead(-2).upper == "{":
                self.expected("a number of rows")
        self.expect("}")
        if most is not None and (most < least or most == 0):
            self.fail(
                f"this quantifier allows {'no rows' if most == 0 else f'at least {least} and at most {most} rows'}",
                self.span_from(start),
                hint="write {least,most}, with a most of 1 or more",
            )
        return least, most

    def _subset(self) -> tuple[Identifier, tuple[Identifier, ...]]:
        name = self.identifier("a subset's name")
        self.expect("=")
        return name, self.identifiers()

    def _definition(self) -> tuple[Identifier, Node]:
        name = self.identifier("a pattern variable")
        self.expect("AS")
        return name, self.expression()

    # --- names of tables ----------------------------------------------------------------------------

    def _sees_alias(self) -> bool:
        token = self.token
        return token.kind is TokenKind.QUOTED or (
            token.kind is TokenKind.WORD and token.upper not in RESERVED
        )

    def _alias(self) -> Alias | None:
        if self.accept("AS"):
            name = self.identifier("a table's name")
        elif self._sees_alias():
            name = self.identifier()
        else:
            return None
        return Alias(name, self.identifiers() if self.sees("(") else ())

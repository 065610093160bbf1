"""The grammar of expressions, by precedence: OR, AND, NOT, comparisons, ||, + -, * / %, signs, access.

Functions with a syntax of their own (EXTRACT, TRIM, OVERLAY) come out as plain calls, with the words that stand
in place of an argument as symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from headrace.planner.dialect.cursor import MAX_CHAIN, RESERVED
from headrace.planner.dialect.list_forms import over_list
from headrace.planner.dialect.syntax import (
    Access,
    Case,
    Constant,
    Descriptor,
    Exists,
    FieldAccess,
    FunctionCall,
    Identifier,
    In,
    Interval,
    Name,
    Node,
    OperatorSyntax,
    OrderItem,
    Query,
    Star,
    Subquery,
    Symbol,
    TableArgument,
)
from headrace.planner.dialect.tokens import Span, Token, TokenKind
from headrace.planner.dialect.window_forms import WindowForms

__all__ = ["Expressions"]

_COMPARISONS: Final = {
    "=": "EQUALS",
    "<>": "NOT_EQUALS",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
}
_OPPOSITES: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_SUMS: Final = {"+": "PLUS", "-": "MINUS"}
_PRODUCTS: Final = {"*": "TIMES", "/": "DIVIDE", "%": "MOD"}
#: Functions that are called without parentheses.
_BARE: Final = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_INTERVAL_UNITS: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "QUARTER")
#: Those of intervals that count months; the others count milliseconds.
_MONTH_UNITS: Final = ("YEAR", "MONTH", "QUARTER")
_INTERVAL_PLURALS: Final = frozenset(f"{unit}S" for unit in _INTERVAL_UNITS)
_CONSTANTS: Final = {
    "TRUE": ("boolean", True),
    "FALSE": ("boolean", False),
    "NULL": ("null", None),
    "UNKNOWN": ("null", None),
}
#: Words that begin something else, though a name could stand there.
_NOT_CALLS: Final = RESERVED - {"LEFT", "RIGHT", "GROUPING", "SET", "VALUES", "INSERT"}


class Expressions(WindowForms):
    """Reads expressions. Queries within them are read by the subclass that knows queries."""

    def query(self) -> Query:
        """A query; the grammar of queries overrides this."""
        raise NotImplementedError

    def sees_query(self) -> bool:
        """Whether a query comes next, perhaps after parentheses."""
        place = 0
        while self.ahead(place).upper == "(":
            place += 1
        return self.ahead(place).upper in {"SELECT", "WITH", "VALUES"}

    # --- operators --------------------------------------------------------------------------------

    def expression(self) -> Node:
        return self.deeper(self._or)

    def _or(self) -> Node:
        return self._joined(self._and, "OR")

    def _and(self) -> Node:
        return self._joined(self._not, "AND")

    def _chain(self, part: Callable[[], Node], names: dict[str, str]) -> Node:
        left = part()
        length = 0
        while self.sees_any(*names):
            length += 1
            if length > MAX_CHAIN:
                self.fail(f"these are more than {MAX_CHAIN} operators in a row")
            function = names[self.advance().upper]
            right = part()
            left = OperatorSyntax(function, (left, right), left.span.to(right.span))
        return left

    def _joined(self, part: Callable[[], Node], word: str) -> Node:
        """AND and OR: however many there are, they are one operator."""
        parts = [part()]
        while self.accept(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return OperatorSyntax(word, tuple(parts), parts[0].span.to(parts[-1].span))

    def _not(self) -> Node:
        start = self.token
        if self.accept("NOT"):
            operand = self.deeper(self._not)
            return OperatorSyntax("NOT", (operand,), self.span_from(start))
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._sum()
        while True:
            start = left.span
            token = self.token
            if token.upper in _COMPARISONS:
                self.advance()
                if token.upper == "=" and self.sees("="):
                    self.fail(
                        "Flink's SQL has no '=='", self.span_from(token).to(self.token.span), hint="write ="
                    )
                if self.sees_any("ANY", "SOME", "ALL") and self.ahead().upper == "(":
                    left = self._quantified(left, token.upper, start)
                    continue
                right = self._sum()
                left = OperatorSyntax(_COMPARISONS[token.upper], (left, right), self.span_from(start))
            elif token.upper == "!=":
                self.fail("Flink's SQL has no '!='", hint="write <>")
            elif self.sees_any("ILIKE", "RLIKE") and self.ahead().kind is TokenKind.STRING:
                hint = "LOWER(text) LIKE 'pattern'" if token.upper == "ILIKE" else "REGEXP(text, 'pattern')"
                self.fail(f"Flink's SQL has no {token.upper}", hint=f"write {hint}")
            elif self.accept("IS"):
                left = self._is(left, start)
            elif self.sees_any("BETWEEN", "LIKE", "SIMILAR", "IN") or (
                self.sees("NOT") and self.ahead().upper in {"BETWEEN", "LIKE", "SIMILAR", "IN"}
            ):
                left = self._range(left, start)
            else:
                return left

    def _quantified(self, left: Node, comparison: str, start: Span) -> Node:
        """> SOME (...) holds for one of the values, > ALL (...) unless the opposite, <=, holds for one."""
        is_all = self.advance().upper == "ALL"
        wanted = _OPPOSITES[comparison] if is_all else comparison
        return self._in(left, start, is_all, _COMPARISONS[wanted])

    def _is(self, left: Node, start: Span) -> Node:
        negated = "NOT_" if self.accept("NOT") else ""
        if self.accept("DISTINCT", "FROM"):
            right = self._sum()
            return OperatorSyntax(f"IS_{negated}DISTINCT_FROM", (left, right), self.span_from(start))
        if self.accept("JSON"):
            kind = self.advance().upper if self.sees_any("VALUE", "SCALAR", "ARRAY", "OBJECT") else "VALUE"
            symbol = Symbol(kind, self.last.span)
            return OperatorSyntax(f"IS_{negated}JSON", (left, symbol), self.span_from(start))
        what = self.choose("NULL", "TRUE", "FALSE", "UNKNOWN")
        return OperatorSyntax(f"IS_{negated}{what}", (left,), self.span_from(start))

    def _range(self, left: Node, start: Span) -> Node:
        negated = self.accept("NOT")
        word = self.advance().upper
        if word == "IN":
            return self._in(left, start, negated)
        if word == "BETWEEN":
            symmetric = self.accept("SYMMETRIC")
            if not symmetric:
                self.accept("ASYMMETRIC")
            low = self._sum()
            self.expect("AND")
            name = "BETWEEN_SYMMETRIC" if symmetric else "BETWEEN"
            made: Node = OperatorSyntax(name, (left, low, self._sum()), self.span_from(start))
        else:
            if word == "SIMILAR":
                self.expect("TO")
            operands = [left, self._sum()]
            if self.accept("ESCAPE"):
                operands.append(self._sum())
            made = OperatorSyntax(
                "LIKE" if word == "LIKE" else "SIMILAR", tuple(operands), self.span_from(start)
            )
        return OperatorSyntax("NOT", (made,), made.span) if negated else made

    def _in(self, left: Node, start: Span, negated: bool, comparison: str = "EQUALS") -> Node:
        self.expect("(")
        if self.sees_query():
            query = self.deeper(self.query)
            self.expect(")")
            return In(left, (), query, negated, self.span_from(start), comparison)
        choices = self.commas(self.expression)
        self.expect(")")
        return In(left, choices, None, negated, self.span_from(start), comparison)

    def operand(self) -> Node:
        """An operand of a comparison."""
        return self._sum()

    def _sum(self) -> Node:
        return self._chain(self._product, _SUMS)

    def _product(self) -> Node:
        return self._chain(self._concatenation, _PRODUCTS)

    def _concatenation(self) -> Node:
        # In Calcite || binds tighter than * and /.
        return self._chain(self._sign, {"||": "CONCAT_OPERATOR"})

    def _sign(self) -> Node:
        start = self.token
        if self.sees_any("-", "+"):
            word = self.advance().upper
            if word == "-" and self.token.kind is TokenKind.NUMBER:
                return self._postfix(self._number(start, negative=True))
            operand = self.deeper(self._sign)
            return OperatorSyntax("NEGATE" if word == "-" else "POSITIVE", (operand,), self.span_from(start))
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        while True:
            if self.accept("["):
                key = self.expression()
                self.expect("]")
                node = Access(node, key, self.span_from(node.span))
            elif self.sees(".") and self.ahead().kind in {TokenKind.WORD, TokenKind.QUOTED}:
                self.advance()
                token = self.advance()
                node = FieldAccess(node, Identifier(token.text, token.span), self.span_from(node.span))
            else:
                break
        if self.sees("::"):
            self.fail("'::' casts in other dialects", hint="write CAST(value AS type)")
        if self.sees("AT", "TIME", "ZONE"):
            self.unsupported("AT TIME ZONE", hint="use CONVERT_TZ")
        return node

    # --- primaries --------------------------------------------------------------------------------

    def _primary(self) -> Node:
        token = self.token
        match token.kind:
            case TokenKind.NUMBER:
                return self._number(token)
            case TokenKind.STRING:
                self.advance()
                text = token.text
                # Strings with only white space between them are one.
                while self.token.kind is TokenKind.STRING:
                    text += self.advance().text
                return Constant("string", text, self.span_from(token))
            case TokenKind.BYTES:
                self.advance()
                return Constant("bytes", bytes.fromhex(token.text), token.span)
            case TokenKind.QUOTED:
                return self._name_or_call()
            case TokenKind.WORD:
                return self._word(token)
        if token.upper == "(":
            return self._parenthesis()
        self.expected("an expression")

    def _number(self, start: Token, negative: bool = False) -> Node:
        text = self.advance().text
        span = self.span_from(start)
        sign = -1 if negative else 1
        if "e" in text.lower():
            value = float(text) * sign
            if value in {float("inf"), float("-inf")}:
                self.fail("this number is too large for DOUBLE", span)
            return Constant("double", value, span)
        if "." in text:
            if len(text) > 40:
                self.fail("a DECIMAL has at most 38 digits", span)
            return Constant("decimal", Decimal(text) * sign, span)
        if len(text) > 40 or not -(2**63) <= int(text) * sign < 2**63:
            self.fail("this number is too large for BIGINT", span, hint="write it as a DECIMAL, with a point")
        return Constant("integer", int(text) * sign, span)

    def _word(self, token: Token) -> Node:
        word, following = token.upper, self.ahead()
        if word in _CONSTANTS:
            self.advance()
            kind, value = _CONSTANTS[word]
            return Constant(kind, value, token.span)  # type: ignore[arg-type]  # kinds of constants
        if word in {"DATE", "TIME", "TIMESTAMP"} and following.kind is TokenKind.STRING:
            return self._temporal(word)
        if word in {"ARRAY", "MAP"} and following.upper == "[":
            self.advance()
            return self._constructor(token, word)
        if word in _BARE and following.upper not in {"(", "."}:
            self.advance()
            return FunctionCall(_call_name(token), (), token.span, bare=True)
        if word == "ROW" and following.upper == "(":
            self.advance()
            arguments = self.parenthesized(self.expression)
            return FunctionCall(_call_name(token), arguments, self.span_from(token))
        readers = {"INTERVAL": self._interval, "CASE": self._case, "EXISTS": self._exists}
        return readers.get(word, self._name_or_call)()

    def _exists(self) -> Node:
        start = self.advance()
        self.expect("(")
        query = self.deeper(self.query)
        self.expect(")")
        return Exists(query, self.span_from(start))

    def _temporal(self, word: str) -> Node:
        start = self.advance()
        text = self.string()
        kind = {"DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp"}[word]
        return Constant(kind, text, self.span_from(start))  # type: ignore[arg-type]  # one of three kinds

    def _constructor(self, start: Token, name: str) -> Node:
        self.expect("[")
        arguments: tuple[Node, ...] = ()
        if not self.sees("]"):
            arguments = self.commas(self.expression)
        self.expect("]")
        return FunctionCall(
            Name((Identifier(name, start.span),), start.span), arguments, self.span_from(start)
        )

    def _interval(self) -> Node:
        start = self.advance()
        negative = self.accept("-")
        if self.token.kind is TokenKind.NUMBER:
            self.fail("an interval's amount is written in quotes", hint=f"INTERVAL '{self.token.text}' ...")
        text = self.string("the interval's amount in single quotes")
        unit, to_unit, precision, fraction = self._interval_qualifier()
        return Interval(text, negative, unit, to_unit, precision, fraction, self.span_from(start))

    def _interval_qualifier(self) -> tuple[str, str | None, int | None, int | None]:
        """First and last unit of an interval, and their digits."""
        unit = self._interval_unit()
        to_unit = precision = fraction = None
        if self.accept("("):
            precision = self.integer()
            if self.accept(","):
                fraction = self.integer()
            self.expect(")")
        if self.accept("TO"):
            to_unit = self._interval_unit()
            if self.accept("("):
                fraction = self.integer()
                self.expect(")")
        return unit, to_unit, precision, fraction

    def _interval_unit(self) -> str:
        """A unit of time, in the singular or the plural."""
        if self.token.kind is TokenKind.WORD and self.token.upper in _INTERVAL_PLURALS:
            return self.advance().upper.removesuffix("S")
        return self.choose(*_INTERVAL_UNITS)

    def _case(self) -> Node:
        start = self.advance()
        operand = None if self.sees("WHEN") else self.expression()
        branches: list[tuple[Node, Node]] = []
        while self.accept("WHEN"):
            conditions = self.commas(self.expression)
            self.expect("THEN")
            value = self.expression()
            if len(conditions) > 1 and operand is None:
                self.fail("CASE WHEN takes one condition", conditions[1].span, hint="put OR between them")
            branches += [(condition, value) for condition in conditions]
        if not branches:
            self.expected("WHEN")
        default = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        return Case(operand, tuple(branches), default, self.span_from(start))

    def _parenthesis(self) -> Node:
        start = self.advance()
        if self.sees_query():
            mark = self.mark()
            if not self.sees("("):
                query = self.deeper(self.query)
                self.expect(")")
                return Subquery(query, self.span_from(start))
            self.back(mark)
        parts = self.commas(self.expression)
        self.expect(")")
        if len(parts) > 1:
            if len(parts) == 2 and self.accept("OVERLAPS"):
                return OperatorSyntax("OVERLAPS", (*parts, *self._period()), self.span_from(start))
            row = Name((Identifier("ROW", start.span),), start.span)
            return FunctionCall(row, parts, self.span_from(start))
        if (
            self.sees_any(*_INTERVAL_UNITS)
            and isinstance(parts[0], OperatorSyntax)
            and parts[0].function == "MINUS"
        ):
            # (a - b) DAY TO SECOND is the difference of two points of time.
            first, *_ = self._interval_qualifier()
            name = "MONTHS_MINUS" if first in _MONTH_UNITS else "TIMESTAMP_MINUS"
            return OperatorSyntax(name, parts[0].operands, self.span_from(start))
        return parts[0]

    def _period(self) -> tuple[Node, ...]:
        """The other period of OVERLAPS: its start, and its end or length."""
        start = self.token
        period = self.parenthesized(self.expression)
        if len(period) != 2:
            self.fail("a period must be (start, end) or (start, interval)", self.span_from(start))
        return period

    # --- names and calls --------------------------------------------------------------------------

    def _name_or_call(self) -> Node:
        start = self.token
        if self.ahead().upper == "(" and start.kind is TokenKind.WORD and start.upper not in _NOT_CALLS:
            special = self.special_form()
            if special is not None:
                return self._over(special, start)
            name = Name((Identifier(start.text, start.span),), start.span)
            self.advance()
            return self._call(name, start)
        if start.kind is TokenKind.WORD and start.upper == "CAST":
            return self.cast()
        parts = [self.identifier("an expression")]
        while self.sees("."):
            if self.ahead().upper == "*":
                self.advance()
                self.advance()
                qualifier = Name(tuple(parts), parts[0].span.to(parts[-1].span))
                return Star(qualifier, self.span_from(start))
            if self.ahead().kind not in {TokenKind.WORD, TokenKind.QUOTED}:
                self.advance()
                self.expected("a name")
            self.advance()
            token = self.advance()
            parts.append(Identifier(token.text, token.span))
        name = Name(tuple(parts), parts[0].span.to(parts[-1].span))
        return self._call(name, start) if self.sees("(") else name

    def _call(self, name: Name, start: Token) -> Node:
        self.expect("(")
        if self.accept(")"):
            return self._over(FunctionCall(name, (), self.span_from(start)), start)
        if self.accept("*"):
            self.expect(")")
            return self._over(FunctionCall(name, (), self.span_from(start), star=True), start)
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        arguments, names = [], []
        while True:
            named = None
            if self.token.kind in {TokenKind.WORD, TokenKind.QUOTED} and self.ahead().upper == "=>":
                named = self.advance().text
                self.advance()
            names.append(named)
            arguments.append(self._argument())
            if not self.accept(","):
                break
        nulls = self._nulls()
        order_by: tuple[OrderItem, ...] = ()
        if self.accept("ORDER"):
            self.expect("BY")
            order_by = self.commas(self.order_item)
        self.expect(")")
        call = FunctionCall(
            name,
            tuple(arguments),
            self.span_from(start),
            distinct=distinct,
            order_by=order_by,
            nulls=nulls,
            argument_names=tuple(names) if any(names) else (),
        )
        return self._over(call, start)

    def _argument(self) -> Node:
        start = self.token
        if self.sees("TABLE"):
            self.advance()
            return self.deeper(lambda: self._table_argument(start))
        if self.sees("DESCRIPTOR", "("):
            self.advance()
            return Descriptor(self.identifiers(), self.span_from(start))
        if self.sees_query() and not self.sees("("):
            query = self.deeper(self.query)
            return Subquery(query, self.span_from(start))
        argument = self.expression()
        if isinstance(argument, Subquery) and self.sees("PARTITION", "BY"):
            return self._partitioned(argument.query, start)
        return argument

    def _table_argument(self, start: Token) -> Node:
        source: Name | Query
        if self.accept("("):
            source = self.query()
            self.expect(")")
        else:
            source = self.name("a table's name")
        return self._partitioned(source, start)

    def _partitioned(self, source: Name | Query, start: Token) -> TableArgument:
        partition_by: tuple[Node, ...] = ()
        order_by: tuple[OrderItem, ...] = ()
        if self.accept("PARTITION", "BY"):
            # A comma might also go on to the next argument: only parentheses hold several columns.
            if self.accept("("):
                partition_by = self.commas(self.expression)
                self.expect(")")
            else:
                partition_by = (self.expression(),)
                while self.sees(",") and not self._next_argument():
                    self.advance()
                    partition_by = (*partition_by, self.expression())
        if self.accept("ORDER", "BY"):
            order_by = self.parenthesized(self.order_item) if self.sees("(") else (self.order_item(),)
        return TableArgument(source, partition_by, order_by, self.span_from(start))

    def _next_argument(self) -> bool:
        following = self.ahead(1)
        return (
            following.upper in {"DESCRIPTOR", "INTERVAL", "TABLE", "DEFAULT"}
            or following.kind in {TokenKind.NUMBER, TokenKind.STRING}
            or self.ahead(2).upper == "=>"
        )

    def _nulls(self) -> str | None:
        for word in ("IGNORE", "RESPECT"):
            if self.accept(word, "NULLS"):
                return word
        return None

    def _over(self, call: FunctionCall | Node, start: Token) -> Node:
        if not isinstance(call, FunctionCall):
            return call
        changes: dict[str, object] = {}
        if self.sees("WITHIN", "GROUP"):
            self.unsupported("WITHIN GROUP")
        if self.sees("FILTER", "("):
            self.advance()
            self.advance()
            self.expect("WHERE")
            changes["filter"] = self.expression()
            self.expect(")")
        if nulls := self._nulls():
            changes["nulls"] = nulls
        if self.accept("OVER"):
            changes["over"] = self.window() if self.sees("(") else self.identifier("a window")
        if changes:
            call = _changed(call, changes, self.span_from(start))
        return over_list(self, call)


def _call_name(token: Token) -> Name:
    return Name((Identifier(token.text, token.span),), token.span)


def _changed(call: FunctionCall, changes: dict[str, object], span: Span) -> FunctionCall:
    return replace(call, span=span, **changes)  # type: ignore[arg-type]  # fields by their names

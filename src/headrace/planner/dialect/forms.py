"""What forms with a syntax of their own share: they come out as plain calls."""

from __future__ import annotations

from headrace.planner.dialect.cursor import Cursor
from headrace.planner.dialect.syntax import FunctionCall, Identifier, Name, Node, Symbol
from headrace.planner.dialect.tokens import Span, Token

__all__ = ["Forms", "called", "chosen", "closed"]


class Forms(Cursor):
    """Reads forms. The expressions within them are read by the subclass that knows expressions."""

    def expression(self) -> Node:
        """Any expression; the grammar of expressions overrides this."""
        raise NotImplementedError

    def operand(self) -> Node:
        """An operand of a comparison; the grammar of expressions overrides this."""
        raise NotImplementedError


def called(name: str, span: Span, *arguments: Node) -> FunctionCall:
    """A plain call of a function."""
    return FunctionCall(Name((Identifier(name, span),), span), arguments, span, is_form=True)


def closed(cursor: Forms, start: Token, *arguments: Node, name: str | None = None) -> FunctionCall:
    """The call that a form comes to, whose closing parenthesis comes next."""
    cursor.expect(")")
    function = Identifier(name or start.text, start.span)
    return FunctionCall(Name((function,), start.span), arguments, cursor.span_from(start), is_form=True)


def chosen(cursor: Forms, *words: str) -> Symbol:
    """One of some words, which stands in place of an argument."""
    word = cursor.choose(*words)
    return Symbol(word, cursor.last.span)

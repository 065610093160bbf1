"""The grammar of windows: what follows OVER and WINDOW, with its partitions, order and frame."""

from __future__ import annotations

from headrace.planner.dialect.special import SpecialForms
from headrace.planner.dialect.syntax import (
    FrameBound,
    FrameSyntax,
    Node,
    OrderItem,
    WindowSyntax,
)

__all__ = ["WindowForms"]


class WindowForms(SpecialForms):
    """Parses windows, and the items of ORDER BY."""

    def order_item(self) -> OrderItem:
        start = self.token
        expression = self.expression()
        ascending = not self.accept("DESC")
        if ascending:
            self.accept("ASC")
        nulls = None
        if self.accept("NULLS"):
            nulls = self.choose("FIRST", "LAST") == "FIRST"
        return OrderItem(expression, ascending, nulls, self.span_from(start))

    def window(self) -> WindowSyntax:
        """The parentheses of a window."""
        start = self.expect("(")
        base = None
        if not self.sees_any("PARTITION", "ORDER", "ROWS", "RANGE", ")"):
            base = self.identifier("a window")
        partition_by: tuple[Node, ...] = ()
        order_by: tuple[OrderItem, ...] = ()
        if self.accept("PARTITION"):
            self.expect("BY")
            partition_by = self.commas(self.expression)
        if self.accept("ORDER"):
            self.expect("BY")
            order_by = self.commas(self.order_item)
        frame = self._frame() if self.sees_any("ROWS", "RANGE") else None
        self.expect(")")
        return WindowSyntax(base, partition_by, order_by, frame, self.span_from(start))

    def _frame(self) -> FrameSyntax:
        start = self.token
        unit = self.advance().upper
        if self.accept("BETWEEN"):
            first = self._bound()
            self.expect("AND")
            second: FrameBound | None = self._bound()
        else:
            first, second = self._bound(), None
        if self.sees("EXCLUDE"):
            self.unsupported("EXCLUDE in a window frame")
        return FrameSyntax("ROWS" if unit == "ROWS" else "RANGE", first, second, self.span_from(start))

    def _bound(self) -> FrameBound:
        start = self.token
        if self.accept("CURRENT"):
            self.expect("ROW")
            return FrameBound("CURRENT ROW", None, self.span_from(start))
        if self.accept("UNBOUNDED"):
            side = self.choose("PRECEDING", "FOLLOWING")
            kind = "UNBOUNDED PRECEDING" if side == "PRECEDING" else "UNBOUNDED FOLLOWING"
            return FrameBound(kind, None, self.span_from(start))  # type: ignore[arg-type]  # one of two
        amount = self.operand()
        side = self.choose("PRECEDING", "FOLLOWING")
        return FrameBound("PRECEDING" if side == "PRECEDING" else "FOLLOWING", amount, self.span_from(start))

"""Functions of numbers, as methods of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.table._calls import Calls, call_property

if TYPE_CHECKING:
    from headrace.table.expression import Expression

__all__ = ["MathFunctions"]


class MathFunctions(Calls):
    """Expressions that call numeric functions."""

    exp = call_property("EXP", "e to this power.")

    log10 = call_property("LOG10", "The logarithm to base 10.")

    log2 = call_property("LOG2", "The logarithm to base 2.")

    ln = call_property("LN", "The natural logarithm.")

    cosh = call_property("COSH", "The hyperbolic cosine.")

    sinh = call_property("SINH", "The hyperbolic sine.")

    sin = call_property("SIN", "The sine.")

    cos = call_property("COS", "The cosine.")

    tan = call_property("TAN", "The tangent.")

    cot = call_property("COT", "The cotangent.")

    asin = call_property("ASIN", "The arc sine.")

    acos = call_property("ACOS", "The arc cosine.")

    atan = call_property("ATAN", "The arc tangent.")

    tanh = call_property("TANH", "The hyperbolic tangent.")

    degrees = call_property("DEGREES", "Radians as degrees.")

    radians = call_property("RADIANS", "Degrees as radians.")

    sqrt = call_property("SQRT", "The square root.")

    abs = call_property("ABS", "The number without its sign.")

    sign = call_property("SIGN", "-1, 0 or 1.")

    bin = call_property("BIN", "The number in binary, as text.")

    def round(self, places: Any) -> Expression[Any]:
        """The number with so many digits after the point."""
        return self._call("ROUND", places)

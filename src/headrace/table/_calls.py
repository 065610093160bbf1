"""What the families of functions of an expression are written with: a call that starts with the expression itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.table.expression import Expression

__all__ = ["Calls", "call_property"]


class Calls:
    """What can be the first argument of a function of SQL."""

    def _call(self, name: str, *arguments: Any) -> Expression[Any]:
        """Call a function of SQL; the expression overrides this."""
        raise NotImplementedError


def call_property(name: str, doc: str) -> Any:
    """Make a property that calls a function of SQL with the expression alone."""
    return property(lambda self: self._call(name), doc=doc)

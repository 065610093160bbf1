"""Tables that rows are looked up in, as functions that are called with rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.connectors.lookup_tables import LookupRetry, LookupSettings, TableLookup
from headrace.operators.table.opened_functions import BatchFunction

__all__ = ["LookupCall", "OpenedLookup"]


@dataclass(frozen=True)
class LookupCall:
    """A table that rows are looked up in, and how.

    Args:
        table: The table.
        token: What tells it apart from others in a worker, which keeps what it has looked up.
        retry: How often keys are asked for if nothing is found.
        is_async: Whether keys are asked for side by side.
        settings: How, if a hint says so; None: as the configuration says.
    """

    table: TableLookup
    token: str
    retry: LookupRetry = field(default_factory=LookupRetry)
    is_async: bool = False
    settings: LookupSettings | None = None


class OpenedLookup(BatchFunction):
    """Looks up the rows under keys."""

    def __init__(self, call: LookupCall, name: str) -> None:
        super().__init__(call)
        self._call = call
        self._name = name
        self.settings = LookupSettings()

    @property
    def __name__(self) -> str:
        """What the table is called."""
        return self._name

    def __call__(self, *arguments: Any) -> Any:
        (keys,) = arguments
        call = self._call
        settings = (call.settings or self.settings) if call.is_async else None
        return call.table.kept(call.token).find(keys, call.retry, settings)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_call": self._call, "_name": self._name, "settings": self.settings}

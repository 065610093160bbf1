"""How the tasks of a job pass records on, and why: live, or in epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ExchangeChoice:
    """How a job runs."""

    is_live: bool
    #: Why: what was set, or what headrace goes by where nothing is.
    reason: str = ""
    #: Whether it is a stream without an end, which would run live elsewhere or with other options.
    could_be_live: bool = False

    def describe(self) -> str:
        """Say it in a line.

        Example:
            >>> ExchangeChoice(is_live=False, reason="it has tables").describe()
            'runs in epochs: it has tables'
        """
        return f"runs {'live' if self.is_live else 'in epochs'}: {self.reason}"


#: Of jobs for which nothing was chosen.
EPOCHS: Final = ExchangeChoice(is_live=False)

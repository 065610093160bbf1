"""The configuration of a program: what it sets itself, over what it was started with."""

from __future__ import annotations

from typing import TypeVar

from headrace.common.configuration import Configuration
from headrace.config import ConfigOption
from headrace.config import Configuration as LayeredConfiguration

__all__ = ["ProgramConfiguration"]

T = TypeVar("T")


class ProgramConfiguration(Configuration):
    """What a program sets, over what it was started with: typed reads see both."""

    def __init__(self, below: LayeredConfiguration, other: Configuration | None) -> None:
        super().__init__(other)
        self._below = below
        #: The last answer of `layered`, and the program's own values in it: a statement asks for dozens of options.
        self._layered = below
        self._own: dict[str, str] = {}

    def layered(self) -> LayeredConfiguration:
        """Return all layers; the program's own is the strongest.

        Raises:
            ConfigurationError: If the program set an unknown key or a wrong value.
        """
        own = self.to_dict()
        if own != self._own:
            self._own, self._layered = own, self._below.with_values(own)
        return self._layered

    def get(self, option: ConfigOption[T]) -> T:
        """Return the value that counts."""
        return self.layered().get(option)

    def get_if_set(self, option: ConfigOption[T]) -> T | None:
        """Return the value that counts; None if the option is set nowhere."""
        layers = self.layered()
        return layers.get(option) if layers.contains(option) else None

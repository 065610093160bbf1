"""A configuration option as one typed object: key, type, default, meaning and limits.

    INTERVAL = option("execution.checkpointing.interval", timedelta).no_default().describe("How often ...")

Options are declared at module level in `headrace.config.options`; the registry finds them there.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from headrace.config.parsing import ValueForm, form_of
from headrace.config.secrets import MASK
from headrace.errors import ConfigurationError

__all__ = ["ConfigOption", "OptionBuilder", "option"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ConfigOption(Generic[T]):
    """One thing that can be configured. Made by `option`; the methods return changed copies.

    Example:
        >>> retries = option("headrace.epoch.retries", int).default(3).describe("How often ...").at_least(0)
        >>> retries.read("5")
        5
        >>> retries.read("-1")
        Traceback (most recent call last):
        headrace.errors.ConfigurationError: headrace.epoch.retries: expected at least 0; got '-1'
    """

    key: str
    #: The declared type; `list[str]` and `dict[str, str]` stay as written.
    type: Any
    #: What `get` returns if no value is set; None for an option without a default.
    default: T
    description: str = ""
    #: Shown as the default where there is none, such as "the number of cores".
    default_note: str = ""
    #: Former keys; they still work, with a warning.
    deprecated_keys: tuple[str, ...] = ()
    #: The only values that may be set; empty for any.
    allowed: tuple[Any, ...] = ()
    minimum: Any = None
    maximum: Any = None
    #: Whether values are shown as `***`.
    secret: bool = False
    #: Why setting it changes nothing here, for keys of Flink that are accepted all the same.
    no_effect: str = ""
    #: A further check: returns what was expected if the value is not it, else None.
    check: Callable[[Any], str | None] | None = None

    def describe(self, description: str) -> Self:
        """Say what the option does, in a sentence or two for the reference page."""
        return replace(self, description=description)

    def deprecates(self, *keys: str) -> Self:
        """Name former keys of the option. They work, and warn."""
        return replace(self, deprecated_keys=(*self.deprecated_keys, *keys))

    def one_of(self, *values: T) -> Self:
        """Allow these values only."""
        return replace(self, allowed=values)

    def at_least(self, minimum: T) -> Self:
        """Return the option with a lower limit; smaller values are rejected when they are read."""
        return replace(self, minimum=minimum)

    def at_most(self, maximum: T) -> Self:
        """Return the option with an upper limit; greater values are rejected when they are read."""
        return replace(self, maximum=maximum)

    def as_secret(self) -> Self:
        """Show values as `***` wherever configuration is printed."""
        return replace(self, secret=True)

    def without_effect(self, reason: str) -> Self:
        """Accept the key, because Flink has it, and say why it changes nothing."""
        return replace(self, no_effect=reason)

    def checked_by(self, check: Callable[[Any], str | None]) -> Self:
        """Add a check that returns what was expected when it does not like a value."""
        return replace(self, check=check)

    @property
    def form(self) -> ValueForm:
        """How values of the option are written."""
        return form_of(self.type)

    @property
    def environment_variable(self) -> str:
        """The variable that sets the option: `HEADRACE_` and the key in capitals, without our own prefix."""
        name = self.key.removeprefix("headrace.").upper()
        return "HEADRACE_" + name.replace(".", "_").replace("-", "_")

    def read(self, value: object, *, source: str | None = None) -> T:
        """Turn text or a Python value into a valid value of this option.

        Args:
            value: What was set.
            source: Where it was set, for the message.

        Raises:
            ConfigurationError: If it is not a value this option can have.
        """
        form = self.form
        try:
            result: T = form.read(value)
        except ValueError:
            raise self._complaint(f"{form.expected} such as '{form.example}'", value, source) from None
        expected = self._limits_broken_by(result)
        if expected is not None:
            raise self._complaint(expected, value, source)
        return result

    def write(self, value: T) -> str:
        """Write a value as text that `read` understands."""
        return "" if value is None else self.form.write(value)

    def get_default(self) -> T:
        """Return the default, as an object of the caller's own."""
        return copy(self.default)

    def show(self, value: T) -> str:
        """Write a value for people: as `write` does, but secrets are masked."""
        return MASK if self.secret and value is not None else self.write(value)

    def _limits_broken_by(self, value: Any) -> str | None:
        if self.allowed and value not in self.allowed:
            return "one of " + ", ".join(self.write(each) for each in self.allowed)
        if self.minimum is not None and value < self.minimum:
            return f"at least {self.write(self.minimum)}"
        if self.maximum is not None and value > self.maximum:
            return f"at most {self.write(self.maximum)}"
        return self.check(value) if self.check is not None else None

    def _complaint(self, expected: str, value: object, source: str | None) -> ConfigurationError:
        shown = MASK if self.secret else repr(value)
        place = f" (set in {source})" if source else ""
        return ConfigurationError(f"{self.key}: expected {expected}; got {shown}{place}")


@dataclass(frozen=True)
class OptionBuilder(Generic[T]):
    """A key and a type that still miss their default."""

    key: str
    type: Any

    def default(self, value: T) -> ConfigOption[T]:
        """Set the value that is used if the option is not set."""
        return ConfigOption(self.key, self.type, value)

    def no_default(self, note: str = "") -> ConfigOption[T | None]:
        """Leave the option unset by default; `note` says what happens then."""
        return ConfigOption(self.key, self.type, None, default_note=note)


def option(key: str, kind: type[T]) -> OptionBuilder[T]:
    """Start the declaration of an option.

    Args:
        key: Flink's key where Flink has one, else one under `headrace.`.
        kind: bool, int, float, str, timedelta, MemorySize, an Enum, list[str] or dict[str, str].

    Raises:
        TypeError: If values of this type cannot be configured.
    """
    form_of(kind)
    return OptionBuilder(key, kind)

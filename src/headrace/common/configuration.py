"""PyFlink's `Configuration`: the map of keys and values that a program sets.

It takes any key. What it holds becomes the strongest layer of `headrace.config.Configuration` when the
program is run, and is checked there: `layered.with_values(configuration.to_dict())`.
"""

from __future__ import annotations

import base64
import builtins
import copy
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.config.option import ConfigOption
from headrace.config.parsing import form_of, parse_list
from headrace.errors import ConfigurationError

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """Keys and values, kept as text.

    Args:
        other: A configuration to copy.

    Example:
        >>> config = Configuration()
        >>> config.set_integer("parallelism.default", 4).set_string("pipeline.name", "clicks").to_dict()
        {'parallelism.default': '4', 'pipeline.name': 'clicks'}
        >>> config.get_integer("parallelism.default", 1)
        4
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, str] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: dict[str, str]) -> Configuration:
        """Make a configuration of a dictionary."""
        config = cls()
        for key, value in map.items():
            config.set_string(key, value)
        return config

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """Read a list from text: parts separated by `;` or `,`, or YAML's `[a, b]`."""
        return parse_list(value) if value else []

    def get(self, option: ConfigOption[T]) -> T:
        """Return the typed value of an option, or its default. Java Flink's `get`; not in PyFlink.

        Raises:
            ConfigurationError: If the text that was set is not a value of the option.
        """
        entries = self._entries(option)
        text = self._values.get(option.key)
        if text is None and not entries:
            return option.get_default()
        value: Any = option.read(text or "", source="code")
        if entries:
            value |= entries
        return value  # type: ignore[no-any-return]  # T, or a map and T is one

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Set an option to a typed value. Java Flink's `set`; not in PyFlink.

        Raises:
            ConfigurationError: If the option cannot have this value.
        """
        checked: Any = option.read(value, source="code")
        if not isinstance(checked, dict):
            return self.set_string(option.key, option.write(checked))
        for name in self._entries(option):
            self.remove_config(f"{option.key}.{name}")
        self.remove_config(option.key)
        # One key each: the one-line form of a map cannot hold every text.
        for name, entry in checked.items():
            self.set_string(f"{option.key}.{name}", entry)
        return self

    def _entries(self, option: ConfigOption[Any]) -> dict[str, str]:
        """Return what was set for single entries of a map option."""
        if option.form.name != "map":
            return {}
        prefix = option.key + "."
        return {key[len(prefix) :]: value for key, value in self._values.items() if key.startswith(prefix)}

    def get_string(self, key: str, default_value: str | None) -> str | None:
        """Return a value as text, or the default if the key is not set."""
        return self._values.get(key, default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a value and return the configuration, for more."""
        if not isinstance(value, str):
            raise ConfigurationError(f"{key}: set_string expects a str; got {value!r}")
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        """Return a value as a whole number, or the default if the key is not set."""
        return self._get(key, default_value, int)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number."""
        return self.set_string(key, str(value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return a value as a truth value, or the default if the key is not set."""
        return self._get(key, default_value, bool)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a truth value."""
        return self.set_string(key, "true" if value else "false")

    def get_float(self, key: str, default_value: float) -> float:
        """Return a value as a number, or the default if the key is not set."""
        return self._get(key, default_value, float)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set an option to a floating-point value."""
        return self.set_string(key, repr(value))

    def get_bytearray(self, key: str, default_value: bytearray | None) -> bytearray | None:
        """Return bytes that were set with `set_bytearray`, or the default."""
        return self._read(key, default_value, lambda text: bytearray(base64.b64decode(text, validate=True)))

    def set_bytearray(self, key: str, value: bytes | bytearray) -> Configuration:
        """Set bytes; they are kept as base64."""
        return self.set_string(key, base64.b64encode(value).decode("ascii"))

    def key_set(self) -> builtins.set[str]:
        """Return the keys that are set."""
        return builtins.set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all keys and values into a dictionary."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over all keys and values of another, with a prefix before the keys if there is one."""
        self._values.update({(prefix or "") + key: value for key, value in other._values.items()})
        return self

    def contains_key(self, key: str) -> bool:
        """Whether the key is set."""
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """Return all keys and values."""
        return dict(self._values)

    def remove_config(self, key: str) -> bool:
        """Unset a key; return whether it was set."""
        return self._values.pop(key, None) is not None

    def _get(self, key: str, default: T, kind: type[T]) -> T:
        return self._read(key, default, form_of(kind).parse)

    def _read(self, key: str, default: T, parse: Callable[[str], T]) -> T:
        text = self._values.get(key)
        if text is None:
            return default
        try:
            return parse(text.strip())
        except ValueError:
            wanted = type(default).__name__
            raise ConfigurationError(f"{key}: {text!r} cannot be read as {wanted}") from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __copy__(self) -> Configuration:
        return copy.deepcopy(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return self._values == other._values

    def __hash__(self) -> int:
        # By content, as in PyFlink: one that is changed later is not found again.
        return hash(frozenset((key, str(value)) for key, value in self._values.items()))

    def __str__(self) -> str:
        return str(self._values)

    def __repr__(self) -> str:
        return f"Configuration({self._values!r})"

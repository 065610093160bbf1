"""Options that programs declare, as in PyFlink; the result is an option like headrace's."""

from __future__ import annotations

from typing import Generic, TypeVar

from headrace.config.option import ConfigOption, option

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


class ConfigOptions:
    """Where the declaration of an option starts.

    Example:
        >>> retries = ConfigOptions.key("my.retries").int_type().default_value(3)
        >>> retries.key, retries.default, retries.read("5")
        ('my.retries', 3, 5)
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start an option with this key."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """An option that still misses its type."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Declare a boolean option."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Declare an integer option."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Declare an integer option; Python has one integer type."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Declare a floating-point option."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Declare a floating-point option; Python has one float type."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Declare an option whose value is a string."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """An option that still misses its default."""

        def __init__(self, key: str, kind: type[T]) -> None:
            self._builder = option(key, kind)

        def default_value(self, value: T) -> ConfigOption[T]:
            """Give the value that counts if none is set."""
            return self._builder.default(value)

        def no_default_value(self) -> ConfigOption[T | None]:
            """Leave it unset by default."""
            return self._builder.no_default()

"""`TableConfig`: the options of a table environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from headrace.common import Configuration
from headrace.common._older_names import OlderMethods
from headrace.config.options import python
from headrace.config.options import table as options
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.table.sql_dialect import SqlDialect

__all__ = ["TableConfig", "checked_zone"]


class TableConfig(OlderMethods):
    """Options of an environment, over what the program was started with. Keys are those of the configuration.

    Example:
        >>> config = TableConfig.get_default().set("table.exec.state.ttl", "1 h")
        >>> config.get("table.exec.state.ttl", "0 s")
        '1 h'
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @staticmethod
    def get_default() -> TableConfig:
        """Make a configuration in which nothing is set."""
        return TableConfig()

    def get(self, key: str, default_value: str) -> str:
        """Return the value, or the default."""
        value = self._configuration.get_string(key, default_value)
        return default_value if value is None else value

    def set(self, key: str, value: Any) -> TableConfig:
        """Set an option.

        Raises:
            ConfigurationError: If the key does not exist, or the value is not valid.
        """
        text = str(value).lower() if isinstance(value, bool) else str(value)
        changed = Configuration(self._configuration).set_string(key, text)
        _check(changed)
        self._configuration.set_string(key, text)
        return self

    @contextmanager
    def overridden(self, options: Mapping[str, str]) -> Iterator[None]:
        """Set options for a while; then they are what they were.

        Raises:
            ConfigurationError: If a key does not exist, or a value is not valid.
        """
        before = self.to_map()
        try:
            for key, value in options.items():
                self.set(key, value)
            yield
        finally:
            for key in options:
                if key in before:
                    self.set(key, before[key])
                else:
                    self._configuration.remove_config(key)

    def get_local_timezone(self) -> str:
        """Return the time zone of the session."""
        return self.get(options.LOCAL_TIME_ZONE.key, options.LOCAL_TIME_ZONE.default)

    def set_local_timezone(self, timezone_id: str) -> None:
        """Set the time zone of the session.

        Raises:
            SqlValidationError: If there is no such time zone.
        """
        self.set(options.LOCAL_TIME_ZONE.key, checked_zone(timezone_id))

    def get_max_generated_code_length(self) -> int:
        """Refused: no code is generated."""
        raise UnsupportedFeatureError.not_yet("get_max_generated_code_length()")

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Refused: no code is generated."""
        raise UnsupportedFeatureError.not_yet("set_max_generated_code_length()")

    def set_idle_state_retention(self, duration: timedelta) -> None:
        """Set how long the state of a key is kept after it was last written."""
        self.set(options.STATE_TTL.key, options.STATE_TTL.write(duration))

    def get_idle_state_retention(self) -> timedelta:
        """Return how long the state of a key is kept after it was last written."""
        return options.STATE_TTL.read(self.get(options.STATE_TTL.key, "0 ms"))

    def get_configuration(self) -> Configuration:
        """Return what was set."""
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        """Set many options.

        Raises:
            ConfigurationError: If there is an unknown key or a wrong value.
        """
        _check(configuration)
        self._configuration.add_all(configuration)

    def to_map(self) -> dict[str, str]:
        """Return what was set, by key."""
        return self._configuration.to_dict()

    def get_sql_dialect(self) -> SqlDialect:
        """Return which SQL is spoken."""
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        """Set which SQL is spoken: Flink's, which is the only one."""
        if sql_dialect is not SqlDialect.DEFAULT:
            raise UnsupportedFeatureError.not_yet("Hive's SQL", "write the statement in Flink's SQL")

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python interpreter of the workers."""
        self.set(python.EXECUTABLE.key, python_exec)

    def get_python_executable(self) -> str | None:
        """Return the Python interpreter of the workers; None if none was chosen."""
        return self.get(python.EXECUTABLE.key, "") or None


def checked_zone(zone: str) -> str:
    """Return the name of a time zone.

    Raises:
        SqlValidationError: If there is no such zone.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise SqlValidationError(
            f"{options.LOCAL_TIME_ZONE.key}: unknown time zone {zone!r}",
            hint="such as 'Europe/Berlin' or 'UTC'",
        ) from None
    return zone


def _check(configuration: Configuration) -> None:
    from headrace.config import Configuration as LayeredConfiguration

    LayeredConfiguration().with_values(configuration.to_dict(), place="the session")

"""The settings that a table environment is created with."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.common import Configuration
from headrace.common._older_names import OlderMethods
from headrace.config.options.execution import RUNTIME_MODE

__all__ = ["EnvironmentSettings"]


@dataclass(frozen=True)
class EnvironmentSettings:
    """Mode, configuration, and names of the first catalog and database.

    Example:
        >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
        False
    """

    is_streaming: bool = True
    built_in_catalog: str = "default_catalog"
    built_in_database: str = "default_database"
    configuration: Configuration = field(default_factory=Configuration)

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """Start to collect settings."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Return settings whose queries run as streams: results change as rows come."""
        return EnvironmentSettings(is_streaming=True)

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Return settings whose queries run once, over bounded input."""
        return EnvironmentSettings(is_streaming=False)

    def get_built_in_catalog_name(self) -> str:
        """Return the name of the first catalog."""
        return self.built_in_catalog

    def get_built_in_database_name(self) -> str:
        """Return the name of the first database."""
        return self.built_in_database

    def is_streaming_mode(self) -> bool:
        """Whether queries run as streams."""
        return self.is_streaming

    def get_configuration(self) -> Configuration:
        """Return the options of these settings as a `Configuration`, with the mode among them."""
        self.configuration.set_string(RUNTIME_MODE.key, "STREAMING" if self.is_streaming else "BATCH")
        return self.configuration

    class Builder(OlderMethods):
        """Collects settings; every call returns the builder."""

        def __init__(self) -> None:
            self._is_streaming = True
            self._catalog = "default_catalog"
            self._database = "default_database"
            self._configuration = Configuration()

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Add the options of a `Configuration` to the settings."""
            self._configuration = config
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Run queries once, over bounded input."""
            self._is_streaming = False
            return self

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Run queries as streams."""
            self._is_streaming = True
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            """Set the name of the first catalog."""
            self._catalog = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            """Set the name of the first database."""
            self._database = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            """Return `EnvironmentSettings` with these values."""
            return EnvironmentSettings(self._is_streaming, self._catalog, self._database, self._configuration)

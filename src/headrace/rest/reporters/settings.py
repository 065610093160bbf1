"""What the configuration says of one reporter, and which of its options are known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.config.configuration import Configuration
from headrace.config.option import ConfigOption
from headrace.config.parsing import parse_duration
from headrace.errors import ConfigurationError

__all__ = ["ReporterSettings", "reporters_of"]

_FACTORY = "factory.class"
#: Options of every reporter; the rest is the reporter's own.
_COMMON = frozenset(
    {
        _FACTORY,
        "interval",
        "scope.delimiter",
        "filter.includes",
        "filter.excludes",
        "scope.variables.additional",
        "scope.variables.excludes",
    }
)
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class ReporterSettings:
    """The options of one metric reporter."""

    #: In front of its options, for messages: `metrics.reporter.prom`.
    prefix: str
    factory: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def interval_s(self) -> float:
        """From one report to the next."""
        return self.duration_s("interval", timedelta(seconds=10))

    def text(self, name: str, default: str | None = None) -> str:
        """Return an option; one without a default has to be there.

        Raises:
            ConfigurationError: If it is not.
        """
        value = self.options.get(name, default)
        if value is None:
            raise ConfigurationError(f"{self.prefix}.{name} is required by {self.factory}")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return an option that is a whole number.

        Raises:
            ConfigurationError: If it is not one.
        """
        text = self.text(name, None if default is None else str(default))
        if not text.strip().isdigit():
            raise ConfigurationError(f"{self.prefix}.{name}: expected a whole number; got {text!r}")
        return int(text)

    def truth(self, name: str, *, default: bool) -> bool:
        """Return an option that is true or false.

        Raises:
            ConfigurationError: If it is neither.
        """
        text = self.text(name, str(default).lower())
        if text.strip().lower() not in _TRUTH:
            raise ConfigurationError(f"{self.prefix}.{name}: expected true or false; got {text!r}")
        return _TRUTH[text.strip().lower()]

    def duration_s(self, name: str, default: timedelta) -> float:
        """Return an option that is a time, in seconds.

        Raises:
            ConfigurationError: If it is not a time, or no time at all.
        """
        text = self.options.get(name)
        try:
            found = default if text is None else parse_duration(text)
        except ValueError as error:
            raise ConfigurationError(f"{self.prefix}.{name}: {error}") from None
        if found <= timedelta(0):
            raise ConfigurationError(f"{self.prefix}.{name}: must be more than 0; got {text!r}")
        return found.total_seconds()

    def entries(self, name: str) -> dict[str, str]:
        """Return options behind a prefix: `name.KEY`."""
        prefix = f"{name}."
        return {key[len(prefix) :]: value for key, value in self.options.items() if key.startswith(prefix)}

    def check(self, own: Iterable[str]) -> None:
        """Refuse options that nobody reads.

        Args:
            own: Those of this kind of reporter; one that ends in a dot allows all behind it.

        Raises:
            ConfigurationError: For the first that is unknown.
        """
        known = {*_COMMON, *own}
        prefixes = tuple(each for each in known if each.endswith("."))
        for name in self.options:
            if name in known or name.startswith((*prefixes, "scope.variables.additional.")):
                continue
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigurationError(
                f"{self.prefix}.{name}: {self.factory} has no such option",
                hint=f"did you mean {self.prefix}.{near[0]}?"
                if near
                else f"available: {', '.join(sorted(known))}",
            )


def reporters_of(
    configuration: Configuration,
    names: ConfigOption[list[str] | None],
    options: ConfigOption[dict[str, str]],
) -> Iterator[ReporterSettings]:
    """Yield what is configured of reporters of metrics, or of traces.

    Raises:
        ConfigurationError: If a reporter is named that has no factory.
    """
    by_name: dict[str, dict[str, str]] = {}
    for key, value in configuration.get(options).items():
        name, _, rest = key.partition(".")
        by_name.setdefault(name, {})[rest] = value
    wanted = configuration.get(names)
    if wanted is None:
        wanted = [name for name, own in by_name.items() if _FACTORY in own]
    for name in wanted:
        own = by_name.get(name, {})
        prefix = f"{options.key}.{name}"
        if _FACTORY not in own:
            raise ConfigurationError(f"{names.key} names {name!r}, but {prefix}.{_FACTORY} is not set")
        yield ReporterSettings(prefix, own[_FACTORY], own)

"""All keys headrace knows: every option of `headrace.config.options`, and the prefixes it lets pass.

A key is one of four things: an option (under its own or a former key), an entry of a map option
(`pipeline.global-job-parameters.team`), a setting for Spark (`spark.*`, handed over untouched), or another key of
Flink's, with what happens to it (`headrace.config.flink`): it maps to settings of Spark, has no effect, or is refused.
Everything else is an error, with the nearest known key named.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from headrace.config import options
from headrace.config.flink import Answer, AnswerKind, answer_to, documented_keys, former_keys
from headrace.config.option import ConfigOption
from headrace.errors import ConfigurationError

__all__ = ["PASS_THROUGH_PREFIXES", "KnownKey", "OptionRegistry", "known_options", "subjects"]

#: Keys that start so belong to Spark.
PASS_THROUGH_PREFIXES: Final = ("spark.",)


@dataclass(frozen=True)
class KnownKey:
    """What a key stands for: `option` or `answer` is set, or neither for Spark's keys."""

    key: str
    option: ConfigOption[Any] | None = None
    #: For an entry of a map option: the name of the entry.
    entry: str | None = None
    #: For another key of Flink's: what happens to it.
    answer: Answer | None = None
    #: What follows the prefix that the answer is for.
    rest: str = ""
    #: The name that Flink had for the key in an earlier version, if it was looked up by that.
    former: str | None = None

    @property
    def ignored_because(self) -> str | None:
        """Why setting the key changes nothing, if so."""
        if self.answer is not None and self.answer.kind is AnswerKind.NO_EFFECT:
            return self.answer.text
        return (self.option.no_effect or None) if self.option is not None else None

    @property
    def is_deprecated(self) -> bool:
        """Whether the key was looked up by a former name."""
        if self.former is not None:
            return True
        return self.option is not None and self.entry is None and self.key != self.option.key


class OptionRegistry:
    """Options by key.

    Args:
        known: The options.
        pass_through: Prefixes of keys that are kept as text and not looked at.

    Raises:
        ValueError: If two options share a key, former keys included.
    """

    def __init__(
        self,
        known: Iterable[ConfigOption[Any]],
        *,
        pass_through: Iterable[str] = PASS_THROUGH_PREFIXES,
    ) -> None:
        self._options: dict[str, ConfigOption[Any]] = {}
        self._by_any_key: dict[str, ConfigOption[Any]] = {}
        self._pass_through = tuple(pass_through)
        for each in known:
            self._options[each.key] = each
            for key in (each.key, *each.deprecated_keys):
                if key in self._by_any_key:
                    raise ValueError(f"two options have the key {key!r}")
                self._by_any_key[key] = each
        self._maps = tuple(each for each in self if each.form.name == "map")

    def __iter__(self) -> Iterator[ConfigOption[Any]]:
        return iter(self._options.values())

    def __len__(self) -> int:
        return len(self._options)

    def is_pass_through(self, key: str) -> bool:
        """Whether the key belongs to Spark."""
        return key.startswith(self._pass_through)

    def is_map(self, key: str) -> bool:
        """Whether the key names an option whose value is a map."""
        found = self._by_any_key.get(key)
        return found is not None and found in self._maps

    def look_up(self, key: str) -> KnownKey:
        """Find out what a key stands for.

        Raises:
            ConfigurationError: If the key is unknown. The hint names the nearest one.
        """
        found = self._by_any_key.get(key)
        if found is not None:
            return KnownKey(key, option=found)
        if self.is_pass_through(key):
            return KnownKey(key)
        for each in self._maps:
            if key.startswith(each.key + "."):
                return KnownKey(key, option=each, entry=key[len(each.key) + 1 :])
        other = answer_to(key)
        if other is not None:
            return KnownKey(key, answer=other[0], rest=other[1])
        current = former_keys().get(key)
        if current is not None:
            return replace(self.look_up(current), former=key)
        raise ConfigurationError(f"unknown configuration key {key!r}", hint=self._advice(key))

    def nearest(self, key: str) -> str | None:
        """Name the known key that looks most like this one, if any does."""
        known = {**self._options, **documented_keys()}
        matches = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        return matches[0] if matches else None

    def _advice(self, key: str) -> str:
        nearest = self.nearest(key)
        if nearest is not None:
            return f"did you mean {nearest!r}?"
        return "docs/configuration.md lists all keys; settings for Spark start with 'spark.'"


def subjects() -> dict[str, list[ConfigOption[Any]]]:
    """List the options by subject: the modules of `headrace.config.options`, in order of their names."""
    found = {}
    for info in pkgutil.iter_modules(options.__path__):
        module = importlib.import_module(f"{options.__name__}.{info.name}")
        declared = [each for each in vars(module).values() if isinstance(each, ConfigOption)]
        if declared:
            found[info.name] = declared
    return found


@cache
def known_options() -> OptionRegistry:
    """Return the registry of all options."""
    return OptionRegistry(each for declared in subjects().values() for each in declared)

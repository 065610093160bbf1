"""The values of options, in layers, each value with the place it came from.

    code and SQL SET  >  command line  >  environment  >  headrace.yaml  >  defaults

A `Configuration` does not change; setting something makes a new one. Every key and value is checked when it
is put in, so reading never fails. Components do not keep a configuration: they make a small settings object
of it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from headrace.config import file
from headrace.config.cancellation import cancellation_settings
from headrace.config.flink import AnswerKind, is_flinks_default
from headrace.config.heartbeats import heartbeat_settings
from headrace.config.memory_account import memory_settings
from headrace.config.option import ConfigOption
from headrace.config.references import has_reference, resolve
from headrace.config.registry import KnownKey, OptionRegistry, known_options
from headrace.config.secrets import MASK, looks_secret
from headrace.errors import ConfigurationError

__all__ = ["Configuration", "ConfigurationWarning", "DeprecatedKeyWarning", "ExplainedValue", "Layer"]

T = TypeVar("T")

#: Variables that start with HEADRACE_ and are not options.
_OTHER_VARIABLES: Final = frozenset({file.CONF_DIR_VARIABLE, "HEADRACE_HOME", "HEADRACE_LOG_DIR"})


class Layer(IntEnum):
    """Where a value comes from; a higher layer hides the ones below."""

    DEFAULT = 0
    FILE = 1
    ENVIRONMENT = 2
    CLI = 3
    CODE = 4


_PLACES: Final = {
    Layer.DEFAULT: "the default",
    Layer.FILE: file.FILE_NAME,
    Layer.ENVIRONMENT: "the environment",
    Layer.CLI: "the command line",
    Layer.CODE: "code",
}


class ConfigurationWarning(UserWarning):
    """Something in the configuration is odd, and will not be used."""


class DeprecatedKeyWarning(FutureWarning):
    """A former key was used; it works, and its successor should be used instead."""


@dataclass(frozen=True)
class _Setting:
    """One value in one layer."""

    value: Any
    place: str
    #: What was written, if the value is that of a variable or a file: shown in its place.
    reference: str | None = None


@dataclass(frozen=True)
class ExplainedValue:
    """A value that counts, and why."""

    key: str
    #: As text; secrets are masked.
    value: str
    layer: Layer
    #: The file, variable or kind of code it was set in.
    place: str
    #: Where weaker layers say something else, or why the key is ignored.
    note: str = ""

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        return f"{self.key}: {self.value}  ({self.place}{note})"


class Configuration:
    """Values of options.

    Args:
        values: What code sets, by key; the strongest layer.
        registry: The keys that exist; for tests.

    Raises:
        ConfigurationError: If a key is unknown or a value is not one its option can have.

    Example:
        >>> from headrace.config.options.execution import MAX_PARALLELISM, OPERATOR_CHAINING
        >>> config = Configuration({"pipeline.max-parallelism": "256"})
        >>> config.get(MAX_PARALLELISM), config.get(OPERATOR_CHAINING)
        (256, True)
        >>> print(config.explain())
        pipeline.max-parallelism: 256  (code)
    """

    def __init__(
        self, values: Mapping[str, object] | None = None, *, registry: OptionRegistry | None = None
    ) -> None:
        # None stands for the registry of all options, which is not worth pickling with every configuration.
        self._own_registry = registry
        self._layers: dict[Layer, dict[str, _Setting]] = {}
        if values:
            self._layers[Layer.CODE] = self._check(values, _PLACES[Layer.CODE])

    @classmethod
    def load(
        cls,
        *,
        command_line: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        working_directory: Path | None = None,
    ) -> Self:
        """Collect what a person configured: file, environment and command line.

        `${env:NAME}` and `${file:PATH}` in a value stand for what a variable or a file holds.

        Args:
            command_line: Keys and values given as arguments.
            environ: Environment variables; those of the process if None.
            working_directory: Where `conf/headrace.yaml` is looked for; the current one if None.

        Raises:
            ConfigurationError: If the file cannot be read, a key is unknown or a value is wrong.
        """
        environ = os.environ if environ is None else environ
        config = cls()
        path = file.find_file(environ, working_directory)
        if path is not None:
            config = config._with_references(file.read_file(path), Layer.FILE, str(path), environ)
        for key, (variable, value) in _from_environment(environ, config.registry).items():
            config = config._with_references({key: value}, Layer.ENVIRONMENT, f"${variable}", environ)
        return config._with_references(command_line or {}, Layer.CLI, _PLACES[Layer.CLI], environ)

    @property
    def registry(self) -> OptionRegistry:
        """The keys that exist."""
        return self._own_registry or known_options()

    def get(self, option: ConfigOption[T]) -> T:
        """Return the value that counts: the strongest one set, else the default."""
        found = self._strongest(option.key)
        # A copy, so that nobody changes a list or map for all.
        return option.get_default() if found is None else copy(found[1].value)

    def contains(self, option: ConfigOption[Any]) -> bool:
        """Whether the option is set in any layer."""
        return self._strongest(option.key) is not None

    def with_values(
        self, values: Mapping[str, object], *, layer: Layer = Layer.CODE, place: str | None = None
    ) -> Self:
        """Set values in one layer, over what the layer holds already.

        Args:
            values: Keys, former keys and Spark's keys, with text or typed values.
            layer: The layer.
            place: The file, variable or argument they come from, for messages and `explain`.

        Raises:
            ConfigurationError: If a key is unknown or a value is wrong.
        """
        changed = self._copy()
        before = changed._layers.get(layer, {})
        changed._layers[layer] = before | self._check(values, place or _PLACES[layer])
        return changed

    def _with_references(
        self, values: Mapping[str, object], layer: Layer, place: str, environ: Mapping[str, str]
    ) -> Self:
        """Set values in which references may stand; they are remembered, to be shown in place of what they mean."""
        written = {
            key: value for key, value in values.items() if isinstance(value, str) and has_reference(value)
        }
        resolved = {
            key: resolve(value, key, environ) if isinstance(value, str) else value
            for key, value in values.items()
        }
        changed = self.with_values(resolved, layer=layer, place=place)
        settings = changed._layers[layer]
        for key, value in written.items():
            name = self._name(self.registry.look_up(key))
            settings[name] = replace(settings[name], reference=value)
        return changed

    def spark_settings(self) -> dict[str, str]:
        """Return the settings for Spark: keys under `spark.`, untouched, and before them what keys of Flink's map to.

        Example:
            >>> Configuration({"yarn.application.queue": "etl", "spark.executor.cores": 2}).spark_settings()
            {'spark.yarn.queue': 'etl', 'spark.executor.cores': '2'}
        """
        own = {key: self._text(key) for key in self._keys() if self.registry.is_pass_through(key)}
        mapped = {key: value for key, value in self._mapped().items() if key.startswith("spark.")}
        options = (
            dict(memory_settings(self)) | dict(cancellation_settings(self)) | dict(heartbeat_settings(self))
        )
        return options | mapped | own

    def process_variables(self) -> dict[str, str]:
        """Return environment variables that keys of Flink's stand for, such as JAVA_HOME for `env.java.home`."""
        return {key: value for key, value in self._mapped().items() if not key.startswith("spark.")}

    def _mapped(self) -> dict[str, str]:
        """Return what mapped keys become; options for Java of several keys are joined."""
        settings: dict[str, str] = {}
        # A key with a longer name says more: that of the TaskManagers' account is stronger than that of all.
        for key in sorted(self._keys(), key=len):
            known = self.registry.look_up(key)
            if known.answer is None or known.answer.settings is None:
                continue
            for name, value in known.answer.settings(self._text(key), known.rest).items():
                joins = name.endswith("JavaOptions") and name in settings
                settings[name] = f"{settings[name]} {value}" if joins else value
        return settings

    def is_secret(self, key: str) -> bool:
        """Whether the value of a key must not be seen by others."""
        option = self.registry.look_up(key).option
        return looks_secret(key) if option is None else option.secret

    def ignored(self) -> dict[str, str]:
        """Return keys that were set and have no effect here, each with the reason."""
        return {key: reason for key in self._keys() if (reason := self._why_ignored(key))}

    def to_dict(self) -> dict[str, str]:
        """Return everything that was set, as text, secrets included: to be passed on, not to be printed."""
        values: dict[str, str] = {}
        for key in self._keys():
            if self.registry.is_map(key):
                # One key per entry: the one-line form of a map cannot hold every text.
                entries = next(self._settings(key))[1].value
                values |= {f"{key}.{name}": entry for name, entry in entries.items()}
            else:
                values[key] = self._text(key)
        return values

    def origins(self) -> dict[str, tuple[str, str]]:
        """Return where each value that was set came from: the name of its layer, and the place."""
        strongest = ((key, next(self._settings(key))) for key in self._keys())
        return {key: (layer.name, setting.place) for key, (layer, setting) in strongest}

    @classmethod
    def handed_on(cls, values: Mapping[str, str], origins: Mapping[str, tuple[str, str]]) -> Self:
        """Make a configuration of what `to_dict` and `origins` said elsewhere.

        Raises:
            ConfigurationError: As the constructor does.

        Example:
            >>> there = Configuration({"parallelism.default": "2"})
            >>> print(Configuration.handed_on(there.to_dict(), there.origins()).explain())
            parallelism.default: 2  (code)
        """
        config = cls()
        groups: dict[tuple[Layer, str], dict[str, str]] = {}
        for key, value in values.items():
            name = cls._name(config.registry.look_up(key))
            layer, place = origins.get(name, (Layer.CODE.name, _PLACES[Layer.CODE]))
            groups.setdefault((Layer.__members__.get(layer, Layer.CODE), place), {})[key] = value
        for (level, place), group in groups.items():
            config = config.with_values(group, layer=level, place=place)
        return config

    def entries(self, *, defaults: bool = False) -> list[ExplainedValue]:
        """List the values that count and where each came from, by key.

        Args:
            defaults: Whether to include options that are not set.
        """
        keys = set(self._keys())
        if defaults:
            keys |= {option.key for option in self.registry}
        return [self._explain(key) for key in sorted(keys)]

    def explain(self, *, defaults: bool = False) -> str:
        """Say, a line each, which values count and where they came from. Secrets print as `***`."""
        return "\n".join(str(entry) for entry in self.entries(defaults=defaults))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # compares by content, which is not meant as a key

    def __repr__(self) -> str:
        shown = ", ".join(f"{entry.key}={entry.value!r}" for entry in self.entries())
        return f"Configuration({shown})"

    def _copy(self) -> Self:
        copy = type(self)(registry=self._own_registry)
        copy._layers = dict(self._layers)
        return copy

    def _check(self, values: Mapping[str, object], place: str) -> dict[str, _Setting]:
        """Check values of one layer; a successor key wins over a former one, whatever their order."""
        known = [(self.registry.look_up(key), value) for key, value in values.items()]
        known.sort(key=lambda item: not item[0].is_deprecated)
        checked: dict[str, _Setting] = {}
        for key, value in known:
            _warn_if_deprecated(key, place)
            name = self._name(key)
            if key.option is None:
                checked[name] = _Setting(_plain_text(value), place)
                _check_answer(key, checked[name])
            elif key.entry is None:
                checked[name] = _Setting(key.option.read(value, source=place), place)
            else:
                entries = checked[name].value if name in checked else {}
                checked[name] = _Setting({**entries, key.entry: _plain_text(value)}, place)
        return checked

    @staticmethod
    def _name(key: KnownKey) -> str:
        return key.key if key.option is None else key.option.key

    def _keys(self) -> list[str]:
        return sorted({key for layer in self._layers.values() for key in layer})

    def _settings(self, key: str) -> Iterator[tuple[Layer, _Setting]]:
        """Yield what the layers say about a key, strongest first."""
        for layer in sorted(self._layers, reverse=True):
            setting = self._layers[layer].get(key)
            if setting is not None:
                yield layer, setting

    def _strongest(self, key: str) -> tuple[Layer, _Setting] | None:
        return next(self._settings(key), None)

    def _text(self, key: str, *, for_people: bool = False) -> str:
        found = self._strongest(key)
        option = self.registry.look_up(key).option
        if option is None:
            hide = for_people and looks_secret(key)
            return "" if found is None else MASK if hide else str(found[1].value)
        value = option.default if found is None else found[1].value
        return option.show(value) if for_people else option.write(value)

    def _shown(self, key: str) -> str:
        """Write a value for people: a reference as it was written, a secret masked."""
        found = self._strongest(key)
        reference = None if found is None else found[1].reference
        return self._text(key, for_people=True) if reference is None else reference

    def _why_ignored(self, key: str) -> str | None:
        return self.registry.look_up(key).ignored_because

    def _explain(self, key: str) -> ExplainedValue:
        found = list(self._settings(key))
        text = self._shown(key)
        if not found:
            option = self.registry.look_up(key).option
            note = option.default_note if option is not None and option.default is None else ""
            return ExplainedValue(key, text or "not set", Layer.DEFAULT, _PLACES[Layer.DEFAULT], note)
        notes = [f"over {setting.place}" for _, setting in found[1:]]
        reason = self._why_ignored(key)
        if reason:
            notes.append(f"no effect: {reason}")
        answer = self.registry.look_up(key).answer
        if answer is not None and answer.kind is AnswerKind.MAPPED:
            notes.append(f"becomes {answer.text.replace('`', '')}")
        return ExplainedValue(key, text, found[0][0], found[0][1].place, "; ".join(notes))


def _plain_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _check_answer(key: KnownKey, setting: _Setting) -> None:
    """Refuse a key of Flink's that asks for something that is not there, and a value that maps to nothing."""
    if key.answer is None:
        return
    if key.answer.kind is AnswerKind.REFUSED and not is_flinks_default(key.key, setting.value):
        raise ConfigurationError(
            f"{key.key} (set in {setting.place}) is not supported: {key.answer.text}",
            hint="remove it; docs/flink_keys.md lists what headrace does with each of Flink's keys",
        )
    if key.answer.settings is not None:
        try:
            key.answer.settings(setting.value, key.rest)
        except ValueError as error:
            shown = MASK if looks_secret(key.key) else repr(setting.value)
            raise ConfigurationError(
                f"{key.key} (set in {setting.place}): {shown} cannot be passed to Spark: {error}",
                hint=f"it becomes {key.answer.text.replace('`', '')}",
            ) from error


def _warn_if_deprecated(key: KnownKey, place: str) -> None:
    if key.is_deprecated:
        present = key.key if key.option is None else key.option.key
        warnings.warn(
            f"{(key.former or key.key)!r} (set in {place}) is deprecated; use {present!r} instead",
            DeprecatedKeyWarning,
            stacklevel=4,
        )


def _from_environment(environ: Mapping[str, str], registry: OptionRegistry) -> dict[str, tuple[str, str]]:
    """Find the options that variables set: key -> (variable, value)."""
    options = {each.environment_variable: each for each in registry}
    found = {}
    for variable in sorted(environ):
        if not variable.startswith("HEADRACE_") or variable in _OTHER_VARIABLES:
            continue
        option = options.get(variable)
        if option is None:
            warnings.warn(
                f"the environment variable {variable} does not match any option; see docs/configuration.md",
                ConfigurationWarning,
                stacklevel=3,
            )
        else:
            found[option.key] = (variable, environ[variable])
    return found

"""Reading `headrace.yaml`, the weakest layer of configuration that a person writes.

Keys are Flink's, dotted (`execution.checkpointing.interval: 10 s`), nested, or both mixed. Scalars stay
text, since the option that is set knows better than YAML what `on` or `1:30` means.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from headrace.config.registry import OptionRegistry, known_options
from headrace.errors import ConfigurationError

__all__ = ["CONF_DIR_VARIABLE", "FILE_NAME", "find_file", "flatten", "read_file"]

FILE_NAME: Final = "headrace.yaml"
CONF_DIR_VARIABLE: Final = "HEADRACE_CONF_DIR"


def find_file(environ: Mapping[str, str], working_directory: Path | None = None) -> Path | None:
    """Find the configuration file: in `$HEADRACE_CONF_DIR`, else in `./conf`.

    Returns:
        The path, or None if there is no file in `./conf`.

    Raises:
        ConfigurationError: If `$HEADRACE_CONF_DIR` is set and holds no file.
    """
    directory = environ.get(CONF_DIR_VARIABLE)
    if directory:
        path = Path(directory) / FILE_NAME
        if not path.is_file():
            raise ConfigurationError(
                f"{CONF_DIR_VARIABLE} is {directory!r}, but there is no {FILE_NAME} in it",
                hint=f"create {path} or unset {CONF_DIR_VARIABLE}",
            )
        return path
    path = (working_directory or Path.cwd()) / "conf" / FILE_NAME
    return path if path.is_file() else None


def read_file(path: Path, registry: OptionRegistry | None = None) -> dict[str, object]:
    """Read a configuration file into dotted keys; values are text, lists of text, or maps of map options.

    Raises:
        ConfigurationError: If the file is not YAML, not a mapping, or sets a key twice.
    """
    try:
        content = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: expected lines such as 'parallelism.default: 4'")
    values: dict[str, object] = {}
    for key, value in flatten(content, registry or known_options()):
        if key in values:
            raise ConfigurationError(f"{path} sets {key!r} twice")
        values[key] = value
    return values


def flatten(
    tree: Mapping[str, Any], registry: OptionRegistry, prefix: str = ""
) -> Iterator[tuple[str, object]]:
    """Join nested keys with dots, down to the options; what a map option holds is left whole.

    Example:
        >>> dict(flatten({"parallelism": {"default": "4"}}, known_options()))
        {'parallelism.default': '4'}
    """
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and not registry.is_map(key):
            yield from flatten(value, registry, f"{key}.")
        else:
            yield key, value


class _Loader(yaml.BaseLoader):
    """YAML with text for all scalars, in which no key may come twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        pairs = [(self.construct_object(key, deep=True), key) for key, _ in node.value]
        seen: set[str] = set()
        for key, place in pairs:
            if str(key) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {str(key)!r} occurs twice", place.start_mark
                )
            seen.add(str(key))
        return super().construct_mapping(node, deep=True)

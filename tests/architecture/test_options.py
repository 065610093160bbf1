"""No option is accepted and ignored: the code reads it, or it says that it changes nothing, or takes one value only."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.config import options
from headrace.config.option import ConfigOption
from headrace.config.options.table import Only

_SOURCE = Path(headrace.__file__).parent


def declared() -> Iterator[tuple[str, str, ConfigOption[object]]]:
    """Yield each option with its module and the name it has there."""
    for found in pkgutil.iter_modules(options.__path__, f"{options.__name__}."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, ConfigOption) and re.search(rf"^{name}\b", _text(found.name), re.MULTILINE):
                yield found.name, name, value


def _text(module: str) -> str:
    return (_SOURCE.parent / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def words() -> dict[Path, set[str]]:
    """The words of every module."""
    return {path: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in _SOURCE.rglob("*.py")}


def test_every_option_is_read_or_says_that_it_changes_nothing(words: dict[Path, set[str]]) -> None:
    ignored = []
    for module, name, each in declared():
        own = _SOURCE.parent / (module.replace(".", "/") + ".py")
        is_fixed = isinstance(each.check, Only)
        says_so = each.no_effect or is_fixed or len(each.allowed) == 1
        if not says_so and not any(name in found for path, found in words.items() if path != own):
            ignored.append(each.key)
    assert not ignored


def test_options_are_found() -> None:
    assert len(list(declared())) > 250

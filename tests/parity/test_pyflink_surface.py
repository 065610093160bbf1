"""PyFlink's names, parameters and defaults are ours, but for the gaps that are listed with a reason."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import pyflink_alias
from headrace.errors import UnsupportedFeatureError
from tests.parity.surface import MISSING, PYFLINK, Gap, find_gaps, look_up, our_module, show_default

GAPS = list(find_gaps())
LISTED: list[dict[str, object]] = tomllib.loads(
    Path(__file__).with_name("known_gaps.toml").read_text(encoding="utf-8")
)["gaps"]


def listed_names() -> list[str]:
    return [name for entry in LISTED for name in entry["names"]]


@pytest.fixture(autouse=True)
def _alias() -> Iterator[None]:
    pyflink_alias.install()
    yield
    pyflink_alias.uninstall()


def test_every_difference_is_a_known_gap():
    unknown = [str(gap) for gap in GAPS if gap.name not in listed_names()]

    assert not unknown, "close these, or list them in known_gaps.toml:\n" + "\n".join(unknown)


def test_every_known_gap_is_still_one():
    closed = set(listed_names()) - {gap.name for gap in GAPS}

    assert not closed, f"take these out of known_gaps.toml: {sorted(closed)}"


def test_known_gaps_are_listed_once_and_have_a_reason():
    twice = [name for name, count in Counter(listed_names()).items() if count > 1]

    assert not twice
    assert all(entry["reason"] for entry in LISTED)


def missing_names() -> list[tuple[str, str]]:
    """(module, name) of everything PyFlink has at the top of a module and headrace has not."""
    found = [tuple(gap.name.rsplit(".", 1)) for gap in GAPS if gap.kind == "missing name"]
    for gap in GAPS:
        if gap.kind == "missing module":
            found += [(gap.name, name) for name in PYFLINK["modules"][gap.name]["names"].split()]
            found.append(tuple(gap.name.rsplit(".", 1)))
    for module, names in PYFLINK["later"].items():
        ours = our_module(module)
        found += [(module, name) for name in names.split() if ours is None or look_up(ours, name) is MISSING]
    return found


@pytest.mark.parametrize(("module", "name"), missing_names())
def test_a_missing_name_says_that_it_is_not_there_yet(module, name):
    with pytest.raises(UnsupportedFeatureError, match=r"not supported yet|was removed in PyFlink 2"):
        exec(f"from {module} import {name}")


def owner_and_name(gap: Gap) -> tuple[object, str]:
    """Return the class that should have a member, and the name of the member."""
    modules = sorted(PYFLINK["modules"], key=len, reverse=True)
    module = next(name for name in modules if gap.name.startswith(f"{name}."))
    owner, _, name = gap.name.removeprefix(f"{module}.").rpartition(".")
    return look_up(importlib.import_module(module), owner), name


def gaps_of_kind(kind: str) -> pytest.MarkDecorator:
    found = [gap for gap in GAPS if gap.kind == kind]
    return pytest.mark.parametrize("gap", found, ids=lambda gap: gap.name)


@gaps_of_kind("missing member")
def test_a_missing_member_says_that_it_is_not_there_yet(gap: Gap):
    owner, name = owner_and_name(gap)

    with pytest.raises(UnsupportedFeatureError, match=r"not supported yet"):
        getattr(owner, name)


@gaps_of_kind("refused")
def test_a_refused_method_raises_an_error_of_ours_whatever_it_is_given(gap: Gap):
    method = getattr(*owner_and_name(gap))
    required = [
        each for each in inspect.signature(method).parameters.values() if show_default(each) is MISSING
    ]

    with pytest.raises(UnsupportedFeatureError):
        method(*[None for each in required if each.kind is not each.VAR_POSITIONAL])

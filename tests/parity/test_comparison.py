"""The comparison itself: what it takes for a difference, and what not."""

from __future__ import annotations

from typing import NoReturn

import pytest

from headrace.errors import UnsupportedFeatureError
from tests.parity.make_surface import make_surface
from tests.parity.surface import class_gaps, is_refused, parameter_gaps

INVENTORY = """
# pyflink 9.9 names
[pyflink.common.thing]  __all__: Thing helper
  constants: T LIMIT
  functions: helper(a, b=';'); capture_java_exception(f)
  class Thing()  init(size, j_thing=None)
    static: of(size=1)
    def: grow(by, times?); get_java_thing()
    attr: MAX
    op: __eq__; __reduce__
  class Thing.Builder()  init(j_builder)
  class InternalThing()
[pyflink.ml.thing]  __all__: Table
  class Other()
"""


def test_the_inventory_is_read_without_what_programs_cannot_use():
    assert make_surface(INVENTORY) == {
        "version": "9.9",
        "modules": {
            "pyflink.common.thing": {
                "names": "LIMIT Thing helper",
                "functions": "helper(a, b=';')",
                "classes": {
                    "Thing": {
                        "init": "size, j_thing=None",
                        "static": "of(size=1)",
                        "def": "grow(by, times?)",
                        "attr": "MAX",
                        "op": "__eq__",
                    },
                    "Thing.Builder": {"init": "j_builder"},
                },
            }
        },
        "later": {"pyflink.ml.thing": "Other Table"},
    }


def differs(expected: str, function: object) -> bool:
    return bool(list(parameter_gaps("f", expected, function, is_method=False)))


@pytest.mark.parametrize(
    ("expected", "function"),
    [
        ("", lambda: None),
        ("a, b=None", lambda a, b=None: None),
        ("a, b=';'", lambda a, b=";", c=1: None),
        ("a, b?", lambda a, b=object(): None),  # noqa: B008
        ("a", lambda a="ours may be left out": None),
        ("*args, **kwargs", lambda *args, **kwargs: None),
        ("j_handle", lambda anything, goes: None),
        ("size=None, j_handle=None", lambda size: None),
    ],
)
def test_the_same_parameters_are_not_a_gap(expected, function):
    assert not differs(expected, function)


@pytest.mark.parametrize(
    ("expected", "function"),
    [
        ("a", lambda: None),
        ("a", lambda b: None),
        ("a, b", lambda b, a: None),
        ("a=1", lambda a: None),
        ("a=1", lambda a=2: None),
        ("a=1", lambda a=True: None),
        ("a?", lambda a: None),
        ("a", lambda a, b: None),
        ("*args", lambda args: None),
    ],
)
def test_other_parameters_are_a_gap(expected, function):
    assert differs(expected, function)


class Ours:
    def here(self, a):
        return a

    def as_instance_method(self):
        return self

    @staticmethod
    def as_static_method():
        return None

    def not_yet(self, a):
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("not_yet()")


def test_members_are_compared_by_kind_and_parameters():
    expected = {
        "static": "as_static_method(); as_instance_method()",
        "def": "here(a); gone(); not_yet(a)",
        "attr": "MAX",
        "op": "__eq__",
    }

    found = {gap.name: gap.kind for gap in class_gaps("Ours", expected, Ours)}

    assert found == {
        "Ours.as_instance_method": "kind",
        "Ours.gone": "missing member",
        "Ours.not_yet": "refused",
        "Ours.MAX": "missing member",
        "Ours.__eq__": "missing member",
    }


def refuse() -> NoReturn:
    raise UnsupportedFeatureError.not_yet("it")


def sometimes(value):
    if value is None:
        raise UnsupportedFeatureError.not_yet("None")
    return value


def hook():
    raise TimeoutError


def test_only_what_always_refuses_counts_as_refused():
    assert is_refused(refuse)
    assert not is_refused(sometimes)
    assert not is_refused(hook)

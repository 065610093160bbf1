"""Marks of stability."""

from __future__ import annotations

import pickle

import pytest

from headrace.util.api_stability_decorators import (
    BaseAPIStabilityDecorator,
    Deprecated,
    Experimental,
    Internal,
    Public,
    PublicEvolving,
)


@Deprecated(since="0.2", detail="Use New.")
class Old:
    """A thing."""

    def __init__(self, value: int) -> None:
        self.value = value


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (Experimental(), "experimental"),
        (Internal(), "internal"),
        (PublicEvolving(), "evolving"),
        (Public(), "stable"),
    ],
)
def test_a_mark_adds_a_note_and_changes_nothing_else(mark, text):
    def function(x):
        """Do it."""
        return x + 1

    marked = mark(function)
    assert marked is function
    assert marked(1) == 2
    assert marked.__doc__.startswith("Do it.\n\n.. note:: This function is")
    assert text in marked.__doc__


def test_a_mark_on_something_without_docstring():
    @Public()
    class Plain:
        pass

    assert Plain.__doc__ == ".. note:: This class is public and stable within a major version.\n"


def test_deprecated_functions_warn_when_called():
    @Deprecated(since="0.2")
    def old(x, *, y):
        """Do it."""
        return x + y

    with pytest.warns(DeprecationWarning, match=r"old is deprecated since 0\.2\.$"):
        assert old(1, y=2) == 3
    assert old.__name__ == "old"
    assert ".. deprecated:: 0.2" in old.__doc__


def test_deprecated_classes_warn_when_made_and_stay_classes():
    with pytest.warns(DeprecationWarning, match=r"Old is deprecated since 0\.2\. Use New\."):
        old = Old(5)
    assert isinstance(old, Old)
    assert pickle.loads(pickle.dumps(old)).value == 5


def test_a_mark_of_ones_own_must_say_what_it_adds():
    with pytest.raises(NotImplementedError):
        BaseAPIStabilityDecorator()(len)

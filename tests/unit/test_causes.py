"""The errors behind an error are found once each."""

from __future__ import annotations

from headrace.errors.causes import with_causes


def test_the_cause_comes_before_the_context():
    error, cause, context = ValueError("error"), ValueError("cause"), ValueError("context")
    error.__cause__, error.__context__ = cause, context
    assert list(with_causes(error)) == [error, cause]


def test_errors_in_each_other_s_context_do_not_go_round_in_circles():
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert list(with_causes(one)) == [one, other]

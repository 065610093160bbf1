"""The exception tree: what it prints, that it pickles, what it says to a scheduler."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from headrace import errors
from headrace.errors import (
    CheckpointError,
    ConnectorError,
    DamagedStateError,
    FormatError,
    HeadraceError,
    InvariantViolation,
    JobCancelledError,
    JobExecutionError,
    LeadershipError,
    RecoveryAction,
    SqlParseError,
    StateMigrationError,
    TaskLostError,
    UnsupportedFeatureError,
    UserFunctionError,
    describe_function,
    recovery_of,
    shorten,
)

_ARGUMENTS = {
    "hint": "try again",
    "sql": "SELECT 1\nFROM",
    "line": 2,
    "column": 5,
    "length": 2,
    "feature": "MATCH_RECOGNIZE",
    "example": b"\xff",
    "job": "clicks",
    "operator": "sum",
    "subtask": 3,
    "attempt": 1,
    "status": 404,
    "user_traceback": "Traceback: ...",
    "record": ("a", 1),
    "reason": "TIMED_OUT",
    "story": ["A -> B", "B -> C"],
    "retryable": True,
    "directory": "/data",
    "needed": 4096,
    "free": 0,
    "is_missing": True,
}


def _all_errors(kind: type[HeadraceError] = HeadraceError) -> Iterator[type[HeadraceError]]:
    if kind.__module__ == "headrace.errors":
        yield kind
    for child in kind.__subclasses__():
        yield from _all_errors(child)


def _accepts(kind: type[HeadraceError]) -> dict[str, object]:
    """Every keyword the class or its bases take, with a value."""
    names = kind.__init__.__code__.co_varnames[: 2 + kind.__init__.__code__.co_kwonlyargcount]
    return {name: _ARGUMENTS[name] for name in names[2:]}


@pytest.mark.parametrize("kind", sorted(set(_all_errors()), key=lambda kind: kind.__name__))
def test_every_error_pickles_with_all_its_attributes(kind):
    error = kind("it broke", **_accepts(kind))
    error.add_note("seen twice")

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is kind
    assert copy.args == error.args
    assert copy.__dict__ == error.__dict__
    assert str(copy) == str(error)


def test_every_error_is_public_and_drawn_in_the_module_docstring():
    for kind in _all_errors():
        assert kind.__name__ in errors.__all__
        assert kind.__name__ in (errors.__doc__ or "")
        assert kind.__doc__, kind


def test_a_cause_of_ours_survives_pickling():
    error = JobExecutionError("the job failed")
    error.__cause__ = TaskLostError("executor 2 is gone")

    copy = pickle.loads(pickle.dumps(error))

    assert isinstance(copy.__cause__, TaskLostError)


def test_a_cause_of_the_users_is_left_behind_because_its_class_may_not_be_importable():
    class Local(Exception):
        pass

    error = JobExecutionError("the job failed")
    error.__cause__ = Local()

    assert pickle.loads(pickle.dumps(error)).__cause__ is None


def test_retryable_can_be_set_for_one_error_only():
    assert ConnectorError("down").retryable
    assert not ConnectorError("password refused", retryable=False).retryable
    assert ConnectorError.retryable


def test_domains_tell_who_has_to_act():
    assert UserFunctionError("x").domain == "user"
    assert TaskLostError("x").domain == "external"
    assert FormatError("x").domain == "external"
    assert InvariantViolation("x").domain == "internal"


def test_an_error_that_a_restart_cannot_fix_is_not_retryable():
    assert not JobCancelledError("x").retryable
    assert not FormatError("x").retryable
    assert not InvariantViolation("x").retryable


@pytest.mark.parametrize(
    ("error", "recovery"),
    [
        (ConnectorError("down"), RecoveryAction.ASK_STRATEGY),
        (ConnectorError("password refused", retryable=False), RecoveryAction.FAIL),
        (FormatError("not JSON"), RecoveryAction.FAIL),
        (StateMigrationError("another type"), RecoveryAction.FAIL),
        (TaskLostError("the host is gone"), RecoveryAction.RUN_EPOCH_AGAIN),
        (DamagedStateError("cut short"), RecoveryAction.RESTORE),
        (LeadershipError("another leads"), RecoveryAction.HAND_OVER),
        (JobCancelledError("enough"), RecoveryAction.CANCEL),
        (ValueError("of a connector"), RecoveryAction.ASK_STRATEGY),
        (KeyboardInterrupt(), RecoveryAction.FAIL),
    ],
)
def test_an_error_says_what_a_job_does_about_it(error: BaseException, recovery: RecoveryAction):
    assert recovery_of(error) is recovery
    if isinstance(error, HeadraceError):
        assert pickle.loads(pickle.dumps(error)).recovery is recovery


def test_a_hint_has_a_line_of_its_own():
    assert str(HeadraceError("no such file", hint="create it")) == "no such file\nhint: create it"


def test_sql_errors_underline_the_place():
    error = SqlParseError("unexpected 'FORM'", sql="SELECT a\nFORM t", line=2, column=1)
    assert str(error) == "unexpected 'FORM'\n  2 | FORM t\n      ^"


def test_sql_errors_give_line_and_column_if_the_text_is_not_available():
    assert str(SqlParseError("what?", line=4, column=2)) == "what?\n  at line 4, column 2"


def test_unsupported_features_name_the_feature_and_the_way_round():
    error = UnsupportedFeatureError.not_yet("Iterations", "use a queue between two jobs")
    assert error.feature == "Iterations"
    assert str(error) == "Iterations is not supported yet\nhint: use a queue between two jobs"


def test_checkpoint_errors_tell_their_reason():
    assert "reason: TIMED_OUT" in str(CheckpointError("checkpoint 7 failed", reason="TIMED_OUT"))


def _divide(value: int) -> float:
    return value / 0


def test_a_user_function_error_shows_the_users_traceback_first():
    try:
        _divide(3)
    except ZeroDivisionError as raised:
        error = UserFunctionError.from_exception(
            raised, record={"id": 3}, job="clicks", operator="divide", subtask=1, attempt=0
        )

    lines = str(error).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert any("return value / 0" in line for line in lines)
    assert lines[-3] == "ZeroDivisionError: division by zero"
    assert lines[-2] == "  in job 'clicks', operator 'divide', subtask 1, attempt 0"
    assert lines[-1] == "  record: {'id': 3}"
    assert error.message == "ZeroDivisionError: division by zero"


def test_only_leading_frames_of_headrace_are_cut():
    # `call` stands for an operator of headrace that calls the user's function.
    caller: dict[str, object] = {"__name__": "headrace.operators.map", "UserFunctionError": UserFunctionError}
    exec(
        "def call(f, x):\n    try:\n        f(x)\n    except Exception as e:\n"
        "        return UserFunctionError.from_exception(e)",
        caller,
    )
    error = caller["call"](_divide, 1)  # type: ignore[operator]
    assert error.user_traceback.count('File "') == 1
    assert "in _divide" in error.user_traceback


def test_wrapping_twice_keeps_the_innermost_error():
    inner = UserFunctionError("ValueError: x", operator="inner")
    assert UserFunctionError.from_exception(inner, operator="outer") is inner


class _Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_shorten_copes_with_any_value():
    assert shorten({"a": [1, 2]}) == "{'a': [1, 2]}"
    assert len(shorten(["x" * 1000] * 1000)) <= 300
    assert "_Hostile" in shorten(_Hostile())


def test_functions_are_described_by_where_they_stand():
    assert describe_function(lambda x: x).startswith("<lambda at test_errors.py:")
    assert describe_function(_divide).startswith("_divide at test_errors.py:")
    assert describe_function(_Hostile()) == "_Hostile"

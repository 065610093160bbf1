"""Flink's exceptions by their names."""

from __future__ import annotations

import pickle

import pytest

from headrace.errors import CatalogError, SqlValidationError, TaskLostError
from headrace.util import exceptions
from headrace.util.exceptions import (
    CatalogException,
    JavaException,
    TableException,
    TableNotExistException,
    capture_java_exception,
    convert_py4j_exception,
    install_exception_handler,
    install_py4j_hooks,
)


@pytest.mark.parametrize("name", [name for name in exceptions.__all__ if name.endswith("Exception")])
def test_every_exception_can_be_raised_and_pickled(name):
    error = getattr(exceptions, name)("no", hint="look again")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.hint == "look again"


def test_programs_catch_errors_of_headrace_by_the_names_of_flink():
    with pytest.raises(TableException):
        raise SqlValidationError("no such column")
    with pytest.raises(CatalogException):
        raise TableNotExistException("no table 't'")
    with pytest.raises(JavaException):
        raise TaskLostError("executor 2 is gone")
    assert issubclass(TableNotExistException, CatalogError)


def test_hooks_into_java_do_nothing():
    install_exception_handler()
    install_py4j_hooks()
    assert capture_java_exception(len) is len
    error = ValueError()
    assert convert_py4j_exception(error) is error

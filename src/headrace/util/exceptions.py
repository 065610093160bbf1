"""Flink's exceptions by the names PyFlink programs catch, as errors of headrace.

`except TableException` catches what headrace raises for a wrong statement. The names for catalogs are
classes of their own, which the catalogs raise. There is no Java behind them, so hooking into it does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.errors import CatalogError, HeadraceError, SqlError

__all__ = [
    "CatalogException",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "FunctionAlreadyExistException",
    "FunctionNotExistException",
    "JavaException",
    "ModelAlreadyExistException",
    "ModelNotExistException",
    "PartitionAlreadyExistsException",
    "PartitionNotExistException",
    "PartitionSpecInvalidException",
    "TableAlreadyExistException",
    "TableException",
    "TableNotExistException",
    "TableNotPartitionedException",
    "capture_java_exception",
    "convert_py4j_exception",
    "install_exception_handler",
    "install_py4j_hooks",
]

F = TypeVar("F", bound=Callable[..., object])
E = TypeVar("E", bound=BaseException)

#: What comes from the engine rather than from Python.
JavaException = HeadraceError
TableException = SqlError
CatalogException = CatalogError


class DatabaseAlreadyExistException(CatalogError):
    """There is a database of that name. Use `IF NOT EXISTS`, or another name."""


class DatabaseNotEmptyException(CatalogError):
    """The database holds tables or functions. Drop them first, or use `CASCADE`."""


class DatabaseNotExistException(CatalogError):
    """There is no database of that name."""


class FunctionAlreadyExistException(CatalogError):
    """There is a function of that name. Use `IF NOT EXISTS`, or another name."""


class FunctionNotExistException(CatalogError):
    """There is no function of that name."""


class ModelAlreadyExistException(CatalogError):
    """There is a model of that name. Use `IF NOT EXISTS`, or another name."""


class ModelNotExistException(CatalogError):
    """There is no model of that name."""


class PartitionAlreadyExistsException(CatalogError):
    """The table has that partition already."""


class PartitionNotExistException(CatalogError):
    """The table has no such partition."""


class PartitionSpecInvalidException(CatalogError):
    """The partition does not fit the partition keys of the table."""


class TableAlreadyExistException(CatalogError):
    """There is a table or view of that name. Use `IF NOT EXISTS`, or another name."""


class TableNotExistException(CatalogError):
    """There is no table or view of that name."""


class TableNotPartitionedException(CatalogError):
    """The table has no partitions to speak of."""


def capture_java_exception(f: F) -> F:
    """Return the function as it is: errors of headrace are Python's already."""
    return f


def install_exception_handler() -> None:
    """Do nothing: errors of headrace are Python's already."""


def install_py4j_hooks() -> None:
    """Do nothing: errors of headrace are Python's already."""


def convert_py4j_exception(e: E) -> E:
    """Return the error as it is: errors of headrace are Python's already."""
    return e

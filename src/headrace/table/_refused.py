"""Calls of PyFlink's table environment that headrace does not have: each says so, and the way round if there is one."""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.common._older_names import OlderMethods
from headrace.errors import UnsupportedFeatureError

__all__ = ["RefusedCalls"]


class RefusedCalls(OlderMethods):
    """The part of a table environment that is not there."""

    # --- models --------------------------------------------------------------------

    def create_model(self, model_path: str, model_descriptor: Any, ignore_if_exists: bool = False) -> None:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("create_model()")

    def create_temporary_model(
        self, model_path: str, model_descriptor: Any, ignore_if_exists: bool = False
    ) -> None:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("create_temporary_model()")

    def drop_model(self, model_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("drop_model()")

    def drop_temporary_model(self, model_path: str) -> bool:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("drop_temporary_model()")

    def list_models(self) -> NoReturn:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("list_models()")

    def list_temporary_models(self) -> NoReturn:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("list_temporary_models()")

    # --- functions in Java ----------------------------------------------------------------------------

    def create_java_function(
        self, path: str, function_class_name: str, ignore_if_exists: bool | None = None
    ) -> None:
        """Refused: no Java code of a program is loaded."""
        raise _no_java("create_java_function()")

    def create_java_temporary_function(self, path: str, function_class_name: str) -> None:
        """Refused: no Java code of a program is loaded."""
        raise _no_java("create_java_temporary_function()")

    def create_java_temporary_system_function(self, name: str, function_class_name: str) -> None:
        """Refused: no Java code of a program is loaded."""
        raise _no_java("create_java_temporary_system_function()")


def _no_java(call: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{call}: headrace runs Python functions and loads no Java code of a program",
        feature=call,
        hint="write the function in Python: create_temporary_function(path, udf(...))",
    )

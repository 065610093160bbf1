"""Python functions as queries know them, given as objects or named in a catalog."""

from __future__ import annotations

import importlib
from typing import Any

from headrace.catalog.functions import CatalogFunction, UserFunction
from headrace.errors import CatalogError, JobDefinitionError, UnsupportedFeatureError
from headrace.table._wrappers import UserDefinedFunctionWrapper

__all__ = ["as_user_function", "load_function"]


def as_user_function(name: str | None, function: Any) -> UserFunction:
    """Return a function that `udf` or its like made as queries know it.

    Raises:
        JobDefinitionError: If it was not made by one of them.
    """
    if not isinstance(function, UserDefinedFunctionWrapper):
        raise JobDefinitionError(
            f"expected a function created with udf(), udtf(), udaf() or udtaf(); got {function!r}",
            hint="udf(function, result_type=DataTypes.BIGINT())",
        )
    return function._function(name)


def load_function(name: str, function: CatalogFunction) -> UserFunction:
    """Import a function that CREATE FUNCTION names.

    Args:
        name: What queries call it.
        function: ``module.attribute``, and its language.

    Raises:
        UnsupportedFeatureError: If it is not in Python.
        CatalogError: If there is no such function.
    """
    if function.language.upper() != "PYTHON":
        raise UnsupportedFeatureError(
            f"function {name!r} is written in {function.language}, and headrace cannot load Java code",
            feature=f"functions in {function.language}",
            hint="write it in Python: CREATE FUNCTION ... AS 'module.attribute' LANGUAGE PYTHON",
        )
    module, _, attribute = function.class_name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise CatalogError(
            f"function {name!r}: cannot import {function.class_name!r}: {error}",
            hint="pass 'module.attribute' of a function created with udf(), on the program's import path",
        ) from error
    try:
        return as_user_function(name, found)
    except JobDefinitionError as error:
        raise CatalogError(f"function {name!r}: {error.message}", hint=error.hint) from error

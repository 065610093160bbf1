"""Functions that expressions can call: what `udf`, `udtf`, `udaf` and `udtaf` make of the user's own."""

from __future__ import annotations

import datetime
import functools
import inspect
import types
import typing
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from headrace.catalog import CatalogManager
from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.errors import JobDefinitionError, describe_function
from headrace.planner import bind_expression
from headrace.table._function_classes import UserDefinedFunction
from headrace.table.expression import Expression
from headrace.table.expressions import call_object
from headrace.types import DataType, DataTypes, RowType

__all__ = [
    "RowsOfGroup",
    "UserDefinedAggregateFunctionWrapper",
    "UserDefinedAsyncScalarFunctionWrapper",
    "UserDefinedFunctionWrapper",
    "UserDefinedScalarFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
    "asked_type",
    "hinted_type",
    "read_type",
]

#: The types that hints stand for.
_HINTED: Final[dict[Any, Callable[[], DataType]]] = {
    bool: DataTypes.BOOLEAN,
    int: DataTypes.BIGINT,
    float: DataTypes.DOUBLE,
    str: DataTypes.STRING,
    bytes: DataTypes.BYTES,
    Decimal: lambda: DataTypes.DECIMAL(38, 18),
    datetime.date: DataTypes.DATE,
    datetime.time: DataTypes.TIME,
    datetime.datetime: lambda: DataTypes.TIMESTAMP(3),
}


class UserDefinedFunctionWrapper:
    """A function that expressions can call. Made by `udf` and its like."""

    def __init__(
        self,
        func: Any,
        input_types: Any,
        func_type: str,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> None:
        if input_types is not None and not isinstance(input_types, DataType | str | Sequence):
            raise JobDefinitionError(f"input_types: expected a type or a list of types; got {input_types!r}")
        own = func.is_deterministic() if isinstance(func, UserDefinedFunction) else deterministic
        if deterministic is not None and own != deterministic:
            raise JobDefinitionError(
                f"{describe_function(func)}: is_deterministic() returns {own}, but deterministic is {deterministic}",
                hint="leave out one of them",
            )
        self._func = func
        self._input_types = input_types
        self._func_type = func_type
        self._deterministic = own is not False
        self._name = name or getattr(func, "__name__", None) or type(func).__name__
        self._alias_names: tuple[str, ...] = ()
        functools.update_wrapper(self, func, updated=())

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """Name the columns of the result."""
        self._alias_names = alias_names
        return self

    def __call__(self, *args: Any) -> Expression[Any]:
        return call_object(self, args)

    def _made(self, call: str, name: str | None, kind: FunctionKind, result_type: DataType) -> UserFunction:
        """Return the function as queries know it."""
        types = self._input_types
        if isinstance(types, DataType | str):
            types = [types]
        return UserFunction(
            name or self._name,
            kind,
            self._func,
            None if types is None else tuple(read_type(each, call) for each in types),
            result_type,
            self._deterministic,
        )

    def _function(self, name: str | None = None) -> UserFunction:
        raise NotImplementedError


class UserDefinedScalarFunctionWrapper(UserDefinedFunctionWrapper):
    """A scalar function that expressions can call."""

    def __init__(
        self,
        func: Any,
        input_types: Any,
        result_type: Any,
        func_type: str,
        deterministic: Any,
        name: str | None,
    ) -> None:
        super().__init__(func, input_types, func_type, deterministic, name)
        if result_type is None and func_type == "general":
            result_type = _hinted(getattr(func, "eval", func))
        if result_type is None:
            raise JobDefinitionError(
                f"udf(): {describe_function(func)} declares no result_type",
                hint="pass result_type, such as DataTypes.BIGINT()",
            )
        self._result_type = read_type(result_type)

    def _function(self, name: str | None = None) -> UserFunction:
        is_pandas = self._func_type == "pandas"
        kind = FunctionKind.PANDAS_SCALAR if is_pandas else FunctionKind.SCALAR
        return self._made("udf()", name, kind, self._result_type)


class UserDefinedAsyncScalarFunctionWrapper(UserDefinedScalarFunctionWrapper):
    """A scalar function whose rows wait together."""

    def _function(self, name: str | None = None) -> UserFunction:
        return self._made("udf()", name, FunctionKind.ASYNC_SCALAR, self._result_type)


class UserDefinedTableFunctionWrapper(UserDefinedFunctionWrapper):
    """A table function that expressions can call."""

    def __init__(
        self,
        func: Any,
        input_types: Any,
        result_types: Any,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(func, input_types, "general", deterministic, name)
        if result_types is None:
            result_types = _hinted_rows(getattr(func, "eval", func))
        if result_types is None:
            raise JobDefinitionError(
                f"udtf(): {describe_function(func)} declares no result_types",
                hint="pass result_types, such as [DataTypes.BIGINT(), DataTypes.STRING()]",
            )
        if isinstance(result_types, str):
            result_types = read_type(result_types, "udtf()")
        if isinstance(result_types, RowType):
            result_types = result_types.field_types()
        elif isinstance(result_types, DataType):
            result_types = [result_types]
        self._result_types = [read_type(each, "udtf()") for each in result_types]

    def _function(self, name: str | None = None) -> UserFunction:
        fields = [DataTypes.FIELD(f"f{at}", each) for at, each in enumerate(self._result_types)]
        return self._made("udtf()", name, FunctionKind.TABLE, DataTypes.ROW(fields))


class UserDefinedAggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """A function over groups that expressions can call: one value of each, or with `udtaf` rows."""

    def __init__(
        self,
        func: Any,
        input_types: Any,
        result_type: Any,
        accumulator_type: Any,
        func_type: str,
        deterministic: bool | None,
        name: str | None,
        is_table_aggregate: bool = False,
    ) -> None:
        super().__init__(func, input_types, func_type, deterministic, name)
        self._is_table_aggregate = is_table_aggregate
        call = "udtaf()" if is_table_aggregate else "udaf()"
        if result_type is None:
            result_type = asked_type(func, "get_result_type") or _hinted(getattr(func, "get_value", func))
        if result_type is None:
            raise JobDefinitionError(
                f"{call}: {describe_function(func)} declares no result_type",
                hint="pass result_type, such as DataTypes.BIGINT(), or define get_result_type()",
            )
        self._result_type = read_type(result_type, call)
        # What accumulators are kept as follows from their values; a wrong declaration is still told at once.
        if accumulator_type is None:
            accumulator_type = asked_type(func, "get_accumulator_type")
        if accumulator_type is not None:
            read_type(accumulator_type, call)

    def _function(self, name: str | None = None) -> UserFunction:
        if self._is_table_aggregate:
            result = self._result_type
            if not isinstance(result, RowType):
                result = DataTypes.ROW([DataTypes.FIELD("f0", result)])
            return self._made("udtaf()", name, FunctionKind.TABLE_AGGREGATE, result)
        is_pandas = self._func_type == "pandas"
        kind = FunctionKind.PANDAS_AGGREGATE if is_pandas else FunctionKind.AGGREGATE
        return self._made("udaf()", name, kind, self._result_type)


class RowsOfGroup(UserDefinedFunctionWrapper):
    """A table aggregate function whose rows are asked for as one array, which `flat_aggregate` then takes apart."""

    def __init__(self, function: UserFunction) -> None:
        super().__init__(function.implementation, function.argument_types, "general", name=function.name)
        self._given = function

    def _function(self, name: str | None = None) -> UserFunction:
        row = self._given.result_type
        return replace(
            self._given, name=name or f"{self._given.name}$rows", result_type=DataTypes.ARRAY(row.not_null())
        )


def read_type(given: Any, call: str = "udf()") -> DataType:
    """Return a type that is given as such, or as SQL writes it."""
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        # A type is read as SQL reads it, where a CAST names one.
        cast = bind_expression(f"CAST(NULL AS {given})", (), CatalogManager())
        return cast.type
    raise JobDefinitionError(f"{call}: expected a data type such as DataTypes.BIGINT(); got {given!r}")


def asked_type(func: Any, method: str) -> Any:
    """Return what a function says about its types; None if it does not."""
    try:
        return getattr(func, method)()
    except (AttributeError, NotImplementedError):
        return None


# --- hints --------------------------------------------------------------------------------------------


def _hinted(function: Any) -> DataType | None:
    """Return the type that a function's hint says it returns; None if there is none that is known."""
    return hinted_type(_return_hint(function))


def _hinted_rows(function: Any) -> list[DataType] | None:
    """Return the types of the columns that the hint of a table function names: `Iterator[tuple[int, str]]`."""
    hint = _return_hint(function)
    if not _is_iterable(hint):
        return None
    (row, *_) = typing.get_args(hint) or (None,)
    cells = typing.get_args(row) if typing.get_origin(row) is tuple else (row,)
    found = [hinted_type(each) for each in cells]
    return None if None in found else typing.cast("list[DataType]", found)


def _is_iterable(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    is_many = inspect.isclass(origin) and issubclass(origin, Iterable | AsyncIterable)
    return is_many and not issubclass(origin, tuple | dict)


def _return_hint(function: Any) -> Any:
    try:
        return typing.get_type_hints(function).get("return")
    except (TypeError, NameError, AttributeError):
        return None


def hinted_type(hint: Any) -> DataType | None:
    """Return the type that a hint stands for; None if it is not known."""
    if hint in _HINTED:
        return _HINTED[hint]()
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        known = [each for each in arguments if each is not type(None)]
        return hinted_type(known[0]) if len(known) == 1 else None
    inner = [hinted_type(each) for each in arguments if each is not Ellipsis]
    if not inner or None in inner:
        return None
    return _of_several(origin, typing.cast("Sequence[DataType]", inner))


def _of_several(origin: Any, inner: Sequence[DataType]) -> DataType | None:
    if origin is dict:
        return DataTypes.MAP(inner[0], inner[1])
    if origin is list:
        return DataTypes.ARRAY(inner[0])
    if origin is tuple:
        return DataTypes.ROW([DataTypes.FIELD(f"f{at}", each) for at, each in enumerate(inner)])
    return None

"""All built-in functions by name, and how modules of the registry declare them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog.manager import nearest
from headrace.planner.functions.signature import (
    BuiltInFunction,
    Emission,
    Nulls,
    Resolved,
    Resolver,
    Result,
    Signature,
    WrongArguments,
    signature,
)
from headrace.types import DataType

__all__ = ["FunctionRegistry", "fixed", "same_as"]


def fixed(result: DataType) -> Result:
    """A result of one type."""
    return lambda _: result


def same_as(place: int = 0) -> Result:
    """A result of the type of an argument."""
    return lambda types: types[place]


class FunctionRegistry:
    """Functions of one subject, or all of them."""

    def __init__(self, group: str = "") -> None:
        self.group = group
        self._functions: dict[str, BuiltInFunction] = {}
        self._names: dict[str, BuiltInFunction] = {}

    def add(
        self,
        signatures: str | Sequence[str],
        result: Result | DataType,
        emission: Emission,
        description: str,
        *,
        nulls: Nulls = Nulls.PASS,
        aliases: Sequence[str] = (),
        exact: bool = False,
    ) -> None:
        """Write down a function whose arguments its signatures describe."""
        read = tuple(
            signature(text) for text in ([signatures] if isinstance(signatures, str) else signatures)
        )
        make = fixed(result) if isinstance(result, DataType) else result

        def resolve(types: Sequence[DataType]) -> Resolved:
            arguments = _first_fit(read, types)
            asked = types if nulls is Nulls.PASS else types[: 1 if nulls is Nulls.FIRST else 0]
            nullable = nulls is Nulls.ALWAYS or any(one.is_nullable for one in asked)
            return arguments, make(arguments).with_nullability(nullable)

        self.put(
            BuiltInFunction(
                read[0].name,
                self.group,
                read,
                description,
                resolve,
                emission,
                tuple(aliases),
                exact,
            )
        )

    def add_shape(
        self,
        name: str,
        shown: str,
        description: str,
        resolve: Resolver,
        emission: Emission,
        *,
        exact: bool = True,
        is_form: bool = False,
    ) -> None:
        """Write down a function whose arguments no signature describes; ``shown`` is how a call looks."""
        shape = Signature(shown, name, ())
        self.put(
            BuiltInFunction(
                name, self.group, (shape,), description, resolve, emission, exact=exact, is_form=is_form
            )
        )

    def put(self, function: BuiltInFunction) -> None:
        """Write down a function."""
        self._functions[function.name] = function
        for name in (function.name, *function.aliases):
            assert name not in self._names, name
            self._names[name] = function

    def include(self, other: FunctionRegistry) -> None:
        """Add all functions of another registry."""
        for function in other.functions():
            self.put(function)

    def find(self, name: str) -> BuiltInFunction | None:
        """The function with this name, whatever its capitals."""
        return self._names.get(name.upper())

    def functions(self) -> list[BuiltInFunction]:
        """All functions in the order they were written down."""
        return list(self._functions.values())

    def names(self) -> list[str]:
        """All names, also the other ones a function goes by."""
        return sorted(self._names)

    def suggestion(self, name: str, others: Sequence[str] = ()) -> str | None:
        """What was probably meant."""
        found = nearest(name.upper(), [*self._names, *(other.upper() for other in others)])
        return found if found is not None and found.startswith("did you mean") else None


def _first_fit(signatures: Sequence[Signature], types: Sequence[DataType]) -> tuple[DataType, ...]:
    problem: WrongArguments | None = None
    for one in signatures:
        try:
            return one.bind(types)
        except WrongArguments as wrong:
            problem = problem or wrong
    assert problem is not None
    raise problem

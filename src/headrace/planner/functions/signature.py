"""What the registry keeps about a function: how it is called, its result, and its Spark SQL.

A signature is written the way the documentation shows it, and read from there:

    SUBSTRING(text STRING, start INT [, length INT])        GREATEST(value ANY, value ANY...)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace import types as t
from headrace.planner.coercion import is_binary, is_interval, is_string, is_temporal
from headrace.planner.expressions import Call

__all__ = [
    "Emission",
    "BuiltInFunction",
    "Nulls",
    "Parameter",
    "Result",
    "Signature",
    "WrongArguments",
    "signature",
]


class WrongArguments(Exception):
    """The arguments do not fit; the binder turns it into an error with a place."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Family:
    """Types a parameter takes, and what a bare NULL becomes there."""

    accepts: Callable[[t.DataType], bool]
    default: t.DataType
    #: What arguments are cast to; None: they stay as they are.
    cast: t.DataType | None = None


_FAMILIES: Final[dict[str, Family]] = {
    "ANY": Family(lambda _: True, t.NullType()),
    "STRING": Family(is_string, t.DataTypes.STRING()),
    "BYTES": Family(is_binary, t.DataTypes.BYTES()),
    "BOOLEAN": Family(lambda one: isinstance(one, t.BooleanType), t.BooleanType()),
    "NUMBER": Family(lambda one: isinstance(one, t.NumericType), t.DoubleType()),
    "INT": Family(lambda one: isinstance(one, t.IntegralType), t.IntType(), t.IntType()),
    "INTEGER": Family(lambda one: isinstance(one, t.IntegralType), t.IntType()),
    "DOUBLE": Family(lambda one: isinstance(one, t.NumericType), t.DoubleType(), t.DoubleType()),
    "TIME POINT": Family(is_temporal, t.DataTypes.TIMESTAMP(3)),
    "TIME POINT OR INTERVAL": Family(
        lambda one: is_temporal(one) or is_interval(one), t.DataTypes.TIMESTAMP(3)
    ),
    "TIMESTAMP": Family(
        lambda one: isinstance(one, t.TimestampType | t.LocalZonedTimestampType), t.DataTypes.TIMESTAMP(3)
    ),
    "TIMESTAMP OR STRING": Family(
        lambda one: isinstance(one, t.TimestampType | t.LocalZonedTimestampType) or is_string(one),
        t.DataTypes.TIMESTAMP(3),
    ),
    "NUMBER OR STRING": Family(
        lambda one: isinstance(one, t.NumericType) or is_string(one), t.DataTypes.STRING()
    ),
    "ARRAY": Family(lambda one: isinstance(one, t.ArrayType), t.ArrayType(t.NullType())),
    "MAP": Family(
        lambda one: isinstance(one, t.MapType), t.MapType(t.DataTypes.STRING(), t.DataTypes.STRING())
    ),
    "COLLECTION": Family(
        lambda one: isinstance(one, t.ArrayType | t.MapType | t.MultisetType), t.ArrayType(t.NullType())
    ),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter as it is written."""

    name: str
    family: str
    optional: bool = False
    repeated: bool = False


class Nulls(Enum):
    """When the result may be NULL."""

    #: When an argument may be.
    PASS = "pass"  # noqa: S105  # no password
    #: When the first argument may be.
    FIRST = "first"
    ALWAYS = "always"
    NEVER = "never"


#: The result's type from the types of the arguments; its nullability is set afterwards.
Result = Callable[[Sequence[t.DataType]], t.DataType]
#: The Spark SQL of a call from that of its operands: a template, or a function for what a template cannot say.
Emission = str | Callable[[Call, list[str]], str]


@dataclass(frozen=True)
class Signature:
    """A name with its parameters."""

    text: str
    name: str
    parameters: tuple[Parameter, ...]

    def bind(self, types: Sequence[t.DataType]) -> tuple[t.DataType, ...]:
        """What the arguments are cast to.

        Raises:
            WrongArguments: There are too few or too many, or one has a type that does not fit.
        """
        least = sum(not one.optional for one in self.parameters)
        endless = bool(self.parameters) and self.parameters[-1].repeated
        if len(types) < least or (len(types) > len(self.parameters) and not endless):
            raise WrongArguments(f"wrong arguments for {self.name}", f"usage: {self.text}")
        found = []
        for place, one in enumerate(types):
            parameter = self.parameters[min(place, len(self.parameters) - 1)]
            family = _FAMILIES[parameter.family]
            if isinstance(one, t.NullType):
                found.append(family.default)
            elif family.accepts(one):
                found.append(one if family.cast is None else family.cast.with_nullability(one.is_nullable))
            else:
                raise WrongArguments(
                    f"{self.name} takes {_article(parameter.family)} as {parameter.name}, not {one.summary()}",
                    f"usage: {self.text}",
                )
        return tuple(found)


def _article(family: str) -> str:
    return f"{'an' if family[0] in 'AEIOU' else 'a'} {family}"


_PARAMETER: Final = re.compile(r"(\w+) ([A-Z ]+?)(\.\.\.)?$")


def signature(text: str) -> Signature:
    """Read a signature.

    >>> signature("LPAD(text STRING, length INT [, pad STRING])").parameters[2].optional
    True
    """
    name, _, rest = text.partition("(")
    optional = False
    parameters = []
    for piece in rest.rstrip(")").replace("[,", ",[").split(","):
        part = piece.strip()
        if not part:
            continue
        optional = optional or part.startswith("[")
        match = _PARAMETER.match(part.strip("[] "))
        assert match is not None, text
        parameters.append(Parameter(match[1], match[2], optional, bool(match[3])))
    return Signature(text, name, tuple(parameters))


#: Types to cast the arguments of a call to, and the type of its result.
Resolved = tuple[tuple[t.DataType, ...], t.DataType]
Resolver = Callable[[Sequence[t.DataType]], Resolved]


@dataclass(frozen=True)
class BuiltInFunction:
    """A built-in function: its signatures, its documentation and the Spark SQL it becomes."""

    name: str
    #: The page's section: string, temporal, ...
    group: str
    signatures: tuple[Signature, ...]
    #: One sentence for the documentation.
    description: str
    resolve: Resolver
    emission: Emission
    aliases: tuple[str, ...] = ()
    #: Spark gives the declared type without a cast around it.
    exact: bool = False
    #: Only the grammar writes calls of it, for an operator or a form with words of its own; nobody calls it by name.
    is_form: bool = False

    def emit(self, call: Call, operands: list[str]) -> str:
        """The call in Spark SQL."""
        if callable(self.emission):
            text = self.emission(call, operands)
        else:
            text = self.emission.format(*operands, all=", ".join(operands))
        return text if self.exact else f"CAST({text} AS {call.type.spark_name()})"

"""BATCH mode over input that takes several epochs: a query of Spark SQL needs all rows at once, so they are gathered.

    scan    --Select--.
    stream  --Select--+--> gather: rows wait in state until all input has ended --> query, in that last epoch
    scan    --Select--'

What gathers is a window that ends with time: rows of several tables stand side by side in it, with NULLs for the
columns of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.elements import MAX_WATERMARK
from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.planner.fragments import BIGINT, Stream, column
from headrace.types.logical import IntType, quote_name

__all__ = ["Gathering", "gather"]

#: When a row's wait is over.
_OVER: Final = column("__over", BIGINT)
#: Which of the tables a row is of.
_FROM: Final = column("__from", IntType(False))


@dataclass(frozen=True)
class Gathering:
    """Rows of several tables in one.

    Args:
        declaration: What gathers them.
        inputs: The tables, as it takes them.
        tables: Spark SQL of each table; ``{0}`` is what was gathered.
    """

    declaration: d.RankDeclaration
    inputs: tuple[Stream, ...]
    tables: tuple[str, ...]


def gather(streams: Sequence[Stream]) -> Gathering:
    """Have the rows of tables wait for each other's end."""
    own = [
        [
            steps.StepColumn(f"__t{number}_{at}", each.spark_type, each.arrow)
            for at, each in enumerate(stream.columns)
        ]
        for number, stream in enumerate(streams)
    ]
    wide = [each for columns in own for each in columns]
    inputs, tables = [], []
    for number, (stream, columns) in enumerate(zip(streams, own, strict=True)):
        given = {mine.name: quote_name(name) for mine, name in zip(columns, stream.names, strict=True)}
        items = [(given.get(each.name, f"CAST(NULL AS {each.spark_type})"), each) for each in wide]
        inputs.append(stream.select([*items, (str(number), _FROM), (f"{MAX_WATERMARK}L", _OVER)]))
        names = ", ".join(
            f"{mine.name} AS {quote_name(name)}" for mine, name in zip(columns, stream.names, strict=True)
        )
        tables.append(f"(SELECT {names} FROM {{0}} WHERE {_FROM.name} = {number})")
    output = (*wide, _FROM, _OVER)
    declaration = d.RankDeclaration(
        output, tuple(each.name for each in wide), (), None, window_end=_OVER.name, is_insert_only=True
    )
    return Gathering(declaration, tuple(inputs), tuple(tables))

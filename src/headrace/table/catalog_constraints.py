"""What a resolved schema says beside its columns: its primary key, and how event time is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.types.logical import quote_name

__all__ = ["Constraint", "UniqueConstraint", "WatermarkSpec"]


@dataclass(frozen=True)
class Constraint:
    """Something that holds for all rows of a table; `UniqueConstraint` is the one there is."""

    name: str

    class ConstraintType(Enum):
        """The kinds of constraints."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    def get_name(self) -> str:
        """Return the name of the constraint."""
        return self.name

    def is_enforced(self) -> bool:
        """Return False: nothing checks constraints, as in Flink."""
        return False

    def get_type(self) -> ConstraintType:
        """Return which kind of constraint it is."""
        raise NotImplementedError

    def as_summary_string(self) -> str:
        """Return it for people."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """Columns whose values identify a row: the primary key.

    Example:
        >>> print(UniqueConstraint.primary_key("pk", ["id"]))
        CONSTRAINT `pk` PRIMARY KEY (`id`) NOT ENFORCED
    """

    columns: tuple[str, ...]

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """Make a primary key of these columns."""
        return UniqueConstraint(name, tuple(columns))

    def get_columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.columns)

    def get_type(self) -> Constraint.ConstraintType:
        """Return `PRIMARY_KEY`, the one kind that tables have."""
        return Constraint.ConstraintType.PRIMARY_KEY

    def get_type_string(self) -> str:
        """Return the kind as SQL writes it."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        """Return it as SQL declares it."""
        columns = ", ".join(map(quote_name, self.columns))
        return f"CONSTRAINT {quote_name(self.name)} {self.get_type_string()} ({columns}) NOT ENFORCED"


@dataclass(frozen=True)
class WatermarkSpec:
    """Which column has event time, and the watermark that follows from it."""

    rowtime_attribute: str
    watermark_expression: Any

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: Any) -> WatermarkSpec:
        """Make one of the name of a column and an expression."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """Return the name of the column that has event time."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> Any:
        """Return the expression whose value is the watermark."""
        return self.watermark_expression

    def as_summary_string(self) -> str:
        """Return it as SQL declares it."""
        expression = self.watermark_expression
        kind = expression.get_output_data_type().summary()
        return f"WATERMARK FOR {quote_name(self.rowtime_attribute)}: {kind} AS {expression}"

    def __str__(self) -> str:
        return self.as_summary_string()

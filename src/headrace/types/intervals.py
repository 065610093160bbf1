"""The two kinds of intervals: months, and milliseconds. They do not mix, because months differ in length."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Final

from headrace.errors import TypeInferenceError
from headrace.types.logical import AtomicType

__all__ = ["DayTimeIntervalType", "Resolution", "YearMonthIntervalType"]


class Resolution:
    """A unit with its number of digits; `DataTypes.INTERVAL` makes interval types of one or two of them."""

    class IntervalUnit(Enum):
        """The units, from the finest."""

        SECOND = 0
        MINUTE = 1
        HOUR = 2
        DAY = 3
        MONTH = 4
        YEAR = 5

    __slots__ = ("precision", "unit")

    def __init__(self, unit: IntervalUnit, precision: int = -1) -> None:
        self.unit: Final = unit
        self.precision: Final = precision

    def __repr__(self) -> str:
        return self.unit.name + (f"({self.precision})" if self.precision >= 0 else "")


class YearMonthIntervalType(AtomicType):
    """A number of months; Spark, whose own type does not cross to Python, has it as an integer."""

    __slots__ = ("precision", "resolution")
    ROOT = "INTERVAL_YEAR_MONTH"
    SPARK = "int"
    DEFAULT_PRECISION: ClassVar[int] = 2

    class YearMonthResolution(Enum):
        """The units that are written."""

        YEAR = 1
        MONTH = 2
        YEAR_TO_MONTH = 3

    def __init__(
        self, resolution: YearMonthResolution, precision: int = DEFAULT_PRECISION, nullable: bool = True
    ) -> None:
        if not 1 <= precision <= 4:
            raise TypeInferenceError(f"INTERVAL YEAR({precision}): the precision must be between 1 and 4")
        super().__init__(nullable)
        self.resolution: Final = resolution
        self.precision: Final = precision

    def summary_without_null(self) -> str:
        """As Flink writes it: `INTERVAL YEAR(2) TO MONTH`."""
        match self.resolution.name:
            case "MONTH":
                return "INTERVAL MONTH"
            case "YEAR":
                return f"INTERVAL YEAR({self.precision})"
            case _:
                return f"INTERVAL YEAR({self.precision}) TO MONTH"

    def _parameters(self) -> tuple[Any, ...]:
        return self.resolution, self.precision

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown_nullability()})"


class DayTimeIntervalType(AtomicType):
    """A span of time of a fixed length."""

    __slots__ = ("day_precision", "fractional_precision", "resolution")
    ROOT = "INTERVAL_DAY_TIME"
    SPARK = "interval day to second"
    DEFAULT_DAY_PRECISION: ClassVar[int] = 2
    DEFAULT_FRACTIONAL_PRECISION: ClassVar[int] = 6

    class DayTimeResolution(Enum):
        """The units that are written."""

        DAY = 1
        DAY_TO_HOUR = 2
        DAY_TO_MINUTE = 3
        DAY_TO_SECOND = 4
        HOUR = 5
        HOUR_TO_MINUTE = 6
        HOUR_TO_SECOND = 7
        MINUTE = 8
        MINUTE_TO_SECOND = 9
        SECOND = 10

    def __init__(
        self,
        resolution: DayTimeResolution,
        day_precision: int = DEFAULT_DAY_PRECISION,
        fractional_precision: int = DEFAULT_FRACTIONAL_PRECISION,
        nullable: bool = True,
    ) -> None:
        if not 1 <= day_precision <= 6:
            raise TypeInferenceError(f"INTERVAL DAY({day_precision}): the precision must be between 1 and 6")
        if not 0 <= fractional_precision <= 9:
            raise TypeInferenceError(
                f"INTERVAL SECOND({fractional_precision}): the precision must be between 0 and 9"
            )
        super().__init__(nullable)
        self.resolution: Final = resolution
        self.day_precision: Final = day_precision
        self.fractional_precision: Final = fractional_precision

    def summary_without_null(self) -> str:
        """As Flink writes it: `INTERVAL DAY(2) TO SECOND(3)`."""
        units = self.resolution.name.split("_TO_")
        digits = {"DAY": f"({self.day_precision})", "SECOND": f"({self.fractional_precision})"}
        return "INTERVAL " + " TO ".join(unit + digits.get(unit, "") for unit in units)

    def _parameters(self) -> tuple[Any, ...]:
        return self.resolution, self.day_precision, self.fractional_precision

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown_nullability()})"

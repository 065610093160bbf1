"""Types of calls that depend on the value of an argument, and the way round a CAST that there is not."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.planner.expressions import Expression
from headrace.planner.functions import BuiltInFunction
from headrace.planner.functions.math import round_type
from headrace.planner.functions.temporal import add_type
from headrace.planner.functions.text import constant
from headrace.types import ArrayType, DataType, LocalZonedTimestampType, MapType

__all__ = ["refined", "way_to_cast"]


def refined(function: BuiltInFunction, operands: Sequence[Expression], result: DataType) -> DataType:
    """Types that depend on a value, not only on types."""
    if function.name in {"ROUND", "TRUNCATE"}:
        digits = constant(operands[1]) if len(operands) > 1 else None
        if len(operands) > 1 and not isinstance(digits, int):
            return result
        return round_type(function.name, result, digits if isinstance(digits, int) else None)
    if function.name == "TO_TIMESTAMP_LTZ" and len(operands) == 2 and isinstance(constant(operands[1]), int):
        return LocalZonedTimestampType(max(3, int(str(constant(operands[1])))))
    if function.name == "TIMESTAMPADD":
        return add_type(str(constant(operands[0])), result)
    return result


def way_to_cast(source: DataType, target: DataType) -> str | None:
    """What to write instead of a CAST."""
    if source.ROOT == "VARIANT":
        read = "JSON_STRING(v)"
        if target.ROOT not in {"CHAR", "VARCHAR", "STRING"}:
            read = f"CAST(JSON_VALUE({read}, '$') AS {target.summary_without_null()})"
        return f"read the value v by way of its JSON: {read}"
    if target.ROOT in {"TIMESTAMP", "TIMESTAMP_LTZ"} and source.ROOT in {"BIGINT", "INT"}:
        return "TO_TIMESTAMP_LTZ(number, 3) converts milliseconds to a timestamp"
    if source.ROOT in {"TIMESTAMP", "TIMESTAMP_LTZ"} and target.ROOT in {"BIGINT", "INT"}:
        return "EXTRACT(EPOCH FROM time) or UNIX_TIMESTAMP returns seconds"
    if isinstance(source, ArrayType | MapType) and not isinstance(target, ArrayType | MapType):
        return "CAST a value in it: a[1] of an array, m['key'] of a map"
    return None

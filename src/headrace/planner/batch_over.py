"""Functions of the rows of a window as Spark SQL, for OVER in BATCH mode."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from headrace.planner import expressions as e
from headrace.types import logical as t

__all__ = ["frame_of", "over_result"]


def frame_of(frame: e.Frame) -> str:
    """Write where a frame begins and ends."""
    start = "UNBOUNDED PRECEDING" if frame.preceding is None else _bound(frame, frame.preceding)
    end = "UNBOUNDED FOLLOWING" if frame.following is None else _bound(frame, -frame.following)
    return f"{frame.unit.value} BETWEEN {start} AND {end}"


def _bound(frame: e.Frame, before: int | Decimal) -> str:
    if before == 0:
        return "CURRENT ROW"
    length, side = (before, "PRECEDING") if before > 0 else (-before, "FOLLOWING")
    if frame.unit is e.FrameUnit.RANGE and not frame.of_numbers:
        return f"INTERVAL '{length // 1000}.{length % 1000:03}' SECOND {side}"
    return f"{length} {side}"


def over_result(call: e.WindowCall, values: Sequence[str], over: str) -> str:
    """Write a function of the rows of a window."""
    arguments = ", ".join(values)
    if call.distinct and call.function in ("COUNT", "SUM", "AVG", "LISTAGG", "ARRAY_AGG"):
        return _of_different(call, values, over)
    match call.function:
        case "COUNT":
            return f"count({arguments or '1'}){over}"
        case "AVG" if isinstance(call.type, t.IntegralType):
            return f"sum({arguments}){over} DIV count({arguments}){over}"
        case "FIRST_VALUE" | "LAST_VALUE":
            return f"{call.function.lower()}({arguments}, true){over}"
        case "LISTAGG":
            separator = values[1] if len(values) > 1 else "','"
            texts = f"array_join(collect_list({values[0]}){over}, {separator})"
            return f"CASE WHEN count({values[0]}){over} > 0 THEN {texts} END"
        case "ARRAY_AGG":
            # A structure around each value, since Spark leaves NULLs out.
            return f"transform(collect_list(named_struct('v', {arguments})){over}, e -> e.v)"
        case "COLLECT":
            bag = f"collect_list({arguments}){over}"
            counts = f"v -> named_struct('k', v, 'n', size(filter({bag}, e -> e = v)))"
            return f"map_from_entries(transform(array_distinct({bag}), {counts}))"
        case _:
            return f"{call.function.lower()}({arguments}){over}"


def _of_different(call: e.WindowCall, values: Sequence[str], over: str) -> str:
    """Write a function of values, equal ones once: Spark has no DISTINCT in windows."""
    if len(values) > 1 and call.function == "COUNT":
        known = " AND ".join(f"{each} IS NOT NULL" for each in values)
        given = f"CASE WHEN {known} THEN struct({', '.join(values)}) END"
    else:
        given = values[0]
    found = f"collect_set({given}){over}"
    match call.function:
        case "COUNT":
            return f"size({found})"
        case "LISTAGG":
            separator = values[1] if len(values) > 1 else "','"
            return f"CASE WHEN size({found}) > 0 THEN array_join({found}, {separator}) END"
        case "ARRAY_AGG":
            return found
    kind = call.type.spark_name()
    total = f"aggregate({found}, CAST(0 AS {kind}), (a, b) -> CAST(a + b AS {kind}))"
    if call.function == "AVG":
        divide = "DIV" if isinstance(call.type, t.IntegralType) else "/"
        total = f"{total} {divide} size({found})"
    return f"CASE WHEN size({found}) > 0 THEN {total} END"

"""The rules for all keys of Flink's that are not options, and which values ask for nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from headrace.config.flink.answers import Rules
from headrace.config.flink.documented import documented_keys
from headrace.config.flink.mapped import MAPPED
from headrace.config.flink.others import OTHERS
from headrace.config.memory_size import MemorySize
from headrace.config.parsing import form_of

__all__ = ["RULES", "is_flinks_default"]

RULES: Final = Rules({**OTHERS, **MAPPED})

_TYPES: Final[dict[str, Any]] = {
    "Boolean": bool,
    "Integer": int,
    "Long": int,
    "Double": float,
    "Float": float,
    "Duration": timedelta,
    "MemorySize": MemorySize,
}


def is_flinks_default(key: str, value: str) -> bool:
    """Whether a value is the one Flink has without it, however it is written.

    Example:
        >>> is_flinks_default("heartbeat.timeout", "50000 ms"), is_flinks_default("heartbeat.timeout", "1 s")
        (True, False)
    """
    known = documented_keys().get(key)
    if known is None or known.default == "(none)":
        return False
    kind = _TYPES.get(known.type)
    if kind is None:
        return value.strip().lower() == known.default.lower()
    read = form_of(kind).read
    try:
        return bool(read(value) == read(known.default))
    except ValueError:
        return False

"""The rules for all keys of Flink's that are not options, and which values ask for nothing."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any, Final

from headrace.config.flink.answers import Answer, Rules
from headrace.config.flink.documented import documented_keys, is_documented
from headrace.config.flink.mapped import MAPPED
from headrace.config.flink.others import OTHERS
from headrace.config.memory_size import MemorySize
from headrace.config.parsing import form_of

__all__ = ["RULES", "answer_to", "is_flinks_default"]

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


def answer_to(key: str) -> tuple[Answer, str] | None:
    """Return what happens to a key of Flink's, with what follows the prefix of its rule; None if Flink has no such key.

    A rule for a prefix stands for the keys that Flink documents, so that misspelt ones are not taken for them. Where it
    documents none by name, such as settings of Hadoop's, all names pass.

    Example:
        >>> answer_to("taskmanager.memory.process-size") is None
        True
        >>> answer_to("flink.hadoop.dfs.replication")[0].kind
        <AnswerKind.MAPPED: 'mapped'>
    """
    found = RULES.find(key)
    if found is None:
        return None
    prefix = key.removesuffix(found[1])
    return found if prefix == key or is_documented(key) or not _names_keys(prefix) else None


@cache
def _names_keys(prefix: str) -> bool:
    return any(key.startswith(prefix) and "<" not in key for key in documented_keys())


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

"""Finds what functions take with them to workers: large objects, and objects that belong to one process."""

from __future__ import annotations

import io
import pickle
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import lru_cache
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, Final

from headrace.checks.findings import CheckFinding
from headrace.checks.source_code import bodies_of, captured
from headrace.checks.view import ReviewedJob, ReviewedOperator
from headrace.operators.functions import is_rich
from headrace.util.call_sites import ProgramLine

__all__ = ["check_captures"]

#: Bytes from which an object is worth a warning; it travels once with the job, to every worker.
_LARGE: Final = 1024**2
_OF_A_PROCESS: Final = (
    *(
        type(threading.Lock()),
        type(threading.RLock()),
        threading.Condition,
        threading.Event,
        threading.Semaphore,
    ),
    *(threading.Thread, threading.local, Executor, socket.socket, io.IOBase, GeneratorType),
)
#: What the job's own pickler ships as code; a function with `lru_cache` without what it remembers.
_CODE: Final = (ModuleType, type, FunctionType, type(lru_cache(len)))
#: Packages whose objects are connections, whether or not they can be pickled.
_CLIENTS: Final = frozenset(
    "sqlite3 psycopg psycopg2 pymysql MySQLdb redis requests httpx aiohttp urllib3 kafka confluent_kafka boto3 "
    "botocore pymongo sqlalchemy grpc elasticsearch cassandra asyncpg ssl http.client".split()
)


def check_captures(_: ReviewedJob, operator: ReviewedOperator) -> Iterator[CheckFinding]:
    """Find what the functions and key selectors of an operator hold and should not."""
    given = [*operator.functions(), *(selector for _, selector in operator.key_selectors())]
    seen: set[int] = set()
    for function in given:
        for name, value, place in _held(function):
            if id(value) in seen:
                continue
            seen.add(id(value))
            yield from _judged(operator, name, value, place)


def _held(function: Any) -> Iterator[tuple[str, Any, ProgramLine | None]]:
    place = None
    for body in bodies_of(function):
        place = place or body.place()
        for name, value in captured(body.function).items():
            yield name, value, body.place()
    if not isinstance(function, FunctionType | MethodType) and is_rich(function):
        for name, value in getattr(function, "__dict__", {}).items():
            yield f"self.{name}", value, place


def _judged(
    operator: ReviewedOperator, name: str, value: Any, place: ProgramLine | None
) -> Iterator[CheckFinding]:
    if isinstance(value, (*_CODE, MethodType)):
        return
    kind = type(value)
    what = f"{name}, a {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")
    if _is_of_a_process(value):
        yield operator.finding("HR302", f"the function captures {what}", place)
        return
    size = _size(value)
    if size is None:
        yield operator.finding("HR302", f"the function captures {what}, which cannot be pickled", place)
    elif size > _LARGE:
        yield operator.finding(
            "HR301", f"the function captures {what}, larger than 1 MiB when pickled", place
        )


def _is_of_a_process(value: Any) -> bool:
    module = type(value).__module__
    top = module.partition(".")[0]
    is_client = top in _CLIENTS or module in _CLIENTS
    return isinstance(value, _OF_A_PROCESS) or (
        is_client and not isinstance(value, str | int | BaseException)
    )


class _Enough(Exception):
    """It is large, however large it is."""


class _Counter(io.RawIOBase):
    """Counts bytes, and has enough at some point."""

    def __init__(self) -> None:
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.size += len(data)
        if self.size > _LARGE:
            raise _Enough
        return len(data)


class _CodeApart(pickle.Pickler):
    """Leaves functions, classes and modules out: the job's own pickler ships those."""

    def reducer_override(self, obj: Any) -> Any:
        if obj is str:
            return NotImplemented
        if isinstance(obj, _CODE) or type(obj).__module__.startswith("headrace."):
            return str, ()
        return NotImplemented


def _size(value: Any) -> int | None:
    """Return how many bytes an object takes, or a number beyond the limit; None if it cannot be pickled."""
    counter = _Counter()
    try:
        _CodeApart(counter, protocol=5).dump(value)
    except _Enough:
        return counter.size
    except Exception:  # noqa: BLE001 - an object's own methods may raise anything
        return None
    return counter.size

"""How the functions of a verified job get to its simulated workers: pickled, as they get to workers of Spark.

    program's classes --as they were--> bytes --> a worker's functions, with global variables of their own

Workers share this process, and unpickling a class of the program changes the class that is here. Nothing of that may
last: each run begins with the global variables that the program has set up.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

from headrace.datastream.functions import AggregateFunction, Function, ReduceFunction
from headrace.runtime.task.level import JobCode
from headrace.spark.user_code import dump_by_value
from headrace.verify.clocks import place_of, real_wall_clock

#: What the program's classes consisted of before any of them was unpickled.
_first: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()


def dump_for_worker(code: JobCode) -> bytes:
    """Pickle a job for a worker."""
    _restore_classes()
    with real_wall_clock():
        return dump_by_value(code, place_of, _is_of_one_worker)


def _restore_classes() -> None:
    """Give the program's classes the methods back that the last copy has replaced by its own."""
    for kind in list(vars(sys.modules["__main__"]).values()):
        if not isinstance(kind, type) or kind.__module__ != "__main__":
            continue
        if kind not in _first:
            _first[kind] = dict(vars(kind))
        for name, value in _first[kind].items():
            if vars(kind).get(name) is not value:
                setattr(kind, name, value)


def _is_of_one_worker(kind: type) -> bool:
    """Whether each worker has a class of its own, so that methods see the global variables of their worker.

    Classes that records or state may contain are the same everywhere: those are pickled by their names.
    """
    return issubclass(kind, Function) and not issubclass(kind, ReduceFunction | AggregateFunction)

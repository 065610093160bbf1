"""The user's program on its way to the workers: pickled once per job, with what a worker needs to make sense of it.

Functions and classes of the main script travel by value. Records and state, though, are pickled plainly, by reference
to ``__main__.TheirClass``; so the main script's classes travel, too, and are there while the job runs (`main_script`).
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from pyspark import SparkFiles, cloudpickle

from headrace import pyflink_alias
from headrace.errors import HeadraceError, JobDefinitionError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.memory_limit import apply_memory_limit
from headrace.runtime.task.workplace import Workplace, prepare

#: The module and the name that an object is pickled as; None for most objects.
PlaceOf = Callable[[Any], "tuple[ModuleType, str] | None"]
#: Where cloudpickle has the id by which it finds a class that the process has read before.
_CLASS_ID = 4


class _FunctionPickler(cloudpickle.Pickler):
    """Pickles functions that are cached with `functools.lru_cache` by value, too: workers have no main script."""

    def __init__(self, stream: io.BytesIO, place_of: PlaceOf, is_made_anew: Callable[[type], bool]) -> None:
        super().__init__(stream)
        self._place_of = place_of
        self._is_made_anew = is_made_anew

    def reducer_override(self, obj: Any) -> Any:
        place = self._place_of(obj)
        if place is not None:
            return getattr, place
        if isinstance(obj, _CachedFunction) and _travels_by_value(obj.__wrapped__):
            return _cached, (obj.__wrapped__, *obj.cache_parameters().values())
        reduced = super().reducer_override(obj)
        if isinstance(obj, type) and isinstance(reduced, tuple) and self._is_made_anew(obj):
            make, arguments, *rest = reduced
            return make, (*arguments[:_CLASS_ID], None, *arguments[_CLASS_ID + 1 :]), *rest
        return reduced


_CachedFunction = type(functools.lru_cache(len))


def _travels_by_value(function: Any) -> bool:
    """Whether cloudpickle writes a function down, since workers cannot import it."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    is_nested = "<locals>" in getattr(function, "__qualname__", "")
    registered = cloudpickle.list_registry_pickle_by_value()
    return module is None or module.__name__ == "__main__" or is_nested or module.__name__ in registered


def _cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def _dumps(
    value: Any,
    place_of: PlaceOf = lambda _: None,
    is_made_anew: Callable[[type], bool] = lambda _: False,
) -> bytes:
    stream = io.BytesIO()
    _FunctionPickler(stream, place_of, is_made_anew).dump(value)
    return stream.getvalue()


def pack_job(code: JobCode) -> bytes:
    """Serialize a job for the workers; says which operator cannot be.

    Raises:
        JobDefinitionError: If something in the job does not pickle.
    """
    try:
        content = _dumps((code, _main_classes(code.job)))
    except Exception as error:
        raise _unpicklable(code.job, error) from error
    # What must be in place before the functions can be read.
    first = (_import_paths(), pyflink_alias.is_installed(), code.settings.artifacts)
    return pickle.dumps((*first, content), protocol=5)


def dump_by_value(
    value: Any,
    place_of: PlaceOf = lambda _: None,
    is_made_anew: Callable[[type], bool] = lambda _: False,
) -> bytes:
    """Pickle a job, or what belongs to one, as it is pickled for workers; for test clusters.

    Args:
        value: What to pickle.
        place_of: Names the objects of this process that stand for others, by those.
        is_made_anew: Whether a class of the main script is another one in each copy, as in a process that has not seen
            it. Otherwise it is the one that is here, and gets the methods of the last copy.
    """
    return _dumps(value, place_of, is_made_anew)


def unpack_job(packed: bytes) -> JobCode:
    """Make a job's code ready to run in a worker."""
    paths, has_pyflink_alias, artifacts, content = pickle.loads(packed)
    if has_pyflink_alias:
        pyflink_alias.install()  # before the functions, which may name pyflink's modules
    # Where the driver's modules are on this machine too, as with a local master.
    sys.path.extend(path for path in paths if path not in sys.path and os.path.exists(path))
    workplace = (
        prepare(artifacts, SparkFiles.getRootDirectory(), SparkFiles.get) if artifacts else Workplace()
    )
    workplace.enter()
    code, main_classes = pickle.loads(content)
    assert isinstance(code, JobCode)
    apply_memory_limit(code.settings.memory_limit)
    return replace(
        code,
        job=replace(code.job, main_classes=main_classes),
        settings=replace(code.settings, cached_files=workplace.cached_files),
    )


def pack_graph(job: JobGraph) -> bytes:
    """Serialize a job for another driver: that of a session, or the next leader.

    Raises:
        JobDefinitionError: If something in the job does not pickle.
    """
    try:
        content = _dumps((job, _main_classes(job)))
    except Exception as error:
        raise _unpicklable(job, error) from error
    return pickle.dumps((pyflink_alias.is_installed(), content), protocol=5)


def unpack_graph(packed: bytes) -> JobGraph:
    """Read what `pack_graph` wrote. It runs whatever the bytes say: only for those who may submit jobs.

    Raises:
        JobDefinitionError: If it needs a module that is not installed here.
    """
    try:
        has_pyflink_alias, content = pickle.loads(packed)
        if has_pyflink_alias:
            pyflink_alias.install()
        job, main_classes = pickle.loads(content)
    except Exception as error:
        raise JobDefinitionError(
            f"cannot load the submitted job: {type(error).__name__}: {error}",
            hint="install the same versions of Python, headrace and the packages that the program imports in the "
            "session and where the program runs",
        ) from error
    if not isinstance(job, JobGraph):
        raise JobDefinitionError("the submitted object is not a job")
    return replace(job, main_classes=main_classes)


def _import_paths() -> list[str]:
    return [os.path.abspath(path) for path in sys.path]


def _main_classes(job: JobGraph) -> Mapping[str, type]:
    """Return the classes that the main script of a job's program defines, as far as they can travel."""
    if job.main_classes is not None:
        return job.main_classes
    main: dict[str, Any] = vars(sys.modules["__main__"])
    classes = {}
    for name, value in main.items():
        if isinstance(value, type) and value.__module__ == "__main__":
            try:
                _dumps(value)
            except Exception:  # noqa: BLE001, S112 - one that no record is made of; if one is, its pickling will say
                continue
            classes[name] = value
    return classes


def _unpicklable(job: JobGraph, error: Exception) -> HeadraceError:
    for vertex in job.vertices:
        for node in vertex.operators:
            try:
                _dumps(node.declaration)
            except Exception as cause:  # noqa: BLE001 - pickling may raise anything
                return JobDefinitionError(
                    f"operator '{node.name}' cannot be sent to the workers: {type(cause).__name__}: {cause}",
                    hint="create objects that cannot be pickled (connections, locks, files) in open(), not in __init__ "
                    "or outside the function",
                )
    for edge in job.edges:
        try:
            _dumps(edge.partitioner)
        except Exception as cause:  # noqa: BLE001 - pickling may raise anything
            before = job.vertex(edge.source_vertex).operators[edge.source_operator].name
            return JobDefinitionError(
                f"the {edge.partitioner.name} partitioning after operator '{before}' cannot be sent to the "
                f"workers: {type(cause).__name__}: {cause}",
                hint="use only plain values in the key selector and the partitioner, no connections, locks or files",
            )
    return JobDefinitionError(f"the job cannot be sent to the workers: {type(error).__name__}: {error}")

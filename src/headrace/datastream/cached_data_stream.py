"""`stream.cache()`: what the first job computes, later jobs of the environment read.

    job 1    source -> map -> [cache] -> print        map also goes to a sink that keeps its records
    job 2              kept -> [cache] -> count       nothing before the cache runs again

Whether there is a result is looked up whenever a graph is built. One that was invalidated or lost is computed again.
"""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.config.options.checkpointing import DIRECTORY
from headrace.config.options.spark import MASTER
from headrace.connectors.cached import CacheSink, CacheSource, find_cached_files
from headrace.datastream.data_stream import DataStream
from headrace.errors import JobDefinitionError
from headrace.graph.transformations import (
    CacheTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
)
from headrace.operators.io import SinkDeclaration, SourceDeclaration
from headrace.storage.files import delete_directory
from headrace.util.host_directories import HeldDirectory, make_temporary

if TYPE_CHECKING:
    from headrace.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["CachedDataStream"]


class CachedDataStream(DataStream):
    """A stream that is computed once. Made by `DataStream.cache`.

    Example:
        >>> from headrace.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        >>> squares = env.from_collection([1, 2, 3]).map(lambda n: n * n).cache()
        >>> sink = squares.print()  # env.execute() computes the squares and keeps them
        >>> squares.invalidate()
    """

    def __init__(self, environment: StreamExecutionEnvironment, result: CachedResult) -> None:
        super().__init__(environment, result.step)
        self._result = result

    @staticmethod
    def of(stream: DataStream) -> CachedDataStream:
        """Return a stream whose records are kept; see `DataStream.cache`."""
        environment, before = stream._environment, stream._transformation
        if not isinstance(before, PhysicalTransformation | SideOutputTransformation):
            raise JobDefinitionError(
                "cache(): only the result of an operator or a side output can be cached, not a union, a partitioning "
                "or a keyed stream",
                hint="call cache() before union(), key_by() or rebalance()",
            )
        result = CachedResult(environment, before)
        _results[result.dataset_id] = result
        return CachedDataStream(environment, result)

    def invalidate(self) -> None:
        """Delete the cached result. The next job that needs the stream computes it again."""
        self._result.invalidate()

    def _operator(self, call: str) -> PhysicalTransformation:
        before = self._result.step.input
        return before if isinstance(before, PhysicalTransformation) else super()._operator(call)


class CachedResult:
    """The result of one `cache()`: where it is, and the steps that write and read it."""

    def __init__(self, environment: StreamExecutionEnvironment, before: Transformation) -> None:
        #: As Flink's ids of data sets.
        self.dataset_id = uuid.uuid4().hex
        self._environment = environment
        self._source_id = environment._next_id()
        self.step = CacheTransformation(
            id=environment._next_id(), output_type=before.output_type, input=before
        )
        self._sink_id = environment._next_id()
        #: One for each graph that was to compute the result: a job that still runs continues writing to its own.
        self._directories: list[str] = []
        self._held: list[HeldDirectory] = []

    @property
    def is_complete(self) -> bool:
        """Whether a later job can read it."""
        return self._find() is not None

    def settle(self) -> SinkTransformation | None:
        """Make the next graph read the result if there is one; return the step that writes it if there is none."""
        found = self._find()
        if found is None:
            self.step.kept = None
            return self._sink()
        self.step.kept = SourceTransformation(
            id=self._source_id,
            name="Cached result",
            declaration=SourceDeclaration(found, WatermarkStrategy.no_watermarks()),
            output_type=self.step.output_type,
            parallelism=self._producer().parallelism,
            is_bounded=True,
        )
        return None

    def invalidate(self) -> None:
        """Delete the cached result."""
        directories, self._directories = self._directories, []
        for directory in directories:
            delete_directory(directory)
        held, self._held = self._held, []
        for each in held:
            each.remove()

    def belongs_to(self, environment: StreamExecutionEnvironment) -> bool:
        """Whether it is a result of an environment's jobs."""
        return self._environment is environment

    def _find(self) -> CacheSource | None:
        for directory in self._directories:
            found = find_cached_files(directory)
            if found is not None:
                return CacheSource(directory, found)
        return None

    def _sink(self) -> SinkTransformation:
        directory = self._new_directory()
        self._directories.append(directory)
        return SinkTransformation(
            id=self._sink_id,
            name="Cache",
            declaration=SinkDeclaration(CacheSink(directory)),
            input=self.step.input,
            parallelism=self._producer().parallelism,
        )

    def _new_directory(self) -> str:
        configuration = self._environment._configuration.layered()
        shared = configuration.get(DIRECTORY)
        if shared is not None:
            return f"{shared.rstrip('/')}/cache-{self.dataset_id}-{uuid.uuid4().hex[:8]}"
        if not configuration.get(MASTER).startswith("local"):
            raise JobDefinitionError(
                "cache(): on a cluster, results are kept below execution.checkpointing.dir, which is not set",
                hint="set it to a directory that the driver and all workers can reach",
            )
        held = make_temporary("cached results")
        self._held.append(held)
        return f"{held.path}/data"

    def _producer(self) -> PhysicalTransformation:
        step = self.step.input
        while not isinstance(step, PhysicalTransformation):
            (step,) = step.inputs
        return step


#: The results of this process by id, for REST; a result is removed with its environment, or when the process ends.
_results: dict[str, CachedResult] = {}


def cached_results() -> dict[str, CachedResult]:
    """Return the results that were asked for in this process, by id."""
    return dict(_results)


def settle_caches(steps: Iterable[Transformation]) -> list[SinkTransformation]:
    """Let steps read the results there are; return the sinks that write those that are missing."""
    by_step = {result.step: result for result in _results.values()}
    sinks: list[SinkTransformation] = []
    seen: set[int] = set()
    pending = list(steps)
    while pending:
        step = pending.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        if isinstance(step, CacheTransformation) and (sink := by_step[step].settle()) is not None:
            sinks.append(sink)
        pending += step.inputs
    return sinks


def check_mode(sinks: Iterable[SinkTransformation], *, is_batch: bool) -> None:
    """Refuse to keep results of a stream.

    Raises:
        JobDefinitionError: If there are results to keep, and the mode is STREAMING.
    """
    if not is_batch and any(True for _ in sinks):
        raise JobDefinitionError(
            "cache(): results can only be kept in BATCH mode",
            hint="env.set_runtime_mode(RuntimeExecutionMode.BATCH); a result that is complete can be read in any mode",
        )


def release_caches(environment: StreamExecutionEnvironment | None = None) -> None:
    """Delete all results of an environment, or of the whole process."""
    for dataset_id, result in list(_results.items()):
        if environment is None or result.belongs_to(environment):
            result.invalidate()
            del _results[dataset_id]


atexit.register(release_caches)

"""Asynchronous functions: many records wait for an outside system at once (Flink's AsyncWaitOperator).

    records   1   2   W   3        calls under way, at most `capacity`
              |   |       |
    ordered   1 . 2 . W . 3        in the order of the records
    unordered 2 . 1 . W . 3        as answers come, but never across a watermark

The calls run on an event loop of the task. It turns while the operator waits: for room, and at the barrier, where
nothing may be left under way. So an epoch holds all results of its records, and a snapshot no record that waits. How
long the barrier waited is reported: it takes as long for few records as for many, so smaller epochs would not help.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headrace.elements import Batch, Event, StreamStatus, Watermark
from headrace.operators.async_retry import NO_RETRY_STRATEGY, AsyncRetryStrategy
from headrace.operators.context import OperatorContext
from headrace.operators.functions import FunctionOperator
from headrace.state.isolation import isolated


class TaskLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while nobody runs it.

    A task turns its loop when it has to wait, and does other work in between. An answer that came meanwhile must
    not be found too late, neither by our timeouts nor by those of a client library.
    """

    def __init__(self) -> None:
        #: Seconds for which the loop did not run.
        self._away = 0.0
        self._left_at: float | None = super().time()
        super().__init__()

    def time(self) -> float:
        """Return the seconds for which the loop has run."""
        return (super().time() if self._left_at is None else self._left_at) - self._away

    def run_forever(self) -> None:
        """Run until `stop`; the clock continues from where it stood."""
        if self._left_at is not None:
            self._away += super().time() - self._left_at
            self._left_at = None
        try:
            super().run_forever()
        finally:
            self._left_at = super().time()


@dataclass(frozen=True)
class AsyncWaitDeclaration:
    """Calls an asynchronous function for many records at once."""

    function: Any
    #: For a record's first call and all that repeat it; 0 for no limit.
    timeout_ms: int
    #: Records that are under way, or wait for an earlier one.
    capacity: int
    is_ordered: bool
    retry: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY
    make_loop: Callable[[], asyncio.AbstractEventLoop] = TaskLoop
    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    def build(self) -> AsyncWaiter:
        return AsyncWaiter(self)


@dataclass(eq=False)
class _Call:
    """One record on its way."""

    value: Any
    timestamp: int | None
    segment: _Segment
    task: asyncio.Task[Sequence[Any]] | None = None


@dataclass
class _Segment:
    """Calls whose results may go out in any order."""

    #: How many are under way.
    pending: int = 0
    #: Those with results, as they came.
    done: list[_Call] = field(default_factory=list)


class AsyncWaiter(FunctionOperator):
    """Keeps calls under way, and passes on their results in the order that is asked for."""

    def __init__(self, declaration: AsyncWaitDeclaration) -> None:
        super().__init__(declaration.function)
        self._timeout_s = declaration.timeout_ms / 1000 or None
        self._capacity = declaration.capacity
        self._is_ordered = declaration.is_ordered
        self._retry = declaration.retry
        predicate = declaration.retry.get_retry_predicate()
        self._retries_result = predicate.result_predicate() or _never
        self._retries_error = predicate.exception_predicate() or _never
        self._make_loop = declaration.make_loop
        #: What has not gone out, in stream order.
        self._queue: deque[_Segment | Event] = deque()
        #: Calls whose results have not gone out.
        self._calls: set[_Call] = set()
        #: The first call that failed.
        self._failed: _Call | None = None

    def open(self, context: OperatorContext) -> None:
        self._isolates = not context.object_reuse
        self._loop = self._make_loop()
        try:
            super().open(context)
        except BaseException:
            self._loop.close()  # what could not be opened is not closed either
            raise

    def completed(self, result: Any) -> None:
        """``open`` and ``close`` may be coroutines: clients want to be made and closed on the loop they use."""
        if inspect.isawaitable(result):
            self._loop.run_until_complete(_awaited(result))

    # -- what comes in -----------------------------------------------------------------------------

    def process(self, batch: Batch) -> None:
        for value, timestamp in zip(
            batch.values, batch.timestamps or [None] * len(batch.values), strict=True
        ):
            while len(self._calls) >= self._capacity:
                self._wait()
            self._begin(value, timestamp)
        self._poll()

    def process_watermark(self, timestamp: int) -> None:
        self._queue.append(Watermark(timestamp))
        self._hand_on()

    def process_status(self, *, is_active: bool) -> None:
        self._queue.append(StreamStatus(active=is_active))
        self._hand_on()

    def advance_processing_time(self, now_ms: int) -> None:
        if self._calls:
            self._poll()

    def next_processing_time(self) -> int | None:
        """Ask to be called again at once while calls are under way: their results do not announce themselves."""
        return self.context.processing_time() if self._calls else None

    def finish(self) -> None:
        self._drain()

    def end_epoch(self) -> Sequence[Any]:
        started = time.perf_counter_ns()
        self._drain()
        self.waited_ns = time.perf_counter_ns() - started
        return super().end_epoch()

    def close(self) -> None:
        loop = self._loop
        if loop.is_closed():
            return
        tasks = [call.task for call in self._calls if call.task is not None]
        for task in tasks:
            task.cancel()
        self._calls.clear()
        try:
            loop.run_until_complete(_ended(tasks))
            super().close()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    # -- calls -------------------------------------------------------------------------------------

    def _begin(self, value: Any, timestamp: int | None) -> None:
        last = self._queue[-1] if self._queue else None
        if self._is_ordered or not isinstance(last, _Segment):
            last = _Segment()
            self._queue.append(last)
        last.pending += 1
        call = _Call(value, timestamp, last)
        self._calls.add(call)
        call.task = self._loop.create_task(self._results_of(value))
        call.task.add_done_callback(lambda _: self._done(call))

    async def _results_of(self, value: Any) -> Sequence[Any]:
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                return _checked(await self._tried(value))
        except TimeoutError:
            if not limit.expired():
                raise  # the function's own
        return _checked(self.function.timeout(value))

    async def _tried(self, value: Any) -> Sequence[Any]:
        """Call the function until the outcome is not worth another try."""
        attempt = 1
        while True:
            try:
                results: Sequence[Any] = await self.function.async_invoke(value)
            except Exception as error:
                if not (self._retry.can_retry(attempt) and self._retries_error(error)):
                    raise
            else:
                if not (self._retry.can_retry(attempt) and self._retries_result(results)):
                    return results
            await asyncio.sleep(self._retry.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    def _done(self, call: _Call) -> None:
        """Take note, on the loop; what follows is done where the loop was started from."""
        assert call.task is not None
        if call not in self._calls:
            return  # the operator is being closed
        call.segment.pending -= 1
        call.segment.done.append(call)
        if self._failed is None and (call.task.cancelled() or call.task.exception() is not None):
            self._failed = call
        self._loop.stop()

    # -- what goes out -----------------------------------------------------------------------------

    def _poll(self) -> None:
        """Let calls that can continue do so, without waiting."""
        self._loop.call_soon(self._loop.stop)
        self._loop.run_forever()
        self._hand_on()

    def _wait(self) -> None:
        """Turn the loop until a call is done."""
        self._loop.run_forever()
        self._hand_on()

    def _drain(self) -> None:
        while self._calls:
            self._wait()

    def _hand_on(self) -> None:
        """Emit what nothing stands before any more."""
        if self._failed is not None:
            error = _error_of(self._failed)
            raise self.located(error, self._failed.value) from error
        values: list[Any] = []
        timestamps: list[int | None] = []
        while self._queue:
            head = self._queue[0]
            if isinstance(head, _Segment):
                self._take(head, values, timestamps)
                if head.pending:
                    break
            else:
                self._emit(values, timestamps)
                values, timestamps = [], []
                self.output.emit_event(head)
            self._queue.popleft()
        self._emit(values, timestamps)

    def _take(self, segment: _Segment, values: list[Any], timestamps: list[int | None]) -> None:
        for call in segment.done:
            assert call.task is not None
            results = call.task.result()
            values += map(isolated, results) if self._isolates else results
            timestamps += [call.timestamp] * len(results)
            self._calls.remove(call)
        segment.done.clear()

    def _emit(self, values: list[Any], timestamps: list[int | None]) -> None:
        if values:
            has_time = any(timestamp is not None for timestamp in timestamps)
            self.output.emit(Batch(values, timestamps if has_time else None))


def _never(_: Any) -> bool:
    return False


def _error_of(call: _Call) -> Exception:
    assert call.task is not None
    if call.task.cancelled():
        return RuntimeError("the call of async_invoke was cancelled, and not by a timeout of headrace")
    error = call.task.exception()
    # What is no Exception ends the loop by itself.
    assert isinstance(error, Exception)
    return error


def _checked(results: Any) -> Sequence[Any]:
    if isinstance(results, list | tuple):
        return results
    if not isinstance(results, Iterable):
        raise TypeError(
            "async_invoke and timeout must return a list or another iterable of results; "
            f"got {type(results).__name__} {results!r}"
        )
    return list(results)


async def _awaited(result: Any) -> None:
    await result


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)

"""What the environments of a program start from: the configuration below their own, and who runs their jobs.

A program makes its environments itself, with PyFlink's static `get_execution_environment()`. So whoever runs a program
enters a context first, and the environments that are made inside take it:

    with ExecutionContext(configuration, {"spark": executor}).entered():
        program()

`headrace run` enters one with an executor that reports progress, `headrace info` one that stops at the first job, and
tests one with the executor of their choice. An environment keeps its context. One that is made outside of any gets its
own, so environments share nothing unless the program wants them to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from headrace.config import Configuration
from headrace.config.options.execution import TARGET
from headrace.datastream.executor import JobExecutor, executor_name, load_executor
from headrace.graph.job_graph import JobGraph
from headrace.graph.stream_graph import StreamGraph
from headrace.util.short_traces import shorten_in_repl

__all__ = ["ExecutionContext"]


class ExecutionContext:
    """Passed to environments, or entered for those that a program makes.

    Args:
        configuration: The layers below the program's own; None to read file and environment variables.
        executors: What runs jobs, by the name in ``execution.target``; other names are loaded when a job needs them.
        makers: Executors that are made when the first job needs them, by name.
        on_submission: Called with the graphs of every job before it is submitted, of a query with the job graph
            alone, and with all layers of configuration. If it raises, the job does not run.

    Example:
        >>> from headrace.config.options.execution import PARALLELISM
        >>> from headrace.datastream import StreamExecutionEnvironment
        >>> with ExecutionContext(Configuration({PARALLELISM.key: 3})).entered():
        ...     StreamExecutionEnvironment.get_execution_environment().get_parallelism()
        3
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        executors: Mapping[str, JobExecutor] | None = None,
        *,
        makers: Mapping[str, Callable[[], JobExecutor]] | None = None,
        on_submission: Callable[[StreamGraph | None, JobGraph, Configuration], object] | None = None,
    ) -> None:
        self.configuration = Configuration.load() if configuration is None else configuration
        self.on_submission = on_submission
        self._executors = dict(executors or {})
        self._makers = dict(makers or {})
        self._lock = threading.Lock()

    @staticmethod
    def current() -> ExecutionContext:
        """Return the context that was entered here; a new one if none was."""
        found = _of_thread.get() or _Program.context
        if found is None:
            shorten_in_repl()  # nobody runs the program but Python itself
            found = ExecutionContext()
        return found

    @contextmanager
    def entered(self, *, in_all_threads: bool = False) -> Iterator[None]:
        """Have environments that are made inside the `with` take this context.

        Args:
            in_all_threads: Also those made in threads that have entered none. For the one program of a process: the
                threads it starts do not inherit the context otherwise.
        """
        token = _of_thread.set(self)
        before = _Program.context
        if in_all_threads:
            _Program.context = self
        try:
            yield
        finally:
            if in_all_threads:
                _Program.context = before
            _of_thread.reset(token)

    def with_executors(self, executors: Mapping[str, JobExecutor]) -> ExecutionContext:
        """Return a context with the same configuration, where other executors run jobs of these names."""
        return ExecutionContext(
            self.configuration,
            {**self._executors, **executors},
            makers=self._makers,
            on_submission=self.on_submission,
        )

    def executor_for(self, configuration: Configuration) -> JobExecutor:
        """Return what runs the jobs of a configuration: of each name there is one.

        Raises:
            ConfigurationError: If there is none of the name in ``execution.target``.
        """
        name = executor_name(configuration.get(TARGET))
        with self._lock:
            found = self._executors.get(name)
            if found is None:
                make = self._makers.get(name)
                found = self._executors[name] = load_executor(configuration) if make is None else make()
            return found


_of_thread: ContextVar[ExecutionContext | None] = ContextVar("headrace-execution-context", default=None)


class _Program:
    """The program that a process runs; `headrace run` runs one, as `__main__`.

    Python's threads start without the context variables of who starts them, and the threads of this program are to make
    the environments that its main thread would make.
    """

    context: ExecutionContext | None = None

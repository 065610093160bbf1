"""How jobs get on, on the standard error: a live line on a terminal, a line now and then elsewhere.

    epoch listener --> JobView (pure: totals, rate, text) --> LiveProgress or PlainProgress --> standard error

The standard output belongs to the program alone.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

from rich.console import Console
from rich.text import Text

from headrace.cli.status_line import GuardedStream, StatusLine
from headrace.common.job_status import JobStatus
from headrace.util.application_log import log_directory
from headrace.util.shared_terminal import when_free

if TYPE_CHECKING:
    from headrace.graph.job_graph import JobGraph
    from headrace.runtime.job.exchange_choice import ExchangeChoice
    from headrace.runtime.run.job_run import EpochSummary

__all__ = ["JobView", "LiveProgress", "PlainProgress", "Progress", "ProgressConsole", "RunningJob"]

#: The rate shown is that of the last seconds.
_RATE_WINDOW_S: Final = 5.0
_REDRAW_INTERVAL_S: Final = 0.2
_PLAIN_INTERVAL_S: Final = 10.0
#: Watermarks before 1971 are not dates: test data with times of its own.
_EARLIEST_DATE_MS: Final = 365 * 86_400_000

_STYLES: Final = {
    JobStatus.FINISHED: "bold green",
    JobStatus.FAILED: "bold red",
    JobStatus.CANCELED: "yellow",
}


class RunningJob(Protocol):
    """What is asked of a job: `headrace.spark.executor.SparkJob`."""

    @property
    def graph(self) -> JobGraph:
        """The job as it was submitted."""

    @property
    def exchange(self) -> ExchangeChoice:
        """Whether it runs live: its records are not cut into epochs that anybody would wait for."""

    def status(self) -> JobStatus:
        """Return the status of the job."""

    def result_future(self) -> Future[Any]:
        """Return the result to come."""


@dataclass
class JobView:
    """What is shown of one job. Knows no clock: times come in, in seconds."""

    name: str
    started_s: float
    #: Whether to leave epochs out: those of a live job lie between barriers, and results do not wait for them.
    is_live: bool = False
    #: The number of the last epoch. A job that continues from a checkpoint does not begin with 1.
    epoch: int = 0
    #: How many epochs have completed since the job was started here.
    epochs: int = 0
    #: Records that sources have read.
    records: int = 0
    watermark: int | None = None
    #: (time, records so far), for the rate; the first entry is older than the window or the start.
    _history: deque[tuple[float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._history.append((self.started_s, 0))

    def observe(self, epoch: int, records: int, watermark: int | None, now_s: float) -> None:
        """Take in an epoch that has completed."""
        self.epoch = epoch
        self.epochs += 1
        self.records += records
        self.watermark = watermark
        self._history.append((now_s, self.records))
        while len(self._history) > 2 and self._history[1][0] <= now_s - _RATE_WINDOW_S:
            self._history.popleft()

    def rate(self, now_s: float) -> float:
        """Return the records per second of the last seconds, up to the last epoch unless that is long ago."""
        (first_s, records), (last_s, _) = self._history[0], self._history[-1]
        until_s = last_s if now_s - last_s < _RATE_WINDOW_S else now_s
        return (self.records - records) / max(until_s - first_s, 0.001)

    def describe(self, now_s: float) -> str:
        """Say where the job stands.

        Example:
            >>> view = JobView("clicks", started_s=0.0)
            >>> view.observe(epoch=1, records=30_000, watermark=None, now_s=2.0)
            >>> view.describe(now_s=3.0)
            "'clicks' epoch 1, 15,000 records/s, 30,000 records, 0:00:03"
        """
        name = repr(self.name) if self.is_live else f"{self.name!r} epoch {self.epoch}"
        parts = [name, f"{self.rate(now_s):,.0f} records/s"]
        parts.append(_count(self.records, "record"))
        if self.epochs == 0:
            parts = [f"{self.name!r} starting"]
        if self.watermark is not None:
            parts.append(f"watermark {format_watermark(self.watermark)}")
        parts.append(str(timedelta(seconds=int(now_s - self.started_s))))
        return ", ".join(parts)

    def summarize(self, now_s: float, *, is_complete: bool = True) -> str:
        """Say how much the job has done, for its end.

        Args:
            now_s: The time.
            is_complete: Whether everything it has read was counted.
        """
        done = [f"{now_s - self.started_s:.1f} s"]
        if not self.is_live:
            done.insert(0, f"{_count(self.records, 'record')} in {_count(self.epochs, 'epoch')}")
        elif (
            self.epochs
        ):  # records of a live job are counted with its barriers: before the first one nobody knows
            until = "" if is_complete else " up to the last barrier"
            done.insert(0, _count(self.records, "record") + until)
        return f"job {self.name!r}: {', '.join(done)}"


def format_watermark(watermark: int) -> str:
    """Show event time: as a date where it is one.

    Example:
        >>> format_watermark(1_700_000_000_123), format_watermark(1500)
        ('2023-11-14 22:13:20.123', '1500')
    """
    if watermark < _EARLIEST_DATE_MS:
        return str(watermark)
    try:
        moment = datetime.fromtimestamp(watermark // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(watermark)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{watermark % 1000:03}"


class ProgressConsole(Console):
    """The standard error, which may go away: nobody reads it any more, or its disk is full.

    A display must not harm the job it shows, whose thread it runs in. rich would end the process.
    """

    def __init__(self) -> None:
        super().__init__(stderr=True, highlight=False)

    def on_broken_pipe(self) -> None:
        """Stop writing: whoever read the output has closed it."""
        self.quiet = True


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


class Progress(AbstractContextManager["Progress"]):
    """Shows a line about every job that has ended, and nothing before: `--no-progress`.

    Args:
        console: Where to; its stream is the standard error.
        clock: Seconds that only go forward.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        #: Guards what follows: epochs and ends are told by the jobs' own threads.
        self._lock = threading.RLock()
        self._views: dict[str, JobView] = {}
        #: Jobs whose end was not shown yet.
        self._open: dict[str, RunningJob] = {}

    def job_started(self, job: RunningJob) -> None:
        """Take a job in; its end will be shown."""
        job_id = job.graph.job_id
        with self._lock:
            self._views[job_id] = JobView(job.graph.name, self._clock(), is_live=job.exchange.is_live)
            self._open[job_id] = job
        self._show_start(self._views[job_id])
        self.exchange_chosen(job.graph.name, job.exchange)
        job.result_future().add_done_callback(lambda _: self._job_ended(job))

    def exchange_chosen(self, name: str, exchange: ExchangeChoice) -> None:
        """Say why a job runs in epochs that its user may expect to run live."""
        if exchange.could_be_live and not exchange.is_live:
            self.note(f"job {name!r} {exchange.describe()}")

    def loading(self, program: str) -> None:
        """Show that headrace and the program are being loaded; nothing here."""

    def loaded(self) -> None:
        """Leave the terminal to the program, which starts now; nothing here."""

    def spark_starting(self, master: str) -> None:
        """Say that Spark is being started; nothing here."""

    def note(self, text: str) -> None:
        """Say something about the run as a whole; nothing here."""

    def epoch_completed(self, graph: JobGraph, summary: EpochSummary) -> None:
        """Take an epoch in."""
        with self._lock:
            view = self._views.get(graph.job_id)
            if view is not None:
                view.observe(summary.epoch, summary.records, summary.watermark, self._clock())
                self._show_epoch(view)

    def announce(self, text: str) -> None:
        """Say something that is to be read also without progress."""
        with self._lock:
            self._say(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the ends that were not shown yet: the thread of a job may be behind the program."""
        with self._lock:
            for job in list(self._open.values()):
                if job.result_future().done():
                    self._job_ended(job)

    def _job_ended(self, job: RunningJob) -> None:
        with self._lock:
            if self._open.pop(job.graph.job_id, None) is None:
                return
            view = self._views.pop(job.graph.job_id)
            status = job.status()
            summary = view.summarize(self._clock(), is_complete=status is JobStatus.FINISHED)
        # Not between two rows of a table that is being printed.
        when_free(lambda: self._say_end(status, summary))

    def _say_end(self, status: JobStatus, summary: str) -> None:
        with self._lock:
            self._say(Text(status.name, _STYLES.get(status, "")), f" {summary}")
            logs = log_directory()
            if status is JobStatus.FAILED and logs is not None:
                self._say(f"logs are in {logs}")

    def _say(self, *parts: str | Text) -> None:
        with suppress(OSError, ValueError):  # the disk is full, the stream is closed
            self._console.print(Text.assemble(*parts), soft_wrap=True)

    def _show_start(self, view: JobView) -> None:
        """Say that a job has started; nothing here."""

    def _show_epoch(self, view: JobView) -> None:
        """Show the progress of a job; does nothing here."""


class PlainProgress(Progress):
    """Lines of text, for files and pipes: when a job starts, every ten seconds, and at its end."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._shown_s: dict[str, float] = {}

    def spark_starting(self, master: str) -> None:
        """Say it: a job's own line comes seconds later."""
        self._say(f"STARTING Spark ({master})")

    def note(self, text: str) -> None:
        self._say(text)

    def _show_start(self, view: JobView) -> None:
        self._say(f"RUNNING job {view.name!r}")

    def _show_epoch(self, view: JobView) -> None:
        now_s = self._clock()
        if now_s - self._shown_s.get(view.name, view.started_s) >= _PLAIN_INTERVAL_S:
            self._shown_s[view.name] = now_s
            self._say(f"RUNNING {view.describe(now_s)}")


class LiveProgress(Progress):
    """A line at the bottom of the terminal, drawn several times a second while a job runs.

    The standard streams are guarded meanwhile, so that what the program prints stays whole.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._line = StatusLine(console)
        #: What is said while there is no job, and since when.
        self._waiting_for: tuple[str, float] | None = None
        self._is_over = threading.Event()
        self._painter = threading.Thread(target=self._paint, name="headrace-progress", daemon=True)
        self._streams = sys.stdout, sys.stderr

    def __enter__(self) -> Self:
        stdout, stderr = self._streams
        # rich writes to sys.stderr, too: to the real one, or the line would give way to itself.
        self._console.file = stderr
        sys.stderr = cast("Any", GuardedStream(stderr, self._line))
        if stdout.isatty():
            sys.stdout = cast("Any", GuardedStream(stdout, self._line))
        self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line away and show the ends that were not shown yet."""
        self._is_over.set()
        self._painter.join()
        super().__exit__(kind, error, trace)
        with suppress(OSError, ValueError):
            self._line.hide()
        sys.stdout, sys.stderr = self._streams

    def loading(self, program: str) -> None:
        """Show it at once: imports take seconds on a fresh installation, and nothing else moves meanwhile."""
        self._wait_for(f"loading {program}")

    def loaded(self) -> None:
        """Remove the line until Spark starts."""
        with self._lock, suppress(OSError, ValueError):
            self._waiting_for = None
            self._line.hide()

    def spark_starting(self, master: str) -> None:
        """Say it on the line, until there is a job."""
        self._wait_for(f"starting Spark ({master})")

    def _wait_for(self, what: str) -> None:
        with self._lock:
            self._waiting_for = what, self._clock()
        self.paint()

    def note(self, text: str) -> None:
        """Say it above the line."""
        self._say(text)

    def _show_start(self, view: JobView) -> None:
        self._waiting_for = None

    def _paint(self) -> None:
        while not self._is_over.wait(_REDRAW_INTERVAL_S):
            self.paint()

    def paint(self) -> None:
        """Draw the line, if a job is running or Spark is starting."""
        with self._lock:
            views = list(self._views.values())
            if views:
                more = f" (+{len(views) - 1} more)" if len(views) > 1 else ""
                text = views[-1].describe(self._clock()) + more
            elif self._waiting_for is not None:
                what, since_s = self._waiting_for
                text = f"{what}, {timedelta(seconds=int(self._clock() - since_s))}"
            else:
                return
            with suppress(OSError, ValueError):
                self._line.show(Text(text, "cyan"))

    def _say(self, *parts: str | Text) -> None:
        with suppress(OSError, ValueError):
            self._line.hide()
        super()._say(*parts)

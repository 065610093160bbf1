from __future__ import annotations

import errno
import io
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.text import Text

from headrace.cli.progress import (
    JobView,
    LiveProgress,
    PlainProgress,
    Progress,
    ProgressConsole,
    format_watermark,
)
from headrace.cli.status_line import GuardedStream, StatusLine
from headrace.common.job_status import JobStatus
from headrace.runtime.job.exchange_choice import EPOCHS, ExchangeChoice

ERASE = "\r\x1b[2K"


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Job:
    """A job that ends when the test says so."""

    def __init__(self, name: str = "clicks") -> None:
        self.graph = SimpleNamespace(job_id=name, name=name)
        self.exchange = EPOCHS
        self.future: Future[None] = Future()
        self._status = JobStatus.RUNNING

    def status(self) -> JobStatus:
        return self._status

    def result_future(self) -> Future[None]:
        return self.future

    def end(self, status: JobStatus = JobStatus.FINISHED) -> None:
        self._status = status
        self.future.set_result(None)


def epoch(number: int, records: int, watermark: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(epoch=number, records=records, watermark=watermark)


# --- one job ----------------------------------------------------------------------------------------


def test_a_job_that_continues_counts_the_epochs_it_has_run() -> None:
    view = JobView("clicks", started_s=0.0)
    for number in (65, 66):
        view.observe(number, records=10, watermark=None, now_s=1.0)
    assert view.describe(1.0).startswith("'clicks' epoch 66, ")
    assert view.summarize(2.0) == "job 'clicks': 20 records in 2 epochs, 2.0 s"


def test_records_of_a_live_job_are_not_known_before_its_first_barrier() -> None:
    view = JobView("clicks", started_s=0.0, is_live=True)
    assert view.summarize(now_s=2.0) == "job 'clicks': 2.0 s"

    view.observe(epoch=1, records=30, watermark=None, now_s=2.0)
    assert view.summarize(now_s=3.0) == "job 'clicks': 30 records, 3.0 s"
    unfinished = view.summarize(now_s=3.0, is_complete=False)
    assert unfinished == "job 'clicks': 30 records up to the last barrier, 3.0 s"


def test_epochs_of_a_live_job_are_not_shown():
    view = JobView("clicks", started_s=0.0, is_live=True)
    view.observe(65, records=10, watermark=None, now_s=1.0)
    assert view.describe(1.0) == "'clicks', 10 records/s, 10 records, 0:00:01"
    assert view.summarize(2.0) == "job 'clicks': 10 records, 2.0 s"


def test_the_rate_is_that_of_the_last_seconds():
    view = JobView("clicks", started_s=0.0)
    view.observe(1, 100, None, now_s=10.0)
    for second in range(11, 31):
        view.observe(second, 5000, None, now_s=float(second))

    assert view.rate(now_s=30.5) == 5000
    assert view.records == 100 + 20 * 5000


def test_the_rate_does_not_sink_while_an_epoch_runs_but_when_nothing_comes():
    view = JobView("clicks", started_s=0.0)
    view.observe(1, 4000, None, now_s=2.0)

    assert view.rate(now_s=4.0) == 2000
    assert view.rate(now_s=20.0) == 200


def test_a_job_is_starting_until_its_first_epoch_is_over():
    view = JobView("clicks", started_s=5.0)

    assert view.describe(now_s=68.9) == "'clicks' starting, 0:01:03"


def test_the_watermark_is_shown_where_there_is_one():
    view = JobView("clicks", started_s=0.0)
    view.observe(1, 1, 1_700_000_000_000, now_s=1.0)

    assert view.describe(now_s=1.0) == (
        "'clicks' epoch 1, 1 records/s, 1 record, watermark 2023-11-14 22:13:20.000, 0:00:01"
    )


@pytest.mark.parametrize(
    ("watermark", "shown"),
    [(-1, "-1"), (0, "0"), (2**62, str(2**62)), (86_400_000 * 365, "1971-01-01 00:00:00.000")],
)
def test_event_times_that_are_not_dates_are_shown_as_numbers(watermark, shown):
    assert format_watermark(watermark) == shown


# --- without a terminal -----------------------------------------------------------------------------


def make_plain(kind: type[Progress]) -> tuple[Progress, io.StringIO, Clock]:
    clock, shown = Clock(), io.StringIO()
    return kind(Console(file=shown, width=40), clock), shown, clock


def test_plain_progress_is_printed_at_the_start_every_ten_seconds_and_at_the_end():
    progress, shown, clock = make_plain(PlainProgress)
    job = Job()

    progress.job_started(job)
    for second in range(1, 26):
        clock.now_s = float(second)
        progress.epoch_completed(job.graph, epoch(second, 1000))
    job.end()

    assert shown.getvalue().splitlines() == [
        "RUNNING job 'clicks'",
        "RUNNING 'clicks' epoch 10, 1,000 records/s, 10,000 records, 0:00:10",
        "RUNNING 'clicks' epoch 20, 1,000 records/s, 20,000 records, 0:00:20",
        "FINISHED job 'clicks': 25,000 records in 25 epochs, 25.0 s",
    ]


def test_an_endless_stream_in_epochs_is_reported_with_the_reason():
    in_epochs = ExchangeChoice(is_live=False, reason="spark.speculation is true", could_be_live=True)
    for exchange, said in (
        (in_epochs, ["job 'clicks' runs in epochs: spark.speculation is true"]),
        (ExchangeChoice(is_live=True, reason="its input has no end", could_be_live=True), []),
        (ExchangeChoice(is_live=False, reason="its input has an end"), []),
    ):
        progress, shown, _ = make_plain(PlainProgress)
        job = Job()
        job.exchange = exchange
        progress.job_started(job)
        assert shown.getvalue().splitlines() == ["RUNNING job 'clicks'", *said]


def test_a_terminal_shows_that_the_program_is_loaded_until_it_starts():
    clock = Clock()
    screen = io.StringIO()
    progress = LiveProgress(Console(file=screen, width=200, force_terminal=True, color_system=None), clock)
    progress.loading("visits.py")
    clock.now_s = 2.1
    progress.paint()
    progress.loaded()
    progress.paint()
    assert screen.getvalue().split(ERASE)[1:] == [
        "loading visits.py, 0:00:00",
        "loading visits.py, 0:00:02",
        "",
    ]


def test_the_start_of_spark_is_said_at_once():
    console = Console(file=io.StringIO(), width=200)
    PlainProgress(console).spark_starting("local[2]")
    assert console.file.getvalue() == "STARTING Spark (local[2])\n"


def test_a_terminal_shows_how_long_spark_takes_until_there_is_a_job():
    clock = Clock()
    screen = io.StringIO()
    console = Console(file=screen, width=200, force_terminal=True, color_system=None)
    progress = LiveProgress(console, clock)
    progress.spark_starting("local[2]")
    clock.now_s = 3.2
    progress.paint()
    assert screen.getvalue().split(ERASE)[1:] == [
        "starting Spark (local[2]), 0:00:00",
        "starting Spark (local[2]), 0:00:03",
    ]
    job = Job()
    progress.job_started(job)
    progress.paint()
    assert screen.getvalue().endswith(f"{ERASE}'clicks' starting, 0:00:00")
    job.end()
    progress.paint()
    assert (
        screen.getvalue().rpartition(ERASE)[2].strip()
        == "FINISHED job 'clicks': 0 records in 0 epochs, 0.0 s"
    )


def test_without_progress_there_is_a_line_at_the_end():
    progress, shown, clock = make_plain(Progress)
    job = Job()

    progress.job_started(job)
    clock.now_s = 60.0
    progress.epoch_completed(job.graph, epoch(1, 1))
    job.end(JobStatus.CANCELED)

    assert shown.getvalue() == "CANCELED job 'clicks': 1 record in 1 epoch, 60.0 s\n"


def test_the_end_is_shown_once_even_if_the_thread_of_the_job_is_late():
    progress, shown, _ = make_plain(Progress)
    job = Job()

    with progress:
        progress.job_started(job)
        # A future tells those who wait for it before it calls back.
        callbacks, job.future._done_callbacks = job.future._done_callbacks, []
        job.end()
    for callback in callbacks:
        callback(job.future)

    assert shown.getvalue().count("FINISHED") == 1


class BrokenStream(io.StringIO):
    """A stream with nobody at its other end, or on a full disk."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise self._error


@pytest.mark.parametrize("kind", [Progress, PlainProgress, LiveProgress])
@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(errno.ENOSPC, "full"), ValueError("I/O operation on closed file")]
)
def test_a_display_that_cannot_be_written_does_not_harm_the_job(monkeypatch, kind, error):
    monkeypatch.setattr(sys, "stderr", BrokenStream(error))
    clock = Clock()
    job = Job()
    told: list[str] = []

    with kind(ProgressConsole(), clock) as progress:
        progress.job_started(job)
        job.future.add_done_callback(lambda _: told.append("over"))
        clock.now_s = 30.0
        progress.epoch_completed(job.graph, epoch(1, 1))
        if isinstance(progress, LiveProgress):
            progress.paint()
        job.end()

    assert told == ["over"]


def test_epochs_of_unknown_jobs_are_ignored():
    progress, shown, _ = make_plain(PlainProgress)

    progress.epoch_completed(Job().graph, epoch(1, 1))

    assert shown.getvalue() == ""


# --- on a terminal ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Both standard streams of a program on a terminal."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """Return what can be read on it in the end."""
        return [line.split(ERASE)[-1] for line in self.getvalue().split("\n")]


def make_console(terminal: Terminal) -> Console:
    return Console(file=terminal, force_terminal=True, color_system=None, width=60)


def test_the_status_line_gives_way_to_output_and_comes_back():
    terminal = Terminal()
    line = StatusLine(make_console(terminal))
    out = GuardedStream(terminal, line)

    line.show(Text("epoch 1"))
    out.write("a record\n")
    line.show(Text("epoch 2"))
    out.writelines(["two ", "more\n", "lines\n"])
    line.hide()

    assert terminal.getvalue() == f"{ERASE}epoch 1{ERASE}a record\n{ERASE}epoch 2{ERASE}two more\nlines\n"


def test_the_status_line_waits_while_the_program_is_in_the_middle_of_a_line():
    terminal = Terminal()
    line = StatusLine(make_console(terminal))
    out = GuardedStream(terminal, line)

    out.write("Continue? ")
    line.show(Text("epoch 1"))
    out.write("")
    line.show(Text("epoch 2"))
    out.write("yes\n")
    line.show(Text("epoch 3"))

    assert terminal.getvalue() == f"Continue? yes\n{ERASE}epoch 3"


def test_the_status_line_never_takes_two_lines_and_is_not_drawn_for_nothing():
    terminal = Terminal()
    line = StatusLine(make_console(terminal))

    line.show(Text("x" * 200))
    line.show(Text("x" * 200))

    assert terminal.getvalue() == ERASE + "x" * 58 + "…"


def test_a_guarded_stream_is_otherwise_the_stream_itself():
    terminal = Terminal()
    out = GuardedStream(terminal, StatusLine(make_console(terminal)))

    assert out.isatty()
    assert out.getvalue() == ""


def test_live_progress_leaves_whole_lines_and_a_summary(monkeypatch):
    terminal, clock = Terminal(), Clock()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = LiveProgress(make_console(terminal), clock)
    job = Job()

    with progress:
        progress.paint()
        progress.job_started(job)
        progress.paint()
        for number in range(1, 4):
            print("record", number)
            clock.now_s += 1
            progress.epoch_completed(job.graph, epoch(number, 10))
            progress.paint()
        print("a warning", file=sys.stderr)
        job.end()

    assert terminal.lines() == [
        "record 1",
        "record 2",
        "record 3",
        "a warning",
        "FINISHED job 'clicks': 30 records in 3 epochs, 3.0 s",
        "",
    ]
    assert "'clicks' epoch 2, 10 records/s, 20 records, 0:00:02" in terminal.getvalue()
    assert sys.stdout is sys.stderr is terminal


def test_a_piped_standard_output_gets_nothing_of_the_display(monkeypatch):
    terminal, pipe = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    monkeypatch.setattr(sys, "stderr", terminal)
    job = Job()

    with LiveProgress(make_console(terminal), Clock()) as progress:
        progress.job_started(job)
        progress.paint()
        print("record")
        job.end()

    assert pipe.getvalue() == "record\n"


def test_of_several_jobs_the_latest_is_shown(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with LiveProgress(make_console(terminal), Clock()) as progress:
        progress.job_started(Job("first"))
        progress.job_started(Job("second"))
        progress.paint()

    assert "'second' starting, 0:00:00 (+1 more)" in terminal.getvalue()

"""`headrace run`: a program from its start to the end of its last job.

    load configuration -> compile -> run as __main__ -> wait for jobs started with execute_async -> exit code

Whatever happens on the way, jobs that still run are cancelled before the process ends, so that no worker and
no scratch directory is left behind.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.check import warnings_for
from headrace.cli.detached import run_detached, without_secrets
from headrace.cli.errors import ExitCode, describe_error, exit_code_of
from headrace.cli.interrupts import Interrupts
from headrace.cli.options import (
    configuration_options,
    load_configuration,
    python_options,
    python_properties,
    recovery_options,
    recovery_properties,
)
from headrace.cli.program import Program, load_program, program_options, pyflink_names
from headrace.cli.program_text import mentions_endless_source, mentions_tables
from headrace.cli.savepoint_signals import SavepointSignals
from headrace.errors import ClusterError, JobCancelledError
from headrace.util.garbage import collecting_after_imports

if TYPE_CHECKING:
    from headrace.cli.progress import Progress
    from headrace.config import Configuration
    from headrace.graph.job_graph import JobGraph
    from headrace.rest.assembly import ControlPlane
    from headrace.rest.session_executor import RemoteJob
    from headrace.runtime.run.job_run import EpochSummary
    from headrace.spark.executor import SparkExecutor, SparkJob

__all__ = ["run"]

#: How long cancelled jobs and Spark may take to end before the process ends without them.
_CLEAN_UP_S: Final = 20.0
#: How long clients have to fetch the results of what they have triggered, once the jobs are over.
_FETCH_S: Final = 10.0


@click.command(short_help="Run a program.", context_settings={"allow_interspersed_args": False})
@configuration_options
@click.option("--progress/--no-progress", default=True, help="Show the progress of jobs on standard error.")
@click.option(
    "--keep",
    "keeps_page",
    is_flag=True,
    help="Keep REST and the web page running after the jobs have ended, until Ctrl-C.",
)
@click.option(
    "-m", "--jobmanager", "address", metavar="HOST:PORT", help="Run the jobs in the session at this address."
)
@click.option(
    "-d",
    "--detached",
    is_flag=True,
    help="Do not wait for the jobs to end. With -m they run in the session, otherwise the program continues in the "
    "background.",
)
@recovery_options
@python_options
@program_options
@click.pass_context
def run(
    context: click.Context,
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    progress: bool,
    keeps_page: bool,
    address: str | None,
    detached: bool,
    savepoint: str | None,
    leaves_state: bool,
    claim_mode: str | None,
    python_files: str | None,
    requirements: str | None,
    archives: str | None,
    executable: str | None,
    alias: bool | None,
    file: str | None,
    words: tuple[str, ...],
) -> None:
    """Run PROGRAM, a Python file, and wait until its jobs have ended.

    Arguments after PROGRAM are passed to the program. Without --master, its jobs run on a Spark that headrace starts in
    this process, on all cores of this machine. Progress and messages go to standard error; standard output belongs to
    the program. Ctrl-C cancels running jobs; a second Ctrl-C ends the process at once.

    SIGUSR1 takes a savepoint of the running jobs, and SIGUSR2 stops them with one. Savepoints are written to
    execution.checkpointing.savepoint-dir, and their paths are printed to standard error.
    """
    if keeps_page and address is not None:
        raise click.UsageError(
            "--keep cannot be used with -m: the session serves the web page, and keeps running"
        )
    properties = {**properties, **python_properties(python_files, requirements, archives, executable)}
    properties = {**properties, **recovery_properties(savepoint, claim_mode, leaves_state=leaves_state)}
    if address is not None:
        properties = {**properties, **_session_properties(address, is_detached=detached)}
    configuration = load_configuration(properties, parallelism, master)
    if keeps_page:
        _ensure_page(configuration)
    _check_early(configuration)
    program, arguments = load_program(file, words)
    if detached and address is None:
        from headrace.config.options import logs

        place, kept = configuration.get(logs.DIRECTORY), configuration.get(logs.KEPT)
        line, variables = without_secrets(
            _without_detached(sys.argv[1:]), properties, configuration.is_secret
        )
        context.exit(run_detached(line, place, kept, variables))

    if address is None:
        _begin_spark(program, configuration)
    display = _choose_progress(wanted=progress)
    display.loading(program.path.name)

    with collecting_after_imports() as collect, pyflink_names(configuration, alias):
        code = _Run(program, arguments, display, configuration, keeps_page=keeps_page).to_its_end(collect)
    context.exit(code)


def _ensure_page(configuration: Configuration) -> None:
    from headrace.config.options.rest import ENABLED

    if not configuration.get(ENABLED):
        raise click.UsageError(f"--keep needs REST, but {ENABLED.key} is false")


def _check_early(configuration: Configuration) -> None:
    """Refuse what is wrong whatever the program does, before it begins."""
    from headrace.config.options.spark import MASTER
    from headrace.runtime.artifacts import find_artifacts
    from headrace.spark.masters import ClusterManager

    ClusterManager.of(configuration.get(MASTER))
    find_artifacts(configuration)


def _begin_spark(program: Program, configuration: Configuration) -> None:
    """Have Spark start while the program is imported."""
    from headrace.config.options.execution import TARGET
    from headrace.spark.early_start import begin
    from headrace.spark.live_options import most_subtasks, will_run_live

    if configuration.get(TARGET) != "spark":
        return
    has_tables = mentions_tables(program.path)
    is_endless = not has_tables and mentions_endless_source(program.path)
    is_live = not has_tables and will_run_live(configuration, is_endless=is_endless)
    begin(
        configuration,
        "tables" if has_tables else "streams",
        least_threads=most_subtasks() if is_live else 0,
    )


def _without_detached(arguments: Sequence[str]) -> list[str]:
    """Return the words of the command line without the first -d, which is ours: the program's come later."""
    words = list(arguments)
    for option in ("-d", "--detached"):
        if option in words:
            words.remove(option)
            break
    return words


def _session_properties(address: str, *, is_detached: bool) -> dict[str, str]:
    from headrace.config import Configuration
    from headrace.config.options import execution, rest
    from headrace.rest.client import RestClient

    client = RestClient.of(Configuration(), address)
    return {
        execution.TARGET.key: "session",
        rest.ADDRESS.key: client.host,
        rest.PORT.key: str(client.port),
        rest.ENABLED.key: "false",
        execution.ATTACHED.key: str(not is_detached).lower(),
    }


def _choose_progress(*, wanted: bool) -> Progress:
    from headrace.cli.progress import LiveProgress, PlainProgress, Progress, ProgressConsole

    console = ProgressConsole()
    if not wanted:
        return Progress(console)
    is_screen = sys.stderr.isatty() and not console.is_dumb_terminal
    return LiveProgress(console) if is_screen else PlainProgress(console)


class _Run:
    """One run of a program, with the jobs it starts."""

    def __init__(
        self,
        program: Program,
        arguments: Sequence[str],
        progress: Progress,
        configuration: Configuration,
        *,
        keeps_page: bool = False,
    ) -> None:
        from headrace.rest.session_executor import SessionExecutor

        self._program = program
        self._keeps_page = keeps_page
        self._configuration = configuration
        #: What shows and steers the jobs from outside; None if that is not wanted.
        self._plane: ControlPlane | None = None
        self._arguments = arguments
        self._progress = progress
        self._jobs: list[SparkJob] = []
        self._session = SessionExecutor(self._job_submitted)
        self._interrupts = Interrupts(force=self._remove_files)
        #: What to tell the user at the end, when the progress display is out of the way.
        self._errors: list[BaseException] = []

    @cached_property
    def _executor(self) -> SparkExecutor:
        """What runs jobs in this process; it is imported with the first of them, and never with `-m`."""
        from headrace.spark.executor import Listeners, SparkExecutor

        return SparkExecutor(
            listeners=[Listeners(self._progress.spark_starting, self._job_started, self._epoch_completed)]
        )

    def to_its_end(self, before_program: Callable[[], None] = lambda: None) -> int:
        """Run the program and wait for its jobs; return the exit code.

        Args:
            before_program: Called when all that is needed before the program is there.
        """
        from headrace.config.options.python import FILES
        from headrace.datastream.execution_context import ExecutionContext
        from headrace.spark.early_start import abandon
        from headrace.util.import_paths import add_to_import_path

        context = ExecutionContext(
            self._configuration,
            {"session": self._session},
            makers={"spark": lambda: self._executor},
            on_submission=self._job_planned,
        )
        entered = context.entered(in_all_threads=True)
        with self._interrupts, SavepointSignals(self._running), entered:
            with self._progress, self._program.as_main(self._arguments):
                for path in self._configuration.get(FILES):
                    add_to_import_path(path)
                self._open_plane()
                self._progress.loaded()
                before_program()
                code = self._run_program()
                is_clean = self._is_clean() or self._clean_up()
                if not self._keeps_page:
                    self._close_plane()
            code = self._report(code)
            if self._keeps_page:
                self._keep_page()
                self._close_plane()
            abandon()
            if not is_clean:
                # An orderly exit would wait for Spark again. Java ends when it sees the end of its input.
                sys.stdout.flush()
                os._exit(code)
            return code

    def _open_plane(self) -> None:
        from headrace.config.options.rest import ENABLED

        if self._configuration.get(ENABLED):
            from headrace.rest.assembly import ControlPlane
            from headrace.rest.spark_cluster import SparkCluster, SparkUserInterface
            from headrace.util.application_log import application_log

            cluster = SparkCluster(self._configuration, application_log(self._configuration))
            self._plane = ControlPlane(self._configuration, cluster, spark_pages=SparkUserInterface())
            self._plane.start()

    def _keep_page(self) -> None:
        """Wait with the page up until somebody ends it; how the program ended is not changed by that."""
        if self._plane is None or self._interrupts.have_come:
            return
        click.echo(f"the web page stays up at {self._plane.url} until Ctrl-C", err=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()

    def _close_plane(self) -> None:
        if self._plane is not None:
            # A client that stopped the job wants to hear where the savepoint is; Ctrl-C waits for nobody.
            self._plane.close(fetch_s=0.0 if self._interrupts.have_come else _FETCH_S)

    def _epoch_completed(self, graph: JobGraph, summary: EpochSummary) -> None:
        self._progress.epoch_completed(graph, summary)
        if self._plane is not None:
            self._plane.dispatcher.observe(graph, summary)

    def _job_started(self, job: SparkJob) -> None:
        if self._plane is not None:
            if not self._jobs:
                self._progress.note(f"REST at {self._plane.url}")
            self._plane.dispatcher.adopt(job)
            self._progress.note(f"web page at {self._plane.url}/#/jobs/{job.graph.job_id}")
        self._jobs.append(job)
        self._progress.job_started(job)
        if job.restore_report is not None:
            self._progress.announce(f"RESTORED job {job.graph.name!r} from {job.restored_from}")
            for line in job.restore_report.lines():
                self._progress.announce(f"  {line}")

    def _job_planned(self, _: object, graph: JobGraph, configuration: Configuration) -> None:
        for line in warnings_for(graph, configuration):
            self._progress.announce(line)

    def _job_submitted(self, job: RemoteJob) -> None:
        self._progress.announce(f"SUBMITTED job {job.graph.name!r} ({job.graph.job_id}) to {job.session}")
        with suppress(ClusterError):  # the session may be of a version that does not tell
            self._progress.exchange_chosen(job.graph.name, job.exchange())

    def _run_program(self) -> int:
        code: int = ExitCode.OK
        try:
            try:
                self._program.run()
            except SystemExit as ended:
                code = _code_of_exit(ended)
            # A program may swallow Ctrl-C; its jobs are to end all the same.
            if code == ExitCode.OK and not self._interrupts.have_come:
                wait([job.result_future() for job in self._running()])
        except KeyboardInterrupt:
            code = self._interrupts.exit_code
        except BrokenPipeError:
            # Whoever read our output has had enough. Nothing more can be written, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = ExitCode.FAILED
        except BaseException as error:  # noqa: BLE001  # the program's errors are what we are here to show
            self._errors.append(error)
            code = exit_code_of(error)
        return self._interrupts.exit_code if self._interrupts.have_come else code

    def _report(self, code: int) -> int:
        for job in self._jobs:
            result = job.result_future()
            if result.done() and not job.is_result_asked and not self._interrupts.have_come:
                error = result.exception()
                if error is not None and not isinstance(error, JobCancelledError):
                    self._errors.append(error)
        for error in self._errors:
            click.echo(describe_error(error), err=True)
        return code or (exit_code_of(self._errors[0]) if self._errors else ExitCode.OK)

    def _running(self) -> list[SparkJob]:
        return [job for job in self._jobs if not job.result_future().done()]

    def _is_clean(self) -> bool:
        """Whether all there was has come to its proper end, so that nothing can be left of it."""
        from headrace.common.job_status import JobStatus

        is_finished = all(job.status() is JobStatus.FINISHED for job in self._jobs)
        return is_finished and not self._interrupts.have_come

    def _clean_up(self) -> bool:
        """Cancel what runs and stop Spark; give up after a while, for nothing should keep Ctrl-C waiting."""
        if self._interrupts.have_come and self._running():
            click.echo("interrupted: cancelling the job; press Ctrl-C again to exit at once", err=True)
        # In a thread of its own: the interrupt may have torn this one out of a conversation with Spark.
        worker = threading.Thread(target=self._cancel_and_stop, name="headrace-clean-up", daemon=True)
        worker.start()
        worker.join(_CLEAN_UP_S)
        if worker.is_alive():
            click.echo("Spark did not stop in time; exiting without it", err=True)
            self._remove_files()
        return not worker.is_alive()

    def _cancel_and_stop(self) -> None:
        from headrace.spark.session import stop_spark

        if "_executor" in self.__dict__:
            leaves = self._interrupts.is_for_process
            self._executor.cancel_running_jobs(_CLEAN_UP_S / 2, leave_to_next=leaves)
        stop_spark()
        self._remove_files()  # jobs have done that, but workers may have been writing until Spark stopped

    def _remove_files(self) -> None:
        for job in self._jobs:
            with suppress(Exception):
                job.remove_files()


def _code_of_exit(ended: SystemExit) -> int:
    """Read a SystemExit as Python does: None is success, a number itself, anything else a message."""
    if ended.code is None:
        return ExitCode.OK
    if isinstance(ended.code, int):
        return ended.code
    click.echo(ended.code, err=True)
    return ExitCode.FAILED

"""`headrace sql`: an interactive client, with a gateway of its own or for one that runs already."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.errors import ExitCode, describe_error, exit_code_of
from headrace.cli.options import configuration_options, load_configuration
from headrace.cli.signals import SignalHandler
from headrace.util.state_home import state_home

if TYPE_CHECKING:
    from headrace.config import Configuration
    from headrace.rest.assembly import ControlPlane
    from headrace.spark.executor import SparkExecutor, SparkJob
    from headrace.sql_client.client import SqlClient
    from headrace.sql_client.connection import SessionConnection
    from headrace.sql_client.feed import RowFeed
    from headrace.sql_client.rows import ShownRows
    from headrace.table._printing import TableFrame

__all__ = ["sql"]

#: How long cancelled jobs may take to end.
_CLEAN_UP_S: Final = 20.0


@click.command("sql", short_help="Type SQL statements and see their rows.")
@configuration_options
@click.option(
    "--gateway",
    metavar="URL",
    help="Execute statements in the SQL gateway at this address, such as localhost:8083, instead of in this process.",
)
@click.option(
    "-f", "--file", "file", type=click.Path(exists=True, dir_okay=False), help="Execute this script and exit."
)
@click.option(
    "-i",
    "--init",
    "init",
    type=click.Path(exists=True, dir_okay=False),
    help="Execute this script first, for example to create tables.",
)
@click.option(
    "-e", "--execute", "texts", multiple=True, metavar="SQL", help="Execute this and exit; may be repeated."
)
@click.option(
    "--history",
    type=click.Path(dir_okay=False),
    help="The file with earlier statements; ~/.local/state/headrace/sql_history.",
)
@click.pass_context
def sql(
    context: click.Context,
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    gateway: str | None,
    file: str | None,
    init: str | None,
    texts: tuple[str, ...],
    history: str | None,
) -> None:
    """Type SQL statements and see their rows while queries run.

    Statements are executed in this process, on a Spark of its own that starts with the first query, or in the
    gateway that --gateway names. Tab completes, Ctrl-C cancels the running query, Ctrl-D quits.

    Without a terminal, statements are read from standard input. There, and with -f and -e, the first error ends the
    client. Before it exits, it waits for jobs that INSERT statements have started in this process.
    """
    if file is not None and texts:
        raise click.UsageError("-f and -e cannot be used together")
    configuration = load_configuration(properties, parallelism, master)
    if gateway is not None and master is not None:
        raise click.UsageError("--master cannot be used with --gateway: the gateway has its own Spark")
    script = _script(file, texts)
    client = _remote(configuration, gateway, properties, parallelism) if gateway else _embedded(configuration)
    with _EndSignals(), client as run:
        code = run(init, script, history)
    context.exit(code)


def _script(file: str | None, texts: Sequence[str]) -> str | None:
    """Return what to execute without asking; None if the user types it."""
    if file is not None:
        return Path(file).read_text(encoding="utf-8")
    if texts:
        return ";\n".join(texts)
    return None if sys.stdin.isatty() and sys.stdout.isatty() else sys.stdin.read()


_Run = Callable[[str | None, str | None, str | None], int]


class _EndSignals(SignalHandler):
    """Ends the client in an orderly way on SIGTERM and SIGHUP; Ctrl-C is for its statements."""

    def __init__(self) -> None:
        super().__init__(signal.SIGTERM, signal.SIGHUP, leaves_ignored=True)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)


@contextmanager
def _remote(
    configuration: Configuration, address: str, properties: dict[str, str], parallelism: int | None
) -> Iterator[_Run]:
    from headrace.config.options import execution, rest
    from headrace.config.options import gateway as options
    from headrace.errors import HeadraceError
    from headrace.rest.client import RestClient
    from headrace.sql_client.connection import RemoteConnection

    given = dict(properties)
    if parallelism is not None:
        given[execution.PARALLELISM.key] = str(parallelism)
    asking = configuration.with_values({rest.PORT.key: str(configuration.get(options.PORT))})
    client = replace(RestClient.of(asking, address), option="--gateway")
    connection = RemoteConnection(client, given)
    try:
        yield lambda init, script, history: _Session(connection).run(init, script, history)
    finally:
        with suppress(HeadraceError):  # it may be gone already
            connection.close()


@contextmanager
def _embedded(configuration: Configuration) -> Iterator[_Run]:
    from headrace.config.options.spark import MASTER
    from headrace.datastream.execution_context import ExecutionContext
    from headrace.gateway.sessions import Sessions
    from headrace.spark.executor import Listeners, SparkExecutor
    from headrace.spark.session import stop_spark
    from headrace.sql_client.connection import EmbeddedConnection

    executor = SparkExecutor()
    plane = _plane(configuration)
    sessions = Sessions(ExecutionContext(configuration, {"spark": executor}))
    connection = EmbeddedConnection(sessions, place=f"this process, Spark at {configuration.get(MASTER)}")
    session = _Session(connection, executor)
    executor.listeners.append(
        Listeners(lambda name: session.client.say(f"starting Spark ({name})"), session.job_started)
    )
    if plane is not None:
        executor.listeners.append(
            Listeners(job_started=plane.dispatcher.adopt, epoch_completed=plane.dispatcher.observe)
        )
        plane.start()
        session.page = plane.url
    try:
        yield session.run
    finally:
        sessions.close()
        executor.cancel_running_jobs(timeout_s=_CLEAN_UP_S)
        if plane is not None:
            plane.close(fetch_s=0.0)
        stop_spark()


def _plane(configuration: Configuration) -> ControlPlane | None:
    """Make what shows jobs in the web UI. It executes no statements of others."""
    from headrace.config.options.rest import ENABLED
    from headrace.rest.assembly import ControlPlane
    from headrace.rest.spark_cluster import SparkCluster, SparkUserInterface
    from headrace.util.application_log import application_log

    if not configuration.get(ENABLED):
        return None
    cluster = SparkCluster(configuration, application_log(configuration))
    return ControlPlane(configuration, cluster, spark_pages=SparkUserInterface())


class _Session:
    """The client on this terminal, or for a script.

    Args:
        connection: Where statements are executed.
        executor: Runs their jobs, if that is done in this process.
    """

    def __init__(self, connection: SessionConnection, executor: SparkExecutor | None = None) -> None:
        self._connection = connection
        self._executor = executor
        self._jobs: list[SparkJob] = []
        self._is_typed = False
        #: Where the web UI is.
        self.page: str | None = None
        self.client = self._client()

    def job_started(self, job: SparkJob) -> None:
        """Remember a job whose end the client has to wait for."""
        self._jobs.append(job)
        self.client.say("")

    def run(self, init: str | None, script: str | None, history: str | None) -> int:
        """Execute the scripts, then what the user types; returns the exit code."""
        self._is_typed = script is None
        self.client = self._client()
        try:
            for text in (None if init is None else Path(init).read_text(encoding="utf-8"), script):
                error = None if text is None else self.client.run_script(text)
                if error is not None:
                    return exit_code_of(error)
            if script is None:
                self._interact(history)
                return ExitCode.OK
            return self._wait()
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED

    def _interact(self, history: str | None) -> None:
        from headrace import __version__
        from headrace.sql_client.prompt import StatementPrompt

        prompt = StatementPrompt(
            self._connection.complete, Path(history) if history else state_home() / "sql_history"
        )
        click.echo(f"headrace {__version__} · statements run in {self._connection.place}")
        if self.page is not None:
            click.echo(f"web page at {self.page}")
        click.echo("HELP; lists the commands, QUIT; exits.\n")
        self.client.interact(prompt, lambda: len(self._running()))

    def _running(self) -> list[SparkJob]:
        return [job for job in self._jobs if not job.result_future().done()]

    def _wait(self) -> int:
        """Wait for the jobs of INSERTs, which end with this process; returns the exit code."""
        wait([job.result_future() for job in self._jobs])
        for job in self._jobs:
            result = job.result_future()
            error = None if result.cancelled() or job.is_result_asked else result.exception()
            if error is not None:
                click.echo(describe_error(error), err=True)
                return exit_code_of(error)
        return ExitCode.OK

    def _client(self) -> SqlClient:
        from rich.console import Console

        from headrace.cli.status_line import StatusLine
        from headrace.sql_client.client import SqlClient

        console = Console(stderr=True)
        is_screen = console.is_terminal and not console.is_dumb_terminal
        return SqlClient(
            self._connection,
            write=click.echo,
            complain=lambda text: click.echo(text, err=True),
            describe=describe_error,
            progress=StatusLine(console) if is_screen else None,
            show=_show if self._is_typed and is_screen else None,
        )


def _show(statement: str, frame: TableFrame, rows: ShownRows, feed: RowFeed) -> None:
    from headrace.sql_client.prompt import STYLE
    from headrace.sql_client.view import ResultView

    ResultView(statement, frame, rows, feed, STYLE).run()

"""The `headrace` command: its subcommands, its exit codes, and errors that are for people to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from headrace.cli.check import check
from headrace.cli.config import config
from headrace.cli.doctor import doctor
from headrace.cli.errors import ExitCode, describe_error, exit_code_of
from headrace.cli.info import info
from headrace.cli.job_commands import cancel, checkpoint, list_jobs, rescale, stop
from headrace.cli.logs import logs
from headrace.cli.replay import replay
from headrace.cli.run import run
from headrace.cli.run_application import run_application
from headrace.cli.session import session
from headrace.cli.snapshots import checkpoints, savepoint
from headrace.cli.sql import sql
from headrace.cli.sql_gateway import sql_gateway
from headrace.cli.verify import verify
from headrace.cli.version import show_version, version
from headrace.cli.why import why
from headrace.errors import HeadraceError

__all__ = ["cli", "main"]

#: Commands that run epochs again.
_REPLAYING = ("replay", "why")

_EPILOG = f"""\b
Exit codes:
  {ExitCode.OK:<5}success
  {ExitCode.FAILED:<5}a job or the program failed, or the cluster is not reachable or refused the request
  {ExitCode.REFUSED:<5}wrong usage, configuration or job definition; nothing has run
  {ExitCode.NOT_LEADING:<5}another process leads the job under the same high-availability.cluster-id
  {ExitCode.INTERRUPTED:<5}interrupted with Ctrl-C; running jobs were cancelled
  129  ended by a hang-up, 143 by SIGTERM; with high availability jobs are left to the next driver
If a program calls sys.exit(n), n is the exit code.
"""


class _WrongUsage(click.UsageError):
    """Wrong usage, shown as all our errors are."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print what is wrong, and where to read on."""
        command = "headrace" if self.ctx is None else self.ctx.command_path
        wrong = self.message[:1].lower() + self.message[1:].removesuffix(".")
        click.echo(
            f"error: {wrong}\nhint: '{command} --help' shows what there is", file=file, err=file is None
        )


@contextmanager
def _readable_usage() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise _WrongUsage(error.format_message(), error.ctx) from None


class _ReadableErrors(click.Group):
    """Shows headrace's errors without a traceback, and turns them into exit codes."""

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with _readable_usage():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _readable_usage():
                return super().invoke(ctx)
        except HeadraceError as error:
            click.echo(describe_error(error), err=True)
            ctx.exit(exit_code_of(error))
        except KeyboardInterrupt:
            ctx.exit(ExitCode.INTERRUPTED)


@click.group(
    cls=_ReadableErrors,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the versions of headrace and of what it runs on.",
)
def cli() -> None:
    """Run Flink programs written in Python on Spark."""


_COMMANDS = (
    *(run, run_application, info, check, verify, replay, why, sql, session, sql_gateway),
    *(list_jobs, cancel, stop, savepoint, checkpoint, checkpoints, rescale, logs),
    *(config, doctor, version),
)
for _command in _COMMANDS:
    cli.add_command(_command)


def _hash_as_workers_do() -> None:
    """Start again with the PYTHONHASHSEED that Spark gives its Python workers, for commands that replay what those did.

    Otherwise `hash()` of a str and the order of sets would differ from the job.
    """
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    if command in _REPLAYING and "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this program, again


def main() -> None:
    """Run the command line; the console script `headrace` calls it."""
    _hash_as_workers_do()
    cli(prog_name="headrace")


if __name__ == "__main__":
    main()

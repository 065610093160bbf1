"""`headrace verify`: a program's job, run many times under a seeded adversary."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from headrace.cli.errors import ExitCode, describe_error, exit_code_of
from headrace.cli.options import configuration_options, load_configuration
from headrace.cli.program import Program, ProgramError, load_program, program_options, pyflink_names

if TYPE_CHECKING:
    from headrace.config import Configuration
    from headrace.graph.job_graph import JobGraph
    from headrace.verify.verification import VerifyResult, VerifySettings

__all__ = ["verify"]


#: A comment in the program with options of this command.
_COMMENT = re.compile(r"^(?:#|--)\s*headrace:\s*verify\s+(\S.*)$", re.MULTILINE)
#: The options that a program may give itself: those that say which of its rows have to be the same.
_OWN_OPTIONS = ("records", "key", "only_last", "ignored", "keeps_parallelism", "duplicates")


class _Verified(BaseException):
    """Ends the program after its first `execute()`; no `except Exception` of the program is in the way."""

    def __init__(self, result: VerifyResult, job: JobGraph) -> None:
        super().__init__(result)
        self.result = result
        self.job = job


@click.command(
    short_help="Run a program's job many times, with faults, and compare the results.",
    context_settings={"allow_interspersed_args": False},
)
@configuration_options
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    default=60.0,
    metavar="SECONDS",
    help="How many seconds to spend; 60.",
)
@click.option(
    "--runs", type=click.IntRange(min=1), default=100, metavar="N", help="How many runs at most; 100."
)
@click.option(
    "--seed", type=int, default=0, metavar="N", help="The first seed. The same seed repeats the same runs."
)
@click.option(
    "--records", type=click.IntRange(min=1), default=200, metavar="N", help="Records of each source; 200."
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help="Run the job's own sinks and compare the lines of this file or directory, which is DELETED before every run; "
    "may be repeated. Otherwise sinks are replaced.",
)
@click.option("--key", metavar="FIELD", help="The key of output rows: their order per key is compared, too.")
@click.option("--only-last", is_flag=True, help="With --key: compare only the last row of each key.")
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="FIELD",
    help="An element or field of output rows that may differ, such as a time or the number of a subtask; may be "
    "repeated.",
)
@click.option(
    "--keep-parallelism", "keeps_parallelism", is_flag=True, help="Do not vary the parallelism of the job."
)
@click.option("--duplicates", is_flag=True, help="Also deliver records twice: results must not change.")
@click.option("--html", "page", metavar="FILE", help="Write the report as a page.")
@program_options
@click.pass_context
def verify(
    context: click.Context,
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    budget: float,
    runs: int,
    seed: int,
    records: int,
    outputs: tuple[str, ...],
    key: str | None,
    only_last: bool,
    ignored: tuple[str, ...],
    keeps_parallelism: bool,
    duplicates: bool,
    page: str | None,
    alias: bool | None,
    file: str | None,
    words: tuple[str, ...],
) -> None:
    """Run the job of PROGRAM many times and compare what its sinks get.

    Input is read from the job's sources once. Seeds decide how it is cut into epochs, the parallelism, which tasks
    fail, when workers, hosts and the driver are lost, when the job is rescaled, stopped with a savepoint and restored,
    and whether it runs in epochs or live. The output must always be the same. A difference is shrunk to few records
    and faults, and printed with a test to keep; the exit code is 1 then. docs/debugging.md explains what is found.

    Jobs run in this process, without Spark. Those with tables run on Spark, with their own sources, which must have an
    end. Cuts, parallelism, savepoints, lost drivers and rescaling are varied; what is left of changelogs is compared.

    Options that belong to the program, such as --key, can be given in it: # headrace: verify --key 0 --only-last
    """
    from headrace.config.options.execution import PARALLELISM
    from headrace.config.options.spark import MASTER
    from headrace.verify.program import PLANNED_PARALLELISM
    from headrace.verify.report import html_report, kept_test, text_report
    from headrace.verify.verification import VerifySettings

    configuration = load_configuration(properties, parallelism or PLANNED_PARALLELISM, master)
    program, arguments = load_program(file, words)
    settings = VerifySettings(
        budget, runs, seed, records, outputs, key, only_last, duplicates, ignored, keeps_parallelism
    )
    settings = replace(settings, **_options_in(program.path, context))
    if settings.only_last and settings.key is None:
        raise click.UsageError("--only-last needs --key")
    found = _verified(program, arguments, configuration, alias, settings)
    result, job = found.result, found.job
    test = None
    if result.difference is not None:
        named = {PARALLELISM.key: str(parallelism) if parallelism else None, MASTER.key: master}
        options = properties | {key: value for key, value in named.items() if value is not None}
        test = kept_test(result.difference, job, _from_here(program), arguments, settings, options, alias)
    click.echo(text_report(result, job))
    if test is not None:
        click.echo(f"a test to keep:\n\n{test}")
    if page is not None:
        Path(page).write_text(html_report(result, job, test), encoding="utf-8")
    context.exit(ExitCode.OK if result.is_clean else ExitCode.FAILED)


def _from_here(program: Program) -> str:
    """Return the program's path, from the current directory if it is below, so that a kept test runs elsewhere, too."""
    path, here = program.path, Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _options_in(path: Path, context: click.Context) -> dict[str, Any]:
    """Return the options that a program gives itself in a comment, and the command line does not."""
    found: dict[str, Any] = {}
    for comment in _COMMENT.finditer(path.read_text(encoding="utf-8", errors="replace")):
        try:
            made = verify.make_context("verify", [*shlex.split(comment[1]), str(path)])
        except (click.UsageError, ValueError) as error:
            message = error.format_message() if isinstance(error, click.UsageError) else str(error)
            raise click.UsageError(f"{path}: in the comment '# headrace: verify': {message}") from None
        for name, value in made.params.items():
            if made.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name in (
                "file",
                "words",
            ):
                continue
            if name not in _OWN_OPTIONS:
                option = next(each.opts[0] for each in verify.params if each.name == name)
                raise click.UsageError(
                    f"{path}: {option} cannot be given in the comment '# headrace: verify', only on the command line"
                )
            if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
                found[name] = value
    return found


def _verified(
    program: Program,
    arguments: list[str],
    configuration: Configuration,
    alias: bool | None,
    settings: VerifySettings,
) -> _Verified:
    from headrace.datastream.execution_context import ExecutionContext
    from headrace.verify.verification import verify_job

    def check(_: object, job: JobGraph, options: Configuration) -> NoReturn:
        # Here, while the program's module is the main one: its records are pickled by what that holds.
        with _without_warnings():  # of the faults that it injects
            raise _Verified(verify_job(job, options, settings), job)

    context = ExecutionContext(configuration, on_submission=check)
    try:
        with (
            pyflink_names(configuration, alias),
            context.entered(in_all_threads=True),
            redirect_stdout(sys.stderr),
            program.as_main(arguments),
        ):
            program.run()
    except _Verified as verified:
        return verified
    except SystemExit as ended:
        raise ProgramError(
            f"the program ended with exit code {ended.code!r} before it called execute()"
        ) from None
    except Exception as error:
        click.echo(describe_error(error), err=True)
        raise click.exceptions.Exit(exit_code_of(error)) from error
    raise ProgramError("the program ended without calling execute(): there is no job to verify")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep what the engine logs about failures to itself."""
    logger = logging.getLogger("headrace")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)

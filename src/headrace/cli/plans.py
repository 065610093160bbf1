"""Stops a program where its first job would start, to look at the job instead."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, NoReturn

import click

from headrace.cli.errors import describe_error, exit_code_of
from headrace.cli.program import Program, ProgramError, pyflink_names

if TYPE_CHECKING:
    from headrace.config import Configuration
    from headrace.graph.job_graph import JobGraph
    from headrace.graph.stream_graph import StreamGraph

__all__ = ["PlanFound", "find_plan"]


class PlanFound(BaseException):
    """Ends the program where it would have started its job; no Exception, or the program might catch it."""

    def __init__(
        self, stream_graph: StreamGraph | None, job_graph: JobGraph, configuration: Configuration
    ) -> None:
        super().__init__()
        self.stream_graph = stream_graph
        self.job_graph = job_graph
        #: All layers, the program's own included.
        self.configuration = configuration


def find_plan(
    program: Program, arguments: list[str], configuration: Configuration, alias: bool | None
) -> PlanFound:
    """Run a program up to its first `execute`, and return the job that it would start.

    What the program prints goes to the standard error.

    Raises:
        ProgramError: If it ends without starting a job.
        Exit: If it fails.
    """
    from headrace.datastream.execution_context import ExecutionContext

    context = ExecutionContext(configuration, on_submission=_stop)
    with pyflink_names(configuration, alias), context.entered(in_all_threads=True):
        return _run(program, arguments)


def _stop(stream_graph: StreamGraph | None, job_graph: JobGraph, configuration: Configuration) -> NoReturn:
    raise PlanFound(stream_graph, job_graph, configuration)


def _run(program: Program, arguments: list[str]) -> PlanFound:
    try:
        with redirect_stdout(sys.stderr), program.as_main(arguments):
            program.run()
    except PlanFound as plan:
        return plan
    except SystemExit as ended:
        raise ProgramError(
            f"the program ended with exit code {ended.code!r} before it called execute()"
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        click.echo(describe_error(error), err=True)
        raise click.exceptions.Exit(exit_code_of(error)) from error
    raise ProgramError("the program ended without calling execute(): there is no job to show")

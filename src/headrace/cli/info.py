"""`headrace info`: the plan of a program, without running it."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, NoReturn

import click

from headrace.cli.errors import describe_error, exit_code_of
from headrace.cli.options import configuration_options, load_configuration
from headrace.cli.program import Program, ProgramError, load_program, program_options, pyflink_names

if TYPE_CHECKING:
    from headrace.graph.job_graph import JobGraph
    from headrace.graph.stream_graph import StreamGraph

__all__ = ["info"]


class _PlanFound(BaseException):
    """Ends the program where it would have started its job; no Exception, or the program might catch it."""

    def __init__(self, stream_graph: StreamGraph | None, job_graph: JobGraph) -> None:
        super().__init__()
        self.stream_graph = stream_graph
        self.job_graph = job_graph


@click.command(
    short_help="Show the plan of a program without running it.",
    context_settings={"allow_interspersed_args": False},
)
@configuration_options
@click.option("--json", "as_json", is_flag=True, help="Print the JSON that Flink's plan visualizer reads.")
@program_options
def info(
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    as_json: bool,
    alias: bool | None,
    file: str | None,
    words: tuple[str, ...],
) -> None:
    """Show the plan of PROGRAM without running it.

    The program itself runs, up to its first execute(); the job does not. What the program prints goes to the
    standard error.
    """
    from headrace.datastream.execution_context import ExecutionContext
    from headrace.graph.plan_json import describe, stream_plan

    configuration = load_configuration(properties, parallelism, master)
    program, arguments = load_program(file, words)
    context = ExecutionContext(configuration, on_submission=_stop_with_plan)
    with pyflink_names(configuration, alias), context.entered(in_all_threads=True):
        plan = _find_plan(program, arguments)
    if not as_json:
        click.echo(describe(plan.job_graph))
    elif plan.stream_graph is not None:
        click.echo(json.dumps(stream_plan(plan.stream_graph), indent=2))
    else:
        raise ProgramError(
            "the program's job is a query, which --json cannot show: use EXPLAIN JSON_EXECUTION_PLAN"
        )


def _stop_with_plan(stream_graph: StreamGraph | None, job_graph: JobGraph) -> NoReturn:
    raise _PlanFound(stream_graph, job_graph)


def _find_plan(program: Program, arguments: list[str]) -> _PlanFound:
    try:
        with redirect_stdout(sys.stderr), program.as_main(arguments):
            program.run()
    except _PlanFound as plan:
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

"""`headrace info`: the plan of a program, without running it."""

from __future__ import annotations

import json

import click

from headrace.cli.options import configuration_options, load_configuration
from headrace.cli.plans import find_plan
from headrace.cli.program import ProgramError, load_program, program_options

__all__ = ["info"]


@click.command(
    short_help="Show the plan of a program without running it.",
    context_settings={"allow_interspersed_args": False},
)
@configuration_options
@click.option("--json", "as_json", is_flag=True, help="Print the JSON that Flink's plan visualizer reads.")
@click.option(
    "--memory", is_flag=True, help="Show how memory is divided between processes; needs no program."
)
@program_options
def info(
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    as_json: bool,
    memory: bool,
    alias: bool | None,
    file: str | None,
    words: tuple[str, ...],
) -> None:
    """Show the plan of PROGRAM without running it.

    The program itself runs, up to its first execute(); the job does not. What the program prints goes to the
    standard error.
    """
    from headrace.cli.memory_text import memory_text
    from headrace.graph.plan_json import describe, stream_plan

    configuration = load_configuration(properties, parallelism, master)
    if memory:
        click.echo(memory_text(configuration))
        return
    program, arguments = load_program(file, words)
    plan = find_plan(program, arguments, configuration, alias)
    if not as_json:
        click.echo(describe(plan.job_graph))
    elif plan.stream_graph is not None:
        click.echo(json.dumps(stream_plan(plan.stream_graph), indent=2))
    else:
        raise ProgramError(
            "the program's job is a query, which --json cannot show: use EXPLAIN JSON_EXECUTION_PLAN"
        )

"""`headrace check`: likely mistakes of a program's job, without running it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import click

from headrace.cli.errors import ExitCode
from headrace.cli.options import configuration_options, json_option, load_configuration
from headrace.cli.plans import find_plan
from headrace.cli.program import load_program, program_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.checks import CheckFinding
    from headrace.config import Configuration
    from headrace.graph.job_graph import JobGraph

__all__ = ["check", "warnings_for"]

_log = logging.getLogger(__name__)


@click.command(
    short_help="Find likely mistakes in a program's job.",
    context_settings={"allow_interspersed_args": False},
)
@configuration_options
@json_option
@click.option(
    "--ignore",
    "ignored",
    metavar="CODE",
    multiple=True,
    help="Leave out findings with this code, such as HR501; may be repeated. Adds to headrace.check.ignore.",
)
@program_options
@click.pass_context
def check(
    context: click.Context,
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    as_json: bool,
    ignored: tuple[str, ...],
    alias: bool | None,
    file: str | None,
    words: tuple[str, ...],
) -> None:
    """Find likely mistakes in the job of PROGRAM, without running it.

    The program itself runs, up to its first execute(); the job does not, and none of its functions is called. The exit
    code is 1 if there are findings. docs/debugging.md explains every code, and how to silence a finding.
    """
    from headrace.checks import check_job

    configuration = load_configuration(properties, parallelism, master)
    program, arguments = load_program(file, words)
    plan = find_plan(program, arguments, configuration, alias)
    _ensure_known(ignored)
    found = [each for each in check_job(plan.job_graph, plan.configuration) if each.code not in ignored]
    if as_json:
        click.echo(json.dumps([_as_json(each) for each in found], indent=2))
    else:
        for each in found:
            click.echo(each.text())
        click.echo(f"{_count(found)} in job {plan.job_graph.name!r}")
    context.exit(ExitCode.FAILED if found else ExitCode.OK)


def warnings_for(job: JobGraph, configuration: Configuration) -> list[str]:
    """Return the findings of a job as lines, for `headrace run`; none if they are not wanted."""
    from headrace.checks import check_job
    from headrace.config.options.checks import ON_RUN

    if not configuration.get(ON_RUN):
        return []
    try:
        return [f"warning: {each.line()}" for each in check_job(job, configuration)]
    except Exception:  # noqa: BLE001 - see below
        # A check that fails is our defect, and no reason not to run the job.
        _log.exception("the job could not be checked")
        return []


def _ensure_known(codes: Sequence[str]) -> None:
    from headrace.checks import RULES

    for code in codes:
        if code not in RULES:
            raise click.BadParameter(f"unknown code {code!r}; known are {', '.join(RULES)}")


def _as_json(finding: CheckFinding) -> dict[str, str | int | None]:
    place = finding.place
    return {
        "code": finding.code,
        "title": finding.rule.title,
        "operator": finding.operator,
        "message": finding.message,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "fix": finding.rule.hint,
    }


def _count(found: Sequence[CheckFinding]) -> str:
    return "no findings" if not found else f"{len(found)} finding{'s' if len(found) > 1 else ''}"

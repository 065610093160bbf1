"""`headrace replay`: runs an epoch of a job again, in this process and under a debugger."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.connection import cluster_options
from headrace.cli.errors import ExitCode, describe_error
from headrace.cli.recordings import find_job_recording
from headrace.cli.text import print_json

if TYPE_CHECKING:
    from headrace.replay.debugger import Debugger
    from headrace.replay.run import ReplayResult

__all__ = ["replay"]

#: Records of a sink that are shown.
_SHOWN = 20


def _places(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, int]]:
    places = []
    for text in given:
        file, _, line = text.rpartition(":")
        if not file or not line.isdecimal():
            raise click.BadParameter(f"expected FILE:LINE; got {text!r}")
        places.append((os.path.abspath(file), int(line)))
    return places


@click.command(short_help="Run a recorded epoch of a job again, under a debugger.")
@click.argument("job", metavar="JOB")
@cluster_options
@click.option("--epoch", type=int, metavar="N", help="The epoch; the last one that is recorded.")
@click.option("--last-failure", is_flag=True, help="The last epoch that failed; stops where it raised.")
@click.option(
    "--subtask", metavar="NAME:I", help="Stop in this subtask: an operator's name, a number from 0."
)
@click.option(
    "--until-record",
    type=click.IntRange(min=1),
    metavar="K",
    help="Stop before the K-th record of a subtask.",
)
@click.option(
    "--break",
    "breakpoints",
    metavar="FILE:LINE",
    multiple=True,
    callback=_places,
    help="Stop at this line; may be repeated.",
)
@click.option(
    "--debugger",
    "kind",
    type=click.Choice(["pdb", "debugpy", "none"]),
    default="pdb",
    help="pdb; debugpy listens on port 5678 for an editor; none never stops.",
)
@click.option(
    "--with-sinks", is_flag=True, help="Run the writers of sinks, too; what they stage is never committed."
)
@click.option("--show", is_flag=True, help="Print the records that sinks get.")
@click.pass_context
def replay(
    context: click.Context,
    job: str,
    address: str | None,
    properties: dict[str, str],
    as_json: bool,
    epoch: int | None,
    last_failure: bool,
    subtask: str | None,
    until_record: int | None,
    breakpoints: list[tuple[str, int]],
    kind: str,
    with_sinks: bool,
    show: bool,
) -> None:
    """Run an epoch of JOB again, in this process and without Spark.

    JOB is a directory: that of recordings or checkpoints, a checkpoint, or a savepoint; or a running job, by its id or
    name. Its epochs are recorded if headrace.replay.keep is set. The functions get the same records, state and clock as
    in the job; sinks write nothing. The exit code is 1 if the replay differs from what the job did, or a function
    raised. This loads and runs what is in the recording: use only recordings that you trust.
    """
    from headrace.replay.run import replay_epoch

    if epoch is not None and last_failure:
        raise click.UsageError("give --epoch or --last-failure")
    if subtask is not None and until_record is None:
        until_record = 1
    recording = find_job_recording(job, address, properties)
    if last_failure:
        recorded = recording.last_failure()
    else:
        recorded = recording.last() if epoch is None else recording.epoch(epoch)
    # Editors have breakpoints of their own.
    stops = last_failure or until_record is not None or bool(breakpoints) or kind == "debugpy"
    if kind == "none" and (until_record is not None or breakpoints):
        raise click.UsageError("--until-record, --subtask and --break need a debugger")
    result = replay_epoch(
        recording,
        recorded,
        debugger=_debugger(kind) if stops and kind != "none" else None,
        subtask=subtask,
        until_record=until_record,
        breakpoints=breakpoints,
        runs_sinks=with_sinks,
    )
    if result.was_quit:
        context.exit(ExitCode.OK)
    if as_json:
        print_json(_as_json(result))
    else:
        _print(result, show, was_seen=stops and kind == "pdb")
    context.exit(ExitCode.FAILED if result.differences or result.error is not None else ExitCode.OK)


def _debugger(kind: str) -> Debugger:
    from headrace.replay.debugger import DebugpyDebugger, PdbDebugger

    if kind == "debugpy":
        return DebugpyDebugger(say=partial(click.echo, err=True))
    return PdbDebugger()


def _print(result: ReplayResult, show: bool, *, was_seen: bool) -> None:
    if result.error is not None:
        if not was_seen:
            click.echo(describe_error(result.error), err=True)
        if result.recorded_error is not None:
            click.echo(f"epoch {result.epoch} failed again, as in the job", err=True)
        return
    if result.not_reached:
        click.echo(f"the replay did not stop: {result.not_reached}", err=True)
    records = sum(result.records_in.values())
    subtasks = len(result.records_in)
    click.echo(f"epoch {result.epoch}: {subtasks} subtask{'' if subtasks == 1 else 's'}, {_records(records)}")
    for name, output in result.output.items():
        click.echo(f"  {name}: {_records(len(output))}")
        for record in output[: _SHOWN if show else 0]:
            click.echo(f"    {record!r}")
        if show and len(output) > _SHOWN:
            click.echo(f"    ... {len(output) - _SHOWN} more")
    if not result.was_completed:
        what = "failed" if result.recorded_error is not None else "was not completed"
        click.echo(f"in the original run this epoch {what}; the replay ran to its end")
        return
    for difference in result.differences:
        click.echo(f"  differs: {difference}")
    if not result.differences:
        click.echo("no differences: output, state, watermarks and timers are the same as in the original run")


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _as_json(result: ReplayResult) -> dict[str, Any]:
    return {
        "epoch": result.epoch,
        "was_completed": result.was_completed,
        "records_in": dict(result.records_in),
        "output": {name: [repr(record) for record in records] for name, records in result.output.items()},
        "differences": [str(each) for each in result.differences],
        "error": None if result.error is None else str(result.error),
    }

"""Commands that ask a running cluster: list, cancel, stop, savepoint, checkpoint, checkpoints, rescale.

They take Flink's options, and JOB may be a job's id, the beginning of it, or its name.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.connection import cluster_options, connect
from headrace.cli.groups import DefaultGroup
from headrace.cli.text import duration_text, print_json, print_table, size_text, time_text
from headrace.errors import ClusterError

if TYPE_CHECKING:
    from headrace.rest.client import RestClient

__all__ = ["cancel", "checkpoint", "checkpoints", "list_jobs", "rescale", "savepoint", "stop"]

_TYPES = click.Choice(["canonical", "native"], case_sensitive=False)
_timeout_option = click.option(
    "--timeout", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS", help="How long to wait; 600."
)
_type_option = click.option(
    "-type",
    "--type",
    "format_type",
    type=_TYPES,
    default="canonical",
    help="Flink's formats; both are written alike.",
)


# -- list ----------------------------------------------------------------------------------------------------------


@click.command("list", short_help="List the jobs of a cluster.")
@cluster_options
@click.option("-r", "--running", is_flag=True, help="Only running jobs.")
@click.option("-s", "--scheduled", is_flag=True, help="Only jobs that have not started yet.")
@click.option("-a", "--all", "everything", is_flag=True, help="Also list jobs that have ended.")
def list_jobs(
    address: str | None,
    properties: dict[str, str],
    as_json: bool,
    running: bool,
    scheduled: bool,
    everything: bool,
) -> None:
    """List the jobs of a cluster that are running or waiting to run."""
    jobs = connect(address, properties).get("/jobs/overview")["jobs"]
    early = {"CREATED", "INITIALIZING"}
    if not everything:
        jobs = [job for job in jobs if job["end-time"] == -1]
    if running != scheduled:
        jobs = [job for job in jobs if (job["state"] in early) is scheduled]
    jobs.sort(key=lambda job: job["start-time"])
    if as_json:
        print_json(jobs)
        return
    if not jobs:
        click.echo("no jobs" if everything else "no running jobs; -a shows those that have ended", err=True)
        return
    rows = [
        [
            job["jid"],
            job["name"],
            job["state"],
            time_text(job["start-time"]),
            duration_text(job["duration"]),
            f"{job['tasks']['running']}/{job['tasks']['total']}",
        ]
        for job in jobs
    ]
    print_table(("JOB", "NAME", "STATE", "STARTED (UTC)", "DURATION", "TASKS RUNNING"), rows)


# -- cancel, stop --------------------------------------------------------------------------------------------------


@click.command(short_help="Cancel a job.")
@cluster_options
@click.option("--wait/--no-wait", default=True, help="Whether to wait until the job has ended.")
@_timeout_option
@click.argument("job")
def cancel(
    address: str | None, properties: dict[str, str], as_json: bool, wait: bool, timeout: float, job: str
) -> None:
    """Cancel JOB at once. Only its retained checkpoints are kept."""
    client = connect(address, properties)
    job_id = client.find_job(job)
    client.ask("PATCH", f"/jobs/{job_id}", query={"mode": "cancel"})
    state = _wait_for_end(client, job_id, timeout) if wait else "CANCELLING"
    if as_json:
        print_json({"job-id": job_id, "state": state})
    else:
        click.echo(f"job {job_id}: {state}")


def _wait_for_end(client: RestClient, job_id: str, timeout_s: float) -> str:
    deadline = time.monotonic() + timeout_s
    state = "CANCELLING"
    while time.monotonic() < deadline:
        try:
            state = client.get(f"/jobs/{job_id}/status")["status"]
        except ClusterError as error:
            if error.status is None:
                return "CANCELED"  # the process has ended with its job
            raise
        if state in {"CANCELED", "FINISHED", "FAILED", "SUSPENDED"}:
            break
        time.sleep(0.1)
    return state


@click.command(short_help="Stop a job with a savepoint.")
@cluster_options
@click.option(
    "-p",
    "--savepoint-path",
    "--savepointPath",
    "target",
    metavar="DIR",
    help="The directory for the savepoint; execution.checkpointing.savepoint-dir.",
)
@click.option(
    "-d",
    "--drain",
    is_flag=True,
    help="Advance event time to its end first, so that all windows and timers fire.",
)
@_type_option
@_timeout_option
@click.argument("job")
def stop(
    address: str | None,
    properties: dict[str, str],
    as_json: bool,
    target: str | None,
    drain: bool,
    format_type: str,
    timeout: float,
    job: str,
) -> None:
    """Take a savepoint of JOB and end it; the job can be started again from there."""
    client = connect(address, properties)
    job_id = client.find_job(job)
    body = {"targetDirectory": target, "drain": drain, "formatType": format_type.upper()}
    trigger = client.ask("POST", f"/jobs/{job_id}/stop", body)["request-id"]
    _show_savepoint(client, job_id, trigger, timeout, as_json=as_json)


def _show_savepoint(
    client: RestClient, job_id: str, trigger: str, timeout_s: float, *, as_json: bool
) -> None:
    location = client.finish(f"/jobs/{job_id}/savepoints", trigger, timeout_s)["location"]
    if as_json:
        print_json({"job-id": job_id, "location": location})
    else:
        click.echo(f"savepoint: {location}")


# -- savepoint -----------------------------------------------------------------------------------------------------


@click.group(
    cls=DefaultGroup,
    default="trigger",
    short_help="Take a savepoint of a job, or delete one.",
    context_settings={"ignore_unknown_options": True},
)
def savepoint() -> None:
    """Take a savepoint: `headrace savepoint JOB [DIR]` is `headrace savepoint trigger JOB [DIR]`."""


@savepoint.command(short_help="Take a savepoint of a job.")
@cluster_options
@click.option(
    "-d", "--dispose", "disposed", metavar="PATH", help="Have the cluster delete this savepoint instead."
)
@_type_option
@_timeout_option
@click.argument("job", required=False)
@click.argument("target", metavar="[DIR]", required=False)
def trigger(
    address: str | None,
    properties: dict[str, str],
    as_json: bool,
    disposed: str | None,
    format_type: str,
    timeout: float,
    job: str | None,
    target: str | None,
) -> None:
    """Take a savepoint of JOB, in DIR or execution.checkpointing.savepoint-dir; the job continues."""
    client = connect(address, properties)
    if disposed is not None:
        asked = client.ask("POST", "/savepoint-disposal", {"savepoint-path": disposed})["request-id"]
        client.finish("/savepoint-disposal", asked, timeout)
        if as_json:
            print_json({"disposed": disposed})
        else:
            click.echo(f"deleted {disposed}")
        return
    if job is None:
        raise click.UsageError("give the id or name of a job")
    job_id = client.find_job(job)
    body = {"target-directory": target, "cancel-job": False, "formatType": format_type.upper()}
    asked = client.ask("POST", f"/jobs/{job_id}/savepoints", body)["request-id"]
    _show_savepoint(client, job_id, asked, timeout, as_json=as_json)


# -- checkpoints ---------------------------------------------------------------------------------------------------


@click.command(short_help="Take a checkpoint of a job.")
@cluster_options
@_timeout_option
@click.argument("job")
def checkpoint(
    address: str | None, properties: dict[str, str], as_json: bool, timeout: float, job: str
) -> None:
    """Take a checkpoint of JOB now, and print its number."""
    client = connect(address, properties)
    job_id = client.find_job(job)
    asked = client.ask("POST", f"/jobs/{job_id}/checkpoints", {"checkpointType": "CONFIGURED"})["request-id"]
    number = client.finish(f"/jobs/{job_id}/checkpoints", asked, timeout)["checkpointId"]
    if as_json:
        print_json({"job-id": job_id, "checkpoint-id": number})
    else:
        click.echo(f"checkpoint {number}")


@click.group(cls=DefaultGroup, default="history", short_help="Show the checkpoints of a job.")
def checkpoints() -> None:
    """Show checkpoints: `headrace checkpoints JOB` is `headrace checkpoints history JOB`."""


@checkpoints.command(short_help="Show the last checkpoints of a running job.")
@cluster_options
@click.argument("job")
def history(address: str | None, properties: dict[str, str], as_json: bool, job: str) -> None:
    """Show the last checkpoints and savepoints of JOB, as its cluster remembers them."""
    client = connect(address, properties)
    found: dict[str, Any] = client.get(f"/jobs/{client.find_job(job)}/checkpoints")
    if as_json:
        print_json(found)
        return
    counts = found["counts"]
    click.echo(
        f"{counts['completed']} completed, {counts['in_progress']} in progress, {counts['failed']} failed, "
        f"{counts['restored']} restored"
    )
    rows = [
        [
            str(each["id"]),
            "savepoint" if each["is_savepoint"] else "checkpoint",
            each["status"],
            time_text(each["trigger_timestamp"]),
            duration_text(each["end_to_end_duration"]),
            size_text(each["checkpointed_size"]),
            size_text(each["state_size"]),
            each.get("external_path") or each.get("failure_message") or "",
        ]
        for each in found["history"]
    ]
    if rows:
        print_table(("ID", "KIND", "STATUS", "TAKEN (UTC)", "DURATION", "NEW", "ALL", "PATH"), rows)


# -- rescale -------------------------------------------------------------------------------------------------------


@click.command(short_help="Change the parallelism of a job.")
@cluster_options
@click.option(
    "-p", "--parallelism", type=click.IntRange(min=1), required=True, metavar="N", help="The new parallelism."
)
@_timeout_option
@click.argument("job")
def rescale(
    address: str | None, properties: dict[str, str], as_json: bool, parallelism: int, timeout: float, job: str
) -> None:
    """Change the parallelism of JOB between two epochs; nothing is read or written twice."""
    client = connect(address, properties)
    job_id = client.find_job(job)
    asked = client.ask("PATCH", f"/jobs/{job_id}/rescaling", query={"parallelism": parallelism})["request-id"]
    client.finish(f"/jobs/{job_id}/rescaling", asked, timeout)
    if as_json:
        print_json({"job-id": job_id, "parallelism": parallelism})
    else:
        click.echo(f"job {job_id}: parallelism {parallelism}")

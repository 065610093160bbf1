"""`headrace session`: a cluster that takes jobs until it is told to end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from headrace.cli.errors import ExitCode
from headrace.cli.interrupts import Interrupts
from headrace.cli.options import load_configuration, property_option
from headrace.cli.state_home import state_home

if TYPE_CHECKING:
    from headrace.config import Configuration
    from headrace.runtime.dispatcher import Recovery
    from headrace.runtime.leadership import Leadership

__all__ = ["session"]


@click.command(short_help="Start a cluster that takes jobs.")
@property_option
@click.option("--master", metavar="URL", help="The Spark master; headrace.spark.master.")
@click.option(
    "--submit/--no-submit",
    default=None,
    help="Whether jobs may be submitted; web.submit.enable. Whoever may submit a job runs code here.",
)
@click.pass_context
def session(
    context: click.Context, properties: dict[str, str], master: str | None, submit: bool | None
) -> None:
    """Start Spark and wait for jobs: `headrace run -m HOST:PORT program.py`.

    All jobs share one Spark. Ctrl-C, SIGTERM or DELETE /cluster cancel them and end the session. With high
    availability they are found again by the next session of the same high-availability.cluster-id.
    """
    from headrace.config.options.rest import SUBMIT_ENABLED

    if submit is not None:
        properties = {**properties, SUBMIT_ENABLED.key: str(submit).lower()}
    configuration = load_configuration(properties, master=master)
    if not configuration.get(SUBMIT_ENABLED):
        click.echo(f"warning: no jobs are taken: allow it with --submit ({SUBMIT_ENABLED.key})", err=True)
    context.exit(_serve(configuration))


def _serve(configuration: Configuration) -> int:
    from headrace.rest.assembly import ControlPlane
    from headrace.rest.spark_cluster import SparkCluster
    from headrace.runtime.leadership import Leadership
    from headrace.spark.executor import SparkExecutor, cancel_running_jobs, watching
    from headrace.spark.session import spark_context, stop_spark
    from headrace.spark.user_code import unpack_graph

    is_over = threading.Event()
    leadership = Leadership.of(configuration, "session")
    executor = SparkExecutor(leadership)
    plane = ControlPlane(
        configuration,
        SparkCluster(configuration),
        start=executor.submit,
        unpack=unpack_graph,
        recovery=None if leadership is None else _recovery(leadership),
        shut_down=is_over.set,
        archive_directory=str(state_home() / "archive"),
    )
    dispatcher = plane.dispatcher
    with (
        Interrupts(force=lambda: None) as interrupts,
        watching(on_job=dispatcher.adopt, on_epoch=dispatcher.observe),
    ):
        try:
            spark_context(configuration)
            for job in dispatcher.recover():
                click.echo(f"recovered job {job.name!r} ({job.job_id})", err=True)
            plane.start()
            click.echo(f"session at {plane.url}", err=True)
            is_over.wait()
        except KeyboardInterrupt:
            click.echo("ending: jobs are cancelled", err=True)
        finally:
            cancel_running_jobs(timeout_s=20.0)
            plane.close(fetch_s=0.0)
            if leadership is not None:
                leadership.release()
            stop_spark()
        return interrupts.exit_code if interrupts.have_come else ExitCode.OK


def _recovery(leadership: Leadership) -> Recovery:
    from headrace.runtime.dispatcher import Recovery
    from headrace.spark.user_code import pack_graph, unpack_graph

    return Recovery(leadership.job_store(), pack_graph, unpack_graph)

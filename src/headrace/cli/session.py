"""`headrace session`: a cluster that accepts jobs until it is stopped."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from headrace.cli.errors import ExitCode
from headrace.cli.interrupts import Interrupts
from headrace.cli.options import load_configuration, property_option
from headrace.util.host_directories import temporary_directory
from headrace.util.state_home import state_home

if TYPE_CHECKING:
    from headrace.config import Configuration
    from headrace.runtime.high_availability.leadership import Leadership
    from headrace.runtime.job.dispatcher import JobRecovery

__all__ = ["serve", "session"]

#: A Spark in this process gets threads for a live job of so many levels with the default parallelism: it is started
#: before anybody knows what will run.
_LEVELS = 4


@click.command(short_help="Start a cluster that accepts jobs.")
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
    availability, SIGTERM does not cancel them: the next session with the same high-availability.cluster-id continues
    them, as after the loss of the machine. A session waits on standby while another one leads.
    """
    from headrace.config.options.rest import SUBMIT_ENABLED

    if submit is not None:
        properties = {**properties, SUBMIT_ENABLED.key: str(submit).lower()}
    configuration = load_configuration(properties, master=master)
    if not configuration.get(SUBMIT_ENABLED):
        click.echo(
            f"warning: job submission is disabled; enable it with --submit ({SUBMIT_ENABLED.key})", err=True
        )
    with temporary_directory("session") as folder:
        code = serve(configuration, folder, has_gateway=configuration.get(SUBMIT_ENABLED))
    context.exit(code)


def serve(configuration: Configuration, folder: str, *, has_gateway: bool) -> int:
    """Serve until somebody wants the end.

    Args:
        configuration: The options of the process.
        folder: Where files of jobs go, unless the next session has to find them.
        has_gateway: Whether clients of the SQL gateway may open sessions.
    """
    from headrace.config.options.spark import MASTER
    from headrace.datastream.execution_context import ExecutionContext
    from headrace.datastream.executor import default_parallelism
    from headrace.gateway.sessions import Sessions
    from headrace.rest.assembly import ControlPlane
    from headrace.rest.spark_cluster import SparkCluster, SparkUserInterface
    from headrace.runtime.high_availability.leadership import Leadership
    from headrace.spark.executor import Listeners, SparkExecutor
    from headrace.spark.session import spark_context, start_workers, stop_spark
    from headrace.spark.user_code import unpack_graph
    from headrace.util.application_log import application_log

    is_over = threading.Event()
    leadership = Leadership.of(
        configuration, "session", lambda led: click.echo(f"waiting as a standby: {led.message}", err=True)
    )
    executor = SparkExecutor(leadership)
    plane = ControlPlane(
        configuration,
        SparkCluster(configuration, application_log(configuration)),
        spark_pages=SparkUserInterface(),
        gateway=Sessions(ExecutionContext(configuration, {"spark": executor})) if has_gateway else None,
        start=executor.submit,
        unpack=unpack_graph,
        recovery=None if leadership is None else _recovery(leadership),
        shut_down=is_over.set,
        artifact_directory=folder if leadership is None else leadership.artifact_directory,
        archive_directory=str(state_home() / "archive"),
    )
    dispatcher = plane.dispatcher
    executor.listeners.append(Listeners(job_started=dispatcher.adopt, epoch_completed=dispatcher.observe))
    with Interrupts(force=lambda: None) as interrupts:
        try:
            click.echo(f"starting Spark ({configuration.get(MASTER)})", err=True)
            context = spark_context(configuration, least_threads=_LEVELS * default_parallelism(configuration))
            start_workers(context, 1)  # of jobs in epochs, too
            for job in dispatcher.recover():
                click.echo(f"recovered job {job.name!r} ({job.job_id})", err=True)
            plane.start()
            click.echo(f"session at {plane.url}", err=True)
            is_over.wait()
        except KeyboardInterrupt:
            is_left = interrupts.is_for_process and leadership is not None
            click.echo(f"ending: jobs are {'left to the next session' if is_left else 'cancelled'}", err=True)
        finally:
            executor.cancel_running_jobs(timeout_s=20.0, leave_to_next=interrupts.is_for_process)
            plane.close(fetch_s=0.0)
            if leadership is not None:
                leadership.release()
            stop_spark()
        return interrupts.exit_code if interrupts.have_come else ExitCode.OK


def _recovery(leadership: Leadership) -> JobRecovery:
    from headrace.runtime.job.dispatcher import JobRecovery
    from headrace.spark.user_code import pack_graph, unpack_graph

    return JobRecovery(
        leadership.job_store(), leadership.job_results(is_session=True), pack_graph, unpack_graph
    )

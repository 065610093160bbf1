"""`headrace run-application`: a program whose driver runs in the cluster, through spark-submit."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import (
    configuration_options,
    load_configuration,
    python_options,
    python_properties,
    recovery_options,
    recovery_properties,
)
from headrace.cli.program import load_program
from headrace.util.host_directories import temporary_directory

if TYPE_CHECKING:
    from headrace.spark.submission import Application

__all__ = ["run_application"]


@click.command(
    "run-application",
    short_help="Run a program whose driver is in the cluster.",
    context_settings={"allow_interspersed_args": False},
)
@configuration_options
@recovery_options
@python_options
@click.option(
    "--deploy-mode",
    type=click.Choice(["cluster", "client"]),
    default="cluster",
    help="Where spark-submit runs the driver: in the cluster, or here.",
)
@click.option(
    "-d",
    "--detached",
    is_flag=True,
    help="Return when the cluster has accepted the application, and do not wait for its end.",
)
@click.option("--dry-run", is_flag=True, help="Print the command, but do not run it.")
@click.argument("words", metavar="PROGRAM [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run_application(
    context: click.Context,
    properties: dict[str, str],
    parallelism: int | None,
    master: str | None,
    savepoint: str | None,
    leaves_state: bool,
    claim_mode: str | None,
    python_files: str | None,
    requirements: str | None,
    archives: str | None,
    executable: str | None,
    deploy_mode: str,
    detached: bool,
    dry_run: bool,
    words: tuple[str, ...],
) -> None:
    """Run PROGRAM with spark-submit, with its driver in the cluster (YARN or Kubernetes).

    The program, its options and its files are sent to the cluster. headrace must be installed in the Python there: in
    the image, on the hosts, or in an archive (-pyarch env.tar.gz#env -pyexec env/bin/python). `local:///path/job.py` is
    a program in the image. Spark standalone clusters cannot run drivers of Python programs: use `headrace run -d`
    there. The exit code is that of spark-submit.
    """
    properties = {
        **properties,
        **python_properties(python_files, requirements, archives, executable),
        **recovery_properties(savepoint, claim_mode, leaves_state=leaves_state),
    }
    configuration = load_configuration(properties, parallelism, master)
    if not words:
        raise click.UsageError("give the path of the program, such as job.py")
    program, arguments = words[0], list(words[1:])
    if not program.startswith("local:"):
        program = str(load_program(None, words)[0].path)

    from headrace.spark.submission import Application

    application = Application(configuration, program, arguments, deploy_mode, is_detached=detached)
    status = _submit(application, dry_run=dry_run)
    context.exit(status)


def _submit(application: Application, *, dry_run: bool) -> int:
    """Run spark-submit, or print its command; return the exit code."""
    from headrace.config.file import CONF_DIR_VARIABLE, FILE_NAME
    from headrace.config.options.spark import MASTER
    from headrace.spark.masters import check_master
    from headrace.spark.submission import plan_submission, spark_submit_command, write_archive

    with temporary_directory("application") as folder:
        archive, secret_settings = Path(folder) / "application.zip", Path(folder) / "secret.properties"
        submission = plan_submission(
            application,
            entry=Path(__file__).with_name("application_entry.py"),
            archive=archive,
            spark_submit=spark_submit_command(),
            properties=secret_settings,
        )
        if dry_run:
            click.echo(shlex.join(submission.command))
            return 0
        environment = {**os.environ, **application.configuration.process_variables()}
        check_master(application.configuration.get(MASTER), environment)
        if submission.secret_settings:
            secret_settings.write_text(submission.secret_settings)  # in a directory that only we can read
        if submission.archive:
            write_archive(submission.archive, archive)
        else:
            (Path(folder) / FILE_NAME).write_text(submission.options)
            environment[CONF_DIR_VARIABLE] = folder
        done = subprocess.run(submission.command, env=environment, check=False)  # noqa: S603  # Spark's own
        return done.returncode

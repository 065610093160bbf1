"""`headrace logs`: what a running cluster has logged, in its driver and in its executors."""

from __future__ import annotations

import click

from headrace.cli.connection import cluster_options, connect
from headrace.cli.text import print_json, print_table, size_text, time_text

__all__ = ["logs"]


@click.command(short_help="Show the logs of a cluster.")
@cluster_options
@click.option(
    "-t",
    "--taskmanager",
    metavar="ID",
    help="Show what functions log and print in this executor. With a local master, its name is `driver`.",
)
@click.option("-f", "--file", "name", metavar="NAME", help="Show this file, one of those that --list shows.")
@click.option(
    "-l", "--list", "lists", is_flag=True, help="List the log files of the driver and of the executors."
)
def logs(
    address: str | None,
    properties: dict[str, str],
    as_json: bool,
    taskmanager: str | None,
    name: str | None,
    lists: bool,
) -> None:
    """Show the log of the driver or of an executor.

    The logs of a cluster that has ended are in env.log.dir, by default `~/.local/state/headrace/log`. Those of
    executors on other hosts are in the work directories of Spark's workers.
    """
    client = connect(address, properties)
    if lists:
        places = [("driver", "/jobmanager")]
        found = client.get("/taskmanagers")["taskmanagers"]
        places += [(f"executor {each['id']}", f"/taskmanagers/{each['id']}") for each in found]
        files = [
            {"of": whose, **file} for whose, path in places for file in client.get(f"{path}/logs")["logs"]
        ]
        if as_json:
            print_json(files)
        else:
            rows = [
                [each["of"], each["name"], size_text(each["size"]), _time(each["mtime"])] for each in files
            ]
            print_table(("OF", "FILE", "SIZE", "WRITTEN (UTC)"), rows)
        return
    place = "/jobmanager" if taskmanager is None else f"/taskmanagers/{taskmanager}"
    text = str(client.get(f"{place}/log" if name is None else f"{place}/logs/{name}"))
    if as_json:
        print_json(text.splitlines())
    else:
        click.echo(text, nl=False)


def _time(milliseconds: int) -> str:
    return time_text(milliseconds) if milliseconds else ""

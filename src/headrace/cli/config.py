"""`headrace config`: which values count, and where each came from."""

from __future__ import annotations

import click

from headrace.cli.options import load_configuration, property_option

__all__ = ["config"]


@click.command(short_help="Show the configuration.")
@property_option
@click.option("--defaults", is_flag=True, help="List the options nobody set, too.")
def config(properties: dict[str, str], defaults: bool) -> None:
    """Show which configuration counts, and where each value comes from.

    Values come from the command line, HEADRACE_... environment variables and conf/headrace.yaml, the
    strongest first; a program may set others over them. Secrets are masked.
    """
    explained = load_configuration(properties).explain(defaults=defaults)
    if explained:
        click.echo(explained)
    else:
        click.echo("nothing is set; --defaults lists all options", err=True)

"""`headrace config`: the effective values of options, and where each came from."""

from __future__ import annotations

import click

from headrace.cli.options import json_option, load_configuration, property_option
from headrace.cli.text import print_json

__all__ = ["config"]


@click.command(short_help="Show the configuration.")
@property_option
@click.option("--defaults", is_flag=True, help="Also list options that are not set.")
@json_option
def config(properties: dict[str, str], defaults: bool, as_json: bool) -> None:
    """Show the configuration in effect, and where each value comes from.

    Values come from the command line, HEADRACE_... environment variables and conf/headrace.yaml, the
    strongest first. A program can override them. Secrets are masked.
    """
    configuration = load_configuration(properties)
    if as_json:
        entries = configuration.entries(defaults=defaults)
        print_json(
            [
                {"key": each.key, "value": each.value, "from": each.place, "note": each.note}
                for each in entries
            ]
        )
    elif explained := configuration.explain(defaults=defaults):
        click.echo(explained)
    else:
        click.echo("no option is set; --defaults lists all options", err=True)

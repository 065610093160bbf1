"""Options that several commands share, and the configuration they make."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from headrace.config import Configuration

__all__ = ["configuration_options", "load_configuration", "property_option"]

F = TypeVar("F", bound=Callable[..., Any])


def _split_properties(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> dict[str, str]:
    properties = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected key=value; got {text!r}")
        properties[key.strip()] = value.strip()
    return properties


property_option = click.option(
    "-D",
    "properties",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_split_properties,
    help="Set a configuration option; may be repeated. `headrace config --defaults` lists them all.",
)


def configuration_options(command: F) -> F:
    """Add -D, -p and --master to a command."""
    parallelism = click.option(
        "-p", "--parallelism", type=int, metavar="N", help="Subtasks per operator; parallelism.default."
    )
    master = click.option("--master", metavar="URL", help="The Spark master; headrace.spark.master.")
    return property_option(parallelism(master(command)))


def load_configuration(
    properties: dict[str, str], parallelism: int | None = None, master: str | None = None
) -> Configuration:
    """Collect file, environment and command line; what is odd about them is said on the standard error.

    Raises:
        ConfigurationError: If a key is unknown or a value is wrong.
    """
    from headrace.config import Configuration
    from headrace.config.configuration import Layer
    from headrace.config.options.execution import PARALLELISM
    from headrace.config.options.spark import MASTER

    named = {PARALLELISM.key: parallelism, MASTER.key: master}
    values = properties | {key: value for key, value in named.items() if value is not None}
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        configuration = Configuration.load(command_line=values)
    for warning in noticed:
        click.echo(f"warning: {warning.message}", err=True)
    ignored = configuration.ignored()
    for entry in configuration.entries():
        # What a file shared with Flink says is not worth a line at every start; what was just typed is.
        if entry.layer is Layer.CLI and entry.key in ignored:
            click.echo(f"warning: {entry.key} has no effect: {ignored[entry.key]}", err=True)
    return configuration

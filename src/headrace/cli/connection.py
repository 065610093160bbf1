"""How commands that talk to a cluster find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli.options import json_option, load_configuration, property_option

if TYPE_CHECKING:
    from headrace.rest.client import RestClient

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """Add -m, -D and --json to a command."""
    address = click.option(
        "-m",
        "--jobmanager",
        "address",
        metavar="HOST:PORT",
        help="The cluster; rest.address and rest.port, localhost:8081.",
    )
    return address(property_option(json_option(command)))


def connect(address: str | None, properties: dict[str, str]) -> RestClient:
    """Return the client of the cluster that was named.

    Raises:
        ConfigurationError: If the address is not valid.
    """
    from headrace.rest.client import RestClient

    return RestClient.of(load_configuration(properties), address)

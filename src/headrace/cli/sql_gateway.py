"""`headrace sql-gateway`: a cluster that Flink's SQL client and JDBC driver connect to."""

from __future__ import annotations

import click

from headrace.cli.options import load_configuration, property_option
from headrace.cli.session import serve
from headrace.util.host_directories import temporary_directory

__all__ = ["sql_gateway"]


@click.command("sql-gateway", short_help="Start an SQL gateway.")
@property_option
@click.option("--master", metavar="URL", help="The Spark master; headrace.spark.master.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; sql-gateway.endpoint.rest.port.")
@click.pass_context
def sql_gateway(
    context: click.Context, properties: dict[str, str], master: str | None, port: int | None
) -> None:
    """Start Spark and a server that speaks the protocol of Flink's SQL gateway.

    Flink's SQL client connects with `sql-client.sh gateway --endpoint localhost:8083`, JDBC with
    `jdbc:flink://localhost:8083`. Anyone who can reach the gateway can run statements as the
    user who started it.
    """
    from headrace.config.options import gateway as options
    from headrace.config.options import rest

    configuration = load_configuration(properties, master=master)
    given = configuration.get(options.PORT) if port is None else port
    address = configuration.get(options.BIND_ADDRESS) or configuration.get(rest.BIND_ADDRESS)
    configuration = configuration.with_values(
        {rest.BIND_PORT.key: str(given), rest.BIND_ADDRESS.key: address, rest.PORT.key: str(given)}
    )
    with temporary_directory("session") as folder:
        code = serve(configuration, folder, has_gateway=True)
    context.exit(code)

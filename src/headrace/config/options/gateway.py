"""The SQL gateway: its port, its sessions, and when they end."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

PORT = (
    option("sql-gateway.endpoint.rest.port", int)
    .default(8083)
    .describe("The port of `headrace sql-gateway`. In a session, the gateway uses the port of the REST API.")
    .at_least(0)
    .at_most(65_535)
)
BIND_ADDRESS = (
    option("sql-gateway.endpoint.rest.bind-address", str)
    .no_default("`rest.bind-address`")
    .describe("The address that `headrace sql-gateway` listens on.")
)
IDLE_TIMEOUT = (
    option("sql-gateway.session.idle-timeout", timedelta)
    .default(timedelta(minutes=10))
    .describe("How long a session may be idle before it is closed and its queries are cancelled. 0: never.")
)
CHECK_INTERVAL = (
    option("sql-gateway.session.check-interval", timedelta)
    .default(timedelta(minutes=1))
    .describe("How often idle sessions are looked for. 0: never.")
)
MAX_SESSIONS = (
    option("sql-gateway.session.max-num", int)
    .default(10_000)
    .describe("How many sessions may be open; another one is refused. Flink's default is 1,000,000.")
    .at_least(1)
)
MAX_THREADS = (
    option("sql-gateway.worker.threads.max", int)
    .default(500)
    .describe(
        "How many statements may run, or have rows that were not fetched, at a time; another one is refused."
    )
    .at_least(1)
)

"""How a job runs, live or in epochs, and why."""

from __future__ import annotations

from headrace.config.options.exchange import ExchangeKind
from headrace.rest.context import RestContext
from headrace.rest.http import Body, Request
from headrace.rest.routing import Endpoint


class ExchangeBody(Body):
    kind: str
    #: What was set, or what headrace goes by where nothing is.
    reason: str
    #: Whether it is a stream without an end, which would run live elsewhere or with other options.
    could_be_live: bool


def exchange(context: RestContext, request: Request) -> ExchangeBody:
    choice = context.live(request).master.settings.exchange
    kind = ExchangeKind.PIPELINED if choice.is_live else ExchangeKind.BLOCKING
    return ExchangeBody(kind=kind.value, reason=choice.reason, could_be_live=choice.could_be_live)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/jobs/{jobid}/headrace/exchange",
        "Whether a job runs live (pipelined) or in epochs (blocking), and why.",
        exchange,
        ExchangeBody,
        is_archived=True,
    ),
)

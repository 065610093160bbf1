"""The configuration with the origin of each value, including options that are not set."""

from __future__ import annotations

from headrace.config.configuration import Configuration
from headrace.rest.context import RestContext
from headrace.rest.http import Body, Request
from headrace.rest.routing import Endpoint


class ConfigOrigin(Body):
    key: str
    #: Secrets are masked.
    value: str
    #: default, file, environment, cli or code.
    layer: str
    #: The file, variable or kind of code it was set in.
    place: str
    #: What weaker layers say, or why it has no effect.
    note: str


class ConfigOrigins(Body):
    options: list[ConfigOrigin]


def _origins(configuration: Configuration) -> ConfigOrigins:
    return ConfigOrigins(
        options=[
            ConfigOrigin(
                key=each.key,
                value=each.value,
                layer=each.layer.name.lower(),
                place=each.place,
                note=each.note,
            )
            for each in configuration.entries(defaults=True)
        ]
    )


def of_process(context: RestContext, request: Request) -> ConfigOrigins:
    return _origins(context.configuration)


def of_job(context: RestContext, request: Request) -> ConfigOrigins:
    return _origins(context.live(request).configuration)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/headrace/configuration",
        "All options of this process, and where each value came from. Not in Flink.",
        of_process,
        ConfigOrigins,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/headrace/configuration",
        "All options of a job, and where each value came from. Not in Flink.",
        of_job,
        ConfigOrigins,
        is_archived=True,
    ),
)

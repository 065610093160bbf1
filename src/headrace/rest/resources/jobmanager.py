"""The job manager: this process. Its options and environment."""

from __future__ import annotations

import platform
import sys

import msgspec

from headrace.rest.context import RestContext
from headrace.rest.http import Body, Request
from headrace.rest.resources.jobs import ConfigEntry
from headrace.rest.routing import Endpoint


class Machine(Body):
    version: str
    arch: str
    options: list[str]


class Environment(msgspec.Struct, frozen=True):
    """What runs here; Flink's name for it is kept, though it is Python."""

    jvm: Machine
    classpath: list[str]


class LogUrl(Body):
    url: str


def configuration(context: RestContext, request: Request) -> list[ConfigEntry]:
    return [ConfigEntry(key=entry.key, value=entry.value) for entry in context.configuration.entries()]


def environment(context: RestContext, request: Request) -> Environment:
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return Environment(
        jvm=Machine(
            version=version, arch=platform.machine(), options=[f"-{flag}" for flag in sys.warnoptions]
        ),
        classpath=list(sys.path),
    )


def job_environment(context: RestContext, request: Request) -> Environment:
    context.live(request)
    return environment(context, request)


def log_url(context: RestContext, request: Request) -> LogUrl:
    context.live(request)
    return LogUrl(url=f"{context.url}/jobmanager/log")


ENDPOINTS = (
    Endpoint("GET", "/jobmanager/config", "The options that are set.", configuration, list[ConfigEntry]),
    Endpoint("GET", "/jobmanager/environment", "What this process runs on.", environment, Environment),
    Endpoint(
        "GET",
        "/jobs/{jobid}/jobmanager/environment",
        "What the job's driver runs on.",
        job_environment,
        Environment,
    ),
    Endpoint("GET", "/jobs/{jobid}/jobmanager/log-url", "Where the job's log is.", log_url, LogUrl),
)

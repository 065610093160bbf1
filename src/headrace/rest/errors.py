"""Errors that are answers: an HTTP status, and the message in the body."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import (
    ClusterError,
    ConfigurationError,
    GatewayError,
    HeadraceError,
    JobDefinitionError,
    JobSubmissionError,
    UnknownJobError,
    UnsupportedFeatureError,
)


class RestError(Exception):
    """A request that is not answered.

    Args:
        status: The HTTP status.
        message: For the client.
        headers: Headers that go with the status.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def status_of(error: HeadraceError) -> int:
    """Say which status an error of the engine means."""
    if isinstance(error, UnknownJobError):
        return 404
    if isinstance(error, GatewayError):
        return 404 if error.is_missing else 400
    if isinstance(error, JobSubmissionError):
        return 409
    if isinstance(error, UnsupportedFeatureError):
        return 501
    if isinstance(error, ConfigurationError | JobDefinitionError):
        return 400
    if isinstance(error, ClusterError):
        return error.status or 502
    return 500

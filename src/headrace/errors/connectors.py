"""Errors of external systems, and of data that is not in its declared format."""

from __future__ import annotations

from headrace.errors.base import HeadraceError
from headrace.errors.describe import shorten


class ConnectorError(HeadraceError):
    """An external system refused a request or could not be reached.

    Cause:
        The system is down or unreachable, the address or credentials are wrong, access is denied, or a client library
        is not installed. Files that disappear or change while a job reads them raise it, too.

    Remedy:
        Check that the system runs and can be reached from the driver and from every worker, and check address and
        permissions. The job retries as its restart strategy allows.
    """

    domain = "external"
    retryable = True


class FormatError(ConnectorError):
    """A record cannot be read or written in the declared format.

    Cause:
        Data that is not valid JSON, CSV, Avro or text in the declared encoding, or that does not match the declared
        schema. The error carries an example. The same data fails again after a restart.

    Remedy:
        Correct the data or the schema, or let the format skip such records: `json.ignore-parse-errors` on a table,
        `ignore_parse_errors()` on the builder of a deserialization schema.

    Args:
        message: What the format expected.
        example: One offending piece of data; it is shortened.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        example: object = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.example = None if example is None else shorten(example)

    def _details(self) -> list[str]:
        return [] if self.example is None else [f"  data: {self.example}"]

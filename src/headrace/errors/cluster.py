"""Errors of a cluster that jobs are submitted to and managed on."""

from __future__ import annotations

from headrace.errors.base import HeadraceError


class JobSubmissionError(HeadraceError):
    """A job was rejected. Nothing of it has run.

    Cause:
        A job with the same id exists, or the process at this address runs a single program and accepts no other jobs.

    Remedy:
        Wait for the other job to end, or submit to a session that you start with `headrace session`.
    """

    domain = "user"


class UnknownJobError(HeadraceError):
    """No running or finished job has this id.

    Cause:
        The id is mistyped, belongs to another cluster, or the job ended so long ago that it has been forgotten.

    Remedy:
        Look at `headrace list -a`.
    """

    domain = "user"


class ClusterError(HeadraceError):
    """A cluster could not be reached, or refused a request.

    Cause:
        No process listens at the address, the token is missing or wrong, or the request is invalid. `status` is the
        HTTP status of the answer, None if there was none.

    Remedy:
        Check the address (`-m HOST:PORT`, `rest.address`, `rest.port`), the token, and the message of the answer.

    Args:
        message: What it said, or why it could not be asked.
        status: The HTTP status of its answer; None if it has not answered.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    domain = "external"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=status is None if retryable is None else retryable)
        self.status = status


class GatewayError(HeadraceError):
    """A client of the SQL gateway asked for something that does not exist, or that the gateway does not do.

    Cause:
        The session or the operation is unknown or closed, a token is out of order, or a call does not accept the
        statement.

    Remedy:
        The message names it. A session ends when its client closes it, and after `sql-gateway.session.idle-timeout`
        without a request: open a new one.

    Args:
        message: What was asked for, and what there is.
        is_missing: Whether the session or the operation does not exist.
        hint: What to do about it.
    """

    domain = "user"

    def __init__(self, message: str, *, is_missing: bool = False, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.is_missing = is_missing

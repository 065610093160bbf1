"""Why a row was emitted: what `headrace why` answers, for the page.

The answer comes from replaying recorded epochs, which runs functions of the job. That is done in a process of its own,
so that the job and this server do not notice.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import msgspec

from headrace.errors import UnknownJobError
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Request, SnakeBody
from headrace.rest.routing import Endpoint
from headrace.runtime.epoch.recording import recorded_epochs, recording_directory

_TIMEOUT_S = 120
_COMMAND = (sys.executable, "-c", "from headrace.cli.main import main; main()", "why")
_LONGEST_ERROR = 2_000


class WhyRequest(SnakeBody):
    """Which row to explain."""

    #: `row`: a row with this text in it; `key`: the last row of this key of a keyed operator.
    by: Literal["row", "key"]
    text: str
    #: Only rows of this epoch.
    epoch: int | None = None


class WhyState(SnakeBody):
    """What a step read or wrote of one entry of state."""

    state: str
    part: str | None
    before: str | None
    after: str | None
    is_written: bool


class WhyStep(SnakeBody):
    """A record, timer or window that an operator processed on the way to the row."""

    epoch: int
    operator: str
    subtask: int
    key: str | None
    kind: str
    what: str
    time: str | None
    state: list[WhyState]
    emits_row: bool


class WhyInput(SnakeBody):
    """A record that a source read."""

    epoch: int
    source: str
    subtask: int
    number: int
    record: str


class WhyUnknown(SnakeBody):
    """State that is older than the recording."""

    operator: str
    state: str
    key: str
    value: str
    version: int
    oldest_epoch: int


class WhyAnswer(SnakeBody):
    """Where the row was written, and what it was made of."""

    row: str
    sink: str
    subtask: int
    epoch: int
    matches: int
    steps: list[WhyStep]
    inputs: list[WhyInput]
    unknown: list[WhyUnknown]
    oldest_epoch: int
    differences: list[str]
    with_fields: list[str]
    is_upper_bound: bool


def why(context: RestContext, request: Request) -> WhyAnswer:
    question = request.read(WhyRequest)
    arguments = [f"--{question.by}", question.text]
    if question.epoch is not None:
        arguments += ["--epoch", str(question.epoch)]
    directory = _recording(context, request.params["jobid"])
    try:
        done = subprocess.run(  # noqa: S603 - our own command; what users say are arguments
            [*_COMMAND, directory, "--json", *arguments],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RestError(
            504, f"There was no answer within {_TIMEOUT_S} s. Use `headrace why {directory}` in a terminal."
        ) from None
    if done.returncode:
        error = done.stderr.decode(errors="replace").strip() or "the command has failed"
        raise RestError(404 if "no row" in error else 500, error[-_LONGEST_ERROR:])
    return msgspec.json.decode(done.stdout, type=WhyAnswer)


def _recording(context: RestContext, job_id: str) -> str:
    try:
        configuration = context.dispatcher.live(job_id).configuration
    except UnknownJobError:
        configuration = context.configuration
    directory = recording_directory(configuration, job_id)
    if directory is None or not recorded_epochs(directory):
        raise RestError(404, "No epochs of this job are recorded. Set headrace.replay.keep when you run it.")
    return directory


ENDPOINTS = (
    Endpoint(
        "POST",
        "/jobs/{jobid}/headrace/why",
        "Which input records and which state produced an output row, from recorded epochs.",
        why,
        WhyAnswer,
        body=WhyRequest,
        is_slow=True,
    ),
)

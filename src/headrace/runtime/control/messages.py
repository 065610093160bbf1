"""The messages of the control channel of a live job. Records never use it: they go through Spark.

    driver -> subtask    Feed, Lease, Recall, Trigger, CheckpointEnded, SampleStacks, Stop
    subtask -> driver    Hello, Running, Progress, Acknowledge, Drained, Output, Beat, SubtaskSamples, Failure, Goodbye

Each message is a msgspec struct; objects of connectors and users are bytes in it, pickled by the sender. Both ends
must have the same version of headrace: `Hello` contains the version of these messages, and any other is refused.
"""

from __future__ import annotations

import msgspec

from headrace.errors import ClusterError

#: Raised with every change that another version would not understand.
VERSION = 5


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The first message of a subtask, after it has shown that it knows the secret."""

    version: int
    vertex_id: str
    subtask: int
    host: str
    pid: int
    #: Which attempt at its region it belongs to.
    attempt: int = 0


class Running(msgspec.Struct, frozen=True, tag="running"):
    """The subtask's functions are open and its state is restored."""


class Feed(msgspec.Struct, frozen=True, tag="feed"):
    """What a source subtask is to read next: a pickled `SourceTaskPlan`."""

    plan: bytes


class Lease(msgspec.Struct, frozen=True, tag="lease"):
    """Splits that a source subtask is to read on its own, until the next trigger or recall.

    A pickled pair: a `SubtaskPlan` without slices, and the splits with their positions.
    """

    plan: bytes


class Recall(msgspec.Struct, frozen=True, tag="recall"):
    """Say how far the splits of the lease were read: there is something new to plan."""


class SubtaskProgress(msgspec.Struct, frozen=True, tag="progress"):
    """A source subtask has done what it was fed, or its lease is over."""

    #: A pickled mapping from split ids to `SplitProgress`.
    progress: bytes
    records: int
    has_ended: bool
    watermark: int | None
    is_idle: bool
    #: How long that took, with waiting for those who could not follow.
    took_s: float


class TriggerCheckpoint(msgspec.Struct, frozen=True, tag="trigger"):
    """Send a barrier: this span of the stream ends here."""

    epoch: int
    attempt: int
    #: Whether the subtask takes its snapshot at once, and what the barrier overtakes becomes part of it.
    overtakes: bool = False


class Acknowledge(msgspec.Struct, frozen=True, tag="acknowledge"):
    """The barrier has passed, and state is written."""

    epoch: int
    #: A pickled `SubtaskReport`.
    report: bytes
    #: When the first barrier arrived, ms since 1970; how long the last one took after that, and what then followed.
    first_ms: int = 0
    alignment_ms: int = 0
    sync_ms: int = 0
    #: Bytes that were processed from the first barrier to the last, and bytes that the barrier has overtaken.
    processed_bytes: int = 0
    persisted_bytes: int = 0
    #: Whether the barrier was allowed to overtake.
    is_unaligned: bool = False
    #: Whether more was read ahead than usually waits: sources pause until it is processed (`Drained`).
    is_backlogged: bool = False


class Drained(msgspec.Struct, frozen=True, tag="drained"):
    """What the subtask has read ahead for a checkpoint is processed."""

    epoch: int


class CheckpointEnded(msgspec.Struct, frozen=True, tag="checkpoint-ended"):
    """The checkpoint that an epoch ended with is complete, or was aborted."""

    epoch: int
    is_complete: bool


class SubtaskOutput(msgspec.Struct, frozen=True, tag="output"):
    """Output that waits for no checkpoint: pickled committables of an operator."""

    operator_id: str
    committables: bytes


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """The subtask is alive."""

    #: How the time since the last beat was spent, in ms.
    busy_ms: int = 0
    idle_ms: int = 0
    back_pressured_ms: int = 0
    #: Buffers and bytes that wait in the subtask to be processed, and how much of the room for them that is.
    waiting_buffers: int = 0
    waiting_bytes: int = 0
    pool_usage: float = 0.0
    #: The same of what waits to be taken by the next level.
    leaving_buffers: int = 0
    leaving_bytes: int = 0
    output_usage: float = 0.0


class SampleStacks(msgspec.Struct, frozen=True, tag="sample"):
    """Look so often where the loop is, for a flame graph; 0 to stop."""

    delay_s: float
    depth: int = 0


class SubtaskSamples(msgspec.Struct, frozen=True, tag="samples"):
    """Where the loop was found since the last time: a pickled mapping from `StackSample` to how often."""

    samples: bytes


class SubtaskFailure(msgspec.Struct, frozen=True, tag="failure"):
    """The subtask has failed. Sent before Spark knows: its own report may name a consequence first."""

    #: What the worker puts into Spark's exception, too.
    text: str


class StopSubtask(msgspec.Struct, frozen=True, tag="stop"):
    """Close, and end when the input has ended."""


class Goodbye(msgspec.Struct, frozen=True, tag="goodbye"):
    """The subtask has closed its functions."""


FromDriver = Feed | Lease | Recall | TriggerCheckpoint | CheckpointEnded | SampleStacks | StopSubtask
FromSubtask = (
    Hello
    | Running
    | SubtaskProgress
    | Acknowledge
    | Drained
    | SubtaskOutput
    | Beat
    | SubtaskSamples
    | SubtaskFailure
    | Goodbye
)
Message = FromDriver | FromSubtask

_decoder = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """Return a message as bytes."""
    return msgspec.msgpack.encode(message)


def decode(data: bytes) -> Message:
    """Read a message.

    Raises:
        ClusterError: If it is not valid.
    """
    try:
        message: Message = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise ClusterError(f"a message on the control channel cannot be read: {error}") from error
    return message

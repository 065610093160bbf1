"""Every exception headrace raises on purpose. This module imports nothing else from headrace.

    HeadraceError                       .domain  .retryable  .hint
    ├─ ConfigurationError               unknown key, invalid value, options that contradict each other
    ├─ JobDefinitionError               the program is wrong; found before anything runs
    │    ├─ InvalidTopologyError        the graph cannot be built or run
    │    ├─ TypeInferenceError          a type is missing or does not match
    │    ├─ StateDescriptorError        state is declared twice, or used where it cannot be
    │    └─ KeyTypeError                a key does not hash to the same value in every process
    ├─ SqlError                         .sql  .line  .column
    │    ├─ SqlParseError               the text is not a valid statement
    │    ├─ SqlValidationError          the statement refers to or combines things that do not match
    │    └─ CatalogError                a catalog object does not exist, or already exists
    ├─ UnsupportedFeatureError          Flink has it, headrace does not yet: .feature
    ├─ ConnectorError                   an external system refused a request or could not be reached
    │    └─ FormatError                 data that the format cannot read or write: .example
    ├─ JobExecutionError                .job  .operator  .subtask  .attempt
    │    ├─ UserFunctionError           .user_traceback  .record
    │    ├─ CheckpointError             .reason
    │    ├─ StateError                  state could not be read, written or restored
    │    │    ├─ DamagedStateError      a file of state or of a checkpoint is not what was written
    │    │    └─ StateTypeError         a value does not have the type its state declares
    │    │         └─ StateMigrationError   state was written under another declaration
    │    ├─ TaskLostError               a worker was lost together with its task
    │    ├─ NoResourceAvailableError    the job did not get the slots it needs
    │    ├─ DiskFullError               .directory  .needed  .free
    │    ├─ LeadershipError             another process leads the job
    │    └─ JobCancelledError           the job was cancelled
    ├─ JobSubmissionError               a job was rejected: its id is taken, or this process accepts no jobs
    ├─ UnknownJobError                  no job has this id
    ├─ ClusterError                     a cluster cannot be reached or refused a request: .status
    └─ InvariantViolation               a bug in headrace: .story

`domain` says who has to act ("user", "external", "internal"), `retryable` whether the same attempt may succeed later,
and `recovery` what a job does about the error. Schedulers read these attributes, never class names or texts. All errors
pickle with all attributes.

Each class says what it means in its first sentence, then under `Cause` and `Remedy` why it is raised and what to do.
`headrace.cli.error_docs` writes docs/errors.md from these.
"""

from __future__ import annotations

import reprlib
import traceback
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import PurePath
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

__all__ = [
    "CatalogError",
    "CheckpointError",
    "ClusterError",
    "ConfigurationError",
    "ConnectorError",
    "DamagedStateError",
    "DiskFullError",
    "Domain",
    "FormatError",
    "HeadraceError",
    "InvalidTopologyError",
    "InvariantViolation",
    "JobCancelledError",
    "JobDefinitionError",
    "JobExecutionError",
    "JobSubmissionError",
    "KeyTypeError",
    "LeadershipError",
    "NoResourceAvailableError",
    "RecoveryAction",
    "SqlError",
    "SqlParseError",
    "SqlValidationError",
    "StateDescriptorError",
    "StateError",
    "StateMigrationError",
    "StateTypeError",
    "TaskLostError",
    "TypeInferenceError",
    "UnknownJobError",
    "UnsupportedFeatureError",
    "UserFunctionError",
    "describe_function",
    "recovery_of",
    "shorten",
]

Domain = Literal["user", "external", "internal"]


class RecoveryAction(Enum):
    """What a running job does about an error."""

    #: The epoch runs again, with the same input, a few times; then the restart strategy decides.
    RUN_EPOCH_AGAIN = "run the epoch again"
    #: The job goes back to its newest checkpoint without damage at once, whatever the restart strategy.
    RESTORE = "restore"
    #: The restart strategy decides.
    ASK_STRATEGY = "ask the restart strategy"
    #: The job fails: another try with nothing changed would end in the same way.
    FAIL = "fail"
    #: The job ends as cancelled.
    CANCEL = "cancel"
    #: The job ends here, and continues in the process that leads it.
    HAND_OVER = "hand over"


def recovery_of(error: BaseException) -> RecoveryAction:
    """Return what a running job does about any error; those of others may go away with a restart."""
    if isinstance(error, HeadraceError):
        return error.recovery
    return RecoveryAction.ASK_STRATEGY if isinstance(error, Exception) else RecoveryAction.FAIL


class HeadraceError(Exception):
    """Base class of all errors that headrace raises.

    Cause:
        Never raised itself. Catch it to catch every error of headrace.

    Remedy:
        Read the message, and the hint on its last line. `domain` says who has to act: you (`user`), an external system
        (`external`) or headrace (`internal`).

    Args:
        message: Where it happened, what was expected, what came.
        hint: What to do about it; shown on a line of its own.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(HeadraceError("the tank is empty", hint="fill it"))
        the tank is empty
        hint: fill it
    """

    #: Who has to act: the author of the program, an external system, or headrace itself.
    domain: Domain = "internal"
    #: Whether trying again, with nothing changed, may succeed.
    retryable: bool = False
    #: Set where `retryable` does not say enough.
    _recovery: ClassVar[RecoveryAction | None] = None

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

    @property
    def recovery(self) -> RecoveryAction:
        """What a running job does about this error."""
        return self._recovery or (RecoveryAction.ASK_STRATEGY if self.retryable else RecoveryAction.FAIL)

    def _details(self) -> list[str]:
        """Lines shown between the message and the hint."""
        return []

    def __str__(self) -> str:
        lines = [self.message, *self._details()]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with `args` alone and lose keyword arguments. A cause travels only
        # if it is ours: a class of the user's might not be importable where the error is read.
        cause = self.__cause__
        if cause is self or not isinstance(cause, HeadraceError):
            cause = None
        return _restore, (type(self), self.args, dict(self.__dict__), cause)


def _restore(
    kind: type[HeadraceError], args: tuple[Any, ...], attributes: dict[str, Any], cause: HeadraceError | None
) -> HeadraceError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    if cause is not None:
        error.__cause__ = cause
    return error


class ConfigurationError(HeadraceError):
    """A configuration key is unknown, a value is invalid, or two options contradict each other.

    Cause:
        A misspelled key, a value that cannot be converted to the option's type or is out of range, or a combination of
        options that cannot work. Keys come from code, `SET`, `-D key=value`, environment variables and the
        configuration file.

    Remedy:
        Correct the key or value that the message names; it suggests the nearest known key. `headrace config`
        shows where each value comes from, and the configuration reference lists all keys.
    """

    domain = "user"


class JobDefinitionError(HeadraceError):
    """The program defines a job that cannot run. Nothing has been started.

    Cause:
        A call in the program has an argument it cannot work with, or calls are combined in a way that makes no valid
        job.

    Remedy:
        Correct the program at the line the message names.
    """

    domain = "user"


class InvalidTopologyError(JobDefinitionError):
    """The transformations do not form a graph that can run.

    Cause:
        The job has no sink, two operators have the same uid, an operator's parallelism exceeds its max parallelism, or
        an unbounded source is used in BATCH mode.

    Remedy:
        Follow the hint: add a sink, give each operator its own uid, or change the parallelism or the runtime mode.
    """


class TypeInferenceError(JobDefinitionError):
    """A type could not be inferred, or does not match.

    Cause:
        A function's result type is not declared where headrace needs it, a declared type has invalid parameters (such
        as a DECIMAL with 50 digits), or a value does not have the declared type.

    Remedy:
        Declare the type, for example with `output_type=Types.STRING()`, or correct the declaration.
    """


class StateDescriptorError(JobDefinitionError):
    """State is declared inconsistently, or used where it is not available.

    Cause:
        Keyed state is used on a stream that is not keyed, two descriptors share a name but not a type, or a window or
        trigger asks for a kind of state it cannot have.

    Remedy:
        Call `key_by()` before the operator, give each state its own name, or use the kind of state that the hint names.
    """


class KeyTypeError(JobDefinitionError):
    """A key does not hash to the same value in every process.

    Cause:
        The key is NaN, a list, a set or a dictionary, or an object that compares by identity. Records with equal keys
        would reach different subtasks.

    Remedy:
        Key by strings, numbers, dates or tuples of them. Filter out records without a usable key before `key_by()`.
    """


class SqlError(HeadraceError):
    """A SQL statement could not be understood or executed.

    Cause:
        See the more specific classes below. The message shows the statement with the place underlined.

    Remedy:
        Correct the statement at the underlined place.

    Args:
        message: What is wrong.
        sql: The statement, or the script it is part of.
        line: Line of the offending place, from 1.
        column: Column of the offending place, from 1.
        length: Number of characters to underline.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(SqlError("no such column: nam", sql="SELECT nam FROM t", line=1, column=8, length=3))
        no such column: nam
          1 | SELECT nam FROM t
                     ^^^
    """

    domain = "user"

    def __init__(
        self,
        message: str,
        *,
        sql: str | None = None,
        line: int | None = None,
        column: int | None = None,
        length: int = 1,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.sql = sql
        self.line = line
        self.column = column
        self.length = length

    def _details(self) -> list[str]:
        text = (self.sql or "").splitlines()
        if self.line is None:
            return []
        if not 1 <= self.line <= len(text):
            return [f"  at line {self.line}" + ("" if self.column is None else f", column {self.column}")]
        margin = f"  {self.line} | "
        shown = [margin + text[self.line - 1].replace("\t", " ")]
        if self.column is not None:
            # A place that goes on to the next line is underlined to the end of this one.
            room = max(len(text[self.line - 1]) - self.column + 1, 1)
            under = "^" * max(1, min(self.length, room))
            shown.append(" " * (len(margin) + max(self.column, 1) - 1) + under)
        return shown


class SqlParseError(SqlError):
    """The text is not a valid Flink SQL statement.

    Cause:
        A typing error, a missing keyword, comma or quote, or a reserved word used as a name.

    Remedy:
        Correct the statement at the underlined place. Put reserved words that are names into backquotes.
    """


class SqlValidationError(SqlError):
    """The statement parses, but names, types or clauses in it do not match.

    Cause:
        An unknown or ambiguous column, an argument of the wrong type, an aggregate where none is allowed, or a query
        that does not match the columns or the changelog mode of its sink.

    Remedy:
        Correct the statement at the underlined place; for unknown names the message lists those that exist.
    """


class CatalogError(SqlError):
    """A catalog, database, table, view, partition or function does not exist, or already exists.

    Cause:
        The name is misspelled or belongs to another catalog or database, or a CREATE statement uses a name that is
        taken.

    Remedy:
        Look at `SHOW TABLES`, `SHOW DATABASES` and `SHOW CATALOGS`. Use `IF EXISTS` and `IF NOT EXISTS` where both
        states are fine.
    """


class UnsupportedFeatureError(HeadraceError):
    """The program uses a feature of Flink that headrace does not have yet.

    Cause:
        The message names the feature. Headrace refuses it instead of ignoring it.

    Remedy:
        Use the alternative in the hint, if there is one, or leave the feature out.
    """

    domain = "user"

    def __init__(
        self,
        message: str,
        *,
        feature: str | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.feature = feature

    @classmethod
    def not_yet(cls, feature: str, way_round: str | None = None) -> Self:
        """Make the error for a feature of Flink that is still missing.

        Example:
            >>> print(UnsupportedFeatureError.not_yet("MATCH_RECOGNIZE", "write a KeyedProcessFunction"))
            MATCH_RECOGNIZE is not supported yet
            hint: write a KeyedProcessFunction
        """
        return cls(f"{feature} is not supported yet", feature=feature, hint=way_round)


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


class JobExecutionError(HeadraceError):
    """A running job failed.

    Cause:
        The first line says what happened; the lines below name the job, the operator and the subtask, and the chained
        exception is the cause.

    Remedy:
        Correct the cause. If the error is retryable, the restart strategy restarts the job from its last checkpoint.

    Args:
        message: What happened.
        job: Name of the job.
        operator: Name of the operator, as `explain` and the web UI show it.
        subtask: Index of the subtask, from 0.
        attempt: Number of the attempt, from 0.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(JobExecutionError("no space left", job="clicks", operator="sum", subtask=1))
        no space left
          in job 'clicks', operator 'sum', subtask 1
    """

    retryable = True
    #: The host and the executor where it happened; set by whoever hears of it from Spark.
    host: str | None = None
    executor: str | None = None
    #: What other subtasks failed with in the same failure of the job; set with these.
    concurrent: Sequence[JobExecutionError] = ()

    def __init__(
        self,
        message: str,
        *,
        job: str | None = None,
        operator: str | None = None,
        subtask: int | None = None,
        attempt: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.job = job
        self.operator = operator
        self.subtask = subtask
        self.attempt = attempt

    @property
    def location(self) -> str:
        """Where it happened, as far as known: `job 'a', operator 'b', subtask 0, attempt 1`."""
        named = (("job", self.job), ("operator", self.operator))
        counted = (("subtask", self.subtask), ("attempt", self.attempt))
        parts = [f"{what} '{name}'" for what, name in named if name is not None]
        parts += [f"{what} {number}" for what, number in counted if number is not None]
        return ", ".join(parts)

    def _details(self) -> list[str]:
        return [f"  in {self.location}"] if self.location else []


class UserFunctionError(JobExecutionError):
    """A function of your program raised an exception.

    Cause:
        The traceback of your function comes first, followed by the operator and the record it was called with.

    Remedy:
        Correct the function, or make it handle the record shown. The restart strategy restarts the job meanwhile, which
        helps only if the failure was temporary.

    Args:
        message: One line: the type and text of what was raised.
        user_traceback: The formatted traceback, without headrace's frames.
        record: The element the function was called with; kept as a shortened repr.
        job: Name of the job.
        operator: Name of the operator that holds the function.
        subtask: Index of the subtask, from 0.
        attempt: Number of the attempt, from 0.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    domain = "user"

    def __init__(
        self,
        message: str,
        *,
        user_traceback: str = "",
        record: object = None,
        job: str | None = None,
        operator: str | None = None,
        subtask: int | None = None,
        attempt: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(
            message,
            job=job,
            operator=operator,
            subtask=subtask,
            attempt=attempt,
            hint=hint,
            retryable=retryable,
        )
        self.user_traceback = user_traceback
        self.record = None if record is None else shorten(record)

    @classmethod
    def from_exception(
        cls,
        error: BaseException,
        *,
        record: object = None,
        job: str | None = None,
        operator: str | None = None,
        subtask: int | None = None,
        attempt: int | None = None,
    ) -> UserFunctionError:
        """Wrap what a user's function raised; raise the result `from error`.

        An error that is wrapped already comes back unchanged: of chained operators the innermost knows best.
        """
        if isinstance(error, UserFunctionError):
            return error
        return cls(
            "".join(traceback.format_exception_only(error)).strip(),
            user_traceback=_format_user_traceback(error),
            record=record,
            job=job,
            operator=operator,
            subtask=subtask,
            attempt=attempt,
        )

    def __str__(self) -> str:
        lines = [self.user_traceback.rstrip() or self.message, *self._details()]
        if self.record is not None:
            lines.append(f"  record: {self.record}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def _format_user_traceback(error: BaseException) -> str:
    """Format a traceback from the first frame that is not headrace's own."""
    first: TracebackType | None = error.__traceback__
    while first is not None and _is_ours(first):
        first = first.tb_next
    return "".join(traceback.format_exception(type(error), error, first or error.__traceback__))


def _is_ours(entry: TracebackType) -> bool:
    module = str(entry.tb_frame.f_globals.get("__name__", ""))
    return module == "headrace" or module.startswith("headrace.")


class CheckpointError(JobExecutionError):
    """A checkpoint or savepoint failed.

    Cause:
        The checkpoint exceeded its timeout, its storage failed, or a task could not write its part. `reason` is one of
        the failure reasons listed at the end of the errors reference.

    Remedy:
        Check the checkpoint directory and its free space, or raise `execution.checkpointing.timeout`. The job continues
        until more consecutive checkpoints fail than `execution.checkpointing.tolerable-failed-checkpoints` allows.

    Args:
        message: What happened.
        reason: The name of the failure reason, from the closed set of the checkpoint coordinator.
        job: Name of the job.
        operator: Name of the operator that could not take part, if it was one.
        subtask: Index of the subtask, from 0.
        attempt: Number of the attempt, from 0.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        job: str | None = None,
        operator: str | None = None,
        subtask: int | None = None,
        attempt: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(
            message,
            job=job,
            operator=operator,
            subtask=subtask,
            attempt=attempt,
            hint=hint,
            retryable=retryable,
        )
        self.reason = reason

    def _details(self) -> list[str]:
        return [*super()._details(), *([f"  reason: {self.reason}"] if self.reason else [])]


class StateError(JobExecutionError):
    """State could not be read, written or restored.

    Cause:
        A checkpoint or savepoint is damaged or missing, the program no longer has an operator whose state is in it, or
        the max parallelism has changed.

    Remedy:
        Give operators the uid they had, or start with `--allow-non-restored-state` to discard their state. If a
        snapshot is damaged, restore an earlier one with `headrace run -s`.
    """


class DamagedStateError(StateError):
    """A file that a job is restored from was damaged or lost after it was written.

    Cause:
        The file was changed, truncated or deleted: by a disk or network fault, or by someone. Its checksum or size does
        not match. Reading it again does not help.

    Remedy:
        None while an older checkpoint is complete: the job is restored from it. Otherwise the job fails; restore the
        file from a backup, or start the job from a savepoint as the hint says.
    """

    domain = "external"
    retryable = False
    _recovery = RecoveryAction.RESTORE


class StateTypeError(StateError):
    """A value does not have the type its state declares.

    Cause:
        The program stores a value in a state whose descriptor declares another type.

    Remedy:
        Store a value of the declared type, or declare the type that the values have.
    """

    domain = "user"


class StateMigrationError(StateTypeError):
    """State was written with another kind or type than the program declares now.

    Cause:
        A descriptor has changed in a way that cannot be migrated, for example from a string to a number. Nothing has
        been modified.

    Remedy:
        Declare the state as it was, or give the new state another name. To convert the values, rewrite the savepoint
        with `headrace.state_processor`.
    """

    retryable = False


class TaskLostError(JobExecutionError):
    """A worker, executor or host was lost together with the task that ran there.

    Cause:
        The host or executor went down, the system killed a worker that used too much memory, or a worker process
        crashed.

    Remedy:
        None for a single loss: headrace runs the epoch again. If it repeats, look at the executor's log and its memory.
    """

    domain = "external"
    _recovery = RecoveryAction.RUN_EPOCH_AGAIN


class NoResourceAvailableError(JobExecutionError):
    """The job did not get the slots it needs in time.

    Cause:
        The cluster has fewer free cores than the job's parallelism needs, or executors have not started yet.

    Remedy:
        Add executors, lower the parallelism, or stop another job. `slot.request.timeout` sets how long a job waits.
    """

    domain = "external"


class DiskFullError(JobExecutionError):
    """A file system has no space left for something that headrace has to write.

    Cause:
        The disk or the memory file system in the message is full, out of inodes, or the user's quota on it is used up.
        Nothing that was written before is lost: checkpoints stay valid, and unfinished files are removed.

    Remedy:
        Free space in the directory that the message names, or set the option in its hint to a directory on a larger
        disk. Then start the job again; a restart strategy also tries again by itself. `headrace doctor` shows the space
        on this host, and what jobs that were killed have left.

    Args:
        message: What could not be written, where, and on which host.
        directory: Where it was to be written.
        needed: How many bytes it would have taken, if that is known.
        free: How many bytes there are, if that is known.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    domain = "external"

    def __init__(
        self,
        message: str,
        *,
        directory: str | None = None,
        needed: int | None = None,
        free: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.directory = directory
        self.needed = needed
        self.free = free


class LeadershipError(JobExecutionError):
    """Another process leads the job, or may have taken it over.

    Cause:
        Two drivers have the same `high-availability.cluster-id`, or this one could not renew its lease in time. It has
        stopped writing, so nothing is published twice.

    Remedy:
        Look at the process that leads: the job continues there. Jobs that have nothing to do with each other need
        different cluster ids.
    """

    domain = "external"
    retryable = False
    _recovery = RecoveryAction.HAND_OVER


class JobCancelledError(JobExecutionError):
    """The job was cancelled; raised where its result is awaited.

    Cause:
        `headrace cancel`, the web UI, `JobClient.cancel()`, or Ctrl-C.

    Remedy:
        None: someone asked for it.
    """

    domain = "user"
    retryable = False
    _recovery = RecoveryAction.CANCEL


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


class InvariantViolation(HeadraceError):
    """Headrace reached a state it should never be in. This is a bug in headrace.

    Cause:
        A mistake in headrace, not in your program. `story` lists what happened before.

    Remedy:
        Report it with the whole message. Restarting the job from its last checkpoint usually lets it continue.

    Args:
        message: Which invariant does not hold.
        story: The last transitions of the thing concerned, oldest first.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(InvariantViolation("finished twice", story=["CREATED -> RUNNING", "RUNNING -> FINISHED"]))
        finished twice
          story: CREATED -> RUNNING
                 RUNNING -> FINISHED
    """

    def __init__(
        self,
        message: str,
        *,
        story: Iterable[object] = (),
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.story = tuple(str(event) for event in story)

    def _details(self) -> list[str]:
        leads = ["  story: ", *["         "] * len(self.story)]
        return [lead + event for lead, event in zip(leads, self.story, strict=False)]


_SHORT = reprlib.Repr()
_SHORT.maxlevel = 4
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxarray = _SHORT.maxdict = _SHORT.maxset = 20
_SHORT.maxfrozenset = _SHORT.maxdeque = 20
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200


def shorten(value: object, limit: int = 300) -> str:
    """Describe any value in at most `limit` characters, whatever its own `repr` does.

    Example:
        >>> shorten("x" * 1000, limit=20)
        "'xxxxxxx...xxxxxxx'"
    """
    text = _SHORT.repr(value)
    if len(text) <= limit:
        return text
    tail = (limit - 4) // 2
    return f"{text[: limit - 4 - tail]}...{text[len(text) - tail :]}"


def describe_function(function: Callable[..., Any] | object) -> str:
    """Name a user's function, or object with functions, so that its author finds it.

    Example:
        >>> describe_function(len)
        'len'
        >>> describe_function({}.get).startswith("dict.get")
        True
    """
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if code is None:
        return str(name)
    place = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"
    if code.co_name == "<lambda>":
        return f"<lambda at {place}>"
    return f"{name} at {place}"

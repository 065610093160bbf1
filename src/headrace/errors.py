"""Every exception headrace raises on purpose. This module imports nothing of headrace.

    HeadraceError                       .domain  .retryable  .hint
    ├─ ConfigurationError               unknown key, bad value, options that contradict each other
    ├─ JobDefinitionError               the program is wrong; found before anything runs
    │    ├─ InvalidTopologyError        the graph cannot be built or run
    │    ├─ TypeInferenceError          a type is missing, or does not fit
    │    ├─ StateDescriptorError        a state is declared twice, or differently
    │    └─ KeyTypeError                a key cannot be hashed or ordered the same way everywhere
    ├─ SqlError                         .sql  .line  .column
    │    ├─ SqlParseError               the text is no statement
    │    ├─ SqlValidationError          the statement names or combines what it may not
    │    └─ CatalogError                a catalog, database, table or function is missing or in the way
    ├─ UnsupportedFeatureError          Flink has it, headrace does not yet: .feature
    ├─ ConnectorError                   an external system refused or was away
    │    └─ FormatError                 bytes that are not what the format says: .example
    ├─ JobExecutionError                .job  .operator  .subtask  .attempt
    │    ├─ UserFunctionError           .user_traceback  .record
    │    ├─ CheckpointError             .reason
    │    ├─ StateError                  state could not be read, written or restored
    │    │    └─ StateTypeError         a value is not of the type its state declares
    │    │         └─ StateMigrationError   state was written under another declaration
    │    ├─ TaskLostError               a worker went away with its task
    │    ├─ NoResourceAvailableError    the slots a job needs are not there
    │    ├─ LeadershipError             another process leads the job
    │    └─ JobCancelledError           somebody cancelled the job
    ├─ JobSubmissionError               a job cannot be taken in: its id is taken, or nobody takes jobs here
    ├─ UnknownJobError                  there is no job with this id
    ├─ ClusterError                     a cluster cannot be reached, or refuses: .status
    └─ InvariantViolation               our bug: .story

`domain` says whose turn it is ("user", "external", "internal") and `retryable` whether the same attempt may
succeed later. Schedulers read these two, never class names or texts. All errors pickle with all attributes.
"""

from __future__ import annotations

import reprlib
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from types import TracebackType
from typing import Any, Literal, Self

__all__ = [
    "CatalogError",
    "CheckpointError",
    "ClusterError",
    "ConfigurationError",
    "ConnectorError",
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
    "shorten",
]

Domain = Literal["user", "external", "internal"]


class HeadraceError(Exception):
    """Base of all errors headrace raises.

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

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

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
    """A key is unknown, a value cannot be read, or options contradict. Correct the configuration."""

    domain = "user"


class JobDefinitionError(HeadraceError):
    """The program is wrong and was refused before anything ran. Correct the program."""

    domain = "user"


class InvalidTopologyError(JobDefinitionError):
    """The transformations do not make a graph that can run: no sink, a loop, parallelisms that do not fit."""


class TypeInferenceError(JobDefinitionError):
    """A type could not be found out or does not fit. Declare it, for instance with `output_type=`."""


class StateDescriptorError(JobDefinitionError):
    """State is used against its descriptor: no name, two types under one name, not on a keyed stream."""


class KeyTypeError(JobDefinitionError):
    """A key does not hash alike in every process. Key by strings, numbers, or tuples of them."""


class SqlError(HeadraceError):
    """A statement could not be understood or carried out. Correct the statement.

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
    """The text is not a statement of Flink SQL."""


class SqlValidationError(SqlError):
    """The statement reads well but names, types or clauses in it do not fit."""


class CatalogError(SqlError):
    """A catalog, database, table, view, partition or function is missing, or is already there."""


class UnsupportedFeatureError(HeadraceError):
    """Flink can do it and headrace cannot yet. The message names the feature, the hint a way round."""

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
    """A system outside refused or could not be reached. See that it runs; check address and rights."""

    domain = "external"
    retryable = True


class FormatError(ConnectorError):
    """Data that its format cannot read or write. The same data will fail again: skip it or change the format.

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
    """A running job failed. Look at the first line and the cause; the restart strategy decides what follows.

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
    """A function of the user's program raised. Its own traceback comes first; correct the function.

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
    """A checkpoint or savepoint failed. The job goes on while `tolerable-failed-checkpoints` allows it.

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
    """State could not be read, written or restored. If a snapshot is damaged, start from the one before."""


class StateTypeError(StateError):
    """A value is not of the type its state declares. Correct the value, or declare the type it has."""

    domain = "user"


class StateMigrationError(StateTypeError):
    """State was written as another kind or type than the program declares now. Declare it as it was, or rename it.

    Nothing was changed by the attempt. To convert values, rewrite the savepoint with `headrace.state_processor`.
    """


class TaskLostError(JobExecutionError):
    """A worker, executor or host went away. The epoch runs again; look at the cluster if it repeats."""

    domain = "external"


class NoResourceAvailableError(JobExecutionError):
    """The slots a job needs did not come in time. Give it more executors, or a lower parallelism."""

    domain = "external"


class LeadershipError(JobExecutionError):
    """Another process leads, or may by now. Nothing is written any more here; look at the one that leads."""

    domain = "external"
    retryable = False


class JobCancelledError(JobExecutionError):
    """The job was cancelled; whoever waited for its result gets this."""

    domain = "user"
    retryable = False


class JobSubmissionError(HeadraceError):
    """A job was not taken in: another one has its id, or the cluster takes none. Nothing of it has run."""

    domain = "user"


class UnknownJobError(HeadraceError):
    """There is no job with this id, running or remembered. `headrace list -a` shows those there are."""

    domain = "user"


class ClusterError(HeadraceError):
    """A cluster could not be reached, or has refused a request. Check its address, and the token.

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
    """Headrace did what it should never do: our bug. Report it with the whole message.

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

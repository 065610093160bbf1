"""Errors in a program or its configuration, found before anything runs."""

from __future__ import annotations

from typing import Self

from headrace.errors.base import HeadraceError


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


class UnsupportedFeatureError(HeadraceError):
    """The program uses a feature of Flink that headrace does not have yet.

    Cause:
        The message names the feature. Headrace refuses it instead of ignoring it.

    Remedy:
        Use the alternative in the hint, if there is one, or leave the feature out.

    Example:
        >>> print(UnsupportedFeatureError.not_yet("TABLESAMPLE", "filter the rows with RAND()"))
        TABLESAMPLE is not supported yet
        hint: filter the rows with RAND()
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
        """Make the error for a feature of Flink that is still missing."""
        return cls(f"{feature} is not supported yet", feature=feature, hint=way_round)

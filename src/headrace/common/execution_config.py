"""PyFlink's `ExecutionConfig`: setters for how a job runs, each a face of one configuration key.

It holds nothing itself. Everything is in the configuration it was given, so whatever is set here is also
seen by key, and the other way round.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Self, TypeVar

from headrace.common._older_names import OlderMethods
from headrace.common.configuration import Configuration
from headrace.config.option import ConfigOption
from headrace.config.options import checkpointing, execution, metrics

__all__ = ["ExecutionConfig"]

T = TypeVar("T")


class ExecutionConfig(OlderMethods):
    """How a job runs.

    Args:
        configuration: Where the settings are kept; a new one if None.

    Example:
        >>> config = ExecutionConfig()
        >>> config.set_parallelism(4).enable_object_reuse().get_parallelism()
        4
    """

    #: Leaves the parallelism to the configuration.
    PARALLELISM_DEFAULT: ClassVar[int] = -1
    #: Says that the parallelism is not known yet.
    PARALLELISM_UNKNOWN: ClassVar[int] = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def _set(self, option: ConfigOption[T], value: T) -> Self:
        self._configuration.set(option, value)
        return self

    def _set_millis(self, option: ConfigOption[timedelta], millis: int) -> Self:
        return self._set(option, timedelta(milliseconds=millis))

    def _get_millis(self, option: ConfigOption[timedelta]) -> int:
        return self._configuration.get(option) // timedelta(milliseconds=1)

    def enable_closure_cleaner(self) -> Self:
        """Accepted; functions are pickled by value and need no cleaning."""
        return self._set(execution.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> Self:
        """Accepted; functions are pickled by value and need no cleaning."""
        return self._set(execution.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """Whether closures would be cleaned."""
        return self._configuration.get(execution.CLOSURE_CLEANER) != "NONE"

    def set_auto_watermark_interval(self, interval: int) -> Self:
        """Set how often periodic watermarks are emitted, in milliseconds; 0 turns them off."""
        return self._set_millis(execution.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        """Return how often periodic watermarks are emitted, in milliseconds."""
        return self._get_millis(execution.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> Self:
        """Set how often sources send latency markers, in milliseconds; 0 turns them off."""
        return self._set_millis(metrics.LATENCY_INTERVAL, interval)

    def get_latency_tracking_interval(self) -> int:
        """Return how often sources send latency markers, in milliseconds."""
        return self._get_millis(metrics.LATENCY_INTERVAL)

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that set none, or PARALLELISM_DEFAULT if it is not set."""
        parallelism = self._configuration.get(execution.PARALLELISM)
        return self.PARALLELISM_DEFAULT if parallelism is None else parallelism

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the parallelism of operators that set none; PARALLELISM_DEFAULT leaves it open again."""
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(execution.PARALLELISM.key)
            return self
        return self._set(execution.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups, or -1 if it is not set."""
        return self._configuration.get(execution.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups: the highest parallelism the job can be rescaled to."""
        return self._set(execution.MAX_PARALLELISM, max_parallelism)

    def get_task_cancellation_interval(self) -> int:
        """Return the time between two tries to cancel a task, in milliseconds."""
        return self._get_millis(execution.TASK_CANCELLATION_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> Self:
        """Set the time between two tries to cancel a task, in milliseconds."""
        return self._set_millis(execution.TASK_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_timeout(self) -> int:
        """Return how long a cancelled task may take to end, in milliseconds."""
        return self._get_millis(execution.TASK_CANCELLATION_TIMEOUT)

    def set_task_cancellation_timeout(self, timeout: int) -> Self:
        """Set how long a cancelled task may take to end, in milliseconds; 0 waits forever.

        Raises:
            ValueError: If it is negative.
        """
        if timeout < 0:
            raise ValueError(f"timeout must be >= 0; got {timeout}")
        return self._set_millis(execution.TASK_CANCELLATION_TIMEOUT, timeout)

    def enable_force_kryo(self) -> Self:
        """Accepted without effect: there are no Java objects to serialize."""
        return self._set(execution.FORCE_KRYO, True)

    def disable_force_kryo(self) -> Self:
        """Accepted without effect: there are no Java objects to serialize."""
        return self._set(execution.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """Whether it was enabled."""
        return self._configuration.get(execution.FORCE_KRYO)

    def enable_generic_types(self) -> Self:
        """Allow values without a declared type; they are pickled. This is the default."""
        return self._set(execution.GENERIC_TYPES, True)

    def disable_generic_types(self) -> Self:
        """Refuse programs in which a type is not declared."""
        return self._set(execution.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Whether every type must be declared."""
        return not self._configuration.get(execution.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> Self:
        """Give operators without a uid one from their place in the graph. This is the default."""
        return self._set(execution.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> Self:
        """Refuse programs with an operator without a uid."""
        return self._set(execution.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators may go without a uid."""
        return self._configuration.get(execution.AUTO_GENERATE_UIDS)

    def enable_force_avro(self) -> Self:
        """Accepted without effect: there are no Java objects to serialize."""
        return self._set(execution.FORCE_AVRO, True)

    def disable_force_avro(self) -> Self:
        """Accepted without effect: there are no Java objects to serialize."""
        return self._set(execution.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """Whether it was enabled."""
        return self._configuration.get(execution.FORCE_AVRO)

    def enable_object_reuse(self) -> Self:
        """Promise that functions neither keep nor change what they were given."""
        return self._set(execution.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> Self:
        """Take the promise back. This is the default."""
        return self._set(execution.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether functions neither keep nor change what they were given."""
        return self._configuration.get(execution.OBJECT_REUSE)

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the names and values every function can read."""
        return self._configuration.get(execution.GLOBAL_JOB_PARAMETERS)

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, str]) -> Self:
        """Set names and values that every function can read from its runtime context."""
        return self._set(execution.GLOBAL_JOB_PARAMETERS, global_job_parameters_dict)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return nothing: there are no Java objects to serialize."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return nothing: there are no Java objects to serialize."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return nothing: there are no Java objects to serialize."""
        return []

    def is_use_snapshot_compression(self) -> bool:
        """Whether snapshots of state are compressed."""
        return self._configuration.get(checkpointing.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> Self:
        """Set whether snapshots of state are compressed."""
        return self._set(checkpointing.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionConfig):
            return NotImplemented
        return self._configuration == other._configuration

    def __hash__(self) -> int:
        # By content, as in PyFlink: one that is changed later is not found again.
        return hash(self._configuration)

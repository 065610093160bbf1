"""What a function says about a state before it uses it: name, kind, type, time to live.

A descriptor is pickled with the function that holds it, or made in ``open``. The name finds the state again
after a restart, so it must stay the same from version to version of a program.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from headrace.common.typeinfo import TypeInformation
from headrace.errors import StateDescriptorError, shorten
from headrace.state.ttl_config import StateTtlConfig

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "StateKind",
    "StateTtlConfig",
    "ValueStateDescriptor",
]

StateKind = Literal["value", "list", "map", "reducing", "aggregating"]

_AGGREGATE_METHODS = ("create_accumulator", "add", "get_result", "merge")


class StateDescriptor(ABC):
    """Base of the five descriptors. Two are equal when they have the same kind and name.

    Args:
        name: Unique among the states of one operator.
        type_info: Type of what is stored; None stores any object that can be pickled.

    Raises:
        StateDescriptorError: The name is empty or no string, or the type is not a type information.
    """

    kind: ClassVar[StateKind]

    def __init__(self, name: str, type_info: TypeInformation | None) -> None:
        self.name = self._checked_name(name)
        #: The type of one stored value: of an element for a list, of the values for a map.
        self.type_info = self._checked_type(type_info)
        #: When entries end; None for never.
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """Return the name by which the state is restored."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let entries end some time after they were last written (or read).

        Raises:
            StateDescriptorError: If this is no StateTtlConfig.
        """
        if not isinstance(ttl_config, StateTtlConfig):
            raise StateDescriptorError(
                f"state '{self.name}': the time to live must be a StateTtlConfig, got {shorten(ttl_config)}",
                hint="build one with StateTtlConfig.new_builder(Time.hours(1)).build()",
            )
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def _checked_name(self, name: Any) -> str:
        if isinstance(name, str) and name.strip():
            return name
        raise StateDescriptorError(
            f"{type(self).__name__}: expected a name, got {shorten(name)}",
            hint="state is restored by its name; choose a short name that will not change, such as 'last-seen'",
        )

    def _checked_type(self, type_info: TypeInformation | None) -> TypeInformation | None:
        if type_info is None or isinstance(type_info, TypeInformation):
            return type_info
        raise StateDescriptorError(
            f"{type(self).__name__} '{self.name}': expected a type, got {shorten(type_info)}",
            hint="use one of Types, such as Types.LONG(), or None to pickle the values",
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateDescriptor):
            return NotImplemented
        return type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info!r})"


class ValueStateDescriptor(StateDescriptor):
    """One value per key.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> ValueStateDescriptor("last-seen", Types.LONG()).get_name()
        'last-seen'
    """

    kind = "value"

    def __init__(self, name: str, value_type_info: TypeInformation | None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """A list per key; the type is that of an element."""

    kind = "list"

    def __init__(self, name: str, elem_type_info: TypeInformation | None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor):
    """A map per key, or, given to `broadcast`, one map for a whole operator."""

    kind = "map"

    def __init__(
        self, name: str, key_type_info: TypeInformation | None, value_type_info: TypeInformation | None
    ) -> None:
        super().__init__(name, value_type_info)
        #: The type of the map's keys.
        self.key_type_info = self._checked_type(key_type_info)


class _ReduceCall:
    """A plain callable in the shape of a ReduceFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.reduce = function


class ReducingStateDescriptor(StateDescriptor):
    """One value per key, into which every added element is reduced.

    Args:
        name: Unique among the states of one operator.
        reduce_function: A ReduceFunction, or a callable that combines two values into one.
        type_info: Type of the elements.

    Raises:
        StateDescriptorError: If the function is neither, or the name or type is wrong.
    """

    kind = "reducing"

    def __init__(self, name: str, reduce_function: Any, type_info: TypeInformation | None) -> None:
        super().__init__(name, type_info)
        if not callable(getattr(reduce_function, "reduce", None)):
            if not callable(reduce_function):
                raise StateDescriptorError(
                    f"state '{name}': expected a ReduceFunction or a callable of two values, "
                    f"got {shorten(reduce_function)}"
                )
            reduce_function = _ReduceCall(reduce_function)
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        """Return the function, as an object with ``reduce(value1, value2)``."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """One accumulator per key, to which every added element is added.

    Args:
        name: Unique among the states of one operator.
        agg_function: An AggregateFunction.
        state_type_info: Type of the accumulator.

    Raises:
        StateDescriptorError: If the function is not callable, or the name or type is wrong.
    """

    kind = "aggregating"

    def __init__(self, name: str, agg_function: Any, state_type_info: TypeInformation | None) -> None:
        super().__init__(name, state_type_info)
        missing = [each for each in _AGGREGATE_METHODS if not callable(getattr(agg_function, each, None))]
        if missing or isinstance(agg_function, type):
            raise StateDescriptorError(
                f"state '{name}': expected an AggregateFunction, got {shorten(agg_function)}",
                hint="pass an instance of a subclass of AggregateFunction",
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> Any:
        """Return the function that aggregates the added values."""
        return self._agg_function

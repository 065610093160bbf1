"""Streams cut into windows.

    keyed.window(assigner)[.trigger()][.evictor()][.allowed_lateness()][.side_output_late_data()]
         .reduce() | .aggregate() | .apply() | .process() | .sum() | ...
    stream.window_all(assigner) ...                                            the same without a key

Nothing runs here: each call ends in one declaration of an operator. Evictors come from Flink; PyFlink does not have
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from headrace.common.typeinfo import TypeInformation
from headrace.datastream import rolling
from headrace.datastream._checks import check_function, check_type
from headrace.datastream._window_checks import check_assigner, check_instance, check_lateness, check_trigger
from headrace.datastream._window_functions import Around, wrapped
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    NullByteKeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from headrace.datastream.keyed_stream import KeyedStream
from headrace.datastream.output_tag import OutputTag
from headrace.errors import JobDefinitionError, describe_function
from headrace.graph.partitioning import Global
from headrace.operators.window.declaration import WindowComputation, WindowDeclaration
from headrace.windowing.assigners import WindowAssigner
from headrace.windowing.checks import Amount
from headrace.windowing.evictors import Evictor
from headrace.windowing.trigger import Trigger

if TYPE_CHECKING:
    from headrace.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["AllWindowedStream", "WindowedStream"]


class _Windowed(rolling.FieldAggregations):
    """What windows of keyed streams and of streams without a key have in common."""

    #: How a plain callable is called by `apply` and `process`.
    _apply_arguments: ClassVar[tuple[str, ...]]
    _process_arguments: ClassVar[tuple[str, ...]]
    _apply_class: ClassVar[type[Function]]
    _process_class: ClassVar[type[Function]]
    _is_all: ClassVar[bool]

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._assigner = check_assigner(window_assigner)
        self._trigger: Trigger[Any, Any] = self._assigner.get_default_trigger(stream._environment)
        self._evictor: Evictor | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation | None:
        """Return the declared type of the records; None if none was declared."""
        return self._stream.get_type()

    # ---------------------------------------------------------------------------------- settings

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows fire, instead of the assigner's own trigger.

        Raises:
            JobDefinitionError: It is not a trigger, or cannot merge while windows do.
        """
        self._trigger = check_trigger(trigger, self._assigner)
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Leave records out when a window fires. Windows then keep all their records until they are removed."""
        self._evictor = check_instance("evictor", evictor, Evictor, "CountEvictor.of(10)")
        return self

    def allowed_lateness(self, time_ms: int | Amount) -> Self:
        """Keep windows of event time for late records after they have fired; each of those fires again.

        Args:
            time_ms: How long, counted by the watermark from the window's end: ms, a Time, Duration or timedelta.

        Raises:
            JobDefinitionError: It is negative.
        """
        self._allowed_lateness_ms = check_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Emit records that are too late for all their windows under a tag, instead of dropping them.

        Args:
            output_tag: To be given to ``get_side_output`` of the stream of results.
        """
        self._late_tag = check_instance("side_output_late_data", output_tag, OutputTag, 'OutputTag("late")')
        return self

    # -------------------------------------------------------------------------------- computations

    def reduce(
        self,
        reduce_function: Any,
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Combine the records of a window, one after the other as they come.

        Args:
            reduce_function: A callable of the value reduced so far and a record, or a ReduceFunction.
            window_function: Gets the reduced value when the window fires; without it, that is the result.
            output_type: Type of the results; without a window function, that of the records.
        """
        check_function("reduce", reduce_function, ReduceFunction, arguments=("value1", "value2"))
        self._check_window_function("reduce", window_function)
        result_type = check_type("reduce", output_type)
        if result_type is None and window_function is None:
            result_type = self.get_input_type()
        return self._compute("reduce", reduce_function, window_function, result_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Add the records of a window up as they come.

        Args:
            aggregate_function: The aggregation. Windows that merge need its ``merge``.
            window_function: Gets the result when the window fires; without it, that is what is emitted.
            accumulator_type: Type of the accumulator. Accumulators are pickled, whatever it is.
            output_type: Type of what is emitted.
        """
        check_function("aggregate", aggregate_function, AggregateFunction)
        self._check_window_function("aggregate", window_function)
        check_type("aggregate", accumulator_type)
        result_type = check_type("aggregate", output_type)
        return self._compute("aggregate", aggregate_function, window_function, result_type)

    def apply(self, window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Give all records of a window to a function when the window fires.

        Args:
            window_function: A WindowFunction, or a callable of the key, the window and its records. On a stream
                without a key an AllWindowFunction, or a callable of the window and its records.
            output_type: Type of the results.
        """
        check_function("apply", window_function, self._apply_class, arguments=self._apply_arguments)
        if not isinstance(window_function, self._apply_class):
            window_function = wrapped(window_function, self._apply_class)
        return self._compute("buffer", None, window_function, check_type("apply", output_type))

    def process(self, process_window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call a function with all records of a window, and its context, when the window fires.

        Args:
            process_window_function: A ProcessWindowFunction, or a callable of the key, the context and the
                records. On a stream without a key a ProcessAllWindowFunction, or a callable without the key.
            output_type: Type of the results.
        """
        function = process_window_function
        check_function("process", function, self._process_class, arguments=self._process_arguments)
        if not isinstance(function, self._process_class):
            function = wrapped(function, self._process_class)
        return self._compute("buffer", None, function, check_type("process", output_type))

    def _accumulate(self, kind: rolling.AccumulateType, position: rolling.Position) -> DataStream:
        position = rolling.check_position(kind, position, self.get_input_type())
        return self._compute("reduce", rolling.FieldAggregation(kind, position), None, self.get_input_type())

    def _check_window_function(self, call: str, given: Any) -> None:
        if given is None:
            return
        if callable(given) and not isinstance(given, Function | type):
            raise JobDefinitionError(
                f"{call}(): the window function must be a {self._apply_class.__name__} or a "
                f"{self._process_class.__name__}, got {describe_function(given)}",
                hint="a plain callable does not say which of the two it is",
            )
        check_function(call, given, self._apply_class, self._process_class)

    def _compute(
        self, kind: Any, incremental: Any, window_function: Any, output_type: TypeInformation | None
    ) -> DataStream:
        # Once more: an assigner of the user's own may merge and have a default trigger that cannot.
        check_trigger(self._trigger, self._assigner)
        declaration = WindowDeclaration(
            computation=WindowComputation(
                kind=kind,
                incremental=incremental,
                window_function=window_function,
                is_all=self._is_all,
            ),
            assigner=self._assigner,
            trigger=self._trigger,
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness_ms,
            late_tag_id=None if self._late_tag is None else self._late_tag.tag_id,
            key_selector=self._key_selector(),
        )
        function = incremental if window_function is None else window_function
        while isinstance(function, Around):
            function = function.function
        description = f"Window({self._assigner!r}, {self._trigger!r}, {describe_function(function)})"
        return self._transform(declaration, output_type).set_description(description)

    def _key_selector(self) -> Any:
        raise NotImplementedError

    def _transform(self, declaration: WindowDeclaration, output_type: TypeInformation | None) -> DataStream:
        return self._stream._transform(type(self._assigner).__name__, declaration, output_type)


class WindowedStream(_Windowed):
    """A keyed stream cut into windows. Made by ``keyed_stream.window(assigner)``.

    Example:
        >>> from headrace.common import Time
        >>> from headrace.datastream import StreamExecutionEnvironment
        >>> from headrace.datastream.window import TumblingEventTimeWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> pairs = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0])
        >>> pairs.window(TumblingEventTimeWindows.of(Time.seconds(5))).sum(1).get_name()
        'TumblingEventTimeWindows'
    """

    _apply_arguments = ("key", "window", "inputs")
    _process_arguments = ("key", "context", "elements")
    _apply_class = WindowFunction
    _process_class = ProcessWindowFunction
    _is_all = False

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream, window_assigner)
        self._keyed_stream = keyed_stream

    def _key_selector(self) -> Any:
        return self._keyed_stream._key_selector


class AllWindowedStream(_Windowed):
    """A stream without a key cut into windows: all records meet in one subtask. Made by ``window_all(assigner)``."""

    _apply_arguments = ("window", "inputs")
    _process_arguments = ("context", "elements")
    _apply_class = AllWindowFunction
    _process_class = ProcessAllWindowFunction
    _is_all = True

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        everything_to_one = data_stream._partitioned(Global())
        super().__init__(
            DataStream(data_stream.get_execution_environment(), everything_to_one), window_assigner
        )

    def _key_selector(self) -> Any:
        return NullByteKeySelector()

    def _transform(self, declaration: WindowDeclaration, output_type: TypeInformation | None) -> DataStream:
        return super()._transform(declaration, output_type).force_non_parallel()

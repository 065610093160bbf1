"""Streams cut into windows, and what is joined in windows or intervals of time.

    keyed.window(assigner)[.trigger()][.evictor()][.allowed_lateness()][.side_output_late_data()]
         .reduce() | .aggregate() | .apply() | .process() | .sum() | ...
    stream.window_all(assigner) ...                                            the same without a key

    first.join(second).where(key).equal_to(key).window(assigner)[...].apply()    pairs in a window
    first.co_group(second) ...                                                   all of a key in a window
    left.interval_join(right).between(lower, upper)[...].process()               pairs near in time

Nothing runs here: each call ends in one declaration of an operator. Evictors and joins are Flink's; PyFlink has
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from headrace.common.time import as_millis
from headrace.common.typeinfo import TypeInformation, Types
from headrace.datastream import rolling
from headrace.datastream._checks import check_function, check_key_selector, check_type, kind_and_value
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    KeySelector,
    NullByteKeySelector,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    WindowFunction,
)
from headrace.datastream.keyed_stream import KeyedStream
from headrace.datastream.output_tag import OutputTag
from headrace.errors import JobDefinitionError, describe_function, shorten
from headrace.graph.partitioning import Global
from headrace.graph.transformations import PhysicalTransformation, TwoInputTransformation
from headrace.operators.functions import key_getter
from headrace.operators.interval_join import IntervalJoinOperator
from headrace.operators.simple import MapOperator
from headrace.operators.window.declaration import WindowComputation, WindowOperator
from headrace.windowing.assigners import MergingWindowAssigner, WindowAssigner
from headrace.windowing.checks import Amount, amount_ms
from headrace.windowing.evictors import Evictor
from headrace.windowing.trigger import Trigger

if TYPE_CHECKING:
    from headrace.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = [
    "AllWindowedStream",
    "CoGroupedStreams",
    "IntervalJoin",
    "IntervalJoined",
    "JoinedStreams",
    "WindowedCoGroup",
    "WindowedJoin",
    "WindowedStream",
]


# --------------------------------------------------------------------------------------------- windows


class _Windowed:
    """What windows of keyed streams and of streams without a key have in common."""

    #: How a plain callable is called by `apply` and `process`.
    _apply_arguments: ClassVar[tuple[str, ...]]
    _process_arguments: ClassVar[tuple[str, ...]]
    _apply_class: ClassVar[type[Function]]
    _process_class: ClassVar[type[Function]]
    _is_all: ClassVar[bool]

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._assigner = _check_assigner(window_assigner)
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
            JobDefinitionError: It is no trigger, or cannot merge while windows do.
        """
        self._trigger = _check_trigger(trigger, self._assigner)
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Leave records out when a window fires. Windows then keep all their records until they are removed."""
        self._evictor = _check_instance("evictor", evictor, Evictor, "CountEvictor.of(10)")
        return self

    def allowed_lateness(self, time_ms: int | Amount) -> Self:
        """Keep windows of event time for late records after they have fired; each of those fires again.

        Args:
            time_ms: How long, counted by the watermark from the window's end: ms, a Time, Duration or timedelta.

        Raises:
            JobDefinitionError: It is negative.
        """
        self._allowed_lateness_ms = _check_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Emit records that are too late for all their windows under a tag, instead of dropping them.

        Args:
            output_tag: To be given to ``get_side_output`` of the stream of results.
        """
        self._late_tag = _check_instance("side_output_late_data", output_tag, OutputTag, 'OutputTag("late")')
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
            reduce_function: A callable of what was reduced so far and a record, or a ReduceFunction.
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
            aggregate_function: Says how. Windows that merge need its ``merge``.
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
            window_function = _wrapped(window_function, self._apply_class)
        return self._compute("buffer", None, window_function, check_type("apply", output_type))

    def process(self, process_window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Give all records of a window, with its context, to a function when the window fires.

        Args:
            process_window_function: A ProcessWindowFunction, or a callable of the key, the context and the
                records. On a stream without a key a ProcessAllWindowFunction, or a callable without the key.
            output_type: Type of the results.
        """
        function = process_window_function
        check_function("process", function, self._process_class, arguments=self._process_arguments)
        if not isinstance(function, self._process_class):
            function = _wrapped(function, self._process_class)
        return self._compute("buffer", None, function, check_type("process", output_type))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Add up a field of the records of a window; the other fields are those of the first record.

        Args:
            position_to_sum: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate("sum", position_to_sum, rolling.AccumulateType.SUM)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Find the least value of a field in a window; the other fields are those of the first record.

        Args:
            position_to_min: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate("min", position_to_min, rolling.AccumulateType.MIN)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Find the greatest value of a field in a window; the other fields are those of the first record.

        Args:
            position_to_max: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate("max", position_to_max, rolling.AccumulateType.MAX)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Find the record with the least value of a field in a window; the first of equal ones.

        Args:
            position_to_min_by: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate("min_by", position_to_min_by, rolling.AccumulateType.MIN_BY)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Find the record with the greatest value of a field in a window; the first of equal ones.

        Args:
            position_to_max_by: Index of the field in a tuple or Row, or its name. 0 for plain numbers.
        """
        return self._accumulate("max_by", position_to_max_by, rolling.AccumulateType.MAX_BY)

    def _accumulate(self, call: str, position: int | str, kind: rolling.AccumulateType) -> DataStream:
        position = rolling.check_position(call, position, self.get_input_type())
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
        _check_trigger(self._trigger, self._assigner)
        declaration = WindowOperator(
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
        while isinstance(function, _Around):
            function = function.function
        description = f"Window({self._assigner!r}, {self._trigger!r}, {describe_function(function)})"
        return self._transform(declaration, output_type).set_description(description)

    def _key_selector(self) -> Any:
        raise NotImplementedError

    def _transform(self, declaration: WindowOperator, output_type: TypeInformation | None) -> DataStream:
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

    def _transform(self, declaration: WindowOperator, output_type: TypeInformation | None) -> DataStream:
        return super()._transform(declaration, output_type).force_non_parallel()


# ----------------------------------------------------------------------------------------- window joins

P = TypeVar("P", bound="_WindowedPair")


@dataclass(frozen=True)
class _WindowedPair:
    """Two streams, their keys and the windows in which records of the same key meet.

    What triggers, evictors and assigners of your own see are pairs: ``(0, record)`` of the first stream and
    ``(1, record)`` of the second.
    """

    first: DataStream
    second: DataStream
    key_selectors: tuple[Any, Any]
    assigner: WindowAssigner[Any, Any]
    _trigger: Trigger[Any, Any] | None = None
    _evictor: Evictor | None = None
    _allowed_lateness_ms: int = 0

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows fire, instead of the assigner's own trigger."""
        return replace(self, _trigger=_check_trigger(trigger, self.assigner))

    def evictor(self, evictor: Evictor) -> Self:
        """Leave records out when a window fires."""
        return replace(self, _evictor=_check_instance("evictor", evictor, Evictor, "CountEvictor.of(10)"))

    def allowed_lateness(self, time_ms: int | Amount) -> Self:
        """Keep windows for late records after they have fired; each of those fires again."""
        return replace(self, _allowed_lateness_ms=_check_lateness(time_ms))

    def _co_group(
        self, function: CoGroupFunction[Any, Any, Any], output_type: TypeInformation | None
    ) -> DataStream:
        # As in Flink: one stream of both, in which every record says where it is from.
        tagged = _tagged(self.first, _tag_first).union(_tagged(self.second, _tag_second))
        windows = WindowedStream(tagged.key_by(_TaggedKey(*self.key_selectors)), self.assigner)
        if self._trigger is not None:
            windows.trigger(self._trigger)
        if self._evictor is not None:
            windows.evictor(self._evictor)
        windows.allowed_lateness(self._allowed_lateness_ms)
        return windows.apply(_CoGroupWindow(function), output_type)


class WindowedJoin(_WindowedPair):
    """The end of ``join(...).where(...).equal_to(...).window(...)``."""

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Join every record of a key in a window with every one of the other stream: an inner join.

        Args:
            function: A callable of a record of each stream that returns one result, a JoinFunction, or a
                FlatJoinFunction for any number of results.
            output_type: Type of the results.

        Returns:
            The results, with the last timestamp of their window.
        """
        check_function("apply", function, JoinFunction, FlatJoinFunction, arguments=("first", "second"))
        return self._co_group(_JoinPairs(function), check_type("apply", output_type))


class WindowedCoGroup(_WindowedPair):
    """The end of ``co_group(...).where(...).equal_to(...).window(...)``."""

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Give all records of a key in a window to a function, also if one stream has none: for outer joins.

        Args:
            function: A callable of a list of records of each stream that returns or yields results, or a
                CoGroupFunction.
            output_type: Type of the results.

        Returns:
            The results, with the last timestamp of their window.
        """
        check_function("apply", function, CoGroupFunction, arguments=("first", "second"))
        if not isinstance(function, CoGroupFunction):
            function = _wrapped(function, CoGroupFunction)
        return self._co_group(function, check_type("apply", output_type))


@dataclass(frozen=True)
class _EqualTo(Generic[P]):
    make: Callable[..., P]
    first: DataStream
    second: DataStream
    key_selectors: tuple[Any, Any]

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> P:
        """Say in which windows records meet."""
        return self.make(self.first, self.second, self.key_selectors, _check_assigner(window_assigner))


@dataclass(frozen=True)
class _Where(Generic[P]):
    make: Callable[..., P]
    first: DataStream
    second: DataStream
    key_selector: Any

    def equal_to(self, key_selector: Any) -> _EqualTo[P]:
        """Say what the key of the second stream is: a callable of a record, or a KeySelector."""
        check_key_selector("equal_to", key_selector)
        return _EqualTo(self.make, self.first, self.second, (self.key_selector, key_selector))


class JoinedStreams:
    """Two streams to be joined. Made by ``first.join(second)``."""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self.first, self.second = _check_pair("join", first, second)

    def where(self, key_selector: Any) -> _Where[WindowedJoin]:
        """Say what the key of the first stream is: a callable of a record, or a KeySelector."""
        check_key_selector("where", key_selector)
        return _Where(WindowedJoin, self.first, self.second, key_selector)


class CoGroupedStreams:
    """Two streams to be grouped together. Made by ``first.co_group(second)``."""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self.first, self.second = _check_pair("co_group", first, second)

    def where(self, key_selector: Any) -> _Where[WindowedCoGroup]:
        """Say what the key of the first stream is: a callable of a record, or a KeySelector."""
        check_key_selector("where", key_selector)
        return _Where(WindowedCoGroup, self.first, self.second, key_selector)


def _tag_first(value: Any) -> tuple[int, Any]:
    return 0, value


def _tag_second(value: Any) -> tuple[int, Any]:
    return 1, value


def _tagged(stream: DataStream, tag: Callable[[Any], tuple[int, Any]]) -> DataStream:
    tagged = stream._transform("Map", MapOperator(tag), Types.PICKLED_BYTE_ARRAY())
    before = stream._transformation
    if isinstance(before, PhysicalTransformation):
        # In one task with what it reads, however many subtasks that has.
        tagged._operator("map").parallelism = before.parallelism
    return tagged


class _TaggedKey(KeySelector):
    """Finds the key of a tagged record with the selector of its stream."""

    def __init__(self, first: Any, second: Any) -> None:
        self.selectors = (first, second)

    def get_key(self, value: Any) -> Any:
        side, record = value
        return key_getter(self.selectors[side])(record)


class _Around(Function):
    """A function around one of the user's, which shares its life."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.function, Function):
            self.function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()


class _CoGroupWindow(_Around, WindowFunction[Any, Any, Any, Any]):
    """Gives the records of a window, one list a stream, to a CoGroupFunction."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        sides: tuple[list[Any], list[Any]] = [], []
        for side, record in inputs:
            sides[side].append(record)
        return self.function.co_group(*sides)


class _JoinPairs(_Around, CoGroupFunction[Any, Any, Any]):
    """Calls a join function for every pair."""

    def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        join = getattr(self.function, "join", self.function)
        is_flat = isinstance(self.function, FlatJoinFunction)
        for left in first:
            for right in second:
                if is_flat:
                    yield from join(left, right) or ()
                else:
                    yield join(left, right)


class _WindowCall(_Around, WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        return self.function(key, window, inputs)


class _AllWindowCall(_Around, AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Any:
        return self.function(window, inputs)


class _ProcessCall(_Around, ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        return self.function(key, context, elements)


class _ProcessAllCall(_Around, ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Any:
        return self.function(context, elements)


class _CoGroupCall(_Around, CoGroupFunction[Any, Any, Any]):
    def co_group(self, first: list[Any], second: list[Any]) -> Any:
        return self.function(first, second)


_CALLS: dict[type[Function], type[_Around]] = {
    WindowFunction: _WindowCall,
    AllWindowFunction: _AllWindowCall,
    ProcessWindowFunction: _ProcessCall,
    ProcessAllWindowFunction: _ProcessAllCall,
    CoGroupFunction: _CoGroupCall,
}


def _wrapped(function: Any, kind: type[Function]) -> Any:
    """Put a plain callable into the shape of a function class, from which operators see how to call it."""
    return _CALLS[kind](function)


# ---------------------------------------------------------------------------------------- interval joins


class IntervalJoin:
    """Two keyed streams to be joined by time. Made by ``left.interval_join(right)``."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        if not isinstance(right, KeyedStream):
            raise JobDefinitionError(
                f"interval_join(): expected a KeyedStream, got {kind_and_value(right)}",
                hint="call key_by(...) on it first",
            )
        left._check_environment("interval_join", right)
        self.left = left
        self.right = right

    def between(self, lower_bound: Amount, upper_bound: Amount) -> IntervalJoined:
        """Say which records of the same key meet: the right one's timestamp lies within bounds around the left one's.

        Both bounds are part of the interval: ``left + lower_bound <= right <= left + upper_bound``.

        Args:
            lower_bound: A Time, Duration or timedelta; it may be negative.
            upper_bound: The same.

        Raises:
            JobDefinitionError: The upper bound is below the lower.
        """
        lower_ms = amount_ms("between()", "lower_bound", lower_bound)
        upper_ms = amount_ms("between()", "upper_bound", upper_bound)
        if lower_ms > upper_ms:
            raise JobDefinitionError(
                f"between(): the lower bound, {lower_ms} ms, is above the upper bound, {upper_ms} ms",
                hint="pass the earlier one first, for example between(Time.seconds(-5), Time.seconds(5))",
            )
        return IntervalJoined(self.left, self.right, lower_ms, upper_ms)


@dataclass(frozen=True)
class IntervalJoined:
    """Two keyed streams and the interval in which they are joined. Made by ``between(...)``.

    Example:
        >>> from headrace.common import Time
        >>> from headrace.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> orders = env.from_collection(["a"]).key_by(lambda order: order)
        >>> payments = env.from_collection(["a"]).key_by(lambda payment: payment)
        >>> paid = orders.interval_join(payments).between(Time.seconds(0), Time.minutes(10))
        >>> paid.upper_bound_exclusive().process(lambda order, payment, ctx: [order + payment]).get_name()
        'Interval Join'
    """

    left: KeyedStream
    right: KeyedStream
    #: As given.
    lower_ms: int
    upper_ms: int
    #: What exclusive bounds take away from the interval: 0 or 1 ms.
    _from_lower_ms: int = field(default=0, repr=False)
    _from_upper_ms: int = field(default=0, repr=False)
    _left_late_tag: OutputTag | None = None
    _right_late_tag: OutputTag | None = None

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Leave the lower bound itself out."""
        return replace(self, _from_lower_ms=1)

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Leave the upper bound itself out."""
        return replace(self, _from_upper_ms=1)

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit late records of the first stream under a tag, instead of dropping them."""
        call = "side_output_left_late_data"
        return replace(self, _left_late_tag=_check_instance(call, output_tag, OutputTag, 'OutputTag("late")'))

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit late records of the second stream under a tag, instead of dropping them."""
        call = "side_output_right_late_data"
        return replace(
            self, _right_late_tag=_check_instance(call, output_tag, OutputTag, 'OutputTag("late")')
        )

    def process(self, process_join_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call a function for every pair.

        Args:
            process_join_function: A ProcessJoinFunction, or a callable of a record of each stream and the context
                that returns or yields results.
            output_type: Type of the results.

        Returns:
            The results, with the later of the two timestamps.

        Raises:
            JobDefinitionError: The bounds, exclusive as they are, leave nothing between them.
        """
        check_function(
            "process", process_join_function, ProcessJoinFunction, arguments=("left", "right", "ctx")
        )
        lower_ms, upper_ms = self.lower_ms + self._from_lower_ms, self.upper_ms - self._from_upper_ms
        if lower_ms > upper_ms:
            raise JobDefinitionError(
                f"process(): no time lies between {self.lower_ms} ms and {self.upper_ms} ms with exclusive bounds, "
                "so nothing would ever be joined",
                hint="widen the interval, or include a bound",
            )
        environment = self.left._environment
        step = TwoInputTransformation(
            id=environment._next_id(),
            name="Interval Join",
            declaration=IntervalJoinOperator(
                function=process_join_function,
                key_selectors=(self.left._key_selector, self.right._key_selector),
                lower_ms=lower_ms,
                upper_ms=upper_ms,
                left_late_tag_id=None if self._left_late_tag is None else self._left_late_tag.tag_id,
                right_late_tag_id=None if self._right_late_tag is None else self._right_late_tag.tag_id,
            ),
            output_type=check_type("process", output_type),
            first=self.left._transformation,
            second=self.right._transformation,
        )
        environment._add_operator(step)
        return DataStream(environment, step)


# ---------------------------------------------------------------------------------------------- checks


def _check_instance(call: str, given: Any, kind: type[Any], example: str) -> Any:
    if isinstance(given, kind):
        return given
    if isinstance(given, type) and issubclass(given, kind):
        raise JobDefinitionError(
            f"{call}(): expected an instance of {kind.__name__}, got the class {given.__name__}",
            hint=f"for example {example}",
        )
    raise JobDefinitionError(
        f"{call}(): expected {kind.__name__}, got {kind_and_value(given)}", hint=f"for example {example}"
    )


def _check_assigner(given: Any) -> WindowAssigner[Any, Any]:
    example = "TumblingEventTimeWindows.of(Time.minutes(5))"
    assigner: WindowAssigner[Any, Any] = _check_instance("window", given, WindowAssigner, example)
    return assigner


def _check_trigger(given: Any, assigner: WindowAssigner[Any, Any]) -> Trigger[Any, Any]:
    trigger: Trigger[Any, Any] = _check_instance("trigger", given, Trigger, "CountTrigger.of(10)")
    if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
        raise JobDefinitionError(
            f"trigger(): windows of {assigner!r} merge, and {trigger!r} cannot merge",
            hint="use a trigger whose can_merge() is true, or windows that do not merge",
        )
    return trigger


def _check_lateness(given: Any) -> int:
    try:
        time_ms = as_millis(given)
    except TypeError:
        time_ms = -1
    if time_ms < 0:
        raise JobDefinitionError(
            "allowed_lateness(): expected milliseconds from 0, a Time, Duration or timedelta, "
            f"got {shorten(given)}"
        )
    return time_ms


def _check_pair(call: str, first: DataStream, second: Any) -> tuple[DataStream, DataStream]:
    if not isinstance(second, DataStream):
        raise JobDefinitionError(f"{call}(): expected a DataStream, got {kind_and_value(second)}")
    first._check_environment(call, second)
    return first, second

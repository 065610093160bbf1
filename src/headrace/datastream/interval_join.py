"""Two keyed streams joined by time: pairs whose timestamps are near each other.

    left.interval_join(right).between(lower, upper)[...].process()

Nothing runs here: the call ends in one declaration of an operator. Interval joins are Flink's; PyFlink has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from headrace.common.typeinfo import TypeInformation
from headrace.datastream._checks import check_function, check_type, kind_and_value
from headrace.datastream._window_checks import check_instance
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import ProcessJoinFunction
from headrace.datastream.keyed_stream import KeyedStream
from headrace.datastream.output_tag import OutputTag
from headrace.errors import JobDefinitionError
from headrace.graph.transformations import TwoInputTransformation
from headrace.operators.interval_join import IntervalJoinDeclaration
from headrace.windowing.checks import Amount, amount_ms

__all__ = ["IntervalJoin", "IntervalJoined"]


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
        return replace(self, _left_late_tag=check_instance(call, output_tag, OutputTag, 'OutputTag("late")'))

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit late records of the second stream under a tag, instead of dropping them."""
        call = "side_output_right_late_data"
        return replace(self, _right_late_tag=check_instance(call, output_tag, OutputTag, 'OutputTag("late")'))

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
            declaration=IntervalJoinDeclaration(
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

from __future__ import annotations

from typing import Any

import pytest

from headrace.common.time import Duration
from headrace.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkStrategy
from headrace.elements import MAX_WATERMARK, StreamStatus, Watermark
from headrace.errors import JobDefinitionError, UserFunctionError
from headrace.operators.timestamps import NO_TIMESTAMP, TimestampsDeclaration
from headrace.testing.harness import OperatorHarness


class ByField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["at"])


class AtMarkers(WatermarkGenerator):
    """Watermarks stand in the stream itself: records that say so."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        if value.get("is marker"):
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


def at(*times: int) -> list[dict[str, Any]]:
    return [{"at": time} for time in times]


ONE_SECOND_LATE = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps()


def test_records_get_their_timestamps_and_time_moves_after_them() -> None:
    #   at     5000   4500   7000  |  6500        watermark = highest - 1000 - 1
    with OperatorHarness(
        TimestampsDeclaration(ONE_SECOND_LATE.with_timestamp_assigner(ByField()))
    ) as harness:
        harness.process_batch(at(5000, 4500, 7000))
        assert [timestamp for _, timestamp in harness.output_with_timestamps] == [5000, 4500, 7000]
        assert harness.watermarks == [5999]
        harness.process_batch(at(6500))  # time does not go back
        assert harness.watermarks == [5999]
        harness.process_batch(at(8000))
        assert harness.watermarks == [5999, 6999]


def test_without_an_assigner_the_records_keep_the_time_they_have() -> None:
    with OperatorHarness(TimestampsDeclaration(IN_ORDER)) as harness:
        harness.process_batch(["a", "b"], [10, 20])
        assert harness.output_with_timestamps == [("a", 10), ("b", 20)]
        assert harness.watermarks == [19]


def test_an_assigner_sees_the_time_a_record_had() -> None:
    class Later(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return 0 if record_timestamp == NO_TIMESTAMP else record_timestamp + 1

    with OperatorHarness(TimestampsDeclaration(IN_ORDER.with_timestamp_assigner(Later()))) as harness:
        harness.process_batch(["a", "b"], [10, None])
        harness.process("c")
        assert harness.output_with_timestamps == [("a", 11), ("b", 0), ("c", 0)]


def test_watermarks_from_upstream_end_here_except_the_last_one() -> None:
    with OperatorHarness(TimestampsDeclaration(IN_ORDER)) as harness:
        harness.process_watermark(1000)
        assert harness.watermarks == []
        harness.finish()
        assert harness.watermarks == [MAX_WATERMARK]


@pytest.mark.parametrize("keeps_local_copy", [True, False])
def test_time_continues_where_it_stood_in_the_next_epoch(keeps_local_copy: bool) -> None:
    with OperatorHarness(
        TimestampsDeclaration(ONE_SECOND_LATE.with_timestamp_assigner(ByField()))
    ) as harness:
        harness.process_batch(at(5000))
        harness.move(keeps_local_copy=keeps_local_copy)
        harness.process_batch(at(4000))
        assert harness.watermarks == [3999], "a record below the highest timestamp so far moves nothing"
        harness.process_batch(at(5001))
        assert harness.watermarks == [3999, 4000]


def test_an_epoch_that_runs_again_gives_the_same_watermarks() -> None:
    with OperatorHarness(TimestampsDeclaration(IN_ORDER.with_timestamp_assigner(ByField()))) as harness:
        harness.process_batch(at(5))
        harness.end_epoch()
        harness.clear_output()
        harness.process_batch(at(9))
        harness.retry_epoch()
        harness.process_batch(at(9))
        assert harness.watermarks == [8, 8]


def test_a_generator_of_the_users_emits_when_it_likes() -> None:
    strategy = WatermarkStrategy.for_generator(AtMarkers).with_timestamp_assigner(ByField())
    with OperatorHarness(TimestampsDeclaration(strategy)) as harness:
        harness.process_batch(at(5, 6))
        assert harness.watermarks == []
        harness.process_batch([*at(7), {"at": 8, "is marker": True}])
        assert harness.watermarks == [8]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
@pytest.mark.parametrize("moves", [False, True])
def test_a_watermark_that_a_record_carries_travels_right_after_it(batch_size: int, moves: bool) -> None:
    strategy = WatermarkStrategy.for_generator(AtMarkers).with_timestamp_assigner(ByField())
    marked = [{"at": time, "is marker": is_marker} for time, is_marker in enumerate((0, 1, 1, 0, 1, 0))]
    found: list[Any] = []
    with OperatorHarness(TimestampsDeclaration(strategy)) as harness:
        harness._recorder.emit = lambda batch: found.extend(batch.timestamps)  # type: ignore[method-assign]
        harness._recorder.emit_event = found.append  # type: ignore[method-assign]
        for start in range(0, 6, batch_size):
            harness.process_batch(marked[start : start + batch_size])
            if moves:
                harness.move()
    assert found == [0, 1, Watermark(1), 2, Watermark(2), 3, 4, Watermark(4), 5]


def test_a_generator_that_takes_whole_batches_is_asked_once_per_batch() -> None:
    class Highest(AtMarkers):
        def on_batch(self, values: Any, timestamps: Any, output: Any) -> None:
            output.emit_watermark(max(timestamps))

    strategy = WatermarkStrategy.for_generator(Highest).with_timestamp_assigner(ByField())
    with OperatorHarness(TimestampsDeclaration(strategy)) as harness:
        harness.process_batch(at(3, 9, 5))
        assert (harness.watermarks, len(harness._recorder.batches)) == ([9], 1)


def test_an_error_of_the_assigner_is_the_functions_error() -> None:
    declaration = TimestampsDeclaration(IN_ORDER.with_timestamp_assigner(ByField()))
    with OperatorHarness(declaration, name="Time") as harness, pytest.raises(UserFunctionError) as caught:
        harness.process_batch([{"at": 1}, {"when": 2}])
    assert caught.value.operator == "Time"
    assert "KeyError: 'at'" in str(caught.value)


# --- idleness -------------------------------------------------------------------------------------

MAY_IDLE = IN_ORDER.with_idleness(Duration.of_seconds(5))
IDLE, ACTIVE = StreamStatus(active=False), StreamStatus(active=True)


def test_a_stream_without_records_falls_idle_until_one_comes() -> None:
    with OperatorHarness(TimestampsDeclaration(MAY_IDLE)) as harness:
        harness.process("a", timestamp=10)
        assert harness.next_processing_time == 5000
        harness.set_processing_time(4000)
        harness.process("b", timestamp=11)
        harness.set_processing_time(8999)
        assert harness.events == [Watermark(9), Watermark(10)]
        assert harness.next_processing_time == 9000
        harness.set_processing_time(9000)
        harness.set_processing_time(9500)
        assert harness.events[2:] == [IDLE]
        assert harness.next_processing_time is None
        harness.process("c", timestamp=12)
        assert harness.events[3:] == [ACTIVE, Watermark(11)]
        assert harness.next_processing_time == 14500


def test_a_stream_that_never_had_a_record_falls_idle_too() -> None:
    with OperatorHarness(TimestampsDeclaration(MAY_IDLE), processing_time=1000) as harness:
        assert harness.next_processing_time == 6000
        harness.end_epoch()
        harness.set_processing_time(6000)
        assert harness.events == [IDLE]


@pytest.mark.parametrize("keeps_local_copy", [True, False])
def test_idleness_outlasts_an_epoch(keeps_local_copy: bool) -> None:
    with OperatorHarness(TimestampsDeclaration(MAY_IDLE)) as harness:
        harness.process("a", timestamp=10)
        harness.set_processing_time(3000)
        harness.move(keeps_local_copy=keeps_local_copy)
        assert harness.next_processing_time == 5000, "counted from the last record, whoever had it"
        harness.set_processing_time(5000)
        harness.move(keeps_local_copy=keeps_local_copy)
        harness.set_processing_time(6000)
        assert harness.events == [Watermark(9), IDLE], "it was said before"
        harness.process("b", timestamp=5)
        assert harness.events[2:] == [ACTIVE]


def test_without_a_time_out_a_stream_never_falls_idle() -> None:
    with OperatorHarness(TimestampsDeclaration(IN_ORDER)) as harness:
        harness.process("a", timestamp=10)
        harness.set_processing_time(10**12)
        assert (harness.events, harness.next_processing_time) == ([Watermark(9)], None)


def test_a_generator_may_say_that_its_stream_is_idle() -> None:
    class Rests(AtMarkers):
        def on_event(self, value: Any, timestamp: int, output: Any) -> None:
            if value.get("rests"):
                output.mark_idle()
            else:
                super().on_event(value, timestamp, output)

    strategy = WatermarkStrategy.for_generator(Rests).with_timestamp_assigner(ByField())
    with OperatorHarness(TimestampsDeclaration(strategy)) as harness:
        harness.process_batch([{"at": 5, "is marker": True}, {"at": 6, "rests": True}])
        assert harness.events == [Watermark(5), IDLE]
        harness.process({"at": 7, "is marker": True})
        assert harness.events[2:] == [ACTIVE, Watermark(7)]


def test_idleness_from_upstream_is_not_passed_on() -> None:
    with OperatorHarness(TimestampsDeclaration(IN_ORDER)) as harness:
        harness.process("a", timestamp=10)
        harness.process_status(is_active=False)
        harness.process_status(is_active=True)
        assert harness.events == [Watermark(9)]


def test_the_end_of_time_comes_after_the_stream_is_active_again() -> None:
    with OperatorHarness(TimestampsDeclaration(MAY_IDLE)) as harness:
        harness.set_processing_time(5000)
        harness.finish()
        assert harness.events == [IDLE, ACTIVE, Watermark(MAX_WATERMARK)]


@pytest.mark.parametrize("strategy", [WatermarkStrategy.no_watermarks(), IN_ORDER])
def test_records_without_a_timestamp_pass(strategy: WatermarkStrategy) -> None:
    with OperatorHarness(TimestampsDeclaration(strategy)) as harness:
        harness.process_batch(["a", "b"])
        harness.process_batch(["c", "d"], [5, None])
        harness.finish()
        assert harness.output_with_timestamps == [("a", None), ("b", None), ("c", 5), ("d", None)]
        own = [] if strategy.kind == "none" else [4]
        assert harness.watermarks == [*own, MAX_WATERMARK]


def test_a_punctuated_generator_sees_records_without_a_timestamp() -> None:
    class ByCount(WatermarkGenerator):
        def on_event(self, value: Any, timestamp: int, output: Any) -> None:
            assert timestamp == NO_TIMESTAMP
            output.emit_watermark(value)

        def on_periodic_emit(self, output: Any) -> None:
            pass

    with OperatorHarness(TimestampsDeclaration(WatermarkStrategy.for_generator(ByCount))) as harness:
        harness.process_batch([3, 9, 5])
        assert harness.watermarks == [3, 9]


def test_alignment_is_refused_where_there_is_no_source_to_hold_back() -> None:
    aligned = IN_ORDER.with_watermark_alignment("group", Duration.of_seconds(1), Duration.of_seconds(1))
    with pytest.raises(JobDefinitionError, match="alignment") as caught:
        TimestampsDeclaration(aligned)
    assert "from_source" in (caught.value.hint or "")

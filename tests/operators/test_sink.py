from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headrace.connectors.base import Sink, SinkWriter, WriterContext
from headrace.elements import MAX_WATERMARK, Watermark
from headrace.errors import ConnectorError, UserFunctionError
from headrace.operators.io import SinkDeclaration
from headrace.testing.harness import OperatorHarness

#: What writers report; they run as copies.
calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls_so_far() -> None:
    calls.clear()


class Listing(Sink):
    """Stages each epoch's records as one committable."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    def create_writer(self, context: WriterContext) -> SinkWriter:
        calls.append(f"open {context.subtask}/{context.parallelism} epoch {context.epoch}")
        return ListingWriter(context, self._failure)


class ListingWriter(SinkWriter):
    def __init__(self, context: WriterContext, failure: Exception | None) -> None:
        self._context = context
        self._failure = failure
        self._rows: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        if self._failure is not None:
            raise self._failure
        self._rows.append((value, timestamp))

    def prepare_commit(self) -> Sequence[Any]:
        return [(self._context.attempt_id, self._rows)]

    def abort(self) -> None:
        calls.append("abort")

    def close(self) -> None:
        calls.append("close")


def test_every_epoch_has_a_writer_and_committables_of_its_own() -> None:
    with OperatorHarness(SinkDeclaration(Listing()), parallelism=2, subtask=1) as harness:
        harness.process_batch(["a", "b"], [1, 2])
        harness.process("c")
        [(_, first)] = harness.end_epoch()
        harness.process("d")
        [(_, second)] = harness.end_epoch()
        assert first == [("a", 1), ("b", 2), ("c", None)]
        assert second == [("d", None)]
        assert len(harness.committables) == 2
    assert calls == ["open 1/2 epoch 1", "close", "open 1/2 epoch 2", "close"]


def test_an_epoch_without_records_stages_nothing() -> None:
    with OperatorHarness(SinkDeclaration(Listing())) as harness:
        assert harness.end_epoch() == []
        harness.process_watermark(5)
        assert harness.end_epoch() == []
    assert calls == []


def test_staged_output_of_a_failed_epoch_is_aborted_and_the_next_attempt_has_another_name() -> None:
    with OperatorHarness(SinkDeclaration(Listing())) as harness:
        harness.process("a")
        harness.retry_epoch()
        assert calls == ["open 0/1 epoch 1", "abort", "close"]
        harness.process("a")
        [(attempt_id, rows)] = harness.end_epoch()
    assert rows == [("a", None)]
    assert attempt_id == "1-1"


def test_a_sink_emits_no_records_and_passes_the_watermark_on() -> None:
    with OperatorHarness(SinkDeclaration(Listing())) as harness:
        harness.process("a")
        harness.process_watermark(5)
        harness.finish()
        assert harness.output == []
        assert harness.events == [Watermark(5), Watermark(MAX_WATERMARK)]


def test_an_error_of_the_writer_says_which_sink_it_was() -> None:
    with (
        OperatorHarness(SinkDeclaration(Listing(ValueError("too long"))), name="Sink: rows") as harness,
        pytest.raises(UserFunctionError, match="too long") as caught,
    ):
        harness.process("a")
    assert caught.value.operator == "Sink: rows"


def test_an_error_of_the_underlying_system_is_passed_on() -> None:
    declaration = SinkDeclaration(Listing(ConnectorError("disk full")))
    with OperatorHarness(declaration) as harness, pytest.raises(ConnectorError, match="disk full"):
        harness.process("a")
    assert calls[-2:] == ["abort", "close"]

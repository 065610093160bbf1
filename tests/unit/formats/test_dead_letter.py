"""What happens to records that cannot be read."""

from __future__ import annotations

import pytest

from headrace.common.serialization import DeserializationSchema, SimpleStringSchema
from headrace.common.typeinfo import Types
from headrace.common.types import Row, changelog_text
from headrace.elements import Batch
from headrace.errors import ConnectorError, FormatError
from headrace.formats.dead_letter import DeadLetter, RecordDecoder
from headrace.formats.debezium import DebeziumJsonDeserializationSchema
from headrace.formats.json import JsonRowDeserializationSchema
from headrace.metrics.metricbase import InMemoryCounter

ROW = Types.ROW_NAMED(["n"], [Types.INT()])
MESSAGES = [b'{"n": 1}', b"oops", None, b'{"n": "x"}', b'{"n": 2}']


def position_of(index: int) -> str:
    return f"line {index}"


def test_a_bad_record_fails_the_job_and_is_named():
    decoder = RecordDecoder(JsonRowDeserializationSchema(ROW))

    with pytest.raises(FormatError, match="line 1: expected JSON") as caught:
        decoder.decode(MESSAGES, position_of=position_of)
    assert "dead-letter" in caught.value.hint
    assert caught.value.example == "b'oops'"


def test_ignored_errors_are_counted_and_times_stay_with_their_records():
    errors = InMemoryCounter()
    decoder = RecordDecoder(JsonRowDeserializationSchema(ROW, ignore_parse_errors=True), errors=errors)

    batch = decoder.decode(MESSAGES, [10, 20, 30, 40, 50], position_of=position_of)

    assert batch == Batch([Row(1), Row(None), Row(2)], [10, 40, 50])
    assert errors.get_count() == 2


@pytest.mark.parametrize("ignores", [False, True])
def test_dead_letters_have_the_bytes_the_position_and_the_reason(ignores):
    errors, letters = InMemoryCounter(), []
    schema = JsonRowDeserializationSchema(ROW, ignore_parse_errors=ignores)
    decoder = RecordDecoder(schema, errors=errors, emit_dead_letter=letters.append)

    batch = decoder.decode(MESSAGES, position_of=position_of)

    assert batch == Batch([Row(1), Row(2)])
    assert [(each.data, each.position) for each in letters] == [
        (b"oops", "line 1"),
        (b'{"n": "x"}', "line 3"),
    ]
    assert "field 'n'" in letters[1].reason
    assert errors.get_count() == 2


def test_a_format_of_many_records_a_message_keeps_their_times():
    schema = DebeziumJsonDeserializationSchema(ROW)
    messages = [b"", b'{"before": {"n": 1}, "after": {"n": 2}, "op": "u"}', b'{"after": {"n": 3}, "op": "c"}']

    batch = RecordDecoder(schema).decode(messages, [1, 2, 3], position_of=position_of)

    assert list(map(changelog_text, batch.values)) == ["-U[1]", "+U[2]", "+I[3]"]
    assert batch.timestamps == [2, 2, 3]


class Picky(DeserializationSchema):
    def deserialize(self, message: bytes) -> int:
        return 10 // int(message)


def test_errors_of_a_users_schema_fail_the_job_unless_bad_records_are_collected():
    letters: list[DeadLetter] = []

    with pytest.raises(ZeroDivisionError):
        RecordDecoder(Picky()).decode([b"0"], position_of=position_of)
    batch = RecordDecoder(Picky(), emit_dead_letter=letters.append).decode(
        [b"0", b"5"], position_of=position_of
    )

    assert batch == Batch([2])
    assert letters[0].reason.startswith("ZeroDivisionError")


class Unreachable(DeserializationSchema):
    def deserialize(self, message: bytes) -> int:
        raise ConnectorError("the registry is away")


def test_a_system_that_is_away_is_not_the_records_fault():
    letters: list[DeadLetter] = []

    with pytest.raises(ConnectorError, match="away"):
        RecordDecoder(Unreachable(), emit_dead_letter=letters.append).decode([b"a"], position_of=position_of)
    assert letters == []


def test_plain_strings_go_through():
    assert RecordDecoder(SimpleStringSchema()).decode([b"a"], [7], position_of=position_of) == Batch(
        ["a"], [7]
    )

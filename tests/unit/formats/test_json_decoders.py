"""Tables read JSON as Flink's two decoders do, whichever 'json.decode.json-parser.enabled' chooses.

`tests/parity/make_json.py` has asked Flink's decoders about the messages in `json_messages.py`: flink_json.json.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from headrace.common.typed_text import float_text
from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.connectors.kafka import KafkaConsumerRecord
from headrace.connectors.kafka.table import ColumnPlace, KafkaRows
from headrace.errors import FormatError, UnsupportedFeatureError
from headrace.formats.json import JsonFormat
from headrace.types import DataTypes
from headrace.types.logical import DataType, FloatType, LocalZonedTimestampType, MapType, RowField, RowType

RECORDED: Final = json.loads((Path(__file__).parent / "flink_json.json").read_text("utf-8"))
_ROW: Final = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())])
TYPES: Final[dict[str, DataType]] = {
    "STRING": DataTypes.STRING(),
    "TINYINT": DataTypes.TINYINT(),
    "INT": DataTypes.INT(),
    "BIGINT": DataTypes.BIGINT(),
    "FLOAT": DataTypes.FLOAT(),
    "DOUBLE": DataTypes.DOUBLE(),
    "DECIMAL(10, 2)": DataTypes.DECIMAL(10, 2),
    "BOOLEAN": DataTypes.BOOLEAN(),
    "BYTES": DataTypes.BYTES(),
    "DATE": DataTypes.DATE(),
    "TIME(0)": DataTypes.TIME(0),
    "TIMESTAMP(3)": DataTypes.TIMESTAMP(3),
    "TIMESTAMP_LTZ(3)": DataTypes.TIMESTAMP_LTZ(3),
    "ARRAY<INT>": DataTypes.ARRAY(DataTypes.INT()),
    "ARRAY<STRING>": DataTypes.ARRAY(DataTypes.STRING()),
    "MAP<STRING, INT>": DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()),
    "MAP<STRING, STRING>": DataTypes.MAP(DataTypes.STRING(), DataTypes.STRING()),
    "ROW<x INT, y STRING>": _ROW,
}
FIELDS: Final = [
    ("a", DataTypes.INT()),
    ("b", DataTypes.STRING()),
    ("c", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())])),
]
TREE: Final = {"decode.json-parser.enabled": "false"}
IGNORING: Final = {"ignore-parse-errors": "true"}
#: The options of the four answers that are recorded.
ASKED: Final = ({}, TREE, IGNORING, {**IGNORING, **TREE})
#: Values that are read otherwise than by Flink, and why.
OTHERWISE: Final = {
    "the sign of 0 is lost": [("STRING", "-0"), ("FLOAT", "-0"), ("DOUBLE", "-0")],
    "a number that does not fit DECIMAL is an error; in Flink it is NULL": [
        ("DECIMAL(10, 2)", "2147483647"),
        ("DECIMAL(10, 2)", "2147483648"),
        ("DECIMAL(10, 2)", "9223372036854775808"),
        ("DECIMAL(10, 2)", "123456789012345678901234567890"),
    ],
    "base64 with spaces is an error": [("BYTES", '" "')],
    "times are read in every notation, whatever json.timestamp-format.standard says": [
        *[("TIME(0)", each) for each in ('"12:30"', '"12:30:00Z"')],
        *[
            (kind, each)
            for kind in ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)")
            for each in ('"2024-02-29"', '"2024-02-29T12:30:00"', '"2024-02-29 12:30"')
        ],
        ("TIMESTAMP(3)", '"2024-02-29 12:30:00Z"'),
        ("TIMESTAMP_LTZ(3)", '"2024-02-29 12:30:00"'),
        ("TIMESTAMP_LTZ(3)", '"2024-02-29 12:30:00.123"'),
    ],
    "where errors are ignored, a value of another type is NULL; Flink's decoder over words loses its way in it": [
        ("ARRAY<INT>", "[[1]]"),
        ("BYTES", '"1"'),
        ("BYTES", '"x"'),
        ("MAP<STRING, INT>", '{ "x" : 1.50 , "y": [1, 2] }'),
    ],
}
#: Whole messages that are read otherwise, and why.
MESSAGES_OTHERWISE: Final = {
    "an empty message is an error": ["", " ", "null"],
    "a message is one object": ["[]", '[{"a": 1}]', '[{"a": 1}, {"a": 2}]', '[{"a": 1}, 2]'],
    "nothing may follow the object": [
        *('{"a": 1} x', '{"a": 1} {"a": 2}', '{"a": 1}}', '{"a": 1, "b": "2", "c": {"x": 3}} x'),
    ],
    "control characters have to be escaped": ['{"b": "\t"}'],
    "of a field that comes twice, the last one counts": [
        *('{"a": 1, "a": 2, "b": "3"}', '{"a": 1, "a": 2, "a": 3, "b": "4"}'),
        *('{"a": 1, "b": "2", "c": {"x": 3}, "a": 4}', '{"a": 1, "b": "2", "c": {"x": 3}, "a": "z"}'),
        *('{"c": {"x": 1, "x": 2}}', '{"c": {"x": 1, "x": "z"}}'),
    ],
    "fields behind one of another type are read, where errors are ignored": [
        '{"b": "2", "a": {"k": 1}, "c": {"x": 3}}'
    ],
}


def decoded(fields: Sequence[tuple[str, DataType]], message: str, options: Mapping[str, str]) -> Any:
    """Return the rows that a table of Kafka reads, or "error"."""
    reader = JsonFormat(TableOptions("t", options)).reader(RowType([RowField(*each) for each in fields]))
    rows = KafkaRows([ColumnPlace("value", at, kind) for at, (_, kind) in enumerate(fields)], reader)
    record = KafkaConsumerRecord("t", 0, 0, None, message.encode(), 0, ())
    try:
        found = rows.deserialize(record)
    except FormatError:
        return "error"
    return [[plain(value, kind) for value, (_, kind) in zip(row, fields, strict=True)] for row in found]


def plain(value: Any, kind: DataType | None = None) -> Any:
    """Return a value as the recorder writes those of Java."""
    if isinstance(kind, MapType) and value is not None:
        return {key: plain(each) for key, each in value}
    match value:
        case dict():
            return [plain(each) for each in value.values()]
        case Row() | tuple() | list():
            return [plain(each) for each in value]
        case float():
            return repr(float(float_text(value)) if isinstance(kind, FloatType) else value)
        case bytes():
            return value.hex()
        case Decimal():
            return str(value + 0)  # Java has no negative zero
        case datetime.datetime() | datetime.time():
            text = value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
            if isinstance(kind, LocalZonedTimestampType):
                return f"{text}Z"
            return text if value.second or value.microsecond else text.removesuffix(":00")
        case datetime.date():
            return value.isoformat()
        case _:
            return value


def differences(
    fields: Sequence[tuple[str, DataType]], message: str, flink: Sequence[Any], **more: str
) -> bool:
    """Return whether one of the recorded answers is another one here."""
    options = {key.replace("_", "-"): value for key, value in more.items()}
    found = [decoded(fields, message, {**options, **each}) for each in ASKED[: len(flink)]]
    # For no JSON, Flink's decoder over words gives a row without values if errors are ignored.
    expected = [[] if each == [None] else each for each in flink]
    return found != expected


def test_values_are_read_as_by_flinks_decoders() -> None:
    different = {
        (kind, value)
        for kind, values in RECORDED["values"].items()
        for value, flink in values.items()
        if differences([("v", TYPES[kind])], f'{{"v": {value}}}', flink)
    }
    assert different == {each for group in OTHERWISE.values() for each in group}


def test_messages_are_read_as_by_flinks_decoders() -> None:
    answers = RECORDED["messages"]
    different = {message for message, flink in answers["null"].items() if differences(FIELDS, message, flink)}
    different |= {
        message
        for message, flink in answers["fail"].items()
        if differences(FIELDS, message, flink, fail_on_missing_field="true")
    }
    assert different == {each for group in MESSAGES_OTHERWISE.values() for each in group}


@pytest.mark.parametrize(("enabled", "text"), [("true", "1.50"), ("false", "1.5")])
def test_the_parser_decides_how_a_number_becomes_a_string(enabled: str, text: str) -> None:
    options = {"decode.json-parser.enabled": enabled}
    assert decoded([("v", DataTypes.STRING())], '{"v": 1.50}', options) == [[text]]


def test_files_have_the_parser_of_spark() -> None:
    assert (
        JsonFormat(TableOptions("t", {"decode.json-parser.enabled": "true"})).spark_reader().format == "json"
    )
    with pytest.raises(
        UnsupportedFeatureError, match=r"'json\.decode\.json-parser\.enabled' cannot be false"
    ):
        JsonFormat(TableOptions("t", TREE)).spark_reader()

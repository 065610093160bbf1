"""Avro as a format of tables: its options, records of other names, and Debezium's events with a schema registry."""

from __future__ import annotations

import datetime
import io
import json
import pickle
import struct

import pytest

from headrace.common.types import Row, RowKind
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, HeadraceError
from headrace.formats.avro import AvroRowDeserializationSchema
from headrace.formats.tables import ChangelogFormat, RegistryFormat, message_format
from headrace.types import DataTypes

fastavro = pytest.importorskip("fastavro", reason="no fastavro: pip install 'headrace[avro]'")

ROWS = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
    ]
)
AT = datetime.datetime(2024, 2, 29, 8)  # noqa: DTZ001 - of no zone, as all timestamps in rows
#: What Debezium writes for a table of a database.
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "server.shop.people",
    "fields": [
        {
            "name": "before",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Value",
                    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}],
                },
            ],
        },
        {"name": "after", "type": ["null", "Value"]},
        {
            "name": "source",
            "type": {"type": "record", "name": "Source", "fields": [{"name": "db", "type": "string"}]},
        },
        {"name": "op", "type": "string"},
    ],
}
PEOPLE = DataTypes.ROW(ROWS.fields[:2])


def table(name: str, **options: str):
    given = {f"{name}.{key.replace('__', '.').replace('_', '-')}": value for key, value in options.items()}
    return message_format(TableOptions("t", {"format": name, **given}), "format")


def event(before, after, op: str) -> bytes:
    stream = io.BytesIO(struct.pack(">bI", 0, 1))
    stream.seek(0, io.SEEK_END)
    record = {"before": before, "after": after, "source": {"db": "shop"}, "op": op}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(ENVELOPE), record)
    return stream.getvalue()


def shown(rows: list[Row]) -> list[str]:
    return [f"{row.get_row_kind()} {list(row)}" for row in rows]


def test_messages_may_be_in_avros_json_encoding() -> None:
    made = table("avro", encoding="json")
    writer = pickle.loads(pickle.dumps(made.writer(ROWS)))
    reader = pickle.loads(pickle.dumps(made.reader(ROWS)))

    message = writer.serialize(Row(1, None, AT))

    assert json.loads(message) == {"id": {"int": 1}, "name": None, "at": {"long": 1709193600000}}
    assert reader.deserialize(message) == Row(1, None, AT)
    with pytest.raises(FormatError):
        reader.deserialize(b'{"id": {"int": 1}')
    with pytest.raises(HeadraceError, match="binary, json"):
        table("avro", encoding="xml").writer(ROWS)


def test_timestamps_have_no_zone_in_avro_unless_the_mapping_is_the_old_one() -> None:
    options = TableOptions("t", {"format": "avro", "avro.timestamp_mapping.legacy": "false"})
    made = message_format(options, "format")

    assert made.reader(ROWS).deserialize(made.writer(ROWS).serialize(Row(1, "a", AT))) == Row(1, "a", AT)
    options.check()
    kinds = [made.writer(ROWS)._schema, table("avro").writer(ROWS)._schema]
    assert [each["fields"][2]["type"][1]["logicalType"] for each in kinds] == [
        "local-timestamp-millis",
        "timestamp-millis",
    ]


def test_records_are_read_whatever_their_writer_has_called_them() -> None:
    def person(name: str, inner: str) -> str:
        place = {"type": "record", "name": inner, "fields": [{"name": "city", "type": "string"}]}
        places = {"type": "array", "items": place}
        fields = [
            {"name": "home", "type": ["null", place]},
            {"name": "past", "type": {**places, "items": inner}},
        ]
        return json.dumps({"type": "record", "name": name, "namespace": name.lower(), "fields": fields})

    reader = AvroRowDeserializationSchema(
        avro_schema_string=person("Guest", "Place"), writer_schema_string=person("Person", "Address")
    )
    stream = io.BytesIO()
    record = {"home": {"city": "Bern"}, "past": [{"city": "Rom"}]}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(person("Person", "Address"))), record)

    assert reader.deserialize(stream.getvalue()) == Row(Row("Bern"), [Row("Rom")])


def test_events_of_debezium_are_changes(registry) -> None:
    state, url = registry
    state.schemas = [json.dumps(ENVELOPE)]
    made = table("debezium-avro-confluent", url=url)
    assert isinstance(made, ChangelogFormat)
    reader = pickle.loads(pickle.dumps(made.reader(PEOPLE)))
    ann, eve = {"id": 1, "name": "ann"}, {"id": 1, "name": None}

    events = [event(None, ann, "r"), event(None, ann, "c"), event(ann, eve, "u"), event(eve, None, "d"), b""]

    assert [shown(reader.deserialize(each)) for each in events] == [
        ["+I [1, 'ann']"],
        ["+I [1, 'ann']"],
        ["-U [1, 'ann']", "+U [1, None]"],
        ["-D [1, None]"],
        [],
    ]
    for wrong, problem in (
        (event(None, eve, "u"), "REPLICA IDENTITY"),
        (event(None, eve, "x"), "op of c, r, u or d"),
    ):
        with pytest.raises(FormatError) as caught:
            reader.deserialize(wrong)
        assert problem in f"{caught.value} {caught.value.hint}"


def test_changes_are_written_as_events_of_debezium(registry) -> None:
    state, url = registry
    made = table("debezium-avro-confluent", url=url)
    assert isinstance(made, RegistryFormat)
    made.default_subject("people-value")
    writer = pickle.loads(pickle.dumps(made.writer(PEOPLE)))

    messages = [
        writer.serialize(Row.of_kind(kind, 1, "ann"))
        for kind in (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
    ]

    reader = made.reader(PEOPLE)
    assert [shown(reader.deserialize(each)) for each in messages] == [
        ["+I [1, 'ann']"],
        ["-D [1, 'ann']"],
        ["+I [1, 'ann']"],
        ["-D [1, 'ann']"],
    ]
    assert state.requests[0] == "POST /subjects/people-value/versions"
    assert [field["name"] for field in json.loads(state.schemas[0])["fields"]] == ["before", "after", "op"]

"""Schemas, encoders and serializers."""

from __future__ import annotations

import io
import pickle

import pytest

from headrace.common import ByteArraySchema, Encoder, Row, SimpleStringSchema, Types
from headrace.common.serialization import (
    DeserializationSchema,
    RowDataBulkWriterFactory,
    RowFieldExtractorSchema,
    SerializationSchema,
)
from headrace.common.serializer import VoidNamespaceSerializer
from headrace.errors import ConfigurationError, FormatError


def test_strings_are_encoded_in_their_charset():
    assert SimpleStringSchema().deserialize(SimpleStringSchema().serialize("Zürich")) == "Zürich"
    assert SimpleStringSchema("latin-1").serialize("ü") == b"\xfc"
    assert SimpleStringSchema().get_produced_type() == Types.STRING()
    assert not SimpleStringSchema().is_end_of_stream("x")


def test_strings_that_cannot_be_coded_say_so():
    with pytest.raises(FormatError, match=r"(?s)expected UTF-8.*data: b'\\xff'"):
        SimpleStringSchema().deserialize(b"\xff")
    with pytest.raises(FormatError, match="expected a str that ascii can write"):
        SimpleStringSchema("ascii").serialize("ü")
    with pytest.raises(FormatError, match="data: 5"):
        SimpleStringSchema().serialize(5)
    with pytest.raises(ConfigurationError, match="unknown charset 'klingon'"):
        SimpleStringSchema("klingon")


def test_bytes_pass_as_they_are():
    schema = ByteArraySchema()
    assert schema.serialize(bytearray(b"x")) == schema.deserialize(b"x") == b"x"
    assert schema.get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())
    with pytest.raises(FormatError, match="ByteArraySchema: expected bytes"):
        schema.serialize("x")


def test_one_field_of_a_row_is_written():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row(1, b"x")) == b"x"
    assert schema.serialize((1, None)) == b""
    with pytest.raises(FormatError, match="there is no field 1"):
        schema.serialize(Row(1))
    with pytest.raises(FormatError, match="field 1: expected bytes"):
        schema.serialize(Row(1, "x"))
    with pytest.raises(ConfigurationError, match="got -1"):
        RowFieldExtractorSchema(-1)


def test_lines_are_encoded_one_after_the_other():
    encoder = pickle.loads(pickle.dumps(Encoder.simple_string_encoder("latin-1")))
    stream = io.BytesIO()
    for element in ("ü", 5, Row(1, "a")):
        encoder.encode(element, stream)
    assert stream.getvalue() == b"\xfc\n5\n<Row(1, 'a')>\n"


def test_bulk_writers_are_made_per_file():
    factory = RowDataBulkWriterFactory(lambda stream: ("writer", stream), "row type")
    assert factory.create("file") == ("writer", "file")
    assert factory.get_row_type() == "row type"


def test_schemas_of_ones_own_must_say_how():
    with pytest.raises(NotImplementedError):
        SerializationSchema().serialize(1)
    with pytest.raises(NotImplementedError):
        DeserializationSchema().deserialize(b"")
    assert DeserializationSchema().get_produced_type() == Types.PICKLED_BYTE_ARRAY()


def test_serializers_of_the_same_class_are_equal():
    serializer = VoidNamespaceSerializer()
    assert serializer == VoidNamespaceSerializer()
    assert not serializer != VoidNamespaceSerializer()
    assert hash(serializer) == hash(VoidNamespaceSerializer())
    stream = io.BytesIO(b"\0rest")
    assert serializer.deserialize(stream) is None
    assert stream.read() == b"rest"

"""Protobuf messages as rows, with types from descriptor sets and generated classes."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, HeadraceError, JobDefinitionError
from headrace.formats.protobuf import ProtobufFormat
from headrace.types import DataTypes as D
from headrace.types.logical import RowType

descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
text_format: Any = pytest.importorskip("google.protobuf.text_format")

#: What protoc makes of
#:   message Order {
#:     int32 id = 1; optional string name = 2; repeated string tags = 3; map<string, int64> counts = 4;
#:     Place place = 5; Kind kind = 6; uint32 size = 7; bytes raw = 8; repeated Place stops = 9; double price = 10;
#:     map<string, Place> places = 11; bool paid = 12; uint64 big = 13;
#:   }
#:   message Place { string city = 1; optional float height = 2; }
#:   enum Kind { NONE = 0; SMALL = 1; LARGE = 5; }
PROTO3 = """
name: "shop/orders.proto" package: "shop" syntax: "proto3"
options { java_package: "com.shop" }
message_type { name: "Place"
  field { name: "city" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "height" number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  oneof_decl { name: "_height" } }
enum_type { name: "Kind" value { name: "NONE" number: 0 } value { name: "SMALL" number: 1 }
  value { name: "LARGE" number: 5 } }
message_type { name: "Order"
  field { name: "id" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "tags" number: 3 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "counts" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".shop.Order.CountsEntry" }
  field { name: "place" number: 5 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".shop.Place" }
  field { name: "kind" number: 6 type: TYPE_ENUM label: LABEL_OPTIONAL type_name: ".shop.Kind" }
  field { name: "size" number: 7 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "raw" number: 8 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "stops" number: 9 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".shop.Place" }
  field { name: "price" number: 10 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "places" number: 11 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".shop.Order.PlacesEntry" }
  field { name: "paid" number: 12 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "big" number: 13 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  nested_type { name: "CountsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL } }
  nested_type { name: "PlacesEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".shop.Place" } }
  oneof_decl { name: "_name" } }
"""
PROTO2 = """
name: "old.proto" syntax: "proto2"
message_type { name: "Old"
  field { name: "id" number: 1 type: TYPE_INT32 label: LABEL_REQUIRED }
  field { name: "note" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL default_value: "none" } }
"""
PLACE = D.ROW([D.FIELD("city", D.STRING()), D.FIELD("height", D.FLOAT())])
ORDER: RowType = D.ROW(  # type: ignore[assignment]
    [
        D.FIELD("id", D.INT()),
        D.FIELD("name", D.STRING()),
        D.FIELD("tags", D.ARRAY(D.STRING())),
        D.FIELD("counts", D.MAP(D.STRING(), D.BIGINT())),
        D.FIELD("place", PLACE),
        D.FIELD("kind", D.STRING()),
        D.FIELD("size", D.INT()),
        D.FIELD("raw", D.BYTES()),
        D.FIELD("stops", D.ARRAY(PLACE)),
        D.FIELD("price", D.DOUBLE()),
        D.FIELD("places", D.MAP(D.STRING(), PLACE)),
        D.FIELD("paid", D.BOOLEAN()),
        D.FIELD("big", D.BIGINT()),
    ]
)


@pytest.fixture
def descriptors(tmp_path: Path) -> Path:
    files = descriptor_pb2.FileDescriptorSet()
    for text in (PROTO3, PROTO2):
        text_format.Parse(text, files.file.add())
    path = tmp_path / "shop.desc"
    path.write_bytes(files.SerializeToString())
    return path


def columns(*fields: tuple[str, Any]) -> RowType:
    return D.ROW([D.FIELD(name, kind) for name, kind in fields])  # type: ignore[return-value]


def made(path: Path, name: str = "shop.Order", **more: str) -> ProtobufFormat:
    given = {key.replace("_", "-"): value for key, value in more.items()}
    return ProtobufFormat(
        TableOptions("t", {"message-class-name": name, "descriptor-set": str(path), **given})
    )


def test_rows_are_read_as_they_were_written_also_by_another_process(descriptors: Path) -> None:
    place = Row("Oslo", 2.5)
    row = Row(
        7,
        "ann",
        ["a", "b"],
        {"x": 1 << 40},
        place,
        "LARGE",
        -1,
        b"\x00\xff",
        [place, Row("Rome", None)],
        1.5,
        {"home": place},
        True,
        -2,
    )
    used = made(descriptors)
    writer, reader = (pickle.loads(pickle.dumps(each)) for each in (used.writer(ORDER), used.reader(ORDER)))
    assert reader.deserialize(writer.serialize(row)) == row


def test_the_bytes_are_protobufs(descriptors: Path) -> None:
    some = columns(("id", D.INT()), ("name", D.STRING()))
    assert made(descriptors).writer(some).serialize(Row(150, "hi")) == b"\x08\x96\x01\x12\x02hi"


def test_a_field_that_is_not_set_is_null_if_it_can_tell(descriptors: Path) -> None:
    empty = made(descriptors).reader(ORDER).deserialize(b"")
    assert empty.as_dict() == {
        "id": 0,
        "name": None,
        "tags": None,
        "counts": None,
        "place": None,
        "kind": "NONE",
        "size": 0,
        "raw": b"",
        "stops": None,
        "price": 0.0,
        "places": None,
        "paid": False,
        "big": 0,
    }
    old = columns(("id", D.INT()), ("note", D.STRING()))
    assert made(descriptors, "Old").reader(old).deserialize(b"\x08\x01") == Row(1, None)


def test_defaults_are_read_where_they_are_asked_for(descriptors: Path) -> None:
    old = columns(("id", D.INT()), ("note", D.STRING()))
    reader = made(descriptors, "Old", read_default_values="true").reader(old)
    assert reader.deserialize(b"\x08\x01") == Row(1, "none")
    nested = columns(("tags", D.ARRAY(D.STRING())), ("place", PLACE))
    reader = made(descriptors, read_default_values="true").reader(nested)
    assert reader.deserialize(b"") == Row([], Row("", 0.0))


def test_nulls_in_arrays_and_maps_are_written_as_defaults(descriptors: Path) -> None:
    some = columns(("tags", D.ARRAY(D.STRING())), ("counts", D.MAP(D.STRING(), D.BIGINT())))
    used = made(descriptors, write_null_string_literal="-")
    written = used.writer(some).serialize(Row(["a", None], {None: 1, "b": None}))
    assert used.reader(some).deserialize(written) == Row(["a", "-"], {"-": 1, "b": 0})


def test_enums_are_numbers_in_columns_of_numbers(descriptors: Path) -> None:
    numbers, names = columns(("kind", D.BIGINT())), columns(("kind", D.STRING()))
    used = made(descriptors)
    assert used.reader(numbers).deserialize(used.writer(names).serialize(Row("LARGE"))) == Row(5)
    assert used.reader(names).deserialize(used.writer(numbers).serialize(Row(77))) == Row("UNRECOGNIZED")
    with pytest.raises(FormatError, match=r"enum shop\.Kind has no value 'HUGE'"):
        used.writer(names).serialize(Row("HUGE"))


def test_invalid_messages_fail_or_are_skipped(descriptors: Path) -> None:
    some = columns(("id", D.INT()))
    with pytest.raises(FormatError, match=r"expected a message of shop\.Order"):
        made(descriptors).reader(some).deserialize(b"\xff\xff")
    assert made(descriptors, ignore_parse_errors="true").reader(some).deserialize(b"\xff\xff") is None
    with pytest.raises(FormatError, match="Old"):
        made(descriptors, "Old").writer(columns(("note", D.STRING()))).serialize(Row("x"))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (("missing", D.INT()), "has no field 'missing'"),
        (("id", D.BIGINT()), r"shop\.Order\.id cannot be a column of type BIGINT"),
        (("tags", D.STRING()), "declare it as ARRAY"),
        (("counts", D.MAP(D.STRING(), D.INT())), "declare it as BIGINT"),
        (("place", D.STRING()), "declare it as ROW"),
        (("raw", D.STRING()), "declare it as BYTES"),
    ],
)
def test_columns_that_do_not_fit_are_refused(descriptors: Path, column: tuple[str, Any], said: str) -> None:
    with pytest.raises(JobDefinitionError, match=said):
        made(descriptors).reader(columns(column))


def test_the_name_of_the_java_class_is_understood(descriptors: Path) -> None:
    some = columns(("id", D.INT()))
    for name in ("com.shop.Orders$Order", "shop.Order"):
        assert made(descriptors, name).reader(some).deserialize(b"\x08\x01") == Row(1)


def test_a_generated_class_is_found_by_its_module(descriptors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_orders_pb2")
    module.Order = made(descriptors)._definition.message_class()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop_orders_pb2", module)
    used = ProtobufFormat(TableOptions("t", {"message-class-name": "shop_orders_pb2.Order"}))
    reader = pickle.loads(pickle.dumps(used.reader(columns(("id", D.INT())))))
    assert reader.deserialize(b"\x08\x05") == Row(5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"message-class-name": "com.shop.Order"}, "not a message class generated by protoc"),
        ({"message-class-name": "json.JSONDecoder"}, "not a message class"),
        ({}, "message-class-name"),
        ({"message-class-name": "x", "descriptor-set": "/nowhere"}, "cannot read the descriptor set"),
        ({"message-class-name": "x", "descriptor-set": __file__}, "is not a descriptor set"),
    ],
)
def test_types_that_cannot_be_found_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(HeadraceError, match=said):
        ProtobufFormat(TableOptions("t", options))


def test_a_type_that_is_not_in_the_descriptor_set_is_refused(descriptors: Path) -> None:
    with pytest.raises(JobDefinitionError, match="has no message type") as caught:
        made(descriptors, "shop.Odrer")
    assert "shop.Order" in str(caught.value)

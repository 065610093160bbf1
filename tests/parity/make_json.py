"""Record what Flink's two JSON decoders make of the messages in json_messages.py.

python -m tests.parity.make_json     with the Python of Flink's environment
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from py4j.java_collections import JavaArray, JavaMap
from py4j.java_gateway import JavaObject
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes
from pyflink.table.types import _to_java_data_type

from tests.unit.formats.json_messages import MESSAGES, TYPES, VALUES

RECORDED = Path(__file__).parents[1] / "unit/formats/flink_json.json"


def main() -> None:
    found: dict[str, Any] = {"values": {}, "messages": {}}
    for name in TYPES:
        decoders = list(_decoders([("v", _type(name))]))
        found["values"][name] = {
            value: [_decoded(each, f'{{"v": {value}}}') for each in decoders] for value in VALUES
        }
    row = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())])
    for fails_on_missing in (False, True):
        decoders = list(
            _decoders([("a", DataTypes.INT()), ("b", DataTypes.STRING()), ("c", row)], fails_on_missing)
        )
        found["messages"]["fail" if fails_on_missing else "null"] = {
            message: [_decoded(each, message) for each in decoders] for message in MESSAGES
        }
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=True) + "\n", "utf-8")


def _type(name: str) -> Any:
    row = [DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())]
    return {
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
        "ROW<x INT, y STRING>": DataTypes.ROW(row),
    }[name]


def _decoders(fields: Sequence[tuple[str, Any]], fails_on_missing: bool = False) -> Iterator[Any]:
    """Make the streaming decoder, and the one over trees: strict, and ignoring errors."""
    jvm = get_gateway().jvm
    data_type = _to_java_data_type(DataTypes.ROW([DataTypes.FIELD(*each) for each in fields]))
    row_type = data_type.getLogicalType()
    made = jvm.org.apache.flink.table.runtime.typeutils.InternalTypeInfo.of(row_type)
    sql = jvm.org.apache.flink.formats.common.TimestampFormat.SQL
    converter = jvm.org.apache.flink.table.data.conversion.DataStructureConverters.getConverter(data_type)
    converter.open(jvm.Thread.currentThread().getContextClassLoader())
    package = jvm.org.apache.flink.formats.json
    for ignores in (False, True) if not fails_on_missing else (False,):
        for kind in (
            package.JsonParserRowDataDeserializationSchema,
            package.JsonRowDataDeserializationSchema,
        ):
            decoder = kind(row_type, made, fails_on_missing, ignores, sql)
            decoder.open(None)
            yield decoder, converter


def _decoded(pair: Any, message: str) -> Any:
    """Return the rows of a message, or "error"."""
    decoder, converter = pair
    jvm = get_gateway().jvm
    rows = jvm.java.util.ArrayList()
    collector = jvm.org.apache.flink.api.common.functions.util.ListCollector(rows)
    try:
        decoder.deserialize(message.encode(), collector)
    except Exception:
        return "error"
    return [None if each is None else _plain(converter.toExternal(each)) for each in rows]


def _plain(value: Any) -> Any:
    """Return a value of Java as JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, JavaMap):
        return {each: _plain(value[each]) for each in value}
    if isinstance(value, JavaArray):
        return [_plain(each) for each in value]
    if isinstance(value, JavaObject) and value.getClass().getSimpleName() == "Row":
        return [_plain(value.getField(at)) for at in range(value.getArity())]
    return str(value)


if __name__ == "__main__":
    main()

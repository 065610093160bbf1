"""The type of rows that a JSON schema describes, by Flink's mapping (JsonRowSchemaConverter)."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.common.typeinfo import RowTypeInfo, TypeInformation, Types
from headrace.errors import JobDefinitionError

_FORMATS = {
    "date": Types.SQL_DATE,
    "time": Types.SQL_TIME,
    "date-time": Types.SQL_TIMESTAMP,
}


def type_from_json_schema(text: str) -> RowTypeInfo:
    """Return the type of the rows.

    Raises:
        JobDefinitionError: The schema is no JSON, does not describe an object, or says what no type can.
    """
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise JobDefinitionError(f"Invalid JSON schema: {error}") from None
    found = _Converter(schema).convert(schema, "<root>")
    if not isinstance(found, RowTypeInfo):
        raise JobDefinitionError("Invalid JSON schema: its root must describe an object")
    return found


class _Converter:
    def __init__(self, root: Any) -> None:
        self._root = root

    def convert(self, node: Any, where: str) -> TypeInformation:
        if not isinstance(node, dict):
            raise self._invalid(where, f"expected an object, got {node!r}")
        if "$ref" in node:
            return self.convert(self._resolve(node["$ref"], where), where)
        if "oneOf" in node:
            return self._one_of(node["oneOf"], where)
        kind = node.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"]
            if len(kinds) != 1:
                raise self._invalid(where, f"only one type, or one type and null, is supported; got {kind}")
            kind = kinds[0]
        return self._typed(kind, node, where)

    def _typed(self, kind: Any, node: dict[str, Any], where: str) -> TypeInformation:
        if kind == "object":
            properties = node.get("properties")
            if not isinstance(properties, dict):
                raise self._invalid(where, "an object must have properties")
            types = [self.convert(each, f"{where}/{name}") for name, each in properties.items()]
            return Types.ROW_NAMED(list(properties), types)
        if kind == "array":
            return self._array(node, where)
        if kind == "string":
            if node.get("contentEncoding") == "base64":
                return Types.PRIMITIVE_ARRAY(Types.BYTE())
            make = _FORMATS.get(node.get("format", ""), Types.STRING)
            return make()
        simple = {"integer": Types.BIG_INT, "number": Types.BIG_DEC, "boolean": Types.BOOLEAN}
        if kind not in simple:
            raise self._invalid(where, f"unknown type {kind!r}")
        return simple[kind]()

    def _array(self, node: dict[str, Any], where: str) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, list):
            return Types.TUPLE([self.convert(each, f"{where}[{i}]") for i, each in enumerate(items)])
        if items is None:
            raise self._invalid(where, "an array must have items")
        return Types.OBJECT_ARRAY(self.convert(items, f"{where}[]"))

    def _one_of(self, choices: Any, where: str) -> TypeInformation:
        kept = [each for each in choices if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(kept) != 1 or len(choices) > 2:
            raise self._invalid(where, "oneOf is supported only for one type and null")
        return self.convert(kept[0], where)

    def _resolve(self, reference: str, where: str) -> Any:
        node = self._root
        if not reference.startswith("#/"):
            raise self._invalid(where, f"only references within the schema are supported; got {reference!r}")
        for part in reference[2:].split("/"):
            if not isinstance(node, dict) or part not in node:
                raise self._invalid(where, f"the reference {reference!r} points to nothing")
            node = node[part]
        return node

    def _invalid(self, where: str, problem: str) -> JobDefinitionError:
        return JobDefinitionError(f"Invalid JSON schema at {where}: {problem}")

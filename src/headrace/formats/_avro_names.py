"""Records of Avro under other names: a record can be read whatever its schema calls it, as in Java."""

from __future__ import annotations

import copy
from typing import Any, Final

__all__ = ["with_names_of"]

_RECORDS: Final = ("record", "error")


def with_names_of(reader: Any, writer: Any) -> Any:
    """Return a reader's schema whose records have those of the writer's, at the same places, as aliases.

    Args:
        reader: What rows are to look like, as fastavro has parsed it.
        writer: What the records were written with, as fastavro has parsed it.
    """
    if not isinstance(reader, dict):
        return reader
    found = copy.deepcopy(reader)
    _Aliases().add(found, writer)
    return found


class _Aliases:
    def __init__(self) -> None:
        self._readers: dict[str, Any] = {}
        self._writers: dict[str, Any] = {}
        self._seen: set[tuple[str, str]] = set()

    def add(self, reader: Any, writer: Any) -> None:
        if isinstance(reader, list) or isinstance(writer, list):
            for r in reader if isinstance(reader, list) else [reader]:
                for w in writer if isinstance(writer, list) else [writer]:
                    self.add(r, w)
            return
        reader, writer = self._known(reader, self._readers), self._known(writer, self._writers)
        if not isinstance(reader, dict) or not isinstance(writer, dict):
            return
        kind = reader["type"]
        if kind in _RECORDS and writer["type"] in _RECORDS:
            self._add_record(reader, writer)
        elif kind == writer["type"] == "array":
            self.add(reader["items"], writer["items"])
        elif kind == writer["type"] == "map":
            self.add(reader["values"], writer["values"])

    def _add_record(self, reader: dict[str, Any], writer: dict[str, Any]) -> None:
        if (pair := (reader["name"], writer["name"])) in self._seen:
            return
        self._seen.add(pair)
        if writer["name"] not in reader.setdefault("aliases", []):
            reader["aliases"].append(writer["name"])
        written = {field["name"]: field["type"] for field in writer["fields"]}
        for field in reader["fields"]:
            if field["name"] in written:
                self.add(field["type"], written[field["name"]])

    def _known(self, schema: Any, named: dict[str, Any]) -> Any:
        """Return the definition of a type, and remember it under its name."""
        if isinstance(schema, str):
            return named.get(schema, schema)
        if "name" in schema:
            named[schema["name"]] = schema
        return schema

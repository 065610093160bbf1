"""The shape of JSON: which keys there are, and what kind of value each has."""

from __future__ import annotations

import re
from typing import Any

_ID = re.compile(r"[0-9a-f]{32}")


def shape_of(value: Any) -> Any:
    """Return keys and kinds; of a list, the shape of what is in it."""
    if isinstance(value, dict):
        return {
            ("<id>" if _ID.fullmatch(key) else key): shape_of(each) for key, each in sorted(value.items())
        }
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    if value == "NaN":
        return "number"
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    return kinds[type(value)]


def differences(expected: Any, found: Any, place: str = "$") -> list[str]:
    """Say where a shape is not the expected one; null, and what is empty, fits anything."""
    if "null" in (expected, found) or expected in ([], {}) or found in ([], {}):
        return []
    if isinstance(expected, dict) and isinstance(found, dict):
        problems = [f"{place}.{key}: missing" for key in expected.keys() - found.keys()]
        problems += [f"{place}.{key}: not Flink's" for key in found.keys() - expected.keys()]
        for key in expected.keys() & found.keys():
            problems += differences(expected[key], found[key], f"{place}.{key}")
        return sorted(problems)
    if isinstance(expected, list) and isinstance(found, list):
        return differences(expected[0], found[0], f"{place}[]")
    return [] if expected == found else [f"{place}: {found} instead of {expected}"]

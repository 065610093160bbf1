"""Accumulators as REST shows them: their kind and value as text, and, for our own clients, the value itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.common.accumulators import Accumulator
from headrace.errors import shorten
from headrace.rest.http import Body


class UserAccumulatorBody(Body):
    name: str
    type: str
    value: str


def shown_accumulators(totals: Mapping[str, Accumulator[Any, Any]]) -> list[UserAccumulatorBody]:
    """Show accumulators by name, kind and value."""
    return [
        UserAccumulatorBody(name=name, type=type(total).__name__, value=_text(total.get_local_value()))
        for name, total in totals.items()
    ]


def packed_accumulators(totals: Mapping[str, Accumulator[Any, Any]]) -> dict[str, str]:
    """Pack values for `unpacked_accumulators`: msgpack, so that reading them runs nothing."""
    return {name: _packed(total.get_local_value()) for name, total in totals.items()}


def unpacked_accumulators(packed: Mapping[str, str]) -> dict[str, Any]:
    """Read what `packed_accumulators` wrote; what msgpack has no form for comes as its text."""
    return {name: msgspec.msgpack.decode(base64.b64decode(text)) for name, text in packed.items()}


def _packed(value: Any) -> str:
    try:
        packed = msgspec.msgpack.encode(value, enc_hook=shorten)
    except Exception:  # noqa: BLE001 - integers beyond 64 bits, keys of any kind, what refers to itself
        packed = msgspec.msgpack.encode(_text(value))
    return base64.b64encode(packed).decode("ascii")


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a class of the user's
        return shorten(value)

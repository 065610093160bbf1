"""Requests and responses, without a server: what handlers see of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from headrace.rest.errors import RestError

T = TypeVar("T")

JSON = "application/json; charset=UTF-8"
TEXT = "text/plain; charset=UTF-8"
#: A job that is submitted: a `StoredJob` in msgpack.
JOB_TYPE = "application/vnd.headrace.job"


@dataclass(frozen=True)
class Request:
    """What a client asks."""

    method: str
    #: Without `/v1`, without the query.
    path: str
    #: Of the path, by name; checked.
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    #: Names are in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: The client's address.
    client: str = ""
    #: Of the protocol, as the path says; None if it does not.
    version: int | None = None

    @property
    def content_type(self) -> str:
        """What the body is, without parameters, in lower case; empty if the client does not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read(self, kind: type[T]) -> T:
        """Read the JSON of the body.

        Raises:
            RestError: If it is not what the request takes.
        """
        body = self.body.strip() or b"{}"
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            # To JSON, 3.0 is a whole number like 3.
            with suppress(msgspec.MsgspecError, RecursionError):
                return msgspec.convert(_with_whole_numbers(msgspec.json.decode(body)), kind)
            raise RestError(400, f"Bad request: invalid body: {error}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RestError(400, f"Bad request: invalid body: {error}") from error

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """Read a number from the query.

        Raises:
            RestError: If it is not valid, or out of bounds.
        """
        text = self.query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
            raise RestError(400, f"Bad request: {name} must be a number between {least} and {most}")
        return int(text)

    def names(self, name: str) -> list[str] | None:
        """Read a list, separated by commas, from the query; None if it is not there."""
        text = self.query.get(name)
        return None if text is None else [part for part in text.split(",") if part]


@dataclass(frozen=True)
class Response:
    """What a client gets."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def json_response(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status)


def _with_whole_numbers(value: Any) -> Any:
    """Return JSON with numbers that are whole as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: _with_whole_numbers(each) for name, each in value.items()}
    return value


def error_response(status: int, *messages: str, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with an error, in Flink's shape."""
    return Response(msgspec.json.encode({"errors": list(messages)}), status, headers=headers or {})


class Body(msgspec.Struct, rename="kebab"):
    """Base of bodies: names are written with hyphens, as Flink mostly does; others are given by field."""


class CamelBody(msgspec.Struct, rename="camel"):
    """Base of bodies whose names are camelCase in Flink."""


class SnakeBody(msgspec.Struct):
    """Base of bodies whose names are snake_case in Flink."""


class Empty(msgspec.Struct, frozen=True):
    """An answer that says nothing but its status: `{}`."""


#: Flink writes a number that is none as text.
Number = float | str


def number(value: float) -> Number:
    """Write a number; `NaN` is text, since JSON has none."""
    return "NaN" if value != value else value  # noqa: PLR0124 - that is what NaN is

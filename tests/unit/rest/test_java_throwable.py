"""Objects in Java's stream format, taken apart again. That Java reads them is seen in tests/e2e."""

from __future__ import annotations

import base64

import pytest

from headrace.rest.java_throwable import serialized_throwable


def test_the_object_has_the_class_and_its_texts() -> None:
    data = base64.b64decode(serialized_throwable("headrace.errors.StateError", "it broke", "trace"))
    assert data.startswith(b"\xac\xed\x00\x05\x73\x72\x00\x29org.apache.flink.util.SerializedThrowable")
    assert data.endswith(b"t\x00\x08it broke" + b"t\x00\x05trace" + b"t\x00\x1aheadrace.errors.StateError")


@pytest.mark.parametrize(
    ("text", "encoded"),
    [("\0", b"\xc0\x80"), ("é", b"\xc3\xa9"), ("…", b"\xe2\x80\xa6"), ("𝄞", b"\xed\xa0\xb4\xed\xb4\x9e")],
)
def test_text_is_written_as_java_does(text: str, encoded: bytes) -> None:
    data = base64.b64decode(serialized_throwable("c", text, "s"))
    assert b"t" + len(encoded).to_bytes(2, "big") + encoded in data


def test_a_long_text_is_written_whole() -> None:
    data = base64.b64decode(serialized_throwable("c", "m", "x" * 70_000))
    assert b"\x7c" + (70_000).to_bytes(8, "big") + b"xxx" in data

"""JSON messages as Python objects, before a declared type decides what happens to them."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import msgspec

from headrace.common.typeinfo import TypeInformation
from headrace.errors import FormatError
from headrace.formats._json_writers import JsonNumber

TOO_DEEP: Final = "expected JSON: it is nested too deeply"


class JsonDecoding(Enum):
    """Which of Flink's decoders decides what happens to a value that is not of the type of its column."""

    #: That of PyFlink's DataStream API.
    STREAM = "stream"
    #: That of tables, which goes through a message word by word: a number becomes the STRING that stands there.
    WORDS = "words"
    #: The one before it, which makes a tree of a message first: a number becomes a STRING as Java writes a DOUBLE, and
    #: what is not a string is not BYTES, and what is not an object is an empty MAP.
    TREE = "tree"


def decoder_for(
    type_info: TypeInformation, decoding: JsonDecoding = JsonDecoding.STREAM
) -> Callable[[bytes], Any]:
    """Return a JSON parser. Only where decimals or texts are declared are numbers read as such, which is slower."""
    summary = type_info.summary()
    if decoding is JsonDecoding.WORDS and "STRING" in summary:
        return msgspec.json.Decoder(float_hook=JsonNumber).decode
    has_decimals = "BIG_DEC" in summary
    return msgspec.json.Decoder(float_hook=Decimal).decode if has_decimals else msgspec.json.Decoder().decode


def load_json(decode: Callable[[bytes], Any], message: bytes) -> Any:
    """Parse a message.

    Raises:
        FormatError: It is not JSON.
    """
    try:
        return decode(message)
    except RecursionError:
        raise FormatError(TOO_DEEP, example=message) from None
    except (ValueError, ArithmeticError) as error:
        if message.startswith(codecs.BOM_UTF8):
            return load_json(decode, message.removeprefix(codecs.BOM_UTF8))
        raise FormatError(f"expected JSON: {_reason(error)}", example=message) from None


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"a string is not valid UTF-8: {error.reason}"
    if isinstance(error, ArithmeticError):
        return "the exponent of a number is too large"
    return str(error)

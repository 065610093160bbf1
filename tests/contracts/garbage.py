"""Bytes that are not what a format expects, from a seed: cut off, changed, made up, or odd in ways that have a name."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

DEEP = 100_000

#: JSON that is not a record, or hardly one.
ODD_JSON = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"null",
    b"1",
    b"[]",
    b'"x"',
    b"NaN",
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"[" * DEEP + b"]" * DEEP,
    b'{"untyped":' + b"[" * DEEP + b"]" * DEEP + b"}",
    b'{"untyped":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"text":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"int": 1, "int": 2}',
    b'{"text": "\\ud800"}',
    b'{"text": "\\ud800\\ud800"}',
    b'{"text": "\xed\xa0\x80"}',
    b'{"text": "\xff"}',
    b'{"\xff": 1}',
    b'{"text": "\x00"}',
    b'{"text": "\\u0000"}',
    b'{"before": 1, "after": [], "op": {}}',
]

#: JSON values, for a field of any type.
ODD_VALUES = [
    *(
        "1e999",
        "-1e999",
        "1e400",
        "1E-999",
        "1e99999999",
        "1e-99999999",
        "1e9999999999999999999",
        "-0.0",
        "1.0e",
        "01",
    ),
    *("9" * 50, "9" * 5000, "1" + "0" * 400, "0." + "1" * 5000),
    *("128", "-129", "32768", "2147483648", "9223372036854775808", "-9223372036854775809", "1.5", "1e30"),
    *("NaN", "Infinity", '"NaN"', '"Infinity"', '"-Infinity"', '"nan"', '"inf"', '"sNaN"'),
    *(
        '"1e999999999999"',
        '"1_0"',
        '"\\u0661"',
        '"9223372036854775808"',
        f'"{"9" * 5000}"',
        '""',
        '" "',
        '"0x10"',
    ),
    *('"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"', '"2020-02-30"', '"2020-02-30 00:00:00"'),
    *('"25:00:00"', '"12:00:00+25:00"', '"99999-01-01 00:00:00"', '"2020-01-01T24:00:00"', '"24:00:00"'),
    *(
        "[]",
        "{}",
        "[null]",
        "[1e999]",
        "[1, [2]]",
        '{"x": null}',
        '{"x": 1e999}',
        '{"k": "x"}',
        "true",
        '"yes"',
    ),
    *('"\\ud800"', '"A"', '"AQI"', '"\\u00e9"', "null"),
]


def mutated(random_: random.Random, valid: bytes) -> bytes:
    """Return a message with a few bytes changed, left out, added or doubled."""
    data = bytearray(valid)
    for _ in range(random_.randint(1, 4)):
        if not data:
            break
        at = random_.randrange(len(data))
        match random_.randrange(5):
            case 0:
                data[at] = random_.randrange(256)
            case 1:
                del data[at : at + random_.randint(1, 8)]
            case 2:
                data[at:at] = random_.randbytes(random_.randint(1, 6))
            case 3:
                data[at] ^= 1 << random_.randrange(8)
            case _:
                other = random_.randrange(len(data))
                data[at:at] = data[other : other + random_.randint(1, 20)]
    return bytes(data)


def garbage(random_: random.Random, valid: Sequence[bytes], count: int) -> Iterator[bytes]:
    """Yield messages that are made up, cut off or changed; a few of them are still right."""
    for _ in range(count):
        chosen = random_.choice(valid)
        match random_.randrange(4):
            case 0:
                yield random_.randbytes(random_.randint(0, 80))
            case 1:
                yield chosen[: random_.randrange(len(chosen) + 1)]
            case _:
                yield mutated(random_, chosen)


def odd_json(fields: Sequence[str]) -> list[bytes]:
    """Return odd JSON, and objects with an odd value in each of the fields."""
    objects = [f'{{"{field}": {value}}}'.encode() for field in fields for value in ODD_VALUES]
    return [*ODD_JSON, *objects]

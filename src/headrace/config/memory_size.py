"""An amount of memory or data as a value, so that no number in headrace stands without its unit.

PyFlink's `MemorySize`; `headrace.datastream` shows it to users under that name. Units are powers of 1024.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from headrace.errors import UnsupportedFeatureError

__all__ = ["MemorySize"]

_UNITS: Final = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kibibytes": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mebibytes": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gibibytes": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
    "tebibytes": 1 << 40,
}
_FORM: Final = re.compile(r"(\d+)\s*([a-z]*)")


@dataclass(init=False, repr=False, order=True, unsafe_hash=True)
class MemorySize:
    """A number of bytes.

    Args:
        bytes_size: How many bytes; not negative.

    Raises:
        ValueError: If the number is negative.

    Example:
        >>> MemorySize.of_mebi_bytes(64)
        MemorySize('64 mb')
        >>> MemorySize.parse("1g").get_mebi_bytes()
        1024
    """

    __slots__ = ("_bytes",)

    _bytes: int

    def __init__(self, bytes_size: int) -> None:
        if bytes_size < 0:
            raise ValueError(f"a memory size must not be negative; got {bytes_size}")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return a size of this many MiB."""
        return MemorySize(mebi_bytes << 20)

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Read `64 mb`, `1g`, `512 kb` or a plain number of bytes.

        Raises:
            ValueError: If the text has another form.
        """
        match = _FORM.fullmatch(text.strip().lower())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"not a memory size: {text!r}; write for example '64 mb'")
        return MemorySize(int(match[1]) * _UNITS[match[2]])

    def get_bytes(self) -> int:
        """Return the size in bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """Return the size in whole KiB."""
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        """Return the size in whole MiB."""
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        """Return the size in whole GiB."""
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        """Return the size in whole TiB."""
        return self._bytes >> 40

    def get_java_memory_size(self) -> NoReturn:
        """Not there: headrace has no Java objects behind its values.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("get_java_memory_size", "use the Python object itself")

    def __str__(self) -> str:
        """Write the size exactly, in the largest unit that allows it."""
        for unit in ("tb", "gb", "mb", "kb"):
            if self._bytes and self._bytes % _UNITS[unit] == 0:
                return f"{self._bytes // _UNITS[unit]} {unit}"
        return f"{self._bytes} bytes"

    def __repr__(self) -> str:
        return f"MemorySize('{self}')"

r"""Bytes to lines, in the worker: `a\nb\r\nc` is three lines.

Lines end with `\n`; one `\r` before it, or at the very end, belongs to the ending. What follows the last
`\n` is a line unless it is empty. Bytes that the charset does not know become U+FFFD, as in Flink (Java's
`InputStreamReader`).

Work goes by blocks: whole lines are cut off a block, decoded at once and split at once.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Protocol

#: How much is read at a time. A line may be longer.
BLOCK_BYTES = 1 << 20

#: Charsets in which the byte 0x0A is a line feed wherever it stands, and nothing else is. Names as `codecs`
#: has them.
_NEWLINE_IS_A_BYTE = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp125\d|cp(437|850|852|855|858|866|932|949|950)|koi8-[rtu]|mac-(roman|latin2)"
    r"|gbk|gb2312|gb18030|big5|euc_(jp|kr)|shift_jis"
)


class RandomAccessFile(Protocol):
    """What of a `pyarrow.NativeFile` is needed here."""

    def seek(self, position: int) -> object:
        """Go to a byte."""

    def read(self, nbytes: int) -> bytes:
        """Read this many bytes; fewer only at the end."""


def has_byte_newline(charset: str) -> bool:
    """Whether lines of this charset can be found without decoding, hence from any byte on."""
    return _NEWLINE_IS_A_BYTE.fullmatch(codecs.lookup(charset).name) is not None


def blocks_of(file: RandomAccessFile, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Read a file to its end."""
    while block := file.read(block_bytes):
        yield block


def as_utf8(blocks: Iterable[bytes], charset: str) -> Iterator[bytes]:
    """Write blocks of a charset without a newline byte (UTF-16, EBCDIC) in one that has it."""
    decoder = codecs.getincrementaldecoder(charset)(errors="replace")
    for block in blocks:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Cut the blocks again, each piece at the end of a line. Only the last may lack its `\n`."""
    begun: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*begun, block[:cut]])
            begun = [block[cut:]] if cut < len(block) else []
        elif block:
            begun.append(block)
    if begun:
        yield b"".join(begun)


def count_lines(data: bytes) -> int:
    """Count the lines in whole lines."""
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def first_lines(data: bytes, count: int) -> bytes:
    """Cut off what follows the first lines."""
    pieces = data.split(b"\n", count)
    return data if len(pieces) <= count else data[: len(data) - len(pieces[-1])]


def decode_lines(data: bytes, charset: str) -> list[str]:
    """Decode whole lines; their endings are dropped."""
    text = data.decode(charset, "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    last = lines.pop()
    if last:
        lines.append(last.removesuffix("\r"))
    return lines


def split_lines(data: bytes) -> list[bytes]:
    r"""Cut whole lines apart, without `\n`."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def first_line_start(file: RandomAccessFile, position: int, end: int, block_bytes: int = BLOCK_BYTES) -> int:
    """Return where the first line begins at or after the position; `end` if none does before it."""
    if position == 0:
        return 0
    # A line starts at the position if the byte before it ends one:
    #     ...last line of the range before\nfirst of ours\n
    #                    ^ position - 1      ^ returned
    offset = position - 1
    file.seek(offset)
    size = 1
    while offset < end - 1:
        block = file.read(size)
        found = block.find(b"\n")
        if found >= 0:
            return min(offset + found + 1, end)
        if not block:
            break
        offset += len(block)
        size = block_bytes
    return end


def lines_before(
    file: RandomAccessFile, position: int, end: int, block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """Yield the lines that start before the end of a range, from one that starts at the position, in pieces."""
    file.seek(position)
    for data in whole_lines(blocks_of(file, block_bytes)):
        if position >= end:
            return
        # The last line of ours is the one that holds the last byte of the range.
        cut = data.find(b"\n", end - 1 - position) + 1 if position + len(data) > end else 0
        yield data[:cut] if cut else data
        position += cut or len(data)

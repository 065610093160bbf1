"""Reading documents: fenced blocks, links and headings of the README and of everything in docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The changelog links to the world, configuration.md is generated; neither has programs, both have links.
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    path: Path
    line: int
    #: What stands after the opening fence: a language, and perhaps a word more.
    info: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """Return the fenced blocks of a document, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(path, text.count("\n", 0, match.start()) + 1, match[1].strip(), match[2])
        for match in _FENCE.finditer(text)
    ]


def programs() -> Iterator[tuple[Block, str | None]]:
    """Yield the blocks that are whole programs, each with what it prints if the document says so.

    A block marked ``python`` is a program. If the next block is marked ``text`` it is what the program prints.
    """
    for path in DOCUMENTS:
        blocks = blocks_of(path)
        for block, following in zip_longest(blocks, blocks[1:]):
            if block.info == "python":
                yield block, following.text if following is not None and following.info == "text" else None


def prose_of(path: Path) -> str:
    """Return a document without its fenced blocks and indented lines."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return "\n".join(line for line in text.splitlines() if not line.startswith("    "))


def links_of(path: Path) -> list[str]:
    """Return the targets of a document's links."""
    return _LINK.findall(prose_of(path))


def anchors_of(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a document."""
    headings = _HEADING.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

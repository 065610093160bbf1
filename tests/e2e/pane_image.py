"""The screen of a terminal as an SVG image: text in cells, with its colours."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

_CELL_WIDTH, _LINE_HEIGHT, _MARGIN = 8.4, 18, 12
_BACKGROUND, _TEXT = "#1d1f21", "#d8dbdf"
#: The eight colours of terminals, then the bright ones.
_COLORS = (
    *("#1d1f21", "#e06c6c", "#8fbf6f", "#d9b25f", "#6ea3e0", "#c08ad6", "#62b8b8", "#d8dbdf"),
    *("#7d838c", "#f08b8b", "#a9d68b", "#eccb80", "#8fbcf0", "#d5a6e8", "#82d0d0", "#ffffff"),
)
_STEPS = (0, 95, 135, 175, 215, 255)
_PIECES = re.compile(r"\x1b\[([0-9;]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|([^\x1b]+)")


@dataclass(frozen=True)
class _Look:
    color: str | None = None
    background: str | None = None
    is_bold: bool = False
    is_italic: bool = False
    is_reverse: bool = False


def pane_image(screen: str, columns: int = 100) -> str:
    """Return an SVG image of what `tmux capture-pane -e` printed."""
    lines = screen.rstrip("\n").split("\n")
    width, height = columns * _CELL_WIDTH + 2 * _MARGIN, len(lines) * _LINE_HEIGHT + 2 * _MARGIN
    drawn: list[str] = []
    look = _Look()
    for number, line in enumerate(lines):
        column = 0
        for codes, text in _PIECES.findall(line):
            if not text:
                look = _changed(look, codes)
                continue
            drawn += _piece(text, look, column, number)
            column += len(text)
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        f'font-size="14">\n<rect width="100%" height="100%" rx="6" fill="{_BACKGROUND}"/>\n{body}\n</svg>\n'
    )


def _piece(text: str, look: _Look, column: int, line: int) -> list[str]:
    front, back = look.color or _TEXT, look.background
    if look.is_reverse:
        front, back = back or _BACKGROUND, front
    left, top = _MARGIN + column * _CELL_WIDTH, _MARGIN + line * _LINE_HEIGHT
    length = len(text) * _CELL_WIDTH
    drawn = []
    if back is not None:
        drawn.append(
            f'<rect x="{left:.1f}" y="{top}" width="{length:.1f}" height="{_LINE_HEIGHT}" fill="{back}"/>'
        )
    if text.strip():
        style = ' font-weight="bold"' * look.is_bold + ' font-style="italic"' * look.is_italic
        drawn.append(
            f'<text x="{left:.1f}" y="{top + 13}" textLength="{length:.1f}" xml:space="preserve" '
            f'fill="{front}"{style}>{escape(text)}</text>'
        )
    return drawn


def _changed(look: _Look, codes: str) -> _Look:
    given = [int(code or 0) for code in codes.split(";")]
    while given:
        code = given.pop(0)
        match code:
            case 0:
                look = _Look()
            case 1:
                look = replace(look, is_bold=True)
            case 3:
                look = replace(look, is_italic=True)
            case 7:
                look = replace(look, is_reverse=True)
            case 22:
                look = replace(look, is_bold=False)
            case 23:
                look = replace(look, is_italic=False)
            case 27:
                look = replace(look, is_reverse=False)
            case 38:
                look = replace(look, color=_color(given))
            case 39:
                look = replace(look, color=None)
            case 48:
                look = replace(look, background=_color(given))
            case 49:
                look = replace(look, background=None)
            case _ if 30 <= code <= 37 or 90 <= code <= 97:
                look = replace(look, color=_COLORS[code - 30 if code < 90 else code - 82])
            case _ if 40 <= code <= 47 or 100 <= code <= 107:
                look = replace(look, background=_COLORS[code - 40 if code < 100 else code - 92])
    return look


def _color(given: list[int]) -> str:
    """Take a colour of 256, or one of red, green and blue, from what follows 38 or 48."""
    if given.pop(0) == 2:
        return "#{:02x}{:02x}{:02x}".format(*(given.pop(0) for _ in range(3)))
    number = given.pop(0)
    if number < 16:
        return _COLORS[number]
    if number >= 232:
        return "#{0:02x}{0:02x}{0:02x}".format(8 + 10 * (number - 232))
    number -= 16
    return "#{:02x}{:02x}{:02x}".format(*(_STEPS[number // each % 6] for each in (36, 6, 1)))

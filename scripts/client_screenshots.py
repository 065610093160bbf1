"""Take the screenshots of `headrace sql` in docs/sql/client.md: tmux drives the client, Chromium draws what it shows.

python -m scripts.client_screenshots [docs/images]
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.terminal import Terminal
from tests.web.browser import launched

_COLORS = ("#2e3436", "#c4314b", "#4e9a06", "#b58900", "#3465a4", "#8a5ea8", "#06989a", "#d3d7cf")
_BRIGHT = ("#888a85", "#ef5350", "#8ae234", "#e6c547", "#729fcf", "#b48ead", "#34e2e2", "#ffffff")
_BACKGROUND, _FOREGROUND = "#1b1e24", "#d8dee9"
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: {background}; }}
pre {{ display: inline-block; margin: 0; padding: 14px 18px; color: {foreground};
  font: 14px/1.3 "DejaVu Sans Mono", monospace; }}
</style><pre id="screen">{text}</pre>"""
_CUBE = (0, 95, 135, 175, 215, 255)


class _Style:
    """What the last escape sequences have asked for."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.color: str | None = None
        self.ground: str | None = None
        self.is_bold = self.is_reverse = self.is_underlined = False

    def apply(self, codes: list[int]) -> None:
        given = iter(codes or [0])
        for code in given:
            match code:
                case 0:
                    self.reset()
                case 1:
                    self.is_bold = True
                case 4:
                    self.is_underlined = True
                case 7:
                    self.is_reverse = True
                case 22 | 24 | 27:
                    setattr(self, {22: "is_bold", 24: "is_underlined", 27: "is_reverse"}[code], False)
                case 38 | 48:
                    setattr(self, "color" if code == 38 else "ground", _extended(given))
                case 39:
                    self.color = None
                case 49:
                    self.ground = None
                case _:
                    self._palette(code)

    def _palette(self, code: int) -> None:
        for start, colors in ((30, _COLORS), (90, _BRIGHT)):
            if start <= code < start + 8:
                self.color = colors[code - start]
            elif start + 10 <= code < start + 18:
                self.ground = colors[code - start - 10]

    def css(self) -> str:
        color, ground = self.color or _FOREGROUND, self.ground or _BACKGROUND
        if self.is_reverse:
            color, ground = ground, color
        rules = [f"color:{color}"]
        if ground != _BACKGROUND:
            rules.append(f"background:{ground}")
        if self.is_bold:
            rules.append("font-weight:bold")
        if self.is_underlined:
            rules.append("text-decoration:underline")
        return ";".join(rules)


def _extended(codes: Iterator[int]) -> str:
    kind = next(codes)
    if kind == 2:
        return "#{:02x}{:02x}{:02x}".format(*(next(codes) for _ in range(3)))
    number = next(codes)
    if number < 16:
        return (*_COLORS, *_BRIGHT)[number]
    if number >= 232:
        level = 8 + (number - 232) * 10
        return f"#{level:02x}{level:02x}{level:02x}"
    number -= 16
    red, green, blue = (_CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6])
    return f"#{red:02x}{green:02x}{blue:02x}"


def page_of(screen: str) -> str:
    """Return a page that shows a screen as tmux captures it, with its escape sequences."""
    style, parts = _Style(), []
    for piece in re.split(r"(\x1b\[[0-9;:]*m)", screen.rstrip("\n")):
        if piece.startswith("\x1b["):
            style.apply([int(each or 0) for each in re.split("[;:]", piece[2:-1])])
        elif piece:
            parts.append(f'<span style="{style.css()}">{html.escape(piece)}</span>')
    return _PAGE.format(background=_BACKGROUND, foreground=_FOREGROUND, text="".join(parts))


def screens(folder: Path) -> dict[str, str]:
    """Drive the client and return its screens by name."""
    client = [sys.executable, "-m", "headrace.cli.main", "sql", "-p", "1", "--master", "local[2]"]
    options = ["-D", "headrace.rest.enabled=false", "--history", str(folder / "history")]
    terminal = Terminal([*client, *options], folder)
    shown = {}
    try:
        terminal.wait_for("headrace>", 120)
        terminal.type("CREATE TABLE clicks (page STRING, user_id INT) WITH ('connector' = 'datagen',")
        terminal.type("  'rows-per-second' = '20', 'fields.user_id.min' = '1', 'fields.user_id.max' = '5');")
        terminal.wait_for("OK")
        terminal.press("C-l")
        terminal.type_only("SELECT COUNT(*) FROM clicks WHERE us")
        terminal.press("Tab")
        terminal.wait_for("user_id")
        shown["client_completion"] = terminal.screen(has_colors=True)
        terminal.press("C-c")
        terminal.press("C-l")
        terminal.type("SELECT user_i FROM clicks;")
        terminal.wait_for("did you mean")
        terminal.type("SELECT user_id, COUNT(*) AS clicks FROM clicks GROUP BY user_id;")
        terminal.wait_for("rows 1–5 of 5", 180)
        shown["client_table"] = terminal.screen(has_colors=True)
        terminal.press("q")
        terminal.wait_for("query cancelled:")
        shown["client_prompt"] = terminal.screen(has_colors=True)
        terminal.type("quit;")
        terminal.wait_for("Pane is dead")
    finally:
        terminal.close()
    return shown


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = screens(Path(scratch))
    with launched() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 600})
        for name, screen in found.items():
            page.set_content(page_of(screen))
            page.locator("#screen").screenshot(path=str(target / f"{name}.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))

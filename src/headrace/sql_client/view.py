"""A query on the whole screen: its rows while it runs, in pages.

SELECT name, COUNT(*) ...                                     running · 1,204 rows received
+--------------------------------+----------------------+
|                           name |                    n |
+--------------------------------+----------------------+
|                            ann |                    3 |
rows 1–20 of 54                    q quit  ↑↓ scroll  PgUp PgDn page  ...
"""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.styles import BaseStyle

from headrace.sql_client.feed import RowFeed, RowFeedState
from headrace.sql_client.rows import ShownRows
from headrace.table._printing import TableFrame

__all__ = ["ResultView"]

#: Lines of the screen that show no rows: title, frame around the names, the last line.
_OTHER_LINES = 5
_KEYS = ("q quit", "↑↓←→ scroll", "PgUp PgDn page", "Home End first, last")
#: What else there is while the query runs.
_CANCEL = "Ctrl-C cancel"
#: A row of the result takes one line of the screen, whatever its texts contain.
_ONE_LINE = str.maketrans("\t\n", "  ")


class ResultView:
    """Shows a query until the user leaves.

    Args:
        sql: The query.
        frame: Draws rows.
        rows: What was received so far.
        feed: Receives the rest.
        style: The colours.
        refresh_s: How often the screen is drawn again.
    """

    def __init__(
        self,
        sql: str,
        frame: TableFrame,
        rows: ShownRows,
        feed: RowFeed,
        style: BaseStyle,
        refresh_s: float = 0.25,
    ) -> None:
        self._sql = " ".join(sql.split())
        self._frame = frame
        self._rows = rows
        self._feed = feed
        #: The first row on the screen; None follows the last rows.
        self._top: int | None = None
        #: How many characters are left of the screen.
        self._left = 0
        parts = [self._title, self._header, self._body, self._foot]
        heights = [1, 3, None, 1]
        windows = [
            Window(FormattedTextControl(part), height=height, wrap_lines=False)
            for part, height in zip(parts, heights, strict=True)
        ]
        self.application: Application[None] = Application(
            Layout(HSplit(windows)),
            key_bindings=self._bindings(),
            full_screen=True,
            refresh_interval=refresh_s,
            style=style,
        )

    def run(self) -> None:
        """Show the query. It is cancelled if it still runs when the user leaves."""
        self._feed.start()
        try:
            self.application.run(handle_sigint=False)
        finally:
            self._feed.cancel()

    # -- what is shown -----------------------------------------------------------------------------------------

    @property
    def _page(self) -> int:
        return max(1, self.application.output.get_size().rows - _OTHER_LINES)

    @property
    def _first(self) -> int:
        last = max(0, len(self._rows) - self._page)
        return last if self._top is None else min(self._top, last)

    def _title(self) -> StyleAndTextTuples:
        state = self._feed.state
        right = f" {state.value} · {self._rows.received:,} rows received "
        width = self.application.output.get_size().columns
        left = f" {self._sql}"
        room = max(0, width - len(right))
        left = left[: room - 1] + "…" if len(left) > room else left.ljust(room)
        return [("class:view.title", left), (f"class:view.title class:view.{state.value}", right)]

    def _header(self) -> StyleAndTextTuples:
        return [("class:view.header", "\n".join(line[self._left :] for line in self._frame.header))]

    def _body(self) -> StyleAndTextTuples:
        first = self._first
        lines = [self._frame.row(row).translate(_ONE_LINE) for row in self._rows.slice(first, self._page)]
        if len(lines) < self._page:
            lines.append(self._frame.border)
        return [("", "\n".join(line[self._left :] for line in lines))]

    def _foot(self) -> StyleAndTextTuples:
        if self._feed.error is not None:
            return [("class:view.failed", f" {' '.join(str(self._feed.error).split())} ")]
        count, first = len(self._rows), self._first
        shown = min(self._page, count - first)
        place = f" rows {first + 1:,}–{first + shown:,} of {count:,} " if count else " no rows "
        width = self.application.output.get_size().columns
        keys = self._keys(width - len(place) - 2)
        return [
            ("class:view.foot", (place + " " * max(1, width - len(place) - len(keys) - 1) + keys)[:width])
        ]

    def _keys(self, room: int) -> str:
        """Say which keys there are: in a narrow terminal, those that end the query."""
        is_running = self._feed.state is RowFeedState.RUNNING
        keys = [*_KEYS, _CANCEL] if is_running else list(_KEYS)
        while len("  ".join(keys)) > room and len(keys) > 1 + is_running:
            keys.pop(-1 - is_running)
        return "  ".join(keys)

    # -- keys --------------------------------------------------------------------------------------------------

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        def on(*keys: str) -> Callable[[Callable[[], None]], None]:
            def bind(act: Callable[[], None]) -> None:
                for key in keys:
                    bindings.add(key)(lambda event, act=act: act())

            return bind

        on("up", "k")(lambda: self._scroll(-1))
        on("down", "j")(lambda: self._scroll(1))
        on("pageup", "p")(lambda: self._scroll(-self._page))
        on("pagedown", "n", " ")(lambda: self._scroll(self._page))
        on("home", "g")(lambda: self._go(0))
        on("end", "G")(lambda: self._go(None))
        on("left")(lambda: self._shift(-8))
        on("right")(lambda: self._shift(8))

        @bindings.add("q")
        @bindings.add("Q")
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit()

        @bindings.add("c-c")
        def _cancel(event: KeyPressEvent) -> None:
            if self._feed.state is RowFeedState.RUNNING:
                self._feed.cancel()
            else:
                event.app.exit()

        return bindings

    def _scroll(self, by: int) -> None:
        top = max(0, self._first + by)
        # Whoever has reached the last rows follows them from there.
        self._top = None if by > 0 and top >= len(self._rows) - self._page else top

    def _go(self, top: int | None) -> None:
        self._top = top

    def _shift(self, by: int) -> None:
        self._left = max(0, min(self._left + by, len(self._frame.border) - 10))

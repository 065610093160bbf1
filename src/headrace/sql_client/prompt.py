"""Where statements are typed: completion, history, several lines, highlighting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from headrace.errors import HeadraceError
from headrace.sql_client.text import highlighted, is_complete

__all__ = ["STYLE", "StatementPrompt"]

STYLE: Final = Style.from_dict(
    {
        "sql.keyword": "ansiblue bold",
        "sql.string": "ansigreen",
        "sql.name": "ansimagenta",
        "sql.number": "ansicyan",
        "sql.comment": "ansibrightblack italic",
        "sql.hint": "ansiyellow",
        "prompt": "bold",
        "view.title": "reverse",
        "view.header": "bold",
        "view.failed": "ansired reverse",
        "view.foot": "reverse",
    }
)
_PROMPT: Final = "headrace> "
_WORD: Final = re.compile(r"[\w.`$]*\Z")


class _SqlLexer(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines: list[StyleAndTextTuples] = [[]]
        # The whole text at once: a string or comment may go over several lines.
        for style, piece in highlighted(document.text):
            first, *others = piece.split("\n")
            lines[-1].append((style, first))
            lines += [[(style, other)] for other in others]
        return lambda number: lines[number] if number < len(lines) else []


class _GatewayCompleter(Completer):
    """Offers what the gateway knows.

    Args:
        complete: Asks it for what the word before a position may become.
    """

    def __init__(self, complete: Callable[[str, int], list[str]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        word = _WORD.search(document.text_before_cursor)
        length = 0 if word is None else len(word.group())
        try:
            found = self._complete(document.text, document.cursor_position)
        except HeadraceError:  # nobody can do anything about it while typing; the statement says it again
            found = []
        # The gateway writes keywords in capitals; the user who types them small gets them small.
        is_small = word is not None and word.group().islower()
        for each in found:
            yield Completion(each.lower() if is_small and each.isupper() else each, start_position=-length)


class StatementPrompt:
    """Reads statements from a terminal.

    Args:
        complete: Returns what the word before a position may become.
        history: The file of earlier statements; None keeps them in memory.
    """

    def __init__(self, complete: Callable[[str, int], list[str]], history: Path | None = None) -> None:
        kept: History = InMemoryHistory()
        if history is not None:
            history.parent.mkdir(parents=True, exist_ok=True)
            # Statements may have passwords in them.
            history.touch(mode=0o600)
            kept = FileHistory(str(history))
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", _PROMPT)],
            lexer=_SqlLexer(),
            completer=ThreadedCompleter(_GatewayCompleter(complete)),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            history=kept,
            multiline=True,
            prompt_continuation=lambda width, number, is_soft_wrap: [("class:prompt", "> ".rjust(width))],
            key_bindings=_bindings(),
            style=STYLE,
            include_default_pygments_style=False,
        )

    def read(self) -> str:
        """Return what was typed, up to the semicolon.

        Raises:
            KeyboardInterrupt: Ctrl-C: what was typed is discarded.
            EOFError: Ctrl-D: there is nothing more.
        """
        return self._session.prompt()

    def confirm(self, question: str) -> bool:
        """Ask for a yes."""
        asked: PromptSession[str] = PromptSession(style=STYLE)
        try:
            return asked.prompt([("class:prompt", f"{question} [y/N] ")]).strip().lower() in {"y", "yes"}
        except (EOFError, KeyboardInterrupt):
            return False


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @Condition
    def is_choosing() -> bool:
        from prompt_toolkit.application import get_app

        state = get_app().current_buffer.complete_state
        return state is not None and state.current_completion is not None

    @bindings.add("enter", filter=~(has_completions & is_choosing))
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # In the middle of a text Enter begins a line there.
        if is_complete(buffer.text) and not buffer.document.text_after_cursor.strip():
            buffer.validate_and_handle()
        else:
            # Without the indentation of the line before: text that is pasted as if it were typed has its own.
            buffer.newline(copy_margin=False)

    @bindings.add("enter", filter=has_completions & is_choosing)
    def _choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings

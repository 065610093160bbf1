"""Pages of the documentation that are written from the code: by `make docs`, and checked by a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def write_or_check(page: Path, render: Callable[[str], str], arguments: Sequence[str]) -> int:
    """Write a page, or with ``--check`` only say whether it is up to date.

    Args:
        page: The file.
        render: Makes the page of what it says now, which is empty if there is none.
        arguments: Those of the command.

    Returns:
        The exit code.
    """
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    made = render(text)
    if list(arguments) == ["--check"]:
        return int(text != made)
    page.write_text(made, encoding="utf-8")
    return 0

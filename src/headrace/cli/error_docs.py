"""Writes docs/errors.md from the docstrings of the error classes, and says when it is stale.

python -m headrace.cli.error_docs            # write the page
python -m headrace.cli.error_docs --check    # fail if it differs
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from headrace import errors
from headrace.cli.errors import exit_code_of
from headrace.errors import HeadraceError
from headrace.runtime.checkpoint.failure_reason import CheckpointFailureReason
from headrace.util.generated_page import write_or_check

__all__ = ["PAGE", "describe", "main", "render"]

#: The page in a checkout of the repository.
PAGE: Final = Path(__file__).parents[3] / "docs" / "errors.md"

_HEAD: Final = """\
# Errors

<!-- Written by `python -m headrace.cli.error_docs` from src/headrace/errors. Change it there. -->

Every error that headrace raises on purpose is a `headrace.errors.HeadraceError`. The message says where the error
happened, what was expected and what was found; a last line that starts with `hint:` says what to do. Errors have three
attributes that programs can rely on:

| attribute | meaning |
|---|---|
| `domain` | who has to act: `user` (you), `external` (a system that headrace talks to), `internal` (headrace) |
| `retryable` | whether the same attempt may succeed later with nothing changed; one error may differ from its class |
| `hint` | what to do about it, or None |

`headrace run` ends with the exit code of the error: 2 if nothing has run because the usage, the configuration or the
program is wrong, 3 if another process leads the job, 1 for every other failure.

"""
_REASONS: Final = """\
## Checkpoint failure reasons

`CheckpointError.reason` is one of these. Those that count are compared with
`execution.checkpointing.tolerable-failed-checkpoints`.

| reason | meaning | counts |
|---|---|---|
"""
_SECTION: Final = re.compile(r"^(Cause|Remedy):\n((?:    .*\n?|\n)+)", flags=re.MULTILINE)


def render(_: str = "") -> str:
    """Make the text of the page."""
    sections = [_render_class(kind, depth) for kind, depth in _classes(HeadraceError, 0)]
    reasons = [
        f"| `{reason.name}` | {reason.message} | {'yes' if reason.counts else 'no'} |"
        for reason in CheckpointFailureReason
    ]
    return _HEAD + "\n".join(sections) + "\n" + _REASONS + "\n".join(reasons) + "\n"


def _classes(kind: type[HeadraceError], depth: int) -> Iterator[tuple[type[HeadraceError], int]]:
    """Yield a class and all below it, each with its depth in the tree, in the order of the package's `__all__`."""
    yield kind, depth
    for each in (getattr(errors, name) for name in errors.__all__):
        if inspect.isclass(each) and issubclass(each, HeadraceError) and kind in each.__bases__:
            yield from _classes(each, depth + 1)


def describe(kind: type[HeadraceError]) -> tuple[str, str, str]:
    """Return what an error class means, its cause and its remedy, as its docstring says."""
    text = inspect.getdoc(kind) or ""
    found = {match[1]: " ".join(match[2].split()) for match in _SECTION.finditer(text)}
    summary = " ".join(text.partition("\n\n")[0].split())
    return summary, found.get("Cause", ""), found.get("Remedy", "")


def _render_class(kind: type[HeadraceError], depth: int) -> str:
    summary, cause, remedy = describe(kind)
    parent = f" Subclass of `{kind.__bases__[0].__name__}`." if depth > 1 else ""
    retry = "retryable" if kind.retryable else "not retryable"
    return (
        f"{'##' if depth <= 1 else '###'} {kind.__name__}\n\n"
        f"{summary}{parent}\n\n"
        f"- **Cause:** {cause}\n"
        f"- **Remedy:** {remedy}\n"
        f"- Domain `{kind.domain}`, {retry}, exit code {exit_code_of(kind('')).value}.\n"
    )


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    return write_or_check(PAGE, render, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

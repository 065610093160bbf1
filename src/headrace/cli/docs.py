"""Writes the reference of commands in docs/cli.md from their help, and says when it is stale.

python -m headrace.cli.docs            # write it
python -m headrace.cli.docs --check    # fail if it differs
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from headrace.cli.main import cli
from headrace.util.generated_page import write_or_check

#: The page in a checkout of the repository.
PAGE: Final = Path(__file__).parents[3] / "docs" / "cli.md"
_BEGIN: Final = "<!-- Written by `python -m headrace.cli.docs` from src/headrace/cli. -->\n"
_END: Final = "<!-- The end of what is written. -->\n"
#: As `headrace --help` has them, whatever the terminal.
_SETTINGS: Final[dict[str, Any]] = {
    "terminal_width": 100,
    "max_content_width": 100,
    "help_option_names": ["-h", "--help"],
}


def render(text: str) -> str:
    """Return the page with the help of all commands."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    sections = [
        f"### {name}\n\n{textwrap.indent(shown, '    ')}\n" for name, shown in _commands(cli, "headrace")
    ]
    return "".join((before, _BEGIN, "\n", "\n".join(sections), "\n", _END, after))


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        full = f"{prefix} {name}"
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from _commands(command, full)
        else:
            context = click.Context(command, info_name=full, **_SETTINGS)
            lines = (line.rstrip() for line in command.get_help(context).splitlines())
            yield full, "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    return write_or_check(PAGE, render, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

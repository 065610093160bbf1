"""Writes the table of endpoints in docs/rest.md, and says when it is stale.

python -m headrace.rest.docs            # write it
python -m headrace.rest.docs --check    # fail if it differs
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from headrace.rest.application import ENDPOINTS
from headrace.util.generated_page import write_or_check

#: The page in a checkout of the repository.
PAGE: Final = Path(__file__).parents[3] / "docs" / "rest.md"
_BEGIN: Final = "<!-- Written by `python -m headrace.rest.docs` from src/headrace/rest/resources. -->\n"
_END: Final = "<!-- The end of what is written. -->\n"


def render(text: str) -> str:
    """Return the page with the table of all endpoints."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = [f"| {each.method} | `{each.path}` | {each.summary} |" for each in ENDPOINTS]
    table = "\n".join(["", "| method | path | what |", "|---|---|---|", *rows, "", ""])
    return f"{before}{_BEGIN}{table}{_END}{after}"


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    return write_or_check(PAGE, render, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

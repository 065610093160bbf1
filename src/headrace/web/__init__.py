"""The web page: static files that speak only REST. They are read once and served from memory.

    index.html      the page, at /
    css/, js/       everything else, below /web/; js/main.js is where it begins
    js/views/       a module per view

No build step, no framework: ES modules as they are written. `headrace.rest.page` serves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["page_files"]

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_files() -> Mapping[str, tuple[bytes, str]]:
    """Return the files of the page by name, such as ``js/main.js``: what is in them, and its type."""
    return dict(_walk(resources.files(__name__), ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, tuple[bytes, str]]]:
    found = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _walk(entry, f"{name}/")
        elif (suffix := f".{entry.name.rpartition('.')[2]}") in _TYPES:
            found.append((name, (entry.read_bytes(), _TYPES[suffix])))
    return found

"""Docstrings for the site: a section `Example:` is what the reader of docstrings calls `Examples:`."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Lets doctests under `Example:` be shown as code instead of running text."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)

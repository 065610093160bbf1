"""Which entry of the import path a Python file, package or zip file stands for."""

from __future__ import annotations

import os
import sys

__all__ = ["add_to_import_path"]


def add_to_import_path(path: str) -> None:
    """Let this process import what a job ships: a file by its name, a directory's or zip file's content.

    Args:
        path: A path of this machine; what is elsewhere is for workers only.
    """
    place = os.path.abspath(path.removeprefix("file://"))
    entry = os.path.dirname(place) if place.endswith(".py") else place
    if os.path.exists(place) and entry not in sys.path:
        sys.path.append(entry)

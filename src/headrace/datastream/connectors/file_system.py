"""Text files as source and sink, under PyFlink's names: `pyflink.datastream.connectors.file_system`."""

from __future__ import annotations

from headrace.connectors import file
from headrace.connectors.file import *  # noqa: F403 - PyFlink's place for all of it

__all__: list[str] = []
__all__ += file.__all__

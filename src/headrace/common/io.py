"""The base of input formats, under PyFlink's name. Formats live in `headrace.connectors` and `formats`."""

from __future__ import annotations

from headrace.common.utils import JavaObjectWrapper

__all__ = ["InputFormat"]


class InputFormat(JavaObjectWrapper):
    """A way to read records from files, for `StreamExecutionEnvironment.create_input`."""

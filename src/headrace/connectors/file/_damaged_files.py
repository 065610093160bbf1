"""Formats whose library may end the process that reads a damaged file.

When that happens, Spark runs the task again. This time the file is read in a process of its own first, so that the
error can name it.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

from headrace.connectors.base import ReaderContext
from headrace.connectors.file._bulk import BulkFormat
from headrace.errors import FormatError
from headrace.util.other_process import KilledError, run_program


class CarefulFormat(BulkFormat):
    """A format that looks out for files that end the process."""

    #: The name of the format in errors.
    _name: ClassVar[str]
    #: Reads the file on the standard input. Exceptions do not matter: they are raised again later.
    _reading_program: ClassVar[str]
    _context: ReaderContext | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_context"}

    def opened(self, context: ReaderContext) -> Self:
        """Return a format that checks files in another process first when a task is retried."""
        made = copy.copy(self)
        made._context = context
        return made

    def _see_that_it_is_readable(self, file: Any) -> None:
        """Read a file in another process if this is not the first try.

        Raises:
            FormatError: That process was ended by a signal.
        """
        if self._context is None or not self._context.attempt:
            return
        file.seek(0)
        try:
            run_program(self._reading_program, file.read())
        except KilledError as error:
            raise FormatError(
                f"the {self._name} file is damaged: the process reading it was killed by {error.signal}"
            ) from None
        finally:
            file.seek(0)

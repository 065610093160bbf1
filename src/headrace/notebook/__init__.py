"""Headrace in Jupyter and IPython: results that update while a query runs, and SQL in cells.

    %load_ext headrace.notebook

docs/notebooks.md says what that gives you. It needs the extra ``notebook``: ``pip install 'headrace[notebook]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.datastream.closeable_iterator import CloseableIterator as StreamRows
from headrace.errors import HeadraceError
from headrace.notebook.display import plot, show
from headrace.notebook.magic import FlinkSqlMagics
from headrace.notebook.tracebacks import show_short_traceback
from headrace.table.table_result import TableResult

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "plot", "show"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Install everything; called by ``%load_ext headrace.notebook``."""
    shell.register_magics(FlinkSqlMagics)
    shell.set_custom_exc((HeadraceError,), show_short_traceback)
    formatter: Any = shell.display_formatter
    for kind in (TableResult, StreamRows):
        formatter.ipython_display_formatter.for_type(kind, show)

"""Shows a result in a notebook and updates it while the query runs."""

from __future__ import annotations

import contextlib
import io
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from IPython.display import display

from headrace.datastream.closeable_iterator import CloseableIterator as StreamRows
from headrace.errors import JobDefinitionError
from headrace.notebook.changing_table import ChangingTable
from headrace.table.result_kind import ResultKind
from headrace.table.table_result import CloseableIterator as TableRows
from headrace.table.table_result import TableResult
from headrace.util.closing import ClosedOnExit

__all__ = ["plot", "show"]

# A person sees a table change about this often; a front end that draws a large one keeps up with it, too.
_SECONDS_BETWEEN_UPDATES: Final = 0.25
# Rows that arrive faster than they are shown wait here; then the query waits.
_WAITING_ROWS: Final = 10_000


class _View(Protocol):
    """What a cell shows: it takes rows and draws itself."""

    def apply(self, row: Any) -> None: ...

    def draw(self, status: str) -> dict[str, Any]: ...


class _TableView:
    def __init__(self, table: ChangingTable) -> None:
        self._table = table
        self.apply = table.apply

    def draw(self, status: str) -> dict[str, Any]:
        return {"text/html": self._table.to_html(status), "text/plain": self._table.to_text(status)}


class _PlotView:
    """A chart of the table's present rows."""

    def __init__(self, table: ChangingTable, names: list[str], x: str, y: str, kind: str) -> None:
        self._table = table
        self._x, self._y = _column(names, x), _column(names, y)
        self._labels = (x, y)
        self._kind = kind
        self.apply = table.apply

    def draw(self, status: str) -> dict[str, Any]:
        from matplotlib.figure import Figure

        rows = sorted(self._table.rows, key=lambda row: (row[self._x] is None, row[self._x]))
        figure = Figure(figsize=(7, 3.5), layout="constrained")
        axes = figure.subplots()
        xs, ys = [row[self._x] for row in rows], [row[self._y] for row in rows]
        if self._kind == "bar":
            axes.bar([str(each) for each in xs], ys)
        else:
            axes.plot(xs, ys)
        axes.set(xlabel=self._labels[0], ylabel=self._labels[1], title=self._table.to_text(status))
        image = io.BytesIO()
        figure.savefig(image, format="png")
        return {"image/png": image.getvalue(), "text/plain": self._table.to_text(status)}


def show(result: TableResult | StreamRows, *, rows: int = 20, changelog: bool = False) -> None:
    """Show a result below the cell and update it until the query has ended.

    Interrupting the kernel cancels the query; the rows that have arrived stay. A `TableResult`, and what
    `execute_and_collect()` returns, are shown like this when they are the last line of a cell.

    Args:
        result: The rows of a query or of a stream.
        rows: The most rows to show.
        changelog: Whether to show the last changes instead of the table that they lead to.
    """
    if isinstance(result, TableResult) and result.get_result_kind() is ResultKind.SUCCESS:
        display({"text/plain": "OK"}, raw=True)
        return
    table = _table_of(result, limit=rows, is_changelog=changelog)
    _update_until_the_end(_rows_of(result), _TableView(table))


def plot(result: TableResult, *, x: str, y: str, kind: str = "line") -> None:
    """Draw a chart of the table and update it until the query has ended. Needs matplotlib.

    Args:
        result: The rows of a query.
        x: The column along the x axis; rows are sorted by it.
        y: The column along the y axis.
        kind: ``"line"`` or ``"bar"``.

    Raises:
        JobDefinitionError: If there is no such column or kind.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise JobDefinitionError(
            "plot() needs matplotlib, which is not installed", hint="run pip install 'headrace[notebook]'"
        ) from error
    if kind not in ("line", "bar"):
        raise JobDefinitionError(f"unknown kind of chart: {kind!r}", hint='use "line" or "bar"')
    names = _names(result)
    table = _table_of(result, limit=0, is_changelog=False)
    _update_until_the_end(_rows_of(result), _PlotView(table, names, x, y, kind))


def _column(names: list[str], name: str) -> int:
    if name not in names:
        raise JobDefinitionError(
            f"the result has no column {name!r}", hint=f"its columns are {', '.join(names)}"
        )
    return names.index(name)


def _names(result: TableResult) -> list[str]:
    return result.get_table_schema().get_field_names()


def _table_of(result: TableResult | StreamRows, *, limit: int, is_changelog: bool) -> ChangingTable:
    if isinstance(result, TableResult):
        types = result.get_table_schema().get_field_data_types()
        return ChangingTable(_names(result), types, limit=limit, is_changelog=is_changelog)
    return ChangingTable(["value"], None, limit=limit, is_changelog=is_changelog)


def _rows_of(result: TableResult | StreamRows) -> TableRows | StreamRows:
    return result.collect() if isinstance(result, TableResult) else result


def _update_until_the_end(rows: TableRows | StreamRows, view: _View) -> None:
    handle = display(view.draw("running"), raw=True, display_id=True)
    status = "failed"
    with _RowsAhead(rows) as ahead:
        try:
            for batch in ahead.batches():
                for row in batch:
                    view.apply(row)
                handle.update(view.draw("running"), raw=True)
            status = "finished"
        except KeyboardInterrupt:
            # Leaving cancels the query, as the user asked. The rows that have arrived stay.
            status = "cancelled"
        finally:
            handle.update(view.draw(status), raw=True)


@dataclass(frozen=True)
class _End:
    """Follows the last row, with what the query failed with."""

    error: BaseException | None


class _RowsAhead(ClosedOnExit):
    """Reads rows in a thread of its own, so that those that have arrived are shown while the query continues."""

    def __init__(self, rows: TableRows | StreamRows) -> None:
        self._rows = rows
        self._arrived: queue.Queue[Any] = queue.Queue(_WAITING_ROWS)
        self._thread = threading.Thread(target=self._read, name="headrace-notebook-rows", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        error: BaseException | None = None
        try:
            for row in self._rows:
                self._arrived.put(row)
        except BaseException as raised:  # noqa: BLE001 - handed to the cell that waits for the rows
            error = raised
        self._arrived.put(_End(error))

    def batches(self) -> Iterator[list[Any]]:
        """Yield what has arrived, a few times a second.

        Raises:
            HeadraceError: If the query failed, after its rows.
        """
        while True:
            batch, end = self._next_batch()
            if batch:
                yield batch
            if end is not None:
                if end.error is not None:
                    raise end.error
                return

    def _next_batch(self) -> tuple[list[Any], _End | None]:
        batch: list[Any] = []
        wait: float | None = None  # for the first row as long as it takes
        until = 0.0
        while wait is None or wait > 0:
            try:
                row = self._arrived.get(timeout=wait)
            except queue.Empty:
                break
            if isinstance(row, _End):
                return batch, row
            batch.append(row)
            now = time.monotonic()
            until = until or now + _SECONDS_BETWEEN_UPDATES
            wait = until - now
        return batch, None

    def close(self) -> None:
        """Cancel the query if it runs, and wait until nothing reads its rows any more."""
        self._rows.close()
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._arrived.get(timeout=0.05)

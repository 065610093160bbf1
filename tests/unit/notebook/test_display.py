"""Results in a cell: drawn while rows arrive, and again at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import headrace.notebook as notebook
from headrace.common.types import Row
from headrace.errors import HeadraceError, JobDefinitionError
from headrace.notebook import display as display_module
from headrace.planner.logical import Field
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table.table_result import TableResult
from headrace.types import logical as t
from headrace.util.short_traces import without_our_frames


class _Handle:
    """Takes the place of what IPython's display() returns."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []
        self.has_rows = threading.Event()

    def display(self, data: dict[str, Any], **_: object) -> _Handle:
        self.shown.append(data)
        return self

    def update(self, data: dict[str, Any], **_: object) -> None:
        self.shown.append(data)
        if not data["text/plain"].startswith("0 "):
            self.has_rows.set()

    @property
    def texts(self) -> list[str]:
        return [each["text/plain"] for each in self.shown]


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> _Handle:
    handle = _Handle()
    monkeypatch.setattr(display_module, "display", handle.display)
    return handle


class _Rows(Iterator[Row]):
    """Rows of a query that can be closed, and may end with an error or with a Ctrl-C of the user."""

    def __init__(self, rows: list[Row], handle: _Handle, end: BaseException | None = None) -> None:
        self._rows, self._handle, self._end = iter(rows), handle, end
        self.is_closed = False

    def __next__(self) -> Row:
        for row in self._rows:
            return row
        self._handle.has_rows.wait(timeout=30)  # a query that continues: its rows are shown meanwhile
        raise self._end or StopIteration

    def close(self) -> None:
        self.is_closed = True


def _result(rows: _Rows) -> TableResult:
    return TableResult([Field("n", t.BigIntType())], lambda: rows)


def test_rows_are_shown_before_the_query_ends(handle: _Handle) -> None:
    rows = _Rows([Row(1), Row(2)], handle)
    notebook.show(_result(rows))
    assert handle.texts == ["0 rows; running", "2 rows; running", "2 rows; finished"]
    assert rows.is_closed


def test_rows_of_a_query_that_fails_stay(handle: _Handle) -> None:
    rows = _Rows([Row(1)], handle, JobDefinitionError("no"))
    with pytest.raises(JobDefinitionError):
        notebook.show(_result(rows))
    assert handle.texts[-1] == "1 rows; failed"


def test_an_interrupt_cancels_the_query_and_keeps_its_rows(handle: _Handle) -> None:
    rows = _Rows([Row(1)], handle, KeyboardInterrupt())
    notebook.show(_result(rows))
    assert handle.texts[-1] == "1 rows; cancelled"
    assert rows.is_closed


def test_a_chart_is_drawn_from_two_columns(handle: _Handle) -> None:
    rows = _Rows([Row(2, 10), Row(1, 20)], handle)
    result = TableResult([Field("x", t.BigIntType()), Field("y", t.BigIntType())], lambda: rows)
    notebook.plot(result, x="x", y="y", kind="bar")
    assert handle.shown[-1]["image/png"].startswith(b"\x89PNG")


def test_a_chart_of_an_unknown_column_is_refused(handle: _Handle) -> None:
    with pytest.raises(JobDefinitionError, match="no column 'z'"):
        notebook.plot(_result(_Rows([], handle)), x="z", y="n")


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell()
    notebook.load_ipython_extension(shell)
    yield shell
    shell.history_manager.end_session()


def test_a_cell_of_sql_shows_what_statements_answer(shell: InteractiveShell, handle: _Handle) -> None:
    shell.run_cell_magic("flink_sql", "", "CREATE TABLE t (n INT) WITH ('connector'='print'); SHOW TABLES")
    assert "t_env" in shell.user_ns
    handle.has_rows.set()
    assert handle.texts[-1] == "1 rows; finished"


def test_several_environments_must_be_named(shell: InteractiveShell) -> None:
    for name in ("a", "b"):
        shell.user_ns[name] = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with pytest.raises(JobDefinitionError, match="several table environments: a, b"):
        shell.run_cell_magic("flink_sql", "", "SHOW TABLES")
    shell.run_cell_magic("flink_sql", "--env b -o tables", "SHOW TABLES")
    assert isinstance(shell.user_ns["tables"], TableResult)


def test_errors_show_no_frames_of_headrace() -> None:
    def fail() -> TracebackType | None:
        try:
            TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).execute_sql("SELEC 1")
        except HeadraceError as error:
            return error.__traceback__
        return None

    trace = without_our_frames(fail())
    assert trace is not None
    assert trace.tb_frame.f_code.co_name == "fail"
    assert trace.tb_next is None

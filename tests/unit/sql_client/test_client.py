"""The client, driven by keys through a pipe: prompts, statements, screens, cancelling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from headrace.common.types import Row
from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import JobExecutionError
from headrace.gateway.sessions import Sessions
from headrace.planner.logical import Field
from headrace.sql_client.client import SqlClient
from headrace.sql_client.connection import EmbeddedConnection, FetchedRows, RunningStatement
from headrace.sql_client.prompt import STYLE, StatementPrompt
from headrace.sql_client.view import ResultView
from headrace.table.result_kind import ResultKind
from headrace.types import DataTypes
from tests.unit.sql_client.test_rows import changes

FIELDS = (Field("name", DataTypes.STRING()), Field("n", DataTypes.BIGINT()))


class Query:
    """A query whose portions are given; after them it runs on, or ends."""

    def __init__(self, *portions: list[Row], ends: bool = True, error: BaseException | None = None) -> None:
        self._portions = list(portions)
        self._ends = ends
        self._error = error
        self.calls: list[str] = []
        self.is_read = threading.Event()

    def fetch(self) -> FetchedRows:
        if self._portions:
            rows = self._portions.pop(0)
            return FetchedRows(FIELDS, rows, ResultKind.SUCCESS_WITH_CONTENT, is_query=True, job_id="j")
        self.is_read.set()
        if self._error is not None:
            raise self._error
        return FetchedRows(
            FIELDS, (), ResultKind.SUCCESS_WITH_CONTENT, is_query=True, job_id="j", is_last=self._ends
        )

    def close(self) -> None:
        self.calls.append("close")


class SessionConnection(EmbeddedConnection):
    """A session that needs no Spark: queries answer what a test says."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__(sessions)
        self.queries: list[Query] = []

    def submit(self, statement: str) -> RunningStatement:
        return self.queries.pop(0) if statement.startswith("SELECT") else super().submit(statement)


class Terminal:
    """A client with its keys and what it prints."""

    def __init__(self, connection: SessionConnection, keys: PipeInput) -> None:
        self.connection = connection
        self.keys = keys
        self.printed: list[str] = []
        self.errors: list[str] = []
        #: The screens of queries, when they were left.
        self.screens: list[str] = []
        self.on_screen: Callable[[ResultView], None] = lambda view: None
        self.client = self.make(has_screen=True)

    def make(self, *, has_screen: bool) -> SqlClient:
        return SqlClient(
            self.connection,
            write=self.printed.append,
            complain=self.errors.append,
            show=self._show if has_screen else None,
        )

    def _show(self, *parts: object) -> None:
        view = ResultView(*parts, style=STYLE, refresh_s=0.02)  # type: ignore[arg-type]
        self.on_screen(view)
        view.run()
        pieces = [*view._title(), *view._header(), *view._body(), *view._foot()]
        self.screens.append("\n".join(text for _, text, *_ in pieces))
        self.keys.send_text("quit\r")

    def type(self, text: str, history: Path | None = None, jobs: int = 0) -> None:
        """Type and let the client end."""
        self.keys.send_text(text)
        prompt = StatementPrompt(self.connection.complete, history)
        self.client.interact(prompt, lambda: jobs)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    sessions = Sessions(ExecutionContext(Configuration({})))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield Terminal(SessionConnection(sessions), keys)
    sessions.close()


def test_statements_may_have_several_lines(terminal: Terminal) -> None:
    terminal.type("CREATE TABLE t (\rid INT)\rWITH ('connector' = 'blackhole');\rSHOW TABLES;\rquit\r")
    assert terminal.errors == []
    assert terminal.printed[0] == "OK"
    assert "|          t |" in terminal.printed[1]
    assert terminal.printed[2] == "1 row in set"


def test_lines_keep_the_indentation_they_were_typed_with(terminal: Terminal) -> None:
    terminal.type("DESCRIBE\r  nothing\r  , v;\rquit\r")
    assert "\n  3 |   , v\n" in terminal.errors[0]


def test_an_error_is_shown_and_the_client_continues(terminal: Terminal) -> None:
    terminal.type("DESCRIBE missing;\rHELP;\rexit;\r")
    assert "'default_catalog.default_database.missing' does not exist" in terminal.errors[0]
    assert "Ctrl-C cancels it" in terminal.printed[0]


def test_tab_completes_tables_columns_and_keywords(terminal: Terminal) -> None:
    client = terminal.make(has_screen=False)
    client.run_script("CREATE TABLE visits (visitor STRING) WITH ('connector' = 'blackhole')")
    completer = StatementPrompt(terminal.connection.complete)._session.completer
    assert completer is not None

    def offered(text: str) -> list[str]:
        found = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [text[: len(text) + each.start_position] + each.text for each in found]

    assert "DESCRIBE" in offered("DESCRI")
    assert "describe" in offered("descri")
    assert offered("DESCRIBE vis") == ["DESCRIBE visits"]
    assert offered("SELECT visito") == []
    assert "SELECT COUNT" in offered("SELECT COUN")
    text = "SELECT visi FROM visits"
    document = Document(text, cursor_position=len("SELECT visi"))
    found = completer.get_completions(document, CompleteEvent(completion_requested=True))
    assert sorted(each.text for each in found) == ["visitor", "visits"]


def test_tab_completes_the_word_before_the_cursor(terminal: Terminal) -> None:
    prompt = StatementPrompt(lambda text, position: ["SHOW "] if text[:position] == "SHO" else [])

    def follow(buffer: Buffer) -> None:
        # What follows is typed when the word is there: completions come from another thread.
        if buffer.text == "SHOW ":
            terminal.keys.send_text("JOBS;\rquit\r")

    prompt._session.default_buffer.on_text_changed += follow
    terminal.keys.send_text("SHO\t")
    terminal.client.interact(prompt)
    assert terminal.printed == ["Empty set"]


def test_ctrl_c_discards_what_was_typed_and_ctrl_d_quits(terminal: Terminal) -> None:
    terminal.type("DROP TABLE\r t\x03SHOW JOBS;\r\x04")
    assert terminal.errors == []
    assert terminal.printed == ["Empty set"]


def test_statements_are_found_in_the_history(terminal: Terminal, tmp_path: Path) -> None:
    history = tmp_path / "state" / "history"
    terminal.type("SHOW CURRENT\rDATABASE;\rquit\r", history)
    terminal.type("\x1b[A\x1b[A\r\rquit\r", history)
    assert terminal.printed[0] == terminal.printed[2]
    assert history.stat().st_mode & 0o777 == 0o600


def test_who_quits_while_jobs_run_is_asked(terminal: Terminal) -> None:
    terminal.type("quit\rn\rSHOW JOBS;\rquit\ry\r", jobs=2)
    assert terminal.printed == ["Empty set"]


def test_a_query_is_a_table_on_the_screen(terminal: Terminal) -> None:
    query = Query(changes("+I ann 1", "+I bob 1"), changes("-U ann 1", "+U ann 2"), ends=False)
    terminal.connection.queries.append(query)
    terminal.on_screen = lambda view: _when_read(query, terminal, "q")
    terminal.type("SELECT name, COUNT(*) FROM t GROUP BY name;\r")
    [screen] = terminal.screens
    assert "SELECT name, COUNT(*) FROM t GROUP BY name" in screen
    assert "cancelled · 4 rows received" in screen
    assert screen.index("ann |                    2") < screen.index("bob |                    1")
    assert " op " not in screen
    assert query.calls == ["close", "close"]
    assert terminal.printed == ["query cancelled: 4 rows received, 2 shown"]


def test_ctrl_c_on_the_screen_cancels_the_query_and_leaves_its_rows(terminal: Terminal) -> None:
    query = Query(changes("+I ann 1", "-D ann 1"), ends=False)
    terminal.connection.queries.append(query)
    terminal.on_screen = lambda view: _when_read(query, terminal, "\x03q")
    terminal.type("SET 'sql-client.execution.result-mode' = 'changelog';\rSELECT 1;\r")
    assert "+I |" in terminal.screens[0]
    assert "-D |" in terminal.screens[0]
    assert terminal.printed == ["OK", "query cancelled: 2 rows received, 2 shown"]


def _when_read(query: Query, terminal: Terminal, keys: str) -> None:
    """Press keys once the rows of a query were fetched."""

    def press() -> None:
        assert query.is_read.wait(10)
        terminal.keys.send_text(keys)

    threading.Thread(target=press, daemon=True).start()


def test_pages_of_a_table(terminal: Terminal) -> None:
    query = Query(changes(*(f"+I name-{number} {number}" for number in range(100))))
    terminal.connection.queries.append(query)
    terminal.on_screen = lambda view: _when_read(query, terminal, "\x1b[Hq")  # Home
    terminal.type("SELECT 1;\r")
    # prompt_toolkit's output for nobody has 40 rows.
    assert "rows 1–35 of 100" in terminal.screens[0]
    assert "finished" in terminal.screens[0]
    assert "q quit" in terminal.screens[0]
    assert "Ctrl-C cancel" not in terminal.screens[0], "there is nothing left to cancel"
    assert terminal.printed == ["query finished: 100 rows received, 100 shown"]


def test_a_narrow_screen_shows_the_keys_that_fit(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DummyOutput, "get_size", lambda self: Size(rows=40, columns=50))
    query = Query(changes("+I ann 1"))
    terminal.connection.queries.append(query)
    terminal.on_screen = lambda view: _when_read(query, terminal, "q")
    terminal.type("SELECT 1;\r")
    foot = terminal.screens[0].rpartition("\n")[2]
    assert foot.endswith("q quit  ↑↓←→ scroll")
    assert len(foot) < 50


def test_a_query_that_fails_says_why(terminal: Terminal) -> None:
    query = Query(changes("+I ann 1"), error=JobExecutionError("the disk is full"))
    terminal.connection.queries.append(query)
    terminal.on_screen = lambda view: _when_read(query, terminal, "q")
    terminal.type("SELECT 1;\r")
    assert "the disk is full" in terminal.screens[0]
    assert terminal.errors == ["the disk is full"]


def test_scripts_print_rows_below_each_other_and_stop_at_an_error(terminal: Terminal) -> None:
    client = terminal.make(has_screen=False)
    terminal.connection.queries += [Query(changes("+I ann 1"), changes("-U ann 1", "+U ann 2")), Query()]
    script = "SELECT 1; SET 'execution.runtime-mode' = 'batch'; SELECT 2; DROP TABLE t; SHOW JOBS;"
    error = client.run_script(script)
    assert "table 'default_catalog.default_database.t' does not exist" in str(error)
    assert (
        "\n".join(terminal.printed)
        == """\
+----+--------------------------------+----------------------+
| op |                           name |                    n |
+----+--------------------------------+----------------------+
| +I |                            ann |                    1 |
| -U |                            ann |                    1 |
| +U |                            ann |                    2 |
+----+--------------------------------+----------------------+
Received a total of 3 rows
OK
Empty set"""
    )


def test_options_of_other_clients_are_refused(terminal: Terminal) -> None:
    client = terminal.make(has_screen=False)
    client.run_script("SET 'sql-client.verbose' = 'true'")
    assert "headrace sql does not have the option 'sql-client.verbose'" in terminal.errors[0]
    client.run_script("SET 'sql-client.execution.result-mode' = 'paper'")
    assert "paper" in terminal.errors[1]
    terminal.connection.queries.append(Query())
    client.run_script("SET 'sql-client.execution.result-mode' = 'table'; SELECT 1")
    assert "needs a terminal" in terminal.errors[2]


def test_ctrl_c_cancels_a_query_whose_rows_are_printed(terminal: Terminal) -> None:
    query = Query(changes("+I ann 1"), error=KeyboardInterrupt())
    terminal.connection.queries.append(query)
    terminal.type("SET 'sql-client.execution.result-mode' = 'tableau';\rSELECT 1;\rSHOW JOBS;\rquit\r")
    assert (
        terminal.printed[1].splitlines()[-1]
        == "| +I |                            ann |                    1 |"
    )
    assert terminal.printed[2] == "+----+--------------------------------+----------------------+"
    assert terminal.printed[3] == "Empty set"
    assert terminal.errors == ["cancelled; received a total of 1 row"]
    assert query.calls == ["close", "close"]

"""Executes what the user types, or what a script says, and shows the answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from headrace.config import Configuration
from headrace.config.options import execution
from headrace.config.options import sql_client as options
from headrace.config.options import table as table_options
from headrace.config.options.sql_client import ResultMode
from headrace.errors import ConfigurationError, HeadraceError
from headrace.sql_client.connection import FetchedRows, RunningStatement, SessionConnection
from headrace.sql_client.feed import RowFeed, RowFeedState, fetched
from headrace.sql_client.rows import ChangelogRows, CurrentRows, ShownRows
from headrace.sql_client.tableau import (
    ProgressLine,
    StatementClock,
    columns_of,
    counted,
    print_answer,
    print_query,
)
from headrace.sql_client.text import split_statements
from headrace.table._printing import TableFrame
from headrace.table.result_kind import ResultKind

__all__ = ["Prompt", "SqlClient"]

_SET_CLIENT: Final = re.compile(
    r"\s*SET\s+(?P<quote>'?)(?P<key>sql-client\.[\w.-]+)(?P=quote)\s*=\s*(?P<value>.*?)\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_OPTIONS: Final = (options.RESULT_MODE.key, options.MAX_ROWS.key)
HELP: Final = """\
Statements end with a semicolon and may have several lines.

  SELECT, WITH, VALUES            run a query and show its rows; Ctrl-C cancels it
  INSERT INTO                     start a job; SET 'table.dml-sync' = 'true' waits for its end
  BEGIN STATEMENT SET; ... END;   run several INSERTs as one job
  CREATE, ALTER, DROP, USE        change catalogs, databases, tables, views and functions
  SHOW, DESCRIBE, EXPLAIN         look at them
  SHOW JOBS, STOP JOB '<id>'      list jobs and stop them; WITH SAVEPOINT keeps their state
  SET, SET '<key>' = '<value>'    list and change options; RESET undoes that
  HELP, CLEAR, QUIT               commands of this client

Keys: Tab completes, ↑ and Ctrl-R find earlier statements, Ctrl-C discards the
input, Ctrl-D quits.

Rows are shown as a table, a changelog or a tableau:
  SET 'sql-client.execution.result-mode' = 'changelog';"""


class Prompt(Protocol):
    """Where statements are typed."""

    def read(self) -> str:
        """Return what was typed."""

    def confirm(self, question: str) -> bool:
        """Ask for a yes."""


class SqlClient:
    """Executes statements one after the other.

    Args:
        connection: The session that they are executed in.
        write: Prints lines of answers.
        complain: Prints errors.
        describe: Puts an error into words.
        progress: Where to show that a statement runs; None: nowhere.
        show: Shows a query on the whole screen: the query, how to draw rows, the rows, and what reads them. None where
            there is no screen.
    """

    def __init__(
        self,
        connection: SessionConnection,
        *,
        write: Callable[[str], object],
        complain: Callable[[str], object],
        describe: Callable[[BaseException], str] = str,
        progress: ProgressLine | None = None,
        show: Callable[[str, TableFrame, ShownRows, RowFeed], object] | None = None,
    ) -> None:
        self._connection = connection
        self._write = write
        self._complain = complain
        self._describe = describe
        self._progress = progress
        self._show = show
        #: The clock of the statement that is executed now.
        self._clock = StatementClock(None)

    def say(self, doing: str) -> None:
        """Show what the process is doing for the statement that is executed now; called from any thread."""
        self._clock.doing = doing

    def run_script(self, text: str) -> BaseException | None:
        """Execute statements until the end, or until one fails; returns why it failed.

        Raises:
            KeyboardInterrupt: The statement that was executed is cancelled.
        """
        for statement in split_statements(text):
            if _command(statement) in {"QUIT", "EXIT"}:
                break
            error = self.execute(statement)
            if error is not None:
                return error
        return None

    def interact(self, prompt: Prompt, running_jobs: Callable[[], int] = lambda: 0) -> None:
        """Read and execute statements until the user quits.

        Args:
            prompt: Where they are typed.
            running_jobs: How many jobs end with this process.
        """
        while True:
            try:
                statements = split_statements(prompt.read())
            except KeyboardInterrupt:
                continue
            except EOFError:
                statements = ["QUIT"]
            if not self._carried_out(statements) and _may_leave(prompt, running_jobs()):
                return

    def _carried_out(self, statements: Iterable[str]) -> bool:
        """Execute statements; False if the user wants to quit."""
        for statement in statements:
            if _command(statement) in {"QUIT", "EXIT"}:
                return False
            try:
                if self.execute(statement) is not None:
                    break
            except KeyboardInterrupt:
                break
        return True

    def execute(self, statement: str) -> BaseException | None:
        """Execute one statement and show what it answers; returns why it failed.

        Raises:
            KeyboardInterrupt: Ctrl-C came; the statement is cancelled.
        """
        command = _command(statement)
        if command == "HELP":
            self._write(HELP)
        elif command == "CLEAR":
            self._write("\x1b[2J\x1b[H")
        else:
            try:
                _check_client_option(statement)
                self._execute(statement)
            except HeadraceError as error:
                return self._failed(error)
            except Exception as error:  # noqa: BLE001 - a bug in one statement must not end the client
                return self._failed(error)
        return None

    def _failed(self, error: BaseException) -> BaseException:
        self._clock.hide()
        self._complain(self._describe(error))
        return error

    def _execute(self, sql: str) -> None:
        self._clock = StatementClock(self._progress)
        statement = self._connection.submit(sql)
        try:
            first = fetched(statement, lambda batch: batch.fields is not None, self._clock.tick)
            assert first is not None
            self._clock.hide()
            if first.is_query:
                self._show_query(sql, statement, first)
            else:
                self._show_answer(statement, first)
        except KeyboardInterrupt:
            self._clock.hide()
            statement.close()
            count = self._clock.rows
            rows = f"; received a total of {count} row{'s' * (count != 1)}" if count else ""
            self._complain(f"cancelled{rows}")
            raise
        finally:
            with suppress(HeadraceError):  # its session may be closed already
                statement.close()

    def _show_answer(self, statement: RunningStatement, first: FetchedRows) -> None:
        rows, batch = list(first.rows), first
        while not batch.is_last:
            following = fetched(statement, lambda each: bool(each.rows) or each.is_last, self._clock.tick)
            assert following is not None
            rows += following.rows
            batch = following
        if first.job_id is not None:
            self._write(f"Job ID: {first.job_id}")
        elif first.kind is ResultKind.SUCCESS:
            self._write("OK")
        else:
            print_answer(first, rows, self._write)

    def _show_query(self, sql: str, statement: RunningStatement, first: FetchedRows) -> None:
        properties = {
            key: value
            for key, value in self._connection.properties().items()
            if key in _OPTIONS or key in {execution.RUNTIME_MODE.key, table_options.MAX_COLUMN_WIDTH.key}
        }
        get = Configuration(properties).get
        is_batch = get(execution.RUNTIME_MODE) is execution.RuntimeExecutionMode.BATCH
        max_width = get(table_options.MAX_COLUMN_WIDTH)
        mode = get(options.RESULT_MODE) or (ResultMode.TABLE if self._show else ResultMode.TABLEAU)
        if mode is ResultMode.TABLEAU:
            has_kinds = not is_batch
            count = print_query(
                statement, first, self._write, self._clock, max_width=max_width, has_kinds=has_kinds
            )
            self._write(
                f"Received a total of {count} row{'s' * (count != 1)}" if has_kinds else counted(count)
            )
            return
        if self._show is None:
            raise ConfigurationError(
                f"{options.RESULT_MODE.key} = {mode.value} needs a terminal", hint="set it to 'tableau'"
            )
        limit = get(options.MAX_ROWS)
        rows: ShownRows = ChangelogRows(limit) if mode is ResultMode.CHANGELOG else CurrentRows(limit)
        feed = RowFeed(statement, first, lambda batch: rows.add(batch.rows))
        frame = TableFrame(*columns_of(first), max_width=max_width, has_kinds=rows.has_kinds)
        self._show(sql, frame, rows, feed)
        if feed.error is not None:
            raise feed.error
        ending = "cancelled" if feed.state is RowFeedState.CANCELLED else "finished"
        self._write(f"query {ending}: {rows.received:,} rows received, {len(rows):,} shown")


def _command(statement: str) -> str:
    return statement.strip().upper()


def _may_leave(prompt: Prompt, running: int) -> bool:
    if running == 0:
        return True
    jobs = "1 job is" if running == 1 else f"{running} jobs are"
    return prompt.confirm(f"{jobs} running and will be cancelled. Quit?")


def _check_client_option(statement: str) -> None:
    """Refuse options that this client does not have; the gateway keeps those of all clients.

    Raises:
        ConfigurationError: If the statement sets one, or sets one of ours to a value that it cannot have.
    """
    match = _SET_CLIENT.match(statement)
    if match is None:
        return
    key, given = match["key"], match["value"].strip("'")
    if key not in _OPTIONS:
        raise ConfigurationError(
            f"headrace sql does not have the option {key!r}",
            hint=f"available: {', '.join(sorted(_OPTIONS))}",
        )
    checked = Configuration({key: given})
    checked.get(options.RESULT_MODE)
    checked.get(options.MAX_ROWS)

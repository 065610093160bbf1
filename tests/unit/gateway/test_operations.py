"""Statements of the gateway's clients: tokens, errors, cancelling; without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headrace.common.types import Row
from headrace.errors import GatewayError, SqlValidationError
from headrace.gateway.operation import PortionKind, StatementOperation, StatementResult, StatementStatus
from headrace.planner.logical import Field
from headrace.table.result_kind import ResultKind
from headrace.table.table_result import CloseableIterator
from headrace.types import DataTypes

SCHEMA = (Field("n", DataTypes.INT()),)


class Query:
    """A query whose rows come when the test says so."""

    def __init__(self) -> None:
        self._more = threading.Semaphore(0)
        self._is_over = threading.Event()
        self._count = 0
        self.is_cancelled = threading.Event()
        self.has_stopped = threading.Event()

    def run(self) -> StatementResult:
        rows = CloseableIterator(self._rows())
        return StatementResult(
            SCHEMA, rows, ResultKind.SUCCESS_WITH_CONTENT, is_query=True, cancel=self.cancel
        )

    def _rows(self) -> Iterator[Row]:
        try:
            while self._more.acquire() and not self._is_over.is_set():
                self._count += 1
                yield Row(self._count)
        finally:
            self.has_stopped.set()

    def emit(self, count: int = 1) -> None:
        for _ in range(count):
            self._more.release()

    def end(self) -> None:
        self._is_over.set()
        self._more.release()

    def cancel(self) -> None:
        self.is_cancelled.set()
        self.end()


def finished(count: int) -> StatementResult:
    """A query that has no more than these rows."""
    rows = CloseableIterator(Row(n) for n in range(1, count + 1))
    return StatementResult(SCHEMA, rows, ResultKind.SUCCESS_WITH_CONTENT, is_query=True)


def started(run: object) -> StatementOperation:
    operation = StatementOperation("op", run)  # type: ignore[arg-type]
    operation.start()
    operation.join(10)
    return operation


def fetched(operation: StatementOperation, token: int) -> list[int]:
    """Fetch a token's rows once there are some, or the end."""
    for attempt in range(2_000):
        portion = operation.fetch(token + attempt)
        if portion.rows or portion.kind is PortionKind.EOS:
            return [row[0] for row in portion.rows]
        threading.Event().wait(0.005)
    raise AssertionError("no rows came")


def all_rows(operation: StatementOperation) -> list[int]:
    token: int | None = 0
    found: list[int] = []
    while token is not None:
        portion = operation.fetch(token)
        found += [row[0] for row in portion.rows]
        token = portion.next_token
    return found


def test_rows_of_a_running_query_are_fetched_as_they_come() -> None:
    query = Query()
    operation = started(query.run)
    assert operation.status is StatementStatus.FINISHED
    empty = operation.fetch(0)
    assert (empty.kind, empty.rows, empty.next_token) == (PortionKind.PAYLOAD, (), 1)
    query.emit(2)
    while len(operation._waiting) < 2:
        threading.Event().wait(0.005)
    assert [row[0] for row in operation.fetch(1).rows] == [1, 2]
    assert operation.is_busy
    query.end()
    assert query.has_stopped.wait(10)
    assert fetched(operation, 2) == []


def test_a_token_can_be_fetched_again_until_the_next_one_is() -> None:
    operation = started(lambda: finished(2))
    while operation.is_busy:
        threading.Event().wait(0.005)
    first = operation.fetch(0)
    assert [row[0] for row in first.rows] == [1, 2]
    assert operation.fetch(0) is first
    assert operation.fetch(1).kind is PortionKind.EOS
    with pytest.raises(GatewayError, match="expected the token 1; got 5"):
        operation.fetch(5)


def test_fetching_before_the_statement_was_carried_out_asks_for_the_same_token_again() -> None:
    may_go_on = threading.Event()

    def slow() -> StatementResult:
        may_go_on.wait(10)
        return finished(1)

    operation = StatementOperation("op", slow)
    operation.start()
    portion = operation.fetch(0)
    assert (portion.kind, portion.next_token, portion.result) == (PortionKind.NOT_READY, 0, None)
    may_go_on.set()
    operation.join(10)
    assert all_rows(operation) == [1]


def test_the_error_of_a_statement_is_raised_when_it_is_fetched() -> None:
    def wrong() -> StatementResult:
        raise SqlValidationError("no such column")

    operation = started(wrong)
    assert operation.status is StatementStatus.ERROR
    for _ in range(2):
        with pytest.raises(SqlValidationError, match="no such column"):
            operation.fetch(0)


def test_rows_before_an_error_are_fetched_before_it() -> None:
    def rows() -> Iterator[Row]:
        yield Row(1)
        raise SqlValidationError("division by zero")

    def run() -> StatementResult:
        return StatementResult(
            SCHEMA, CloseableIterator(rows()), ResultKind.SUCCESS_WITH_CONTENT, is_query=True
        )

    operation = started(run)
    assert fetched(operation, 0) == [1]
    while operation.is_busy:
        threading.Event().wait(0.005)
    with pytest.raises(SqlValidationError, match="division"):
        operation.fetch(operation._token)


def test_closing_a_query_cancels_its_job_and_ends_its_rows() -> None:
    query = Query()
    operation = started(query.run)
    with pytest.raises(GatewayError, match="is FINISHED and cannot be cancelled"):
        operation.cancel()
    assert not query.is_cancelled.is_set()
    operation.close()
    assert query.is_cancelled.is_set()
    assert query.has_stopped.wait(10)
    assert operation.status is StatementStatus.CLOSED
    with pytest.raises(GatewayError, match="is CLOSED"):
        operation.fetch(0)


def test_cancelling_a_statement_that_is_being_carried_out_cancels_the_job_it_starts() -> None:
    query, may_go_on = Query(), threading.Event()

    def run() -> StatementResult:
        assert may_go_on.wait(10)
        return query.run()

    operation = StatementOperation("handle", run)
    operation.start()
    operation.cancel()
    may_go_on.set()
    assert query.is_cancelled.wait(10)
    assert operation.status is StatementStatus.CANCELED
    with pytest.raises(GatewayError, match="is CANCELED"):
        operation.fetch(0)
    with pytest.raises(GatewayError, match="is CANCELED and cannot be cancelled"):
        operation.cancel()


def test_closing_a_query_that_has_ended_cancels_nothing() -> None:
    query = Query()
    query.end()
    operation = started(query.run)
    while operation.is_busy:
        threading.Event().wait(0.005)
    operation.close()
    assert not query.is_cancelled.is_set()
    assert operation.status is StatementStatus.CLOSED


def test_a_query_waits_for_a_client_that_does_not_fetch() -> None:
    query = Query()
    operation = started(query.run)
    query.emit(6_000)
    while len(operation._waiting) < 5_000:
        threading.Event().wait(0.005)
    assert len(operation._waiting) == 5_000
    assert len(operation.fetch(0).rows) == 5_000
    operation.close()
    assert query.has_stopped.wait(10)

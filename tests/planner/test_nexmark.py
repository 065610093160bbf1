"""Every query of Nexmark is bound, or refused by name."""

from __future__ import annotations

import pytest

from examples.nexmark.nexmark import statements
from headrace.errors import SqlValidationError
from headrace.planner.logical import GroupWindowAggregate, LogicalNode, Over, Sink, WindowTable
from headrace.planner.statements import Insert
from headrace.table import EnvironmentSettings, TableEnvironment
from tests.planner import nexmark
from tests.planner.environment import Session

REFUSED = {"q13": "FOR SYSTEM_TIME AS OF"}


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(nexmark.DDL + nexmark.BEFORE + "".join(map(nexmark.sink, nexmark.QUERIES)))


def nodes(node: LogicalNode) -> list[LogicalNode]:
    return [node, *(below for one in node.inputs for below in nodes(one))]


@pytest.mark.parametrize("query", [name for name in nexmark.QUERIES if name not in REFUSED])
def test_a_query_is_bound_into_its_sink(session: Session, query: str) -> None:
    bound = session.one(nexmark.insert(query))
    assert isinstance(bound, Insert)
    assert isinstance(bound.sink, Sink)
    wanted = [column.type for column in bound.sink.table.sink_columns]
    assert [one.type.nullable() for one in bound.sink.input.schema] == wanted


@pytest.mark.parametrize("query", list(REFUSED))
def test_what_the_engine_lacks_is_refused_by_name(session: Session, query: str) -> None:
    with pytest.raises(SqlValidationError, match=REFUSED[query]) as caught:
        session.run(nexmark.insert(query))
    assert caught.value.line is not None


def test_q6_is_refused_because_its_window_is_not_ordered_by_a_time_attribute() -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    *before, insert = [
        *statements("tables", options="'events.num' = '10'"),
        *statements("q6", sink="blackhole"),
    ]
    for each in before:
        t_env.execute_sql(each)
    with pytest.raises(
        SqlValidationError, match=r"ordered by a time attribute, but 'dateTime' is TIMESTAMP\(3\)"
    ):
        t_env.explain_sql(insert)


def test_windows_are_found_where_the_queries_have_them(session: Session) -> None:
    def count(query: str, kind: type[LogicalNode]) -> int:
        bound = session.one(nexmark.insert(query))
        assert isinstance(bound, Insert)
        return sum(isinstance(one, kind) for one in nodes(bound.sink))

    assert [count(one, WindowTable) for one in ("q5", "q7", "q8", "q12")] == [2, 1, 2, 1]
    assert count("q11", GroupWindowAggregate) == 1
    assert [count(one, Over) for one in ("q9", "q18", "q19")] == [1, 1, 1]


def test_types_are_flinks(session: Session) -> None:
    assert session.schema(nexmark.QUERIES["q1"])[2] == "price DECIMAL(24, 3)"
    assert session.schema(nexmark.QUERIES["q4"]) == ["category BIGINT", "EXPR$1 BIGINT"]
    assert session.schema(nexmark.QUERIES["q5"]) == ["auction BIGINT", "num BIGINT NOT NULL"]
    assert session.schema(nexmark.QUERIES["q0"])[3] == "dateTime TIMESTAMP(3) *ROWTIME*"

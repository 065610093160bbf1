"""Small tables whose rows the program gives: they go in packets, with functions of the user's on the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.common.types import Row
from headrace.errors import HeadraceError
from headrace.spark.packet_stages import PacketStages
from headrace.spark.table_session import TableSession
from headrace.table import DataTypes, StreamTableEnvironment
from headrace.table.udf import udf, udtf
from tests.conftest import EnvironmentFactory

pytestmark = pytest.mark.spark


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether each epoch that runs went in packets all the way."""
    found: list[bool] = []
    runs = PacketStages.can_run

    def can_run(stages, vertices):
        found.append(runs(stages, vertices))
        return found[-1]

    monkeypatch.setattr(PacketStages, "can_run", can_run)
    return found


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whatever asks for a session of Spark SQL."""

    def refused(session: TableSession) -> None:
        raise AssertionError("an epoch in packets needs no session")

    monkeypatch.setattr(TableSession, "spark", property(refused))


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def words(line: Row) -> Iterator[Row]:
    for word in line[0].split():
        yield Row(word, len(word))


@udf(result_type=DataTypes.STRING())
def starred(text: str | None) -> str | None:
    return None if text is None else f"*{text}*"


@pytest.mark.usefixtures("no_session")
def test_functions_are_called_on_the_way_of_packets(env: EnvironmentFactory, packed: list[bool]):
    t_env = StreamTableEnvironment.create(env(parallelism=2))
    lines = t_env.from_elements([("to be or not",), ("",), ("to be",)], ["line"])
    t_env.create_temporary_system_function("starred", starred)
    t_env.create_temporary_view("words", lines.flat_map(words).alias("word", "size"))
    query = "SELECT starred(word) AS word, COUNT(*) AS n, MAX(size) AS size FROM words WHERE word <> 'or' GROUP BY word"
    with t_env.execute_sql(query).collect() as found:
        rows = {tuple(row) for row in found}
    assert rows == {("*to*", 2, 2), ("*be*", 2, 2), ("*not*", 1, 3)}
    assert packed
    assert all(packed)


def test_what_a_function_returns_wrongly_is_told_as_spark_tells_it(
    env: EnvironmentFactory, packed: list[bool]
):
    @udf(result_type=DataTypes.INT())
    def large(number: int) -> int:
        return number << 40

    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.create_temporary_system_function("large", large)
    t_env.create_temporary_view("numbers", t_env.from_elements([(1,)], ["n"]))
    with pytest.raises(HeadraceError), t_env.execute_sql("SELECT large(n) FROM numbers").collect() as found:
        list(found)
    assert packed[0]


def test_a_function_that_fails_names_the_record(env: EnvironmentFactory, packed: list[bool]):
    @udf(result_type=DataTypes.BIGINT())
    def failing(number: int) -> int:
        raise ValueError(f"no {number}")

    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.create_temporary_system_function("failing", failing)
    t_env.create_temporary_view("numbers", t_env.from_elements([(41,)], ["n"]))
    with (
        pytest.raises(HeadraceError, match="no 41"),
        t_env.execute_sql("SELECT failing(n) FROM numbers").collect() as found,
    ):
        list(found)
    assert packed == [True]

"""Recorded epochs of SQL jobs: replayed bit for bit without Spark, and rows explained by their input rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.replay.recordings import find_recording
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.testing.replay import recorded_epochs, replay
from headrace.why.answer import Answer
from headrace.why.question import why

ORDERS = [("ann", 5), ("bob", 7), ("ann", 3), ("bob", 1), ("ann", 4), ("cid", 2)]
CITIES = [("ann", "Aarau"), ("bob", "Basel"), ("cid", "Aarau")]
QUERIES = {
    "groups": "SELECT customer, SUM(amount) FROM orders GROUP BY customer",
    "join": "SELECT o.customer, o.amount, c.city FROM orders o JOIN cities c ON o.customer = c.customer",
    "join and groups": "SELECT c.city, SUM(o.amount) FROM orders o JOIN cities c ON o.customer = c.customer "
    "GROUP BY c.city",
}


def write(directory: Path, name: str, rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> None:
    """Write one file per row: each is a slice of its own."""
    (directory / name).mkdir(parents=True)
    for number, row in enumerate(rows):
        line = json.dumps(dict(zip(columns, row, strict=True)))
        (directory / name / f"{number:03}.json").write_text(line + "\n")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run each query, two files per epoch, and return where it is recorded."""
    data = tmp_path_factory.mktemp("tables")
    write(data, "orders", ORDERS, ("customer", "amount"))
    write(data, "cities", CITIES, ("customer", "city"))
    found = {}
    for name, query in QUERIES.items():
        settings = EnvironmentSettings.new_instance().in_streaming_mode().build()
        env = TableEnvironment.create(settings)
        found[name] = data / f"recorded {name}"
        for key, value in {
            "headrace.replay.keep": "100",
            "headrace.replay.inputs": "true",
            "headrace.replay.dir": str(found[name]),
            "headrace.epoch.max-records": "2",
            "parallelism.default": "2",
        }.items():
            env.get_config().set(key, value)
        for table, columns in (
            ("orders", "customer STRING, amount BIGINT"),
            ("cities", "customer STRING, city STRING"),
        ):
            env.execute_sql(
                f"CREATE TABLE {table} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'json', "
                f"'path' = '{data / table}')"
            )
        columns = "a STRING, b BIGINT, c STRING" if name == "join" else "a STRING, b BIGINT"
        env.execute_sql(f"CREATE TABLE results ({columns}) WITH ('connector' = 'print')")
        env.execute_sql(f"INSERT INTO results {query}").wait()
    return found


def inputs(answer: Answer) -> list[str]:
    return sorted(each.record for each in answer.inputs)


@pytest.mark.parametrize("name", QUERIES)
def test_stateful_nodes_are_replayed_bit_for_bit(name: str, recorded: dict[str, Path]) -> None:
    place = str(recorded[name])
    epochs = recorded_epochs(place)
    assert len(epochs) > 1
    results = [replay(place, epoch) for epoch in epochs]
    assert [each.differences for each in results] == [[] for _ in epochs]
    assert sum(sum(each.records_in.values()) for each in results) > 0


def test_a_group_is_explained_by_the_rows_of_its_key(recorded: dict[str, Path]) -> None:
    answer = why(find_recording(str(recorded["groups"])), row="[ann, 12]")
    assert inputs(answer) == [f"+I[customer=ann, amount={amount}]" for amount in (3, 4, 5)]
    assert answer.unknown == []
    assert answer.steps[-1].emits_row
    assert len({each.epoch for each in answer.inputs}) > 1


def test_a_joined_row_is_explained_by_the_rows_of_both_sides(recorded: dict[str, Path]) -> None:
    answer = why(find_recording(str(recorded["join"])), row="+I[bob, 1, Basel]")
    assert inputs(answer) == ["+I[customer=bob, amount=1]", "+I[customer=bob, city=Basel]"]


def test_rows_are_followed_through_several_nodes(recorded: dict[str, Path]) -> None:
    answer = why(find_recording(str(recorded["join and groups"])), row="[Aarau, 14]")
    assert set(inputs(answer)) == {
        *(f"+I[customer=ann, amount={amount}]" for amount in (3, 4, 5)),
        "+I[customer=cid, amount=2]",
        "+I[customer=ann, city=Aarau]",
        "+I[customer=cid, city=Aarau]",
    }

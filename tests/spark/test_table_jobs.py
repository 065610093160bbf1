"""Table jobs from scan to sink on a real Spark."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.common.types import Row, RowKind
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.collect import CollectSink, open_collector
from headrace.connectors.collection import CollectionSource
from headrace.connectors.datagen.table import RangeTableSource
from headrace.connectors.file.table import FileTableSource
from headrace.errors import UserFunctionError
from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table.declarations import (
    AggSpec,
    GroupAggregateDeclaration,
    JoinDeclaration,
    JoinKind,
    SparkQueryDeclaration,
    TableScanDeclaration,
    TableSinkDeclaration,
    TableWatermarkSpec,
    TableWindowSpec,
    WindowAggregateDeclaration,
    WindowKind,
)
from headrace.operators.table.steps import (
    Explode,
    Fragment,
    PythonCall,
    PythonCalls,
    Select,
    StepColumn,
    Where,
)
from headrace.storage.search import InputPath
from tests.spark.table_jobs import bigint, collect, materialized, straight, string, submit, texts, values
from tests.watching import watching

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]

USER, AMOUNT, TIME = string("user"), bigint("amount"), bigint("ts")
COUNT, SUM = bigint("n"), bigint("s")
ROWS = [(f"u{i % 7}", i) for i in range(100)]


def test_projection_and_filter_reach_the_sink():
    rows = collect(
        [values(ROWS, (USER, AMOUNT))],
        (USER, SUM),
        Fragment(
            (Where("amount >= 95"), Select((("upper(user)", "user"), ("amount * 2", "s")))), (USER, SUM)
        ),
    )
    assert sorted(texts(rows)) == sorted(f"+I[U{i % 7}, {i * 2}]" for i in range(95, 100))


def count_and_sum(producer: int = 0) -> TableNode:
    calls = (
        AggSpec("COUNT", (), COUNT),
        AggSpec("SUM", ("amount",), SUM),
        AggSpec("COUNT", ("amount",), bigint("d"), distinct=True),
    )
    return TableNode(
        GroupAggregateDeclaration((USER, COUNT, SUM, bigint("d")), keys=("user",), calls=calls),
        "aggregate",
        (TableInput(producer, straight((USER, AMOUNT))),),
        uid="aggregate",
    )


def grouped(rows: list[tuple[Any, int]]) -> Counter[Any]:
    expected: dict[Any, list[int]] = defaultdict(list)
    for user, amount in rows:
        expected[user].append(amount)
    return Counter((user, len(of), sum(of), len(set(of))) for user, of in expected.items())


@pytest.mark.parametrize("max_records", [None, 40])
def test_a_group_by_gives_the_same_table_whatever_the_epochs(max_records: int | None):
    given = [*ROWS, (None, 1), (None, 1)]
    nodes = [values(given, (USER, AMOUNT)), count_and_sum()]
    rows = collect(nodes, (USER, COUNT, SUM, bigint("d")), max_records=max_records)
    assert materialized(rows) == grouped(given)
    kinds = Counter(text[:2] for text in texts(rows))
    assert kinds["-U"] == kinds["+U"]
    assert bool(kinds["+U"]) == (max_records is not None)


def test_a_changelog_goes_through_an_aggregation_of_an_aggregation():
    """How many users there are by how often they came."""
    by_count = TableNode(
        GroupAggregateDeclaration(
            (bigint("times"), COUNT, bigint("most")),
            keys=("times",),
            calls=(AggSpec("COUNT", (), COUNT), AggSpec("MAX", ("s",), bigint("most"))),
        ),
        "by count",
        (TableInput(1, Fragment((Select((("n", "times"), ("s", "s"))),), (bigint("times"), SUM))),),
        uid="by-count",
    )
    nodes = [values(ROWS, (USER, AMOUNT)), count_and_sum(), by_count]
    rows = collect(nodes, (bigint("times"), COUNT, bigint("most")), max_records=40)
    users = grouped(ROWS)
    expected = Counter(
        (n, sum(1 for u in users if u[1] == n), max(u[2] for u in users if u[1] == n))
        for n in {u[1] for u in users}
    )
    assert materialized(rows) == expected


#: Computed for every row, and of the highest time alone, which rows carry up to an aggregation.
EACH_ROW, OF_HIGHEST = TableWatermarkSpec("ts - 5"), TableWatermarkSpec("ts", "{} - 5")


@pytest.mark.parametrize(
    ("kind", "watermark"),
    [(WindowKind.TUMBLE, EACH_ROW), (WindowKind.TUMBLE, OF_HIGHEST), (WindowKind.SESSION, OF_HIGHEST)],
)
def test_windows_fire_by_the_watermark(kind: WindowKind, watermark: TableWatermarkSpec):
    window = TableWindowSpec(kind, "ts", size_ms=10, gap_ms=3)
    start = StepColumn("window_start", "TIMESTAMP_NTZ", pa.timestamp("us"))
    end = StepColumn("window_end", "TIMESTAMP_NTZ", pa.timestamp("us"))
    schema = (USER, COUNT, SUM, start, end)
    node = TableNode(
        WindowAggregateDeclaration(
            schema,
            window=window,
            keys=("user",),
            calls=(AggSpec("COUNT", (), COUNT), AggSpec("SUM", ("amount",), SUM)),
            properties=("window_start", "window_end"),
            is_insert_only=True,
        ),
        "window",
        (TableInput(0, straight((USER, TIME, AMOUNT))),),
        uid="window",
    )
    given = [("a", 1, 1), ("a", 2, 2), ("b", 4, 9), ("a", 11, 3), ("a", 7, 4), ("a", 30, 5), ("b", 31, 6)]
    # The last epoch's rows come behind the watermark of 30: one of them is late.
    given += [("b", 32, 1), ("a", 3, 100)]
    scan = values(given, (USER, TIME, AMOUNT), watermark=watermark)
    rows = collect([scan, node], schema, max_records=2, parallelism=1)

    def at(ms: int) -> dt.datetime:
        return dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms)  # noqa: DTZ001 - a TIMESTAMP has no zone

    expected = {
        WindowKind.TUMBLE: [
            ("a", 3, 7, 0, 10),
            ("b", 1, 9, 0, 10),
            ("a", 1, 3, 10, 20),
            ("a", 1, 5, 30, 40),
            ("b", 2, 7, 30, 40),
        ],
        WindowKind.SESSION: [
            ("a", 2, 3, 1, 5),
            ("b", 1, 9, 4, 7),
            ("a", 1, 4, 7, 10),
            ("a", 1, 3, 11, 14),
            ("a", 1, 5, 30, 33),
            ("b", 2, 7, 31, 35),
        ],
    }[kind]
    assert sorted(tuple(row) for row in rows) == sorted(
        (*row[:3], at(row[3]), at(row[4])) for row in expected
    )


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.FULL])
def test_two_tables_are_joined(kind: JoinKind):
    right_user, name = string("user2"), string("name")
    schema = (USER, AMOUNT, right_user, name)
    condition = "l1 <> 8" if kind is JoinKind.INNER else None
    node = TableNode(
        JoinDeclaration(
            schema,
            kind=kind,
            left_keys=("user",),
            right_keys=("user2",),
            left=(USER, AMOUNT),
            right=(right_user, name),
            condition=condition,
        ),
        "join",
        (TableInput(0, straight((USER, AMOUNT))), TableInput(1, straight((right_user, name)), 1)),
        uid="join",
    )
    names = [("u1", "Ann"), ("u1", "Anna"), ("u2", "Bob"), ("u9", "Zoe")]
    right = TableNode(values(names, (right_user, name)).declaration, "names", uid="names")
    rows = collect([values(ROWS[:20], (USER, AMOUNT)), right, node], schema, max_records=5)
    expected = Counter(
        (*a, *b) for a in ROWS[:20] for b in names if a[0] == b[0] and (a[1] != 8 or condition is None)
    )
    if kind is JoinKind.FULL:
        expected += Counter((*a, None, None) for a in ROWS[:20] if a[0] not in {"u1", "u2"})
        expected += Counter([(None, None, "u9", "Zoe")])
    assert materialized(rows) == expected


def test_python_functions_are_called_row_by_row_and_as_series():
    def shout(text: str) -> str:
        return text + "!"

    def double(numbers: pd.Series) -> pd.Series:
        return numbers * 2

    calls = PythonCalls(
        (
            PythonCall(shout, ("user",), string("loud")),
            PythonCall(double, ("amount",), bigint("twice"), is_pandas=True),
        )
    )
    fragment = Fragment(
        (calls, Select((("loud", "loud"), ("twice", "twice")))), (string("loud"), bigint("twice"))
    )
    rows = collect([values(ROWS[:3], (USER, AMOUNT))], fragment.schema, fragment)
    assert sorted(texts(rows)) == ["+I[u0!, 0]", "+I[u1!, 2]", "+I[u2!, 4]"]


def test_a_python_function_that_fails_says_what_and_where():
    def fail(number: int) -> int:
        raise ValueError(f"no {number}")

    calls = PythonCalls((PythonCall(fail, ("amount",), bigint("never")),))
    fragment = Fragment((calls, Select((("never", "never"),))), (bigint("never"),))
    with pytest.raises(UserFunctionError, match="no 0"):
        collect([values(ROWS[:1], (USER, AMOUNT))], fragment.schema, fragment)


def test_rows_are_exploded():
    fragment = Fragment(
        (Explode("explode(sequence(1, amount))", ("step",)), Select((("user", "user"), ("step", "step")))),
        (USER, bigint("step")),
    )
    rows = collect([values([("a", 2), ("b", 1)], (USER, AMOUNT))], fragment.schema, fragment)
    assert sorted(texts(rows)) == ["+I[a, 1]", "+I[a, 2]", "+I[b, 1]"]


def test_files_are_read_by_spark_an_epoch_at_a_time(tmp_path: Path):
    for number in range(4):
        part = ROWS[number * 25 : number * 25 + 25]
        table = pa.table({"user": [row[0] for row in part], "amount": [row[1] for row in part]})
        pq.write_table(table, tmp_path / f"part-{number}.parquet")
    metadata = {"file": "regexp_extract(_metadata.file_name, 'part-([0-9])', 1)"}
    source = FileTableSource(InputPath.parse(tmp_path, who="test"), "parquet", metadata=metadata)
    schema = (USER, AMOUNT, string("file"))
    node = TableNode(TableScanDeclaration(source, schema=schema), "files", uid="files")
    rows = collect([node], schema, max_records=25)
    assert Counter(map(tuple, rows)) == Counter((*row, str(i // 25)) for i, row in enumerate(ROWS))


def test_an_epoch_reads_no_more_bytes_of_files_than_it_may(tmp_path: Path):
    for number in range(4):
        pq.write_table(pa.table({"amount": range(1000)}), tmp_path / f"part-{number}.parquet")
    source = FileTableSource(InputPath.parse(tmp_path, who="test"), "parquet")
    nodes = [
        TableNode(TableScanDeclaration(source, schema=(AMOUNT,)), "files", uid="files"),
        TableNode(
            TableSinkDeclaration(BlackholeSink(), schema=(AMOUNT,)),
            "sink",
            (TableInput(0, straight((AMOUNT,))),),
        ),
    ]
    epochs: list[int] = []
    with watching(on_epoch=lambda _, summary: epochs.append(summary.records)):
        submit(nodes, parallelism=1, options={"headrace.epoch.max-bytes": "24 kb"}).result_future().result(
            120
        )
    # A file has a little more than 8,000 bytes, and an epoch continues up to 12 kb.
    assert epochs == [2000, 2000]


def test_rows_of_a_python_source_are_a_changelog():
    changes = [Row("a", 1), Row("a", 2), Row.of_kind(RowKind.DELETE, "a", 1), Row("b", 5)]
    scan = TableScanDeclaration(CollectionSource(changes), schema=(USER, AMOUNT), has_kinds=True)
    nodes = [TableNode(scan, "changes", uid="changes"), count_and_sum()]
    rows = collect(nodes, (USER, COUNT, SUM, bigint("d")), max_records=2)
    assert materialized(rows) == grouped([("a", 2), ("b", 5)])


def test_what_two_sinks_read_is_computed_once(tmp_path: Path):
    calls = tmp_path / "calls"
    calls.mkdir()

    def note(number: int) -> int:
        (calls / str(number)).open("a").write("x")
        return number

    scan = TableScanDeclaration(
        RangeTableSource(("id",), 6),
        schema=(AMOUNT,),
        fragment=Fragment((PythonCalls((PythonCall(note, ("amount",), SUM),)),), (AMOUNT, SUM)),
    )
    sinks = [
        TableNode(
            TableSinkDeclaration(sink, schema=(SUM,)),
            name,
            (TableInput(0, Fragment((Where(condition), Select((("s", "s"),))), (SUM,))),),
            uid=name,
        )
        for name, sink, condition in (
            ("even", CollectSink("even"), "s % 2 = 0"),
            ("odd", CollectSink("odd"), "s % 2 = 1"),
            ("nothing", BlackholeSink(), "true"),
        )
    ]
    with open_collector("even") as even, open_collector("odd") as odd:
        job = submit([TableNode(scan, "scan", uid="scan"), *sinks])
        job.result_future().result(120)
        even.finish()
        odd.finish()
        assert (sorted(texts(list(even))), sorted(texts(list(odd)))) == (
            ["+I[0]", "+I[2]", "+I[4]"],
            ["+I[1]", "+I[3]", "+I[5]"],
        )
    assert [(calls / str(number)).read_text() for number in range(6)] == ["x"] * 6


def test_a_query_in_batch_mode_is_sparks():
    query = TableNode(
        SparkQueryDeclaration(
            "SELECT user, sum(amount) AS s FROM {0} GROUP BY user ORDER BY user", (USER, SUM)
        ),
        "query",
        (TableInput(0, straight((USER, AMOUNT))),),
        parallelism=1,
    )
    rows = collect([values(ROWS, (USER, AMOUNT)), query], (USER, SUM), parallelism=1)
    assert [tuple(row) for row in rows] == sorted((user, s) for user, _, s, _ in grouped(ROWS))

"""The examples about sources, sinks, partitioners and jobs, and every example as a user starts it."""

from __future__ import annotations

import re
import runpy
import sqlite3
import sys
from collections import Counter, defaultdict
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

import pytest

from examples import collect_results, custom_source_sink, partitioners, word_count
from headrace import pyflink_alias
from headrace.common import JobStatus
from headrace.datastream import RuntimeExecutionMode
from headrace.testing.contracts import check_sink, check_source
from tests.conftest import EnvironmentFactory
from tests.engines import with_cuts
from tests.examples.support import CUTS, collect, per_epoch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


# --- word_count -----------------------------------------------------------------------------------


@with_cuts(*CUTS)
def test_word_count_of_the_built_in_text(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    expected = Counter(re.findall("[a-z]+", word_count.TEXT.lower()))
    environment = env(parallelism, per_epoch(len(word_count.TEXT.splitlines()), epochs))
    counts = collect({"counts": word_count.build(environment)})["counts"]
    # As a stream: each word counts up to its number.
    seen = defaultdict(list)
    for word, count in counts:
        seen[word].append(count)
    assert seen == {word: list(range(1, number + 1)) for word, number in expected.items()}


@pytest.mark.spark
@pytest.mark.parametrize(("max_records", "parallelism"), [(None, 4), (10, 1), (3, 2)])
def test_word_count_of_files(
    env: EnvironmentFactory, tmp_path: Path, max_records: int | None, parallelism: int
) -> None:
    lines = [" ".join(f"w{'abc'[n * k % 3]}" for k in range(n % 5)) for n in range(60)]
    for number in range(3):
        (tmp_path / f"part-{number}.txt").write_text("\n".join(lines[number::3]), encoding="utf-8")
    environment = env(parallelism, max_records).set_runtime_mode(RuntimeExecutionMode.BATCH)
    counts = collect({"counts": word_count.build(environment, str(tmp_path))})["counts"]
    assert sorted(counts) == sorted(Counter(" ".join(lines).split()).items())


# --- custom_source_sink ---------------------------------------------------------------------------


def rows_of(path: Path, table: str) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT id, amount FROM {table} ORDER BY id").fetchall()


@with_cuts(*CUTS)
def test_the_sqlite_connectors_copy_every_row_once(
    env: EnvironmentFactory, tmp_path: Path, epochs: int, parallelism: int
) -> None:
    orders, path = 2_500, tmp_path / "shop.db"
    custom_source_sink.create_tables(str(path), orders)
    environment = env(parallelism, per_epoch(orders, epochs))
    custom_source_sink.build(environment, str(path))
    environment.execute()
    assert rows_of(path, "large_orders") == [row for row in rows_of(path, "orders") if row[1] >= 900]


def test_the_sqlite_source_keeps_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    custom_source_sink.create_tables(str(path), 2_100)
    source = custom_source_sink.SqliteSource(str(path))
    check_source(source, rows_of(path, "orders"), parallelism=2, cuts=(100, (7, 300), 1_000_000))


def test_the_sqlite_sink_keeps_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    custom_source_sink.create_tables(str(path), 0)
    epochs = [[(1, 10), (2, 20), (3, 30)], [(4, 40)], [(5, 50), (6, 60)]]
    check_sink(custom_source_sink.SqliteSink(str(path)), epochs, lambda: rows_of(path, "large_orders"))


# --- partitioners ---------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("max_records", [None, 3])
def test_partitioners(env: EnvironmentFactory, max_records: int | None) -> None:
    received: dict[str, dict[int, list[int]]] = defaultdict(lambda: {n: [] for n in range(4)})
    for name, subtask, number in collect({"all": partitioners.build(env(2, max_records))})["all"]:
        received[name][subtask].append(number)

    everything = list(range(12))
    for name, by_subtask in received.items():
        copies = 4 if name == "broadcast" else 1
        assert sorted(chain.from_iterable(by_subtask.values())) == sorted(everything * copies), name
    assert all(sorted(numbers) == everything for numbers in received["broadcast"].values())
    # The first producer has 0 to 5 and serves the first two receivers; the second has the rest.
    assert all(n < 6 for subtask in (0, 1) for n in received["rescale"][subtask])
    assert all(n >= 6 for subtask in (2, 3) for n in received["rescale"][subtask])
    assert [sorted(received["custom"][subtask]) for subtask in range(4)] == [
        [*range(6)],
        [],
        [],
        [*range(6, 12)],
    ]
    keys = [{n % 3 for n in numbers} for numbers in received["key_by"].values()]
    assert sum(map(len, keys)) == 3
    # In turn: two producers with six numbers each, four receivers.
    assert {len(numbers) for numbers in received["rescale"].values()} == {3}
    if max_records is None:
        assert all(2 <= len(numbers) <= 4 for numbers in received["rebalance"].values())


# --- collect_results ------------------------------------------------------------------------------


@pytest.mark.spark
def test_collected_squares(env: EnvironmentFactory) -> None:
    with collect_results.build(env(), last=30).execute_and_collect() as squares:
        assert sorted(squares) == [n * n for n in range(1, 31)]


@pytest.mark.spark
def test_an_endless_stream_can_be_left_and_its_job_is_cancelled(env: EnvironmentFactory) -> None:
    with collect_results.build_endless(env(parallelism=1)).execute_and_collect() as squares:
        job = squares._client
        assert list(islice(squares, 10)) == [n * n for n in range(10)]
    assert job.get_job_status().result() is JobStatus.CANCELED


# --- all of them ----------------------------------------------------------------------------------

#: A line of what each example prints, or a pattern of one.
PRINTS = {
    "clickstream_sessions": r"40,000 clicks in 0:06:40 hours of the shop: \d+ sessions closed, 4 alerts\.",
    "collect_results": "the endless job is CANCELED",
    "custom_source_sink": "1000 large orders, 949500 in all",
    "enrich_join": "Aarau   12 orders   3737",
    "fraud_rules_broadcast": r"\d> account-0: payment \d+ breaks rule 'total'",
    "partitioners": r"  subtask 3: \[6, 7, 8, 9, 10, 11\]",
    "pyflink_unchanged": "north: from 120 to 140 cm",
    "running_totals": r"  min_by  of the upper station: 10 \(07:00\)",
    "sensor_alerts": r"ALERT:\d> sensor-0: jumped by \+16\.3 to 42\.3 at second 4",
    "state_kinds": r"ada     best 69, last three \[43, 56, 69\], .* total 546, average 45\.5",
    "upgrade_with_savepoint": "nothing lost, nothing twice: True",
    "word_count": r"\d> \(the,8\)",
}


#: Run where there is a broker: `tests/spark/test_kafka.py`.
WITH_KAFKA = {"kafka_windows"}


def test_every_example_is_run() -> None:
    assert {*PRINTS, *WITH_KAFKA} == set(EXAMPLES)


@pytest.mark.spark
@pytest.mark.parametrize("name", PRINTS)
def test_an_example_runs_as_a_program(
    env: EnvironmentFactory, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--clicks", "40000"] if name == "clickstream_sessions" else []
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    pyflink_alias.install()
    try:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    finally:
        pyflink_alias.uninstall()
    lines = capsys.readouterr().out.splitlines()
    assert any(re.fullmatch(PRINTS[name], line) for line in lines), "\n".join(lines)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_shows_and_how_to_run_it(name: str) -> None:
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    docstring = text.split('"""')[1]
    assert f"headrace run examples/{name}.py" in docstring
    assert re.search(r"def build\(\s*env: StreamExecutionEnvironment", text)
    assert 'if __name__ == "__main__":\n    main()\n' in text

"""Benchmarks that run without Spark work, and what the others share."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import flink, nexmark_files, nexmark_run, profile_run
from bench.keyed_local import measure as measure_keyed
from bench.nexmark_files import definitions, query, write_files
from bench.nexmark_local import measure as measure_nexmark
from bench.nexmark_local import planned
from bench.nexmark_run import Result


@pytest.mark.parametrize("name", ["q5", "q9", "q19"])
def test_the_stages_of_a_query_run_in_one_process(tmp_path: Path, name: str) -> None:
    write_files(tmp_path / "events", 2_000, "csv")
    job = planned([*definitions(tmp_path / "events", "csv"), *query(name)], 2)
    costs = measure_nexmark(job, 2_000, None, keeps_state=False)
    assert costs["epochs"] == 1
    assert set(costs) > {vertex.name for vertex in job.vertices if vertex.is_source}


@pytest.mark.parametrize("cache_entries", [0, 1_000_000])
def test_the_keyed_count_runs_in_one_process(cache_entries: int) -> None:
    costs = measure_keyed(2_000, 100, 1_000, cache_entries, None)
    assert costs["epochs"] == 2
    assert {"stage 1", "stage 2"} < set(costs)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_that_are_written_in_pieces_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    write_files(tmp_path / "whole", 3_000, form, files=2)
    monkeypatch.setattr(nexmark_files, "PIECE", 400)
    write_files(tmp_path / "pieces", 3_000, form, files=2)
    whole, pieces = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).glob("*/*")}
        for name in ("whole", "pieces")
    )
    assert len(whole) == 6
    assert whole == pieces


def test_ratios_are_against_the_better_flink() -> None:
    results = {
        "Flink SQL": Result(cold=100, warm=400, cpu=6, memory=0),
        "Flink SQL, mini-batch": Result(cold=200, warm=300, cpu=5, memory=0),
        "Structured Streaming": Result(cold=900, warm=900, cpu=1, memory=0),
        "headrace": Result(cold=300, warm=800, cpu=2, memory=0),
    }
    ratios: dict[str, list[float]] = {"cold": [], "warm": [], "cpu": []}
    line = nexmark_run.ratios_of(results, ratios)
    assert line == {"cold_ratio": 1.5, "warm_ratio": 2.0, "cpu_ratio": 2.5}
    assert ratios == {"cold": [1.5], "warm": [2.0], "cpu": [2.5]}
    assert nexmark_run.ratios_of({"headrace": results["headrace"]}, ratios) == {}


def test_the_cost_of_an_event_is_compared_between_the_largest_and_the_smallest_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nexmark_run.report_sizes({"q5": {2_000_000: 1e-6, 100_000_000: 1.25e-6, 20_000_000: 9e-6}})
    line = json.loads(capsys.readouterr().out)
    assert (line["query"], line["ratio"], line["goal"]) == ("q5", 1.25, "<= 1.3")
    assert nexmark_run.numbers("20_000_000,2000000") == [2_000_000, 20_000_000]


def test_flink_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLINK_PYTHON", sys.executable)
    assert str(flink.flink_python()) == sys.executable
    jars = flink.parquet_jars(tmp_path / "own.jar")
    assert jars[0] == tmp_path / "own.jar"
    assert any(jar.name.startswith("hadoop-client") for jar in jars[1:])
    assert flink.as_urls(jars[:1]) == f"file://{tmp_path}/own.jar"


def test_a_jar_that_cannot_be_downloaded_says_where_to_put_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = tmp_path / "bin" / "java"
    failing.parent.mkdir()
    failing.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(flink, "ROOT", tmp_path)
    with pytest.raises(
        SystemExit, match=r"cannot download flink-sql-parquet.*\nno network\n\n.*--parquet-jar"
    ):
        flink.parquet_jars()


def test_samples_are_counted_by_operator_and_by_what_the_worker_did(
    capsys: pytest.CaptureFixture[str],
) -> None:
    worker, run = "main (pyspark/worker.py:1)", "run (headrace/spark/table_worker.py:227)"
    stacks = {
        (run, "PackedInput.packets (a/packed_input.py:1)", "PieceReader.read (a/piece_reader.py:33)"): 300,
        (run, "PackedInput.packets (a/packed_input.py:1)", "take (pyarrow/compute.py:1)"): 200,
        (run, "Join.process (headrace/operators/table/join.py:5)"): 100,
        (run, "Join.process (headrace/operators/table/join.py:5)", "Slots.find (headrace/slots.py:5)"): 50,
        (run, "other (headrace/x.py:1)"): 25,
    }
    text = "\n".join(";".join((worker, *stack)) + f" {count}" for stack, count in stacks.items())
    profile_run.show_samples(f"{text}\nmain (elsewhere.py:1) 1000", 100, 5)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:6]]
    assert lines == [
        ["3.00", "-", "scan"],
        ["2.00", "-", "encode"],
        ["1.00", "join", "compute"],
        ["0.50", "join", "state", "read"],
        ["0.25", "-", "other"],
    ]

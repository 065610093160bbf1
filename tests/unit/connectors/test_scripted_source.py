"""ScriptedSource: where epochs end, and how often failures strike."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.base import Slice, SourceReader
from headrace.elements import Batch
from headrace.errors import JobDefinitionError
from headrace.testing.sources import EndEpoch, Fail, Kill, ScriptedFailure, ScriptedSource, Stop, Timestamped


def read(reader: SourceReader, piece: Slice) -> list[Any]:
    return [value for batch in reader.read(piece) for value in batch.values]


def planned(source: ScriptedSource, position: int, max_records: int = 100) -> tuple[int, int] | None:
    enumerator = source.create_enumerator(1)
    piece = enumerator.plan(enumerator.discover()[0], position, max_records)
    return None if piece is None else (piece.start, piece.end)


def test_epochs_end_where_the_script_says_or_at_the_limit():
    #                        0  1  2           3  4  5  6
    source = ScriptedSource([1, 2, EndEpoch(), 3, 4, 5, EndEpoch()])

    assert planned(source, 0) == (0, 3)
    assert planned(source, 3, max_records=2) == (3, 5)
    assert planned(source, 5) == (5, 7)


def test_an_instruction_is_not_a_record():
    source = ScriptedSource([EndEpoch(), 1, 2])

    assert planned(source, 0, max_records=1) == (0, 1)
    assert planned(source, 1, max_records=1) == (1, 2)


def test_a_failure_strikes_as_often_as_it_says_then_the_script_continues(tmp_path):
    source = ScriptedSource([1, 2, Fail("boom", times=2), 3], directory=tmp_path)
    [split] = source.create_enumerator(1).discover()
    seen: list[Any] = []

    for _ in range(2):
        batches = pickle.loads(pickle.dumps(source)).create_reader().read(Slice(split, 0, 4))
        with pytest.raises(ScriptedFailure, match="boom"):
            seen.extend(value for batch in batches for value in batch.values)
    reader = source.create_reader()

    assert seen == [1, 2, 1, 2]
    assert read(reader, Slice(split, 0, 4)) == [1, 2, 3]
    assert reader.progress().is_finished


WORKER = """
import pickle, sys
source, piece = pickle.load(sys.stdin.buffer)
list(source.create_reader().read(piece))
"""


def test_a_kill_ends_the_worker_process_as_often_as_it_says(tmp_path):
    source = ScriptedSource([1, Kill(times=2), 2], directory=tmp_path)
    [split] = source.create_enumerator(1).discover()
    work = pickle.dumps((source, Slice(split, 0, 3)))

    exits = [
        subprocess.run([sys.executable, "-c", WORKER], input=work, check=False, timeout=60).returncode
        for _ in range(3)
    ]

    assert exits == [-signal.SIGKILL, -signal.SIGKILL, 0]


def test_a_kill_does_not_end_the_process_of_the_test(tmp_path):
    source = ScriptedSource([Kill()], directory=tmp_path)
    [split] = source.create_enumerator(1).discover()

    with pytest.raises(ScriptedFailure, match="in the process that wrote the script"):
        read(source.create_reader(), Slice(split, 0, 1))


def test_a_stop_is_as_silent_as_an_idle_source_until_it_is_resumed(tmp_path):
    source = ScriptedSource([1, Stop(), 2, Stop()], directory=tmp_path)

    assert planned(source, 0) == (0, 1)
    assert planned(source, 1) is None
    pickle.loads(pickle.dumps(source)).resume()
    assert planned(source, 1) == (1, 3)
    assert planned(source, 3) is None
    source.resume()
    assert planned(source, 3) == (3, 4)


def test_records_may_carry_timestamps():
    source = ScriptedSource([Timestamped("a", 5), "b"])
    [split] = source.create_enumerator(1).discover()

    assert list(source.create_reader().read(Slice(split, 0, 2))) == [Batch(["a", "b"], [5, None])]


def test_every_script_is_a_split(tmp_path):
    source = ScriptedSource([1, 2], [3], [])

    splits = source.create_enumerator(8).discover()

    assert [read(source.create_reader(), Slice(split, 0)) for split in splits] == [[1, 2], [3]]


def test_what_has_to_be_counted_needs_a_directory():
    for item in (Fail("boom"), Kill(), Stop()):
        with pytest.raises(JobDefinitionError, match="need a directory"):
            ScriptedSource([item])
    with pytest.raises(JobDefinitionError, match="at least one script"):
        ScriptedSource()
    with pytest.raises(JobDefinitionError, match="no Stop"):
        ScriptedSource([1]).resume()


def test_the_directory_is_made_if_it_is_not_there(tmp_path):
    source = ScriptedSource([Stop()], directory=tmp_path / "counts")
    source.resume()

    assert Path(tmp_path / "counts" / "resumed").stat().st_size == 1

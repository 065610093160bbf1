"""Every source against the contract of sources, cut into epochs in every way."""

from __future__ import annotations

import gzip
import operator
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.common.time import Duration
from headrace.connectors.base import (
    Boundedness,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.connectors.collection import CollectionSource
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.file import FileEnumeratorProvider, FileSource, StreamFormat
from headrace.connectors.function_source import PythonSource
from headrace.connectors.sequence import NumberSequenceSource
from headrace.connectors.socket import SocketSource
from headrace.elements import Batch
from headrace.testing.contracts import ContractViolation, check_source
from headrace.testing.sources import EndEpoch, ScriptedSource, Timestamped

WORDS = [f"word-{i}" for i in range(23)]


@dataclass(frozen=True)
class Case:
    make: Callable[[Path], Source]
    expected: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)


def twenty(split: str) -> int:
    return 20


def words_from(start: int) -> list[str]:
    return WORDS[start:]


def write_words(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "a.txt").write_text("\n".join(WORDS[:10]))
    (folder / "b.txt").write_text("".join(f"{word}\r\n" for word in WORDS[10:15]))
    (folder / "empty.txt").touch()
    (folder / "_SUCCESS").write_text("not a word")
    (folder / "deep" / "c.gz").write_bytes(gzip.compress("\n".join(WORDS[15:20]).encode()))
    (folder / "deep" / "d.txt").write_text("".join(f"{word}\n" for word in WORDS[20:]))
    return folder


def files(folder: Path, *, split_bytes: int | None = 16, monitored: bool = False) -> FileSource:
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), write_words(folder))
    lines.set_file_enumerator(FileEnumeratorProvider(split_bytes))
    return (lines.monitor_continuously(Duration.of_millis(1)) if monitored else lines).build()


def wide_files(folder: Path) -> FileSource:
    (folder / "wide.txt").write_text("\n".join(WORDS), encoding="utf-16")
    return FileSource.for_record_stream_format(StreamFormat.text_line_format("UTF-16"), folder).build()


CASES = {
    "collection": Case(lambda _: CollectionSource(WORDS), WORDS),
    "empty collection": Case(lambda _: CollectionSource([]), []),
    "sequence": Case(lambda _: NumberSequenceSource(-5, 17), range(-5, 18)),
    "generator": Case(lambda _: DataGeneratorSource(partial(operator.mul, 3), 20), range(0, 60, 3)),
    "generator with a rate": Case(
        lambda _: DataGeneratorSource(partial(operator.mul, 3), 20, rate_per_second=2000), range(0, 60, 3)
    ),
    "python": Case(lambda _: PythonSource({"a": words_from, "b": words_from}), WORDS + WORDS),
    "growing python": Case(
        lambda _: PythonSource({"a": words_from}, bounded=False, available=twenty), WORDS[:20]
    ),
    "file ranges": Case(files, WORDS),
    "whole files": Case(partial(files, split_bytes=None), WORDS),
    "monitored files": Case(partial(files, monitored=True), WORDS),
    "wide files": Case(wide_files, WORDS),
    "script": Case(
        lambda _: ScriptedSource([EndEpoch(), 1, 2, EndEpoch(), Timestamped(3, 10)], [4], []),
        [1, 2, 3, 4],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_source_keeps_the_contract(name, parallelism, tmp_path):
    case = CASES[name]

    check_source(case.make(tmp_path), case.expected, parallelism, **case.options)


@pytest.fixture
def word_server() -> Iterator[int]:
    class SayWords(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write("".join(f"{word}\n" for word in WORDS).encode())

    with socketserver.TCPServer(("127.0.0.1", 0), SayWords) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_socket_source_keeps_the_contract(word_server):
    check_source(SocketSource("127.0.0.1", word_server), WORDS, is_restartable=False)


# --- the check itself -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Faulty(Source):
    """Reads 0 to 5, with one fault."""

    fault: str

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return FaultyEnumerator(self.fault, parallelism)

    def create_reader(self) -> SourceReader:
        return FaultyReader(self.fault)


class FaultyEnumerator(SplitEnumerator):
    def __init__(self, fault: str, parallelism: int) -> None:
        self.fault = fault
        self.new = [SourceSplit(f"{parallelism}" if fault == "split follows parallelism" else "all")]

    def discover(self) -> Sequence[SourceSplit]:
        found = self.new
        if self.fault != "split comes twice":
            self.new = []
        return found

    @property
    def is_complete(self) -> bool:
        return not self.new

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice:
        end = position + max_records + (self.fault == "limit is ignored")
        return Slice(split, position, min(end, 6))


class FaultyReader(SourceReader):
    calls = 0

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def read(self, piece: Slice) -> Iterator[Batch]:
        FaultyReader.calls += 1
        shift = FaultyReader.calls if self.fault == "other records when read again" else 0
        end = piece.end - (self.fault == "last record is lost" and piece.end == 6)
        if end > piece.start:
            yield Batch([value + shift for value in range(piece.start, end)])
        self.position = piece.end

    def progress(self) -> SplitProgress:
        return SplitProgress(self.position, self.position >= 6)


def test_a_faultless_source_passes():
    check_source(Faulty("none"), range(6))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("split comes twice", "split 'all' was returned twice"),
        ("limit is ignored", "2 records read where 1 were allowed"),
        ("other records when read again", "a slice read again gives another result"),
        ("last record is lost", r"missing: \[5\]"),
        ("split follows parallelism", r"with restarts: there but not expected: \[0"),
    ],
)
def test_the_check_finds_faults(fault, message):
    with pytest.raises(ContractViolation, match=message):
        check_source(Faulty(fault), range(6))

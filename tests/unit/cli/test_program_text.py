"""What the text of a program suggests about its jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.program_text import mentions_endless_source, mentions_tables


@pytest.mark.parametrize(
    ("text", "is_endless"),
    [
        ("KafkaSource.builder().set_topics('clicks').build()", True),
        ("KafkaSource.builder().set_bounded(KafkaOffsetsInitializer.latest()).build()", False),
        ("env.socket_text_stream('localhost', 9999)", True),
        (
            "FileSource.for_record_stream_format(f, p).monitor_continuously(Duration.of_seconds(1)).build()",
            True,
        ),
        ("FileSource.for_record_stream_format(f, p).build()", False),
        ("DataGeneratorSource(make, None, 10)", True),
        ("DataGeneratorSource(make, count=None)", True),
        ("DataGeneratorSource(make, 1000)", False),
        ("DataGeneratorSource(make, count=1000, rate_per_second=None)", False),
        ("PythonSource({'a': read}, bounded=False)", True),
        ("PythonSource({'a': read})", False),
        ("env.from_collection([1, 2])  # instead of a KafkaSource", False),
        ("this is not Python", False),
    ],
)
def test_sources_without_an_end_are_found(tmp_path: Path, text: str, is_endless: bool) -> None:
    program = tmp_path / "job.py"
    program.write_text(text)
    assert mentions_endless_source(program) is is_endless


def test_scripts_and_programs_with_tables_are_found(tmp_path: Path) -> None:
    for name, text, expected in (
        ("job.sql", "SELECT 1", True),
        ("job.py", "from pyflink.table import *", True),
        ("stream.py", "stable = 1", False),
    ):
        (tmp_path / name).write_text(text)
        assert mentions_tables(tmp_path / name) is expected
    assert not mentions_endless_source(tmp_path / "job.sql")

"""FileSink: names, buckets, staging, and commits that are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.common.serialization import Encoder
from headrace.connectors.base import Committable, WriterContext
from headrace.connectors.file import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError, UnsupportedFeatureError, UserFunctionError

NOON = 1_700_049_600.0  # 2023-11-15 12:00:00 UTC


def builder(base: Path) -> FileSink.RowFormatBuilder:
    plain = BucketAssigner.base_path_bucket_assigner()
    return FileSink.for_row_format(str(base), Encoder.simple_string_encoder()).with_bucket_assigner(plain)


def stage(sink: FileSink, values: list[Any], *, subtask: int = 0, epoch: int = 1) -> list[Committable]:
    writer = sink.create_writer(WriterContext(subtask, 2, epoch, "attempt-7"))
    writer.write_batch(Batch(values))
    payloads = writer.prepare_commit()
    writer.close()
    return [Committable(subtask, epoch, payload) for payload in payloads]


def visible(base: Path) -> dict[str, str]:
    paths = (path.relative_to(base) for path in base.rglob("*") if path.is_file())
    return {str(path): (base / path).read_text() for path in paths if not str(path).startswith(".")}


def staged(base: Path) -> list[Path]:
    return list((base / ".staging").glob("*"))


def test_files_appear_with_the_commit_named_by_subtask_and_epoch(tmp_path):
    sink = builder(tmp_path / "out").build()

    committables = stage(sink, ["a", "b"], subtask=1, epoch=12)
    assert visible(tmp_path / "out") == {}
    sink.create_committer().commit(committables)

    assert visible(tmp_path / "out") == {"part-1-12": "a\nb\n"}
    assert staged(tmp_path / "out") == []


def test_prefix_and_suffix_are_part_of_the_name(tmp_path):
    config = OutputFileConfig.builder().with_part_prefix("clicks").with_part_suffix(".txt").build()
    sink = builder(tmp_path).with_output_file_config(config).build()

    sink.create_committer().commit(stage(sink, ["a"]))

    assert list(visible(tmp_path)) == ["clicks-0-1.txt"]
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("clicks", ".txt")


def test_an_epoch_without_records_leaves_nothing_behind(tmp_path):
    sink = builder(tmp_path / "out").build()

    assert stage(sink, []) == []
    assert not (tmp_path / "out").exists()


def test_a_second_commit_does_no_harm(tmp_path):
    sink = builder(tmp_path).build()
    committables = stage(sink, ["a"]) + stage(sink, ["b"], subtask=1)
    sink.create_committer().commit(committables[:1])

    sink.create_committer().commit(committables)
    sink.create_committer().commit(committables)

    assert visible(tmp_path) == {"part-0-1": "a\n", "part-1-1": "b\n"}


def test_output_that_is_lost_is_an_error(tmp_path):
    sink = builder(tmp_path).build()
    committables = stage(sink, ["a"])
    staged(tmp_path)[0].unlink()

    with pytest.raises(ConnectorError, match=r"output of a completed checkpoint is lost.*part-0-1") as caught:
        sink.create_committer().commit(committables)
    assert not caught.value.retryable


def test_files_of_an_earlier_run_are_kept(tmp_path):
    for line in ("first", "second", "third"):
        sink = builder(tmp_path).build()
        committables = stage(sink, [line])
        for _ in range(2):
            sink.create_committer().commit(committables)

    assert visible(tmp_path) == {"part-0-1": "first\n", "part-0-1-1": "second\n", "part-0-1-2": "third\n"}


def test_two_sinks_of_a_task_may_share_a_directory(tmp_path):
    committables = [*stage(builder(tmp_path).build(), ["a"]), *stage(builder(tmp_path).build(), ["b"])]

    builder(tmp_path).build().create_committer().commit(committables)

    assert sorted(visible(tmp_path).values()) == ["a\n", "b\n"]


def test_an_aborted_attempt_leaves_nothing_staged(tmp_path):
    writer = builder(tmp_path).build().create_writer(WriterContext(0, 1, 1, "a"))
    writer.write("x", None)
    writer.abort()
    writer.close()

    assert staged(tmp_path) == []


def test_closing_the_committer_removes_the_staging_directory_if_it_is_empty(tmp_path):
    sink = builder(tmp_path).build()
    committer = sink.create_committer()
    committer.commit(stage(sink, ["a"]))
    pending = stage(sink, ["b"], epoch=2)

    committer.close()
    assert (tmp_path / ".staging").exists()
    committer.commit(pending)
    committer.close()
    assert not (tmp_path / ".staging").exists()


def test_what_the_encoder_refuses_is_the_users_error_with_the_record(tmp_path):
    def write(value: Any, stream: Any) -> None:
        stream.write(value.encode())

    sink = FileSink.for_row_format(str(tmp_path), Encoder(write)).build()

    with pytest.raises(UserFunctionError, match="no attribute 'encode'") as caught:
        stage(sink, ["a", 7, "b"])
    assert caught.value.record == "7"


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "out").mkdir()
    sink = builder(tmp_path / "out").build()
    (tmp_path / "out").rmdir()
    (tmp_path / "out").write_text("now a file")

    with pytest.raises(ConnectorError, match=f"cannot write below {tmp_path / 'out'}"):
        stage(sink, ["a"])


# --- buckets --------------------------------------------------------------------------------------


def test_by_default_there_is_a_directory_an_hour(tmp_path):
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    hour = sink.bucket_assigner.bucket_at(NOON)
    times = iter([NOON, NOON, NOON + 3600])
    writer = sink.create_writer(WriterContext(0, 1, 3, "a"), clock=lambda: next(times))

    for value in ("a", "b", "c"):
        writer.write(value, None)
    payloads = writer.prepare_commit()
    sink.create_committer().commit([Committable(0, 3, payload) for payload in payloads])

    next_hour = sink.bucket_assigner.bucket_at(NOON + 3600)
    assert visible(tmp_path) == {f"{hour}/part-0-3": "a\nb\n", f"{next_hour}/part-0-3": "c\n"}


@pytest.mark.parametrize(
    ("pattern", "zone", "bucket"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2023-11-15--12"),
        ("yyyy-MM-dd--HH", "Asia/Tokyo", "2023-11-15--21"),
        ("'dt='yyyy/MM/dd", "UTC", "dt=2023/11/15"),
        ("yy.M.d h a", "UTC", "23.11.15 12 PM"),
        ("h a", "Asia/Tokyo", "9 PM"),
        ("EEE EEEE MMM MMMM D", "UTC", "Wed Wednesday Nov November 319"),
        ("HH:mm:ss.SSS", "UTC", "12:00:00.000"),
        ("HH 'o''clock' ''", "UTC", "12 o'clock '"),
    ],
)
def test_bucket_names_follow_javas_patterns(pattern, zone, bucket):
    assert BucketAssigner.date_time_bucket_assigner(pattern, zone).bucket_at(NOON) == bucket


def test_patterns_and_zones_that_are_not_known_are_refused():
    with pytest.raises(JobDefinitionError, match="unknown letter 'Q' in 'yyyy-Q'"):
        BucketAssigner.date_time_bucket_assigner("yyyy-Q")
    for zone in ("Mars/Olympus", "../etc/passwd", ""):
        with pytest.raises(JobDefinitionError, match="unknown time zone"):
            BucketAssigner.date_time_bucket_assigner("yyyy", zone)


# --- settings -------------------------------------------------------------------------------------


def test_settings_that_ask_for_what_happens_anyway_are_taken(tmp_path):
    for policy in (RollingPolicy.default_rolling_policy(), RollingPolicy.on_checkpoint_rolling_policy()):
        builder(tmp_path).with_rolling_policy(policy).with_bucket_check_interval(
            1000
        ).disable_compact().build()


@pytest.mark.parametrize(
    "ask",
    [
        lambda base: RollingPolicy.default_rolling_policy(part_size=1024),
        lambda base: builder(base).enable_compact(None, None),
        lambda base: FileCompactStrategy.builder(),
        lambda base: FileCompactor.concat_file_compactor(),
        lambda base: FileCompactor.identical_file_compactor(),
        lambda base: FileSink.for_bulk_format(str(base), None),
        lambda base: StreamingFileSink.for_row_format(str(base), Encoder.simple_string_encoder()),
        lambda base: StreamingFileSink.for_bulk_format(str(base), None),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(tmp_path, ask):
    with pytest.raises(UnsupportedFeatureError, match="is not in headrace yet"):
        ask(tmp_path)


def test_sinks_that_cannot_work_are_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(JobDefinitionError, match="the base path is a file"):
        builder(tmp_path / "file").build()
    config = OutputFileConfig.builder().with_part_prefix("a/b").build()
    with pytest.raises(JobDefinitionError, match="must not hold a slash; got 'a/b'"):
        builder(tmp_path).with_output_file_config(config).build()
    with pytest.raises(JobDefinitionError, match="expected an Encoder"):
        FileSink.for_row_format(str(tmp_path), None)  # type: ignore[arg-type]

"""FileSink: names, buckets, staging, and commits that are repeated."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.common.serialization import Encoder
from headrace.connectors import staged_files
from headrace.connectors.base import Committable, Committer, CommitterContext, WriterContext
from headrace.connectors.file import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from headrace.connectors.staged_files import DurableDirectories
from headrace.elements import Batch
from headrace.errors import (
    ConnectorError,
    DiskFullError,
    JobDefinitionError,
    UnsupportedFeatureError,
    UserFunctionError,
)
from headrace.storage.locations import Location

NOON = 1_700_049_600.0  # 2023-11-15 12:00:00 UTC


def builder(base: Path) -> FileSink.RowFormatBuilder:
    plain = BucketAssigner.base_path_bucket_assigner()
    return FileSink.for_row_format(str(base), Encoder.simple_string_encoder()).with_bucket_assigner(plain)


def rolling(base: Path) -> FileSink:
    """A sink that publishes all it is given with every commit."""
    return builder(base).with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()


def stage(
    sink: FileSink,
    values: list[Any],
    *,
    subtask: int = 0,
    epoch: int = 1,
    at: float = NOON,
    context: tuple[str, str] = ("", ""),
) -> list[Committable]:
    writer = sink.create_writer(WriterContext(subtask, 2, epoch, "attempt-7", *context), clock=lambda: at)
    writer.write_batch(Batch(values))
    payloads = writer.prepare_commit()
    writer.close()
    return [Committable(subtask, epoch, payload) for payload in payloads]


def visible(base: Path) -> dict[str, str]:
    """Visible files by name, without the unique id at its end."""
    paths = (path.relative_to(base) for path in base.rglob("*") if path.is_file())
    found = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    contents = {re.sub(r"-[0-9a-f]{12}", "", str(path)): (base / path).read_text() for path in found}
    assert len(contents) == len(found)
    return contents


def staged(base: Path) -> list[Path]:
    return [path for path in (base / ".staging").rglob("*") if path.is_file()]


def test_files_appear_with_the_commit_named_by_subtask_and_epoch(tmp_path):
    sink = rolling(tmp_path / "out")

    committables = stage(sink, ["a", "b"], subtask=1, epoch=12)
    assert visible(tmp_path / "out") == {}
    sink.create_committer().commit(committables)

    assert visible(tmp_path / "out") == {"part-1-12": "a\nb\n"}
    assert staged(tmp_path / "out") == []


def test_prefix_and_suffix_are_part_of_the_name(tmp_path):
    config = OutputFileConfig.builder().with_part_prefix("clicks").with_part_suffix(".txt").build()
    sink = builder(tmp_path).with_output_file_config(config).build()

    committer = sink.create_committer()
    committer.commit(stage(sink, ["a"]))
    committer.finish()

    assert list(visible(tmp_path)) == ["clicks-0-1.txt"]
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("clicks", ".txt")


def test_an_epoch_without_records_leaves_nothing_behind(tmp_path):
    sink = builder(tmp_path / "out").build()

    assert stage(sink, []) == []
    assert not (tmp_path / "out").exists()


def test_a_second_commit_does_no_harm(tmp_path):
    sink = rolling(tmp_path)
    committables = stage(sink, ["a"]) + stage(sink, ["b"], subtask=1)
    sink.create_committer().commit(committables[:1])

    sink.create_committer().commit(committables)
    sink.create_committer().commit(committables)

    assert visible(tmp_path) == {"part-0-1": "a\n", "part-1-1": "b\n"}


def test_finished_files_may_be_taken_away_at_any_time(tmp_path):
    sink = rolling(tmp_path)
    committables = stage(sink, ["a"])
    sink.create_committer().commit(committables)
    for path in tmp_path.glob("part-*"):
        path.unlink()

    sink.create_committer().commit(committables)

    assert visible(tmp_path) == {}


def test_output_that_is_lost_is_an_error(tmp_path):
    sink = rolling(tmp_path)
    committables = stage(sink, ["a"])
    shutil.rmtree(tmp_path / ".staging")

    with pytest.raises(ConnectorError, match=r"output of a completed checkpoint is lost.*part-0-1") as caught:
        sink.create_committer().commit(committables)
    assert not caught.value.retryable


def test_files_of_an_earlier_run_are_kept(tmp_path):
    for line in ("first", "second", "third"):
        sink = rolling(tmp_path)
        committables = stage(sink, [line])
        for _ in range(2):
            sink.create_committer().commit(committables)

    assert sorted(path.read_text() for path in tmp_path.glob("part-0-1-*")) == [
        "first\n",
        "second\n",
        "third\n",
    ]


def test_an_aborted_attempt_leaves_nothing_staged(tmp_path):
    writer = builder(tmp_path).build().create_writer(WriterContext(0, 1, 1, "a"))
    writer.write("x", None)
    writer.abort()
    writer.close()

    assert staged(tmp_path) == []


def test_closing_publishes_open_files_and_cleans_up_after_the_last_epoch(tmp_path):
    sink = builder(tmp_path).build()
    committer = sink.create_committer()
    committer.commit(stage(sink, ["a"]))
    stage(sink, ["vanished"], epoch=2)

    committer.close()

    assert visible(tmp_path) == {"part-0-1": "a\n"}
    assert not (tmp_path / ".staging").exists()


def test_closing_a_checkpointed_job_leaves_what_is_open_to_the_next(tmp_path):
    sink = builder(tmp_path).build()
    context = CommitterContext(is_checkpointed=True)
    committer = sink.create_committer(context, clock=lambda: NOON)
    state = committer.snapshot()
    first = stage(sink, ["a"])
    committer.commit(first)
    committer.close()
    assert visible(tmp_path) == {}

    again = sink.create_committer(context, clock=lambda: NOON)
    again.restore(state)
    again.commit(first)
    again.commit(stage(sink, ["b"], epoch=2))
    again.finish()

    assert visible(tmp_path) == {"part-0-1": "a\nb\n"}


def test_a_drained_job_may_continue_as_another_one(tmp_path):
    sink = builder(tmp_path).build()
    old = sink.create_committer(CommitterContext("old", "op", is_checkpointed=True), clock=lambda: NOON)
    state = old.snapshot()
    first = stage(sink, ["a"], context=("old", "op"))
    old.commit(first)
    old.finish()
    old.close()

    new = sink.create_committer(CommitterContext("new", "op", is_checkpointed=True), clock=lambda: NOON)
    new.restore(state)
    new.commit(first)
    new.discard_after(1)
    new.snapshot()
    new.commit(stage(sink, ["b"], epoch=2, context=("new", "op")))
    new.finish()

    assert visible(tmp_path) == {"part-0-1": "a\n", "part-0-2": "b\n"}


def test_what_is_open_survives_a_restart_under_another_job_id(tmp_path):
    sink = builder(tmp_path).build()
    old = sink.create_committer(CommitterContext("old", "op", is_checkpointed=True), clock=lambda: NOON)
    state = old.snapshot()
    first = stage(sink, ["a"], context=("old", "op"))
    old.commit(first)

    new = sink.create_committer(CommitterContext("new", "op", is_checkpointed=True), clock=lambda: NOON)
    new.restore(state)
    new.commit(first)
    new.discard_after(1)
    new.snapshot()
    new.commit(stage(sink, ["b"], epoch=2, context=("new", "op")))
    new.finish()

    assert visible(tmp_path) == {"part-0-1": "a\nb\n"}
    assert staged(tmp_path) == []


def checkpointed(sink: FileSink, job_id: str, at: float = NOON) -> Committer:
    return sink.create_committer(CommitterContext(job_id, "op", is_checkpointed=True), clock=lambda: at)


def savepoint_of(sink: FileSink) -> tuple[bytes, list[Committable]]:
    """A savepoint of a sink with an open file, and one more epoch that it covers and nobody has committed."""
    old = checkpointed(sink, "old")
    old.commit(stage(sink, ["open"], context=("old", "op")))
    return old.snapshot(), stage(sink, ["pending"], epoch=2, context=("old", "op"))


def test_a_savepoint_can_be_restored_with_another_directory(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    state, pending = savepoint_of(builder(before).build())
    sink = builder(after).build()
    new = checkpointed(sink, "new")

    new.restore(state)
    new.commit(pending)
    new.discard_after(2)

    assert visible(before) == {"part-0-1": "open\npending\n"}, "what was written until then stays together"
    assert staged(before) == []
    assert visible(after) == {}

    new.snapshot()
    new.commit(stage(sink, ["new"], epoch=3, context=("new", "op")))
    new.finish()
    assert visible(before) == {"part-0-1": "open\npending\n"}
    assert visible(after) == {"part-0-3": "new\n"}


def test_a_savepoint_can_be_restored_with_another_directory_more_than_once(tmp_path):
    before = tmp_path / "before"
    state, pending = savepoint_of(builder(before).build())
    for name in ("first", "second"):
        sink = builder(tmp_path / name).build()
        new = checkpointed(sink, name)
        new.restore(state)
        new.commit(pending)
        new.discard_after(2)
        new.snapshot()
        new.commit(stage(sink, [name], epoch=3, context=(name, "op")))
        new.finish()

        assert visible(before) == {"part-0-1": "open\npending\n"}
        assert visible(tmp_path / name) == {"part-0-3": f"{name}\n"}


def test_buckets_are_complete_in_a_directory_that_the_sink_has_left(tmp_path):
    def sink_in(base: Path) -> FileSink:
        by_value = BucketAssigner.element_bucket_assigner(lambda value: f"value={value}")
        marking = builder(base).with_partition_commit(timedelta(hours=1))
        return marking.with_bucket_assigner(by_value).build()

    before, after = tmp_path / "before", tmp_path / "after"
    state, pending = savepoint_of(sink_in(before))
    new = checkpointed(sink_in(after), "new")

    new.restore(state)
    new.commit(pending)

    assert sorted(visible(before)) == [
        "value=open/_SUCCESS",
        "value=open/part-0-1",
        "value=pending/_SUCCESS",
        "value=pending/part-0-2",
    ]
    assert visible(after) == {}


def test_a_directory_may_be_moved_with_what_is_staged_in_it(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    state, pending = savepoint_of(builder(before).build())
    before.rename(after)
    sink = builder(after).build()
    new = checkpointed(sink, "new")

    new.restore(state)
    new.commit(pending)
    new.snapshot()
    new.commit(stage(sink, ["new"], epoch=3, context=("new", "op")))
    new.finish()

    assert visible(after) == {"part-0-1": "open\npending\nnew\n"}
    assert not before.exists()


def test_a_checkpoint_syncs_files_that_another_job_has_staged(tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(DurableDirectories, "sync", lambda self, place: synced.append(Path(place.path).name))
    sink = builder(tmp_path).build()
    state, pending = savepoint_of(sink)
    new = checkpointed(sink, "new")
    new.restore(state)
    new.commit(pending)

    synced.clear()
    new.snapshot()
    assert synced == ["new-op", "old-op"], (
        "what is put together for the open file is put where the old job staged it"
    )

    synced.clear()
    new.finish()
    assert synced == ["new-op", "old-op", "new-op", "old-op", tmp_path.name]


def test_what_the_encoder_refuses_is_the_users_error_with_the_record(tmp_path):
    def write(value: Any, stream: Any) -> None:
        stream.write(value.encode())

    sink = FileSink.for_row_format(str(tmp_path), Encoder(write)).build()

    writer = sink.create_writer(WriterContext(0, 1, 1, "a"))
    with pytest.raises(UserFunctionError, match="no attribute 'encode'") as caught:
        writer.write_batch(Batch(["a", 7, "b"]))
    assert caught.value.record == "7"
    writer.abort()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "out").mkdir()
    sink = builder(tmp_path / "out").build()
    (tmp_path / "out").rmdir()
    (tmp_path / "out").write_text("now a file")

    with pytest.raises(ConnectorError, match=f"cannot write {tmp_path / 'out'}/.staging/"):
        stage(sink, ["a"])


def test_a_full_disk_while_staging_names_the_file_and_leaves_nothing(tmp_path, monkeypatch):
    sink = builder(tmp_path).build()
    writer = sink.create_writer(WriterContext(0, 1, 1, "a"))
    writer.write("x", None)
    monkeypatch.setattr(os, "fsync", disk_full)

    with pytest.raises(DiskFullError, match=rf"cannot write output in {tmp_path}/.staging/.*No space left"):
        writer.prepare_commit()
    writer.abort()

    assert staged(tmp_path) == []


def test_a_full_disk_while_publishing_loses_nothing(tmp_path, monkeypatch):
    sink = rolling(tmp_path)
    committables = [*stage(sink, ["a"]), *stage(sink, ["b"], epoch=2)]
    committer = sink.create_committer()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.raises(
            DiskFullError, match=rf"cannot write output in {tmp_path}/.staging.*No space left"
        ) as caught:
            committer.commit(committables)
    assert caught.value.retryable
    assert visible(tmp_path) == {}
    assert len(staged(tmp_path)) == 2

    committer.commit(committables)

    assert visible(tmp_path) == {"part-0-1": "a\nb\n"}


def disk_full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# --- rolling --------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def run(base: Path, policy: RollingPolicy, epochs: list[tuple[float, str]]) -> list[str]:
    """Write a line an epoch, at so many seconds after noon, a checkpoint each; return visible contents."""
    sink = builder(base).with_rolling_policy(policy).build()
    clock = Clock()
    committer = sink.create_committer(CommitterContext(is_checkpointed=True), clock=clock)
    for number, (seconds, line) in enumerate(epochs, start=1):
        clock.now = NOON + seconds
        committables = stage(sink, [line] if line else [], epoch=number, at=clock.now)
        committer.snapshot()
        committer.commit(committables)
    return list(dict(sorted(visible(base).items())).values())


def test_a_file_holds_epochs_until_it_is_large_enough(tmp_path):
    policy = RollingPolicy.default_rolling_policy(part_size=6)

    assert run(tmp_path, policy, [(0, "a"), (0, "b")]) == []
    assert run(tmp_path, policy, [(0, "c"), (0, "d"), (0, "e"), (0, "f")]) == ["c\nd\ne\n"]


def test_a_file_is_published_when_it_is_old_enough(tmp_path):
    policy = RollingPolicy.default_rolling_policy(rollover_interval=10_000)

    contents = run(tmp_path, policy, [(0, "a"), (9, "b"), (10, "c"), (12, ""), (20, "")])

    assert contents == ["a\nb\n", "c\n"]


def test_a_file_is_published_when_nothing_comes_for_long(tmp_path):
    policy = RollingPolicy.default_rolling_policy(inactivity_interval=5_000)

    assert run(tmp_path, policy, [(0, "a"), (4, "b"), (8, ""), (9, "")]) == ["a\nb\n"]


def test_with_every_checkpoint_means_one_file_a_checkpoint_and_not_an_epoch(tmp_path):
    sink = rolling(tmp_path)
    committables = [each for epoch in (1, 2, 3) for each in stage(sink, [f"line {epoch}"], epoch=epoch)]

    sink.create_committer().commit(committables)

    assert visible(tmp_path) == {"part-0-1": "line 1\nline 2\nline 3\n"}


def test_a_large_epoch_fills_several_files_none_of_which_is_copied(tmp_path, monkeypatch):
    sink = builder(tmp_path).with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4)).build()
    writer = sink.create_writer(WriterContext(0, 1, 1, "a"))
    for value in "abcdefg":
        writer.write(value, None)
    committables = [Committable(0, 1, payload) for payload in writer.prepare_commit()]
    monkeypatch.setattr(staged_files, "concatenate", None)

    sink.create_committer().commit(committables)

    contents = [path.read_text() for path in tmp_path.glob("part-0-1-*")]
    assert sorted(contents) == ["a\nb\n", "c\nd\n", "e\nf\n"]


def test_a_file_that_is_open_for_thousands_of_epochs_is_a_few_files(tmp_path):
    sink = builder(tmp_path).build()
    committer = sink.create_committer(CommitterContext(is_checkpointed=True))
    most = 0
    for epoch in range(1, 2101):
        committables = stage(sink, [str(epoch)], epoch=epoch, at=time.time())
        committer.snapshot()
        committer.commit(committables)
        if epoch % 100 == 0:
            most = max(most, len(staged(tmp_path)))
    committer.finish()

    assert most < 200
    assert list(visible(tmp_path).values()) == ["".join(f"{epoch}\n" for epoch in range(1, 2101))]
    assert staged(tmp_path) == []


def test_without_checkpoints_a_commit_is_asked_for_when_a_file_gets_old(tmp_path):
    policy = RollingPolicy.default_rolling_policy(inactivity_interval=5_000)
    sink = builder(tmp_path).with_rolling_policy(policy).with_bucket_check_interval(1_000).build()
    clock = Clock()
    committer = sink.create_committer(clock=clock)
    assert committer.next_commit_ms() is None

    committer.commit(stage(sink, ["a"]))
    assert committer.next_commit_ms() == NOON * 1000 + 5_000
    clock.now += 5
    committer.commit(())

    assert visible(tmp_path) == {"part-0-1": "a\n"}
    assert committer.next_commit_ms() is None


def test_a_repeated_commit_uses_the_clock_of_the_snapshot(tmp_path):
    policy = RollingPolicy.default_rolling_policy(inactivity_interval=5_000)
    sink = builder(tmp_path).with_rolling_policy(policy).build()
    context, clock = CommitterContext(is_checkpointed=True), Clock()
    state = sink.create_committer(context, clock=clock).snapshot()
    committables = stage(sink, ["a"])
    clock.now += 3600

    committer = sink.create_committer(context, clock=clock)
    committer.restore(state)
    committer.commit(committables)
    assert visible(tmp_path) == {}

    committer.snapshot()
    committer.commit(())
    assert visible(tmp_path) == {"part-0-1": "a\n"}


def test_policies_that_would_never_or_always_roll_are_refused(tmp_path):
    with pytest.raises(JobDefinitionError, match="rollover_interval must be positive; got 0"):
        RollingPolicy.default_rolling_policy(rollover_interval=0)
    with pytest.raises(JobDefinitionError, match="expected a RollingPolicy"):
        builder(tmp_path).with_rolling_policy("daily")  # type: ignore[arg-type]
    with pytest.raises(JobDefinitionError, match="positive number of ms"):
        builder(tmp_path).with_bucket_check_interval(0)


def test_a_file_uri_is_a_local_path_so_that_files_are_synced(tmp_path):
    assert rolling(f"file://{tmp_path}").base == Location("", str(tmp_path))  # type: ignore[arg-type]


def test_other_file_systems_are_reached_by_their_uri(tmp_path):
    sink = replace(rolling(tmp_path), base=Location(f"file://{tmp_path}", str(tmp_path)))
    committables = [*stage(sink, ["a"]), *stage(sink, ["b"], epoch=2)]
    for _ in range(2):
        sink.create_committer().commit(committables)

    assert visible(tmp_path) == {"part-0-1": "a\nb\n"}
    assert staged(tmp_path) == []


# --- buckets --------------------------------------------------------------------------------------


def test_by_default_there_is_a_directory_an_hour(tmp_path):
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    hour = sink.bucket_assigner.bucket_at(NOON)
    times = iter([NOON, NOON, NOON + 3600])
    writer = sink.create_writer(WriterContext(0, 1, 3, "a"), clock=lambda: next(times))

    for value in ("a", "b", "c"):
        writer.write(value, None)
    payloads = writer.prepare_commit()
    committer = sink.create_committer()
    committer.commit([Committable(0, 3, payload) for payload in payloads])
    committer.finish()

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


@pytest.mark.parametrize(
    "ask",
    [
        lambda base: builder(base).enable_compact(None, None),
        lambda base: FileCompactStrategy.builder(),
        lambda base: FileCompactor.concat_file_compactor(),
        lambda base: FileCompactor.identical_file_compactor(),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(tmp_path, ask):
    with pytest.raises(UnsupportedFeatureError, match="is not supported yet"):
        ask(tmp_path)


def test_the_older_sink_is_the_same_one(tmp_path):
    encoder = Encoder.simple_string_encoder()
    older = StreamingFileSink.for_row_format(str(tmp_path), encoder).build()
    assert older == FileSink.for_row_format(str(tmp_path), encoder).build()


def test_sinks_that_cannot_work_are_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(JobDefinitionError, match="the base path is a file"):
        builder(tmp_path / "file").build()
    config = OutputFileConfig.builder().with_part_prefix("a/b").build()
    with pytest.raises(JobDefinitionError, match="must not contain a slash; got 'a/b'"):
        builder(tmp_path).with_output_file_config(config).build()
    with pytest.raises(JobDefinitionError, match="expected an Encoder"):
        FileSink.for_row_format(str(tmp_path), None)  # type: ignore[arg-type]

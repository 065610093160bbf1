"""Buckets by record, and the files that say that one is complete."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.common.serialization import Encoder
from headrace.common.time import Duration
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.base import Committable, CommitterContext, WriterContext
from headrace.connectors.collection import CollectionSource
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.errors import ConnectorError, JobDefinitionError, UserFunctionError
from tests.unit.runtime.jobs import run

CONTEXT = CommitterContext(job_id="job", sink_id="sink", is_checkpointed=True)


def day_of(record: str) -> str:
    return f"day={record[0]}"


def sink(base: Path, delay_s: int = 0, policy: RollingPolicy | None = None) -> FileSink:
    builder = (
        FileSink.for_row_format(base, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.element_bucket_assigner(day_of))
        .with_rolling_policy(policy or RollingPolicy.on_checkpoint_rolling_policy())
        .with_partition_commit(Duration.of_seconds(delay_s))
    )
    return pickle.loads(pickle.dumps(builder.build()))  # type: ignore[no-any-return]


def written(declared: FileSink, epoch: int, records: Sequence[str]) -> list[Committable]:
    writer = declared.create_writer(WriterContext(0, 1, epoch, f"{epoch}", "job", "sink"), clock=lambda: 0.0)
    for record in records:
        writer.write(record, None)
    payloads = writer.prepare_commit()
    writer.close()
    return [Committable(0, epoch, payload) for payload in payloads]


def marked(base: Path) -> list[str]:
    return sorted(path.parent.name for path in base.rglob("_SUCCESS"))


def lines(base: Path, day: str) -> list[str]:
    parts = (base / f"day={day}").glob("part-*")
    return sorted(line for part in parts for line in part.read_text().splitlines())


def test_records_go_to_the_bucket_they_name_and_it_is_marked(tmp_path: Path) -> None:
    declared = sink(tmp_path)
    committer = declared.create_committer(CONTEXT, clock=lambda: 100.0)
    committables = written(declared, 1, ["1a", "2a", "1b"])
    committer.snapshot()
    assert marked(tmp_path) == []
    committer.commit(committables)
    assert (lines(tmp_path, "1"), lines(tmp_path, "2")) == (["1a", "1b"], ["2a"])
    assert marked(tmp_path) == ["day=1", "day=2"]


def test_a_bucket_is_marked_when_its_delay_is_over_also_by_another_committer(tmp_path: Path) -> None:
    declared = sink(tmp_path, delay_s=60)
    committer = declared.create_committer(CONTEXT, clock=lambda: 100.0)
    committer.snapshot()
    committer.commit(written(declared, 1, ["1a"]))
    assert (lines(tmp_path, "1"), marked(tmp_path)) == (["1a"], [])
    state = committer.snapshot()
    assert state is not None
    later = declared.create_committer(CONTEXT, clock=lambda: 161.0)
    later.restore(state)
    later.commit(())  # what the crash interrupted, as of the time of its snapshot
    assert marked(tmp_path) == []
    later.snapshot()
    later.commit(())
    assert marked(tmp_path) == ["day=1"]


HOUR_MS = 3_600_000
#: The day and hour of a record that begins with its number of hours.
NOON_MS = 1_709_208_000_000


def hour_of(record: str) -> str:
    return f"day=2024-02-29/hour={record[:2]}"


def hourly(base: Path) -> FileSink:
    builder = (
        FileSink.for_row_format(base, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.element_bucket_assigner(hour_of))
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_partition_commit(Duration.of_hours(1), partition_time="$day $hour:00:00")
    )
    return pickle.loads(pickle.dumps(builder.build()))  # type: ignore[no-any-return]


def test_a_bucket_is_marked_when_event_time_has_passed_it(tmp_path: Path) -> None:
    #   watermark       -      13:00             13:00:00.001      14:30
    #   marked          none   none              12                12, 13
    declared = hourly(tmp_path)
    committer = declared.create_committer(CONTEXT, clock=lambda: 1e12)  # by the clock all is long over
    committer.snapshot()
    committer.commit(written(declared, 1, ["12a", "13a"]))
    assert marked(tmp_path) == []
    for watermark, expected in (
        (NOON_MS + HOUR_MS, []),
        (NOON_MS + HOUR_MS + 1, ["hour=12"]),
        (NOON_MS + 5 * HOUR_MS // 2, ["hour=12", "hour=13"]),
    ):
        committer.advance(watermark)
        committer.snapshot()
        committer.commit(())
        assert marked(tmp_path) == expected


def test_a_repeated_commit_uses_the_event_time_of_its_snapshot(tmp_path: Path) -> None:
    declared = hourly(tmp_path)
    committer = declared.create_committer(CONTEXT)
    committables = written(declared, 1, ["12a"])
    committer.advance(NOON_MS)
    state = committer.snapshot()
    assert state is not None
    committer.advance(NOON_MS + 2 * HOUR_MS)  # of an epoch that the checkpoint does not cover
    committer.commit(committables)
    assert marked(tmp_path) == []
    later = declared.create_committer(CONTEXT)
    later.restore(state)
    later.commit(committables)
    assert marked(tmp_path) == []
    later.advance(NOON_MS + 2 * HOUR_MS)
    later.snapshot()
    later.commit(())
    assert marked(tmp_path) == ["hour=12"]


def test_without_checkpoints_a_bucket_is_due_when_event_time_has_passed_it(tmp_path: Path) -> None:
    declared = hourly(tmp_path)
    committer = declared.create_committer(CommitterContext("job", "sink"), clock=lambda: 100.0)
    committer.commit(written(declared, 1, ["12a"]))
    assert committer.next_commit_ms() is None
    committer.advance(NOON_MS + 2 * HOUR_MS)
    assert committer.next_commit_ms() is not None
    committer.commit(())
    assert marked(tmp_path) == ["hour=12"]


def test_a_job_marks_buckets_as_its_watermark_passes_them(tmp_path: Path) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: NOON_MS + (int(record[:2]) - 12) * HOUR_MS
    )
    seen: list[list[str]] = []

    run(
        lambda env: env.from_source(CollectionSource(["12a", "14a", "14b", "16a", "16b"]), strategy, "hours"),
        sink=hourly(tmp_path),
        max_records=1,
        on_epoch=lambda _: seen.append(marked(tmp_path)),
    )

    # Each epoch has a record, and the first hour is over when one of another has come.
    assert seen[:4] == [[], ["hour=12"], ["hour=12"], ["hour=12", "hour=14"]]
    assert marked(tmp_path) == ["hour=12", "hour=14", "hour=16"]


def test_a_bucket_whose_name_is_not_a_time_is_named(tmp_path: Path) -> None:
    declared = hourly(tmp_path)
    committer = declared.create_committer(CONTEXT)
    committer.advance(NOON_MS)
    committer.snapshot()
    with pytest.raises(
        ConnectorError, match=r"bucket 'day=2024-02-29/hour=25': the pattern .* gives '2024-02-29 25:"
    ):
        committer.commit(written(declared, 1, ["25a"]))


def test_a_bucket_with_a_file_that_is_still_open_is_not_complete(tmp_path: Path) -> None:
    declared = sink(tmp_path, policy=RollingPolicy.default_rolling_policy(rollover_interval=10_000))
    now = 5.0
    committer = declared.create_committer(CONTEXT, clock=lambda: now)
    committer.snapshot()
    committer.commit(written(declared, 1, ["1a"]))
    assert marked(tmp_path) == []
    now = 11.0
    committer.snapshot()
    committer.commit(())
    assert (lines(tmp_path, "1"), marked(tmp_path)) == (["1a"], ["day=1"])


def test_at_the_end_of_the_input_all_buckets_are_complete(tmp_path: Path) -> None:
    declared = sink(tmp_path, delay_s=3600)
    committer = declared.create_committer(CONTEXT, clock=lambda: 0.0)
    committer.snapshot()
    committer.commit(written(declared, 1, ["1a", "2a"]))
    committer.finish()
    committer.finish()
    assert marked(tmp_path) == ["day=1", "day=2"]


def test_without_checkpoints_the_committer_asks_to_be_called_when_a_bucket_is_due(tmp_path: Path) -> None:
    declared = sink(tmp_path, delay_s=60)
    committer = declared.create_committer(CommitterContext("job", "sink"), clock=lambda: 100.0)
    committer.commit(written(declared, 1, ["1a"]))
    assert committer.next_commit_ms() == 160_000


@pytest.mark.parametrize("bucket", ["../out", ".hidden", 3])
def test_a_bucket_must_stay_below_the_base_path(tmp_path: Path, bucket: Any) -> None:
    assigner = BucketAssigner.element_bucket_assigner(lambda _: bucket)
    builder = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder()).with_bucket_assigner(
        assigner
    )
    writer = builder.build().create_writer(WriterContext(0, 1, 1, "a"))
    with pytest.raises(UserFunctionError, match="a bucket must") as caught:
        writer.write("record", None)
    assert caught.value.record == "'record'"
    writer.abort()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobDefinitionError, match="expected a function of a record"):
        BucketAssigner.element_bucket_assigner("day")  # type: ignore[arg-type]
    builder = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder())
    with pytest.raises(JobDefinitionError, match="delay must not be negative and file name not empty"):
        builder.with_partition_commit(success_file_name="a/b")

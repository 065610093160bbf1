"""FileSink that replaces what is there: nothing goes before all that is new has come."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.connectors.base import Committer, CommitterContext
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.errors import ConnectorError, StateError
from tests.unit.connectors.test_file_sink import builder, stage, staged, visible


def by_first_letter(base: Path, *buckets: str) -> FileSink:
    letters = BucketAssigner.element_bucket_assigner(lambda value: f"letter={value[0]}")
    return builder(base).with_bucket_assigner(letters).with_overwrite(*buckets).build()


def committer_of(sink: FileSink, *, is_checkpointed: bool = False) -> Committer:
    return sink.create_committer(CommitterContext(is_checkpointed=is_checkpointed))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "out"
    for name in ("letter=a/old", "letter=b/old", "letter=b/deep/old", "letter=b/_SUCCESS", "letter=c/old"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text("old\n")
    return base


def test_files_are_replaced_where_there_are_new_ones_and_not_before_the_end(base: Path):
    sink = by_first_letter(base)
    before = visible(base)
    committer = committer_of(sink)
    committer.commit(stage(sink, ["a1", "b1"], epoch=1))
    committer.commit(stage(sink, ["b2"], epoch=2, subtask=1))
    assert visible(base) == before

    committer.finish()
    committer.close()

    assert visible(base) == {
        "letter=a/part-0-1": "a1\n",
        "letter=b/part-0-1": "b1\n",
        "letter=b/part-1-2": "b2\n",
        "letter=b/_SUCCESS": "old\n",
        "letter=c/old": "old\n",
    }
    assert not (base / ".staging").exists()


def test_a_job_that_fails_changes_nothing(base: Path):
    sink = by_first_letter(base)
    before = visible(base)
    committer = committer_of(sink)
    committer.commit(stage(sink, ["a1", "b1"]))
    committer.close()
    assert visible(base) == before
    assert not (base / ".staging").exists()


def test_directories_that_are_named_are_emptied_without_rows(base: Path):
    committer = committer_of(by_first_letter(base, "letter=b"))
    committer.finish()
    assert sorted(visible(base)) == ["letter=a/old", "letter=b/_SUCCESS", "letter=c/old"]


def test_a_table_without_partitions_is_replaced_as_a_whole(base: Path):
    sink = builder(base).with_overwrite("").build()
    committer = committer_of(sink)
    committer.commit(stage(sink, ["x"]))
    committer.finish()
    assert visible(base) == {"part-0-1": "x\n", "letter=b/_SUCCESS": "old\n"}


def test_what_was_finished_is_finished_again_after_a_restart(base: Path):
    sink = by_first_letter(base)
    first = committer_of(sink, is_checkpointed=True)
    committables = stage(sink, ["a1"])
    first.commit(stage(sink, ["b1"]))
    state = first.snapshot()
    first.commit(committables)
    first.finish()
    stage(sink, ["a2"], epoch=2)

    second = committer_of(sink, is_checkpointed=True)
    assert state is not None
    second.restore(state)
    second.commit(committables)
    second.discard_after(1)
    second.finish()

    assert visible(base)["letter=a/part-0-1"] == "a1\n"
    assert visible(base)["letter=b/part-0-1"] == "b1\n"
    assert "letter=a/old" not in visible(base)
    assert staged(base) == []


def test_nothing_is_deleted_when_what_was_written_is_lost(base: Path):
    sink = by_first_letter(base)
    committer = committer_of(sink)
    committer.commit(stage(sink, ["a1"]))
    before = visible(base)
    for path in staged(base):
        path.unlink()
    with pytest.raises(ConnectorError, match="output is lost"):
        committer.finish()
    assert visible(base) == before


def test_a_snapshot_of_a_sink_that_adds_files_is_refused(base: Path):
    state = builder(base).build().create_committer().snapshot()
    assert state is not None
    with pytest.raises(StateError, match="without overwrite"):
        committer_of(by_first_letter(base)).restore(state)


def test_replaced_partitions_are_marked_as_complete(base: Path):
    letters = BucketAssigner.element_bucket_assigner(lambda value: f"letter={value[0]}")
    made = builder(base).with_bucket_assigner(letters).with_partition_commit(None, "_DONE").with_overwrite()
    sink = made.build()
    committer = committer_of(sink)
    committer.commit(stage(sink, ["a1"]))
    committer.finish()
    assert (base / "letter=a/_DONE").exists()
    assert not (base / "letter=c/_DONE").exists()

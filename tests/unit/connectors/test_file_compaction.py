"""FileSink that puts small files together: the files of a checkpoint, whichever subtasks wrote them, and only once."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from headrace.common import Row
from headrace.connectors import staged_files
from headrace.connectors.base import CommitterContext
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.connectors.file.avro import AvroBulkWriters, AvroSchema
from headrace.connectors.file.orc import OrcBulkWriters
from headrace.connectors.file.parquet import ParquetBulkWriters
from headrace.errors import ConnectorError, JobDefinitionError
from headrace.types import DataTypes
from tests.unit.connectors.test_file_sink import NOON, builder, stage, staged, visible

ROWS = DataTypes.ROW([DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())])
AVRO = AvroSchema.parse_string(
    '{"type": "record", "name": "R", "fields": [{"name": "name", "type": "string"}, {"name": "n", "type": "int"}]}'
)
CHECKPOINTED = CommitterContext(is_checkpointed=True)


def compacting(base: Path, size: int = 1000) -> FileSink:
    letters = BucketAssigner.element_bucket_assigner(lambda value: f"letter={value[0]}")
    return builder(base).with_bucket_assigner(letters).with_compaction(size).build()


def test_files_of_a_bucket_become_one_whichever_subtasks_wrote_them(tmp_path: Path):
    sink = compacting(tmp_path)
    staged_now = [
        each
        for epoch, subtask, values in ((1, 1, ["a2"]), (1, 0, ["a1", "b1"]), (2, 0, ["a3"]))
        for each in stage(sink, values, subtask=subtask, epoch=epoch)
    ]
    committer = sink.create_committer(CHECKPOINTED)

    committer.commit(staged_now)

    assert visible(tmp_path) == {"letter=a/part-0-1": "a1\na3\na2\n", "letter=b/part-0-1": "b1\n"}
    assert staged(tmp_path) == []


def test_files_grow_up_to_the_size(tmp_path: Path):
    sink = compacting(tmp_path, size=6)
    values = [["a1"], ["a2"], ["a-long"], ["a3"]]
    staged_now = [each for subtask, own in enumerate(values) for each in stage(sink, own, subtask=subtask)]

    sink.create_committer(CHECKPOINTED).commit(staged_now)

    assert visible(tmp_path) == {
        "letter=a/part-0-1": "a1\na2\n",
        "letter=a/part-2-1": "a-long\n",
        "letter=a/part-3-1": "a3\n",
    }


def test_every_checkpoint_has_files_of_its_own(tmp_path: Path):
    sink = compacting(tmp_path)
    committer = sink.create_committer(CHECKPOINTED)
    for epoch in (1, 2):
        committer.commit([*stage(sink, ["a"], epoch=epoch), *stage(sink, ["a"], epoch=epoch, subtask=1)])
        assert len(visible(tmp_path)) == epoch


def test_files_that_are_replaced_are_put_together_at_the_end(tmp_path: Path):
    (tmp_path / "letter=a").mkdir()
    (tmp_path / "letter=a/old").write_text("old\n")
    letters = BucketAssigner.element_bucket_assigner(lambda value: f"letter={value[0]}")
    sink = builder(tmp_path).with_bucket_assigner(letters).with_compaction().with_overwrite().build()
    committer = sink.create_committer(CommitterContext(is_checkpointed=False))
    committer.commit(stage(sink, ["a1"]))
    committer.commit(stage(sink, ["a2"], epoch=2, subtask=1))
    committer.finish()
    committer.close()
    assert visible(tmp_path) == {"letter=a/part-0-1": "a1\na2\n"}


class DriverDiesError(ConnectorError):
    """Stands for the end of a process."""


STEPS = ("open_output", "append", "finish_output", "rename", "delete", "sync_names")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("call", range(6))
def test_a_commit_that_dies_at_any_step_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, call: int
):
    sink = compacting(tmp_path)
    now = [*stage(sink, ["a1", "b1"]), *stage(sink, ["a2", "b2"], subtask=1)]
    first = sink.create_committer(CHECKPOINTED)
    state = first.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(staged_files, step, dying(getattr(staged_files, step), call))
        with suppress(DriverDiesError):
            first.commit(now)

    again = sink.create_committer(CHECKPOINTED)
    again.restore(state)
    again.commit(now)
    again.discard_after(1)

    assert visible(tmp_path) == {"letter=a/part-0-1": "a1\na2\n", "letter=b/part-0-1": "b1\nb2\n"}
    assert staged(tmp_path) == []


def dying(function: Callable[..., object], calls: int) -> Callable[..., object]:
    """Return a function that works so many times."""
    left = [calls]

    def call(*arguments: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise DriverDiesError("here")
        return function(*arguments)

    return call


def test_what_came_with_a_later_checkpoint_is_published_after_a_restart(tmp_path: Path):
    """The later checkpoint was written before the earlier one was committed, so it names the output of both."""
    sink = compacting(tmp_path)
    first = sink.create_committer(CHECKPOINTED)
    earlier, later = stage(sink, ["a1"]), stage(sink, ["a2"], epoch=2)
    state = first.snapshot()
    first.commit(earlier)

    again = sink.create_committer(CHECKPOINTED)
    again.restore(state)
    again.commit([*earlier, *later])

    assert visible(tmp_path) == {"letter=a/part-0-1": "a1\n", "letter=a/part-0-2": "a2\n"}


def test_files_that_a_run_without_compaction_left_open_stay_files_of_their_own(tmp_path: Path):
    without = builder(tmp_path).build()
    earlier = without.create_committer(CHECKPOINTED, clock=lambda: NOON)
    earlier.commit([*stage(without, ["1"]), *stage(without, ["2"], subtask=1)])
    assert visible(tmp_path) == {}

    sink = builder(tmp_path).with_compaction().build()
    committer = sink.create_committer(CHECKPOINTED)
    committer.restore(earlier.snapshot())
    committer.commit(stage(sink, ["3"], epoch=2))

    assert visible(tmp_path) == {"part-0-1": "1\n3\n", "part-1-1": "2\n"}


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_files_of_columns_and_blocks_are_put_together_by_their_format(tmp_path: Path, kind: str):
    factory = {
        "parquet": lambda: ParquetBulkWriters.for_row_type(ROWS),
        "orc": lambda: OrcBulkWriters.for_row_type(ROWS, {"orc.compress": "ZSTD"}),
        "avro": lambda: AvroBulkWriters.for_generic_record(AVRO),
    }[kind]()
    plain = BucketAssigner.base_path_bucket_assigner()
    sink = FileSink.for_bulk_format(tmp_path, factory).with_bucket_assigner(plain).with_compaction().build()
    rows = [Row(name="ann", n=1), Row(name="bob", n=2)], [Row(name="eve", n=3)]
    staged_now = [each for subtask, own in enumerate(rows) for each in stage(sink, own, subtask=subtask)]

    sink.create_committer(CHECKPOINTED).commit(staged_now)

    (path,) = (each for each in tmp_path.iterdir() if each.is_file())
    content = io.BytesIO(path.read_bytes())
    if kind == "parquet":
        assert pq.ParquetFile(content).num_row_groups == 1, "small row groups are written as one"
        found = pq.read_table(content).to_pylist()
    else:
        found = orc.ORCFile(content).read().to_pylist() if kind == "orc" else list(fastavro.reader(content))
    assert found == [{"name": "ann", "n": 1}, {"name": "bob", "n": 2}, {"name": "eve", "n": 3}]


def test_the_size_of_files_is_positive(tmp_path: Path):
    with pytest.raises(JobDefinitionError, match="file_size must be positive"):
        builder(tmp_path).with_compaction(0)

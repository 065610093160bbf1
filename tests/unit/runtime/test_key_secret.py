"""The secret in the keys of SQL state: kept with the state, new without it, and never shown."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from headrace.connectors.collect import CollectSink
from headrace.connectors.datagen.table import RangeTableSource
from headrace.errors import StateError
from headrace.graph.job_graph import JobGraph
from headrace.graph.table_job import TableInput, TableNode, build_table_job
from headrace.operators.table.declarations import (
    AggSpec,
    GroupAggregateDeclaration,
    TableScanDeclaration,
    TableSinkDeclaration,
)
from headrace.operators.table.steps import Fragment, StepColumn
from headrace.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    FileRef,
    KeyedPart,
    OperatorSnapshot,
    decode_metadata,
    encode_metadata,
)
from headrace.runtime.checkpoint.restore import StartingPoint, starting_point
from headrace.state.key_secret import KeySecret

NUMBER, COUNT = (StepColumn(name, "BIGINT", pa.int64()) for name in ("id", "n"))


def job(parallelism: int = 2) -> JobGraph:
    counted = GroupAggregateDeclaration((NUMBER, COUNT), keys=("id",), calls=(AggSpec("COUNT", (), COUNT),))
    sink = TableSinkDeclaration(CollectSink("x"), schema=(NUMBER, COUNT))
    nodes = [
        TableNode(
            TableScanDeclaration(RangeTableSource(("id",), 9), schema=(NUMBER,)), "numbers", uid="numbers"
        ),
        TableNode(counted, "count", (TableInput(0, Fragment((), (NUMBER,))),), uid="count"),
        TableNode(sink, "collect", (TableInput(1, Fragment((), (NUMBER, COUNT))),), uid="collect"),
    ]
    return build_table_job(nodes, job_id="a" * 32, name="counting", parallelism=parallelism)


def savepoint(secret: KeySecret | None) -> CheckpointMetadata:
    vertex = job().vertices[1]
    keyed = (KeyedPart(0, (FileRef("/d/state", 10, 0, 1),)),)
    counted = OperatorSnapshot(
        vertex.head.operator_id, "count", "count", 2, vertex.max_parallelism, keyed=keyed
    )
    return CheckpointMetadata("savepoint", 1, "b" * 32, "counting", 5, 0, (counted,), key_secret=secret)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_restored_job_keeps_the_secret_at_any_parallelism(parallelism: int) -> None:
    secret = KeySecret.new()
    stored = decode_metadata(encode_metadata(savepoint(secret), "/d"), "/d")
    start, _ = starting_point(job(parallelism), stored, "line")
    assert start.key_secret == secret


def test_sql_state_without_a_secret_is_refused() -> None:
    with pytest.raises(StateError, match=r"'count'.*could confuse two SQL keys") as caught:
        starting_point(job(), savepoint(None), "line")
    assert "start the job without the checkpoint or savepoint" in (caught.value.hint or "")
    assert not caught.value.retryable


def test_a_checkpoint_without_sql_state_needs_no_secret() -> None:
    empty = msgspec.structs.replace(savepoint(None), operators=())
    start, _ = starting_point(job(), empty, "line")
    assert len(start.key_secret.value) == 16


def test_jobs_have_different_secrets_that_are_not_shown() -> None:
    first, second = StartingPoint().key_secret, StartingPoint().key_secret
    assert first != second
    for shown in (repr(first), repr(StartingPoint(key_secret=first)), repr(savepoint(first))):
        assert repr(first.value) not in shown
        assert first.value.hex() not in shown

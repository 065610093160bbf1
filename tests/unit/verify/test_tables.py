"""What changelogs come to, and which scenarios jobs with tables get."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.common import Row, RowKind, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.print import PrintSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import StreamExecutionEnvironment
from headrace.errors import JobDefinitionError
from headrace.graph.job_graph import build_job_graph
from headrace.operators.table.declarations import SinkMode, TableSinkDeclaration
from headrace.operators.table.steps import StepColumn
from headrace.verify.inputs import InputRecord, repeated
from headrace.verify.scenario import Scenario, draw_for_tables
from headrace.verify.tables import refuse_unbounded, rows_left

SCHEMA = (StepColumn("word", "STRING", pa.string()), StepColumn("n", "BIGINT", pa.int64()))


def sink(mode: SinkMode, *keys: str) -> TableSinkDeclaration:
    return TableSinkDeclaration(PrintSink(), schema=SCHEMA, mode=mode, keys=keys)


def change(kind: str, *values: object) -> Row:
    kinds = {
        "+I": RowKind.INSERT,
        "-U": RowKind.UPDATE_BEFORE,
        "+U": RowKind.UPDATE_AFTER,
        "-D": RowKind.DELETE,
    }
    return Row.of_kind(kinds[kind], *values)


def test_rows_that_were_not_taken_away_are_left() -> None:
    changes = [change("+I", "a", 1), change("+I", "b", 1), change("-U", "a", 1), change("+U", "a", 2)]
    assert sorted(rows_left(changes, sink(SinkMode.RETRACT))) == [("a", 2), ("b", 1)]
    assert rows_left([*changes, change("-D", "b", 1)], sink(SinkMode.RETRACT)) == [("a", 2)]


def test_it_does_not_matter_how_many_changes_lead_to_a_row() -> None:
    at_once = [change("+I", "a", 2)]
    one_by_one = [change("+I", "a", 1), change("-U", "a", 1), change("+U", "a", 2)]
    declared = sink(SinkMode.RETRACT)
    assert rows_left(at_once, declared) == rows_left(one_by_one, declared)


def test_a_row_that_is_taken_away_and_was_never_there_shows() -> None:
    [left] = rows_left([change("-D", "a", 1)], sink(SinkMode.RETRACT))
    assert left[0] == "retracted, but never emitted"


def test_the_last_row_of_each_key_is_left_of_upserts() -> None:
    changes = [change("+I", "a", 1), change("+U", "a", 2), change("+I", "b", 1), change("-D", "b", None)]
    assert rows_left(changes, sink(SinkMode.UPSERT, "word")) == [("a", 2)]


def test_every_kind_of_scenario_comes_with_the_first_seeds() -> None:
    drawn = [draw_for_tables(seed, 80, can_rescale=True) for seed in range(6)]
    assert drawn[0] == Scenario()
    assert all(each.max_records < 80 and not each.faults and not each.fault_rate for each in drawn[1:])
    assert {event.kind.value for each in drawn for event in each.events} == {
        "savepoint",
        "driver lost",
        "rescale",
    }
    assert draw_for_tables(9, 80, can_rescale=True) == draw_for_tables(9, 80, can_rescale=True)


def test_a_source_without_an_end_is_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = NumberSequenceSource(0, 9)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "bounded").print()
    refuse_unbounded(build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="job"))
    env.from_source(
        DataGeneratorSource(str, count=None), WatermarkStrategy.no_watermarks(), "endless"
    ).print()
    job = build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="job")
    with pytest.raises(JobDefinitionError, match="endless' has no end"):
        refuse_unbounded(job)


def test_a_third_of_the_records_come_twice_in_a_row() -> None:
    records = [InputRecord(at, "split", at) for at in range(300)]
    made = repeated(records, 1)
    assert [each.index for each in made] == sorted(each.index for each in made)
    assert {each.index for each in made} == set(range(300))
    assert 70 < len(made) - 300 < 130
    assert made == repeated(records, 1) != repeated(records, 2)

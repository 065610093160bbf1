"""ON CONFLICT DO NOTHING and DO ERROR: rows wait for the watermark, then one of each primary key is left."""

import pytest

from headrace.elements import MAX_WATERMARK
from headrace.errors import JobExecutionError
from headrace.operators.table.sink_declarations import SinkConflictDeclaration
from headrace.planner import fragments as f
from headrace.table import DataTypes
from tests.operators.table_harness import Harness

SCHEMA = (f.column("name", DataTypes.STRING()), f.column("id", DataTypes.BIGINT()))


def harness(directory, *, fails=False, upsert_key=("id",), retracts=True, ttl_ms=0, **options):
    declaration = SinkConflictDeclaration(SCHEMA, ("name",), upsert_key, fails, ttl_ms=ttl_ms)
    return Harness(declaration, [SCHEMA], [retracts], directory, **options)


def test_rows_wait_until_the_watermark_moves_on(tmp_path):
    made = harness(tmp_path, forgets=True)
    assert made.run([("+I", "tea", 1)], before=10, after=10) == []
    assert made.run([("+I", "rum", 2)], before=10, after=11) == [("+I", "tea", 1), ("+I", "rum", 2)]


def test_a_row_and_its_retraction_cancel_each_other_in_any_order(tmp_path):
    made = harness(tmp_path, fails=True)
    found = made.run([("+I", "tea", 1), ("+I", "tea", 3), ("-U", "tea", 1)], before=0, after=1)
    assert found == [("+I", "tea", 3)]
    found = made.run(
        [("+U", "tea", 4), ("-U", "tea", 3), ("-D", "rum", 9), ("+I", "rum", 9)], before=1, after=2
    )
    assert found == [("+U", "tea", 4)]


def test_do_nothing_keeps_the_first_row(tmp_path):
    made = harness(tmp_path)
    assert made.run([("+I", "tea", 1), ("+I", "tea", 3)], before=0, after=1) == [("+I", "tea", 1)]
    assert made.run([("+I", "tea", 5)], before=1, after=2) == []
    # The row that was discarded is not there to come back.
    assert made.run([("-D", "tea", 1)], before=2, after=3) == [("-D", "tea", 1)]


def test_do_error_fails_with_the_primary_key(tmp_path):
    made = harness(tmp_path, fails=True)
    made.run([("+I", "tea", 1)], before=0, after=1)
    with pytest.raises(JobExecutionError, match="2 different rows have the primary key name = 'tea'"):
        made.run([("+I", "tea", 2)], before=1, after=2)


def test_an_update_of_the_same_key_of_the_query_is_not_a_conflict(tmp_path):
    made = harness(tmp_path, fails=True)
    made.run([("+I", "tea", 1)], before=0, after=1)
    assert made.run([("+U", "tea", 1)], before=1, after=2) == []


def test_rows_without_a_key_are_compared_as_a_whole(tmp_path):
    made = harness(tmp_path, upsert_key=(), retracts=False)
    assert made.run([("+I", "tea", 1), ("+I", "tea", 1)], before=0, after=1) == [("+I", "tea", 1)]


def test_the_end_of_the_input_resolves_what_waits(tmp_path):
    made = harness(tmp_path)
    made.run([("+I", "tea", 1)], before=0, after=0)
    found = made.run(before=0, after=MAX_WATERMARK, is_final=True)
    assert found == [("+I", "tea", 1)]


def test_state_moves_with_its_key_when_the_parallelism_changes(tmp_path):
    names = [f"n{at}" for at in range(12)]
    made = harness(tmp_path, parallelism=2)
    made.run([("+I", name, 1) for name in names], before=0, after=1)
    made.run([("-D", name, 1) for name in names], before=1, after=1)
    made.rescale(3)
    found = made.run(before=1, after=2)
    assert sorted(found) == sorted(("-D", name, 1) for name in names)
    assert made.state_rows == 0


def test_rows_of_the_sink_have_a_time_to_live(tmp_path):
    made = harness(tmp_path, ttl_ms=100)
    made.run([("+I", "tea", 1)], before=0, after=1, now_ms=0)
    found = made.run([("+I", "tea", 2)], before=1, after=2, now_ms=500)
    assert found == [("+I", "tea", 2)]

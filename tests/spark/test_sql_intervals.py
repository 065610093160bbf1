"""Columns of intervals: written to files, read again, generated, and computed with in both modes."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory

pytestmark = pytest.mark.spark

MODES = [EnvironmentSettings.in_streaming_mode(), EnvironmentSettings.in_batch_mode()]
SPAN = timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=567)


@pytest.mark.parametrize("settings", MODES)
def test_intervals_are_written_to_files_and_read_again(
    env: EnvironmentFactory, tmp_path: Path, settings: EnvironmentSettings
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), settings)
    for kind in ("json", "csv"):
        t_env.execute_sql(
            f"CREATE TABLE {kind}s (d INTERVAL DAY TO SECOND(3), m INTERVAL YEAR TO MONTH) WITH "
            f"('connector' = 'filesystem', 'path' = '{tmp_path}/{kind}', 'format' = '{kind}')"
        )
        t_env.execute_sql(
            f"INSERT INTO {kind}s VALUES (INTERVAL '1 02:03:04.567' DAY TO SECOND, INTERVAL '1-2' YEAR TO MONTH), "
            "(INTERVAL -'5' DAY, INTERVAL '3' MONTH), (CAST(NULL AS INTERVAL DAY), CAST(NULL AS INTERVAL MONTH))"
        ).wait()
        with t_env.execute_sql(f"SELECT * FROM {kind}s").collect() as found:
            assert {tuple(row) for row in found} == {(SPAN, 14), (timedelta(days=-5), 3), (None, None)}
        sums = "TIMESTAMP '2020-01-31 00:00:00' + d, DATE '2020-01-31' + m"
        later = f"SELECT {sums} FROM {kind}s WHERE d > INTERVAL '0' DAY"
        with t_env.execute_sql(later).collect() as found:
            ((time, day),) = map(tuple, found)
        assert (time, str(day)) == (datetime.fromisoformat("2020-02-01 02:03:04.567"), "2021-03-31")
    (file,) = (path for path in (tmp_path / "json").iterdir() if not path.name.startswith("."))
    assert '{"d":93784567,"m":14}' in file.read_text().split()


@pytest.mark.parametrize("settings", MODES)
def test_intervals_are_generated(env: EnvironmentFactory, settings: EnvironmentSettings) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), settings)
    t_env.execute_sql(
        "CREATE TABLE g (d INTERVAL DAY TO SECOND(3), m INTERVAL YEAR TO MONTH) WITH ('connector' = 'datagen', "
        "'number-of-rows' = '40', 'fields.d.min' = '-1', 'fields.d.max' = '1', 'fields.m.max' = '2')"
    )
    with t_env.execute_sql("SELECT d, m FROM g").collect() as found:
        rows = [tuple(row) for row in found]
    assert {span for span, _ in rows} == {timedelta(milliseconds=each) for each in (-1, 0, 1)}
    assert {months for _, months in rows} == {0, 1, 2}

"""Event time that Parquet files tell in their footers is that of their rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.common.types import changelog_text
from headrace.spark.known_times import KnownTimes
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import run_together
from tests.watching import watching

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

#: Just before and just after the clocks in Berlin go back; the last file has nothing that is later.
LATEST = (
    datetime(2026, 10, 25, 0, 59, 59, 999_999, UTC),
    datetime(2026, 10, 25, 1, 0, 1, tzinfo=UTC),
    datetime(2026, 10, 24, tzinfo=UTC),
)
#: Which column is the time, and how a watermark follows it.
TABLES = {
    "walls": ("wall", "wall - INTERVAL '5' SECOND"),
    "moments": ("moment", "moment"),
    "months": ("moment", "moment - INTERVAL '1' MONTH"),
}


def write_files(directory: Path, *, has_statistics: bool) -> None:
    directory.mkdir()
    for number, latest in enumerate(LATEST):
        times = [latest - timedelta(minutes=minutes) for minutes in (90, 0, 1)] + [None]
        columns = {
            "wall": pa.array(times, pa.timestamp("us", "UTC")).cast(pa.timestamp("us")),
            "moment": pa.array(times, pa.timestamp("us", "UTC")),
        }
        file = directory / f"part-{number}.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=1, write_statistics=has_statistics)


def run(
    t_env: StreamTableEnvironment, directory: Path
) -> tuple[list[list[str]], list[dict[str, int | None]]]:
    """Count the files' rows in windows; return the changelogs, and the watermarks of every epoch."""
    for table, (time, watermark) in TABLES.items():
        t_env.execute_sql(
            f"CREATE TEMPORARY TABLE {table} (wall TIMESTAMP(3), moment TIMESTAMP_LTZ(3), "
            f"WATERMARK FOR {time} AS {watermark}) "
            f"WITH ('connector' = 'filesystem', 'path' = '{directory}', 'format' = 'parquet')"
        )
    queries = [
        f"SELECT CAST(window_start AS STRING), COUNT(*) FROM TUMBLE(TABLE {table}, DESCRIPTOR({time}), "
        "INTERVAL '1' MINUTE) GROUP BY window_start, window_end"
        for table, (time, _) in TABLES.items()
    ]
    epochs: list[dict[str, int | None]] = []
    with watching(
        on_epoch=lambda _, epoch: epochs.append(
            {str(report.subtask): report.watermark for report in epoch.reports}
        ),
    ):
        changelogs = run_together(t_env, queries)
    for table in TABLES:
        t_env.execute_sql(f"DROP TEMPORARY TABLE {table}")
    return [sorted(map(changelog_text, rows)) for rows in changelogs], epochs


@pytest.mark.parametrize("zone", ["UTC", pytest.param("Europe/Berlin", marks=pytest.mark.slow)])
def test_time_comes_as_far_as_it_does_by_the_rows(
    env: EnvironmentFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
):
    told: list[int] = []
    ms = KnownTimes.ms
    monkeypatch.setattr(KnownTimes, "ms", lambda self, subtask: told.append(subtask) or ms(self, subtask))
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=1))
    t_env.get_config().set("table.local-time-zone", zone)
    outcomes = []
    for name in ("told", "seen"):
        write_files(tmp_path / name, has_statistics=name == "told")
        outcomes.append(run(t_env, tmp_path / name))
        # Of the first files only: the others do not tell it.
        assert len(told) == len(TABLES) * len(LATEST)
    assert outcomes[0] == outcomes[1]

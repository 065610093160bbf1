"""What the clock says as a value of queries: of an epoch and a query one moment, and never one before the last."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from headrace.table import StreamTableEnvironment
from tests.spark.sql_support import result_of, run_together

pytestmark = pytest.mark.spark

ZONE = ZoneInfo("Asia/Tokyo")
_ROWS = 4
_MOMENTS = "pt, CURRENT_TIMESTAMP AS c, NOW() AS n, CURRENT_ROW_TIMESTAMP() AS r, PROCTIME() AS p"
_LOCAL = (
    "LOCALTIMESTAMP AS l, CAST(pt AS TIMESTAMP(3)) AS q, CURRENT_DATE AS d, CAST(LOCALTIME AS STRING) AS t"
)


def test_values_of_the_clock_are_the_moment_of_the_epoch(env):
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=2))
    t_env.get_config().set("table.local-time-zone", ZONE.key)
    rows = t_env.from_elements([(number,) for number in range(_ROWS)], ["id"])
    t_env.create_temporary_view("plain", rows)
    t_env.create_temporary_view("ticks", t_env.sql_query("SELECT id, PROCTIME() AS pt FROM plain"))
    begin = _now()
    values, texts, passed, never, grouped = run_together(
        t_env,
        [
            f"SELECT id, {_MOMENTS}, {_LOCAL} FROM ticks",
            "SELECT CAST(CURRENT_TIMESTAMP AS STRING), CAST(pt AS STRING) FROM ticks",
            "SELECT id FROM ticks WHERE pt <= CURRENT_TIMESTAMP AND LOCALTIMESTAMP > TIMESTAMP '2020-01-01 00:00:00'",
            "SELECT id FROM ticks WHERE pt < CURRENT_TIMESTAMP - INTERVAL '1' HOUR OR pt > NOW() + INTERVAL '1' HOUR",
            "SELECT pt <= NOW(), COUNT(*) FROM ticks GROUP BY pt <= NOW()",
        ],
    )
    end = _now()
    assert sorted(row[0] for row in values) == sorted(row[0] for row in passed) == list(range(_ROWS))
    assert never == []
    assert result_of(grouped) == {(True, _ROWS): 1}
    moments = []
    for row in sorted(values, key=lambda row: row.id):
        assert row.c == row.n == row.r == row.p == row.pt
        assert row.c.microsecond % 1000 == 0
        local = row.c.astimezone(ZONE).replace(tzinfo=None)
        assert (row.l, row.q, row.d, row.t) == (local, local, local.date(), f"{local:%H:%M:%S}")
        moments.append(row.c)
    assert begin <= moments[0]
    assert moments == sorted(moments)
    assert moments[-1] <= end
    assert len(set(moments)) == _ROWS // 2  # an epoch is two rows
    for now, then in texts:
        assert now == then
        assert re.fullmatch(r"[\d-]{10} [\d:]{8}\.\d{3}", now)


def _now() -> datetime:
    now = datetime.now(ZONE)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)

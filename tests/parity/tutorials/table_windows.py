"""Windows of the Table API: rows per ten seconds, and a sliding sum."""

import os
import tempfile
from datetime import datetime, timedelta

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Slide, Tumble

START = datetime(2026, 3, 1, 12, 0, 0)  # noqa: DTZ001
READINGS = [
    ("a", 20.5, 1), ("b", 18.0, 3), ("a", 21.5, 8), ("a", 22.0, 11), ("b", 17.5, 19), ("a", None, 20), ("b", 19.0, 31),
]  # fmt: skip


def main():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    t_env.get_config().set("table.local-time-zone", "UTC")
    rows = [(sensor, value, START + timedelta(seconds=at)) for sensor, value, at in READINGS]
    kind = DataTypes.ROW(
        [
            DataTypes.FIELD("sensor", DataTypes.STRING()),
            DataTypes.FIELD("celsius", DataTypes.DOUBLE()),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
        ]
    )
    plain = t_env.from_elements(rows, kind)
    path = os.path.join(tempfile.mkdtemp(), "readings")
    t_env.execute_sql(
        "CREATE TABLE readings (sensor STRING, celsius DOUBLE, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at` - "
        f"INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')"
    )
    plain.execute_insert("readings").wait()
    readings = t_env.from_path("readings")
    (
        readings.window(Tumble.over(lit(10).seconds).on(col("at")).alias("w"))
        .group_by(col("w"), col("sensor"))
        .select(
            col("sensor"), col("w").start.alias("since"), col("w").end.alias("until"), col("celsius").avg.alias("mean"),
            col("celsius").count.alias("n"),
        )
        .execute()
        .print()
    )  # fmt: skip
    (
        readings.window(Slide.over(lit(20).seconds).every(lit(10).seconds).on(col("at")).alias("w"))
        .group_by(col("w"))
        .select(col("w").start, col("celsius").sum.alias("total"), col("w").rowtime)
        .execute()
        .print()
    )


if __name__ == "__main__":
    main()

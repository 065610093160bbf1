"""Garbage in JSON and CSV files that Spark reads: an error with its place, or left out; never a row of NULLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import FormatError
from headrace.table import EnvironmentSettings, StreamTableEnvironment, TableResult
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER

pytestmark = pytest.mark.spark

COLUMNS = "i INT, b BIGINT, d DECIMAL(5, 2), t TIMESTAMP(3), s STRING"
GOOD_JSON = b'{"i":1,"b":2,"d":3.5,"t":"2020-01-01 00:00:00","s":"good"}'
#: Lines that are not records.
NO_JSON = [
    b'{"i":1,"s":"\xff\xfe"}',
    b'{"i":1,"s":"ab',
    b"[1,2]",
    b'"text"',
    b"null",
    b"7",
    b'{"x":' + b"[" * 10_000 + b"]" * 10_000 + b',"i":1}',
    b"[" * 10_000,
    b"{'i':1}",
    b'{"s":"a\x00b"}',
    b"\x00\x00",
]
#: Records with a field that cannot be converted.
BAD_FIELDS = [
    b'{"s":"kept","b":1e30}',
    b'{"s":"kept","b":99999999999999999999}',
    b'{"s":"kept","i":3000000000}',
    b'{"s":"kept","i":1.5}',
    b'{"s":"kept","i":"1.5"}',
    b'{"s":"kept","t":"99999-01-01 00:00:00"}',
    b'{"s":"kept","t":"2020-13-01 00:00:00"}',
    b'{"s":"kept","d":12345.6}',
]
GOOD_CSV = b"1,2,3.5,2020-01-01 00:00:00,good"
NO_CSV = [b"1,2", GOOD_CSV + b",more", b'1,2,"3.5,2020-01-01 00:00:00,x']
BAD_COLUMNS = [
    b"3000000000,,,,kept",
    b"1.5,,,,kept",
    b",1e30,,,kept",
    b",,12345.6,,kept",
    b",,,99999-01-01 00:00:00,kept",
    b",,,2020-02-30 00:00:00,kept",
    b"\xff,,,,kept",
]


#: Texts that are not UTF-8: they are NULL where errors are ignored.
NOT_UTF8 = [b"7,,,,\xff\xfe", b"7,,,,a\xedb", b"7,,,,\xed\xa0\x80"]


def table(env: EnvironmentFactory, path: Path, kind: str, *, ignore: bool) -> StreamTableEnvironment:
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    t_env.execute_sql(
        f"CREATE TABLE f ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{kind}', "
        f"'{kind}.ignore-parse-errors' = '{str(ignore).lower()}')"
    )
    return t_env


def errors(result: TableResult) -> int:
    """How many bad records the job's metrics tell of."""
    return sum(
        each.increment
        for epoch in RECORDER.of(result.get_job_client())
        for report in epoch.reports
        for metrics in report.user_metrics.values()
        for name, each in metrics.items()
        if name.name == "numRecordsInErrors"
    )


@pytest.mark.parametrize(
    ("kind", "good", "no_records", "bad_fields"),
    [("json", GOOD_JSON, NO_JSON, BAD_FIELDS), ("csv", GOOD_CSV, NO_CSV, BAD_COLUMNS)],
)
def test_invalid_records_are_skipped_and_fields_that_cannot_be_converted_are_null(
    env: EnvironmentFactory,
    tmp_path: Path,
    kind: str,
    good: bytes,
    no_records: list[bytes],
    bad_fields: list[bytes],
) -> None:
    lines = [b"\xef\xbb\xbf" + good, b"", *no_records, *bad_fields, good]
    (tmp_path / "x").write_bytes(b"\n".join(lines))
    t_env = table(env, tmp_path, kind, ignore=True)

    result = t_env.execute_sql("SELECT s, i, b, d, t FROM f")
    rows = [tuple(row) for row in result.collect()]

    assert [row[0] for row in rows] == ["good", *["kept"] * len(bad_fields), "good"]
    assert {row[1:] for row in rows if row[0] == "kept"} == {(None,) * 4}
    assert errors(result) == len(no_records) + len(bad_fields)
    [[count]] = t_env.execute_sql("SELECT COUNT(*) FROM f").collect()
    assert count == len(rows)


@pytest.mark.parametrize(
    ("kind", "lines", "query"),
    [
        ("json", [GOOD_JSON, b'{"i":1,"s":"ab'], "SELECT COUNT(*) FROM f"),
        ("json", [GOOD_JSON, b'{"s":"kept","i":3000000000}'], "SELECT i FROM f"),
        ("csv", [GOOD_CSV, NO_CSV[2]], "SELECT s FROM f"),
        ("csv", [GOOD_CSV, "3000000000,,,,é".encode()], "SELECT i FROM f"),
    ],
)
def test_otherwise_the_error_names_the_file_and_the_record(
    env: EnvironmentFactory, tmp_path: Path, kind: str, lines: list[bytes], query: str
) -> None:
    (tmp_path / "bad").write_bytes(b"\n".join(lines))

    with pytest.raises(FormatError) as raised:
        list(table(env, tmp_path, kind, ignore=False).execute_sql(query).collect())

    assert f"{tmp_path}/bad" in raised.value.message
    assert repr(lines[1].decode()) in str(raised.value)
    assert "ignore-parse-errors" in str(raised.value.hint)


def test_columns_of_directories_are_not_counted_and_the_options_of_the_format_hold(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "x").write_bytes(b"'it\\'s|a';1\n'b';x\nc;3;4\n")
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    t_env.execute_sql(
        "CREATE TABLE f (`day` INT, s STRING, i INT) PARTITIONED BY (`day`) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true', 'csv.field-delimiter' = ';', "
        "'csv.quote-character' = '''', 'csv.escape-character' = '\\')"
    )

    rows = [tuple(row) for row in t_env.execute_sql("SELECT `day`, s, i FROM f").collect()]

    assert rows == [(1, "it's|a", 1), (1, "b", None)]


def test_text_of_csv_files_is_utf8_or_an_error(env: EnvironmentFactory, tmp_path: Path) -> None:
    texts = ["é", "日本", "🙂", "�", "\x85\xa0", "plain"]
    good = [f"7,,,,{text}".encode() for text in texts]
    (tmp_path / "good").write_bytes(b"\n".join(good))
    assert [
        row[0] for row in table(env, tmp_path, "csv", ignore=False).execute_sql("SELECT s FROM f").collect()
    ] == texts

    (tmp_path / "good").write_bytes(b"\n".join([*good, *NOT_UTF8]))
    result = table(env, tmp_path, "csv", ignore=True).execute_sql("SELECT s, i FROM f")
    assert [tuple(row) for row in result.collect()] == [
        *((text, 7) for text in texts),
        *[(None, 7)] * len(NOT_UTF8),
    ]
    assert errors(result) == len(NOT_UTF8)
    with pytest.raises(FormatError, match=f"{tmp_path}/good: a record does not match"):
        list(table(env, tmp_path, "csv", ignore=False).execute_sql("SELECT i FROM f").collect())


def streaming(env: EnvironmentFactory, path: Path) -> StreamTableEnvironment:
    """A table whose plain files workers read into columns."""
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        f"CREATE TABLE f ({COLUMNS}, WATERMARK FOR t AS t) WITH ('connector' = 'filesystem', 'path' = '{path}', "
        "'format' = 'csv')"
    )
    return t_env


def test_files_are_read_as_columns_until_spark_must_read_them(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    query = (
        "SELECT window_end, COUNT(*), MAX(s) FROM TABLE(TUMBLE(TABLE f, DESCRIPTOR(t), INTERVAL '1' MINUTE)) "
        "GROUP BY window_start, window_end"
    )
    lines = [f"{n},,,2020-01-01 00:{n * 2 // 100:02}:00,{'x' * 50}" for n in range(2_000)]
    (tmp_path / "plain").write_text("\n".join(lines))
    t_env = streaming(env, tmp_path)
    plain = sorted(tuple(row) for row in t_env.execute_sql(query).collect())
    assert [row[1] for row in plain] == [50] * 40
    assert {row[2] for row in plain} == {"x" * 50}

    # After what is looked at beforehand.
    (tmp_path / "plain").write_text("\n".join([*lines, '1,,,2020-01-01 00:40:00,"y"']))
    quoted = sorted(tuple(row) for row in streaming(env, tmp_path).execute_sql(query).collect())
    assert quoted[:-1] == plain
    assert quoted[-1][1:] == (1, "y")

    (tmp_path / "plain").write_text("\n".join([*lines, "x,,,2020-01-01 00:40:00,é"]))
    with pytest.raises(
        FormatError,
        match=r"plain, line 2001: a record does not match .*\n  data: 'x,,,2020-01-01 00:40:00,é'",
    ):
        list(streaming(env, tmp_path).execute_sql("SELECT i FROM f").collect())

"""Connectors of tables, without Spark: what they make of options and rows."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.common.types import Row
from headrace.connectors.base import Boundedness, Committable, WriterContext
from headrace.connectors.datagen.table import RangeTableSource
from headrace.connectors.file import FileSink
from headrace.connectors.file._policies import PartitionCommit, PartitionTime
from headrace.connectors.file.table import FileTableSource
from headrace.errors import (
    ConnectorError,
    FormatError,
    HeadraceError,
    JobDefinitionError,
    SqlValidationError,
    UnsupportedFeatureError,
)
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.testing.contracts import check_source


@pytest.fixture
def t_env() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def source(t_env: TableEnvironment, columns: str, **options: str):
    given = ", ".join(
        f"'{key.replace('__', '.').replace('_', '-')}' = '{value}'" for key, value in options.items()
    )
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({given})")
    jobs = t_env._jobs
    graph = jobs.job_graph(jobs.plan_query(t_env.from_path("t")._plan), "t")
    return graph.vertices[0].head.declaration.source


def partitioned(t_env: TableEnvironment, columns: str, keys: str = "`day`", **options: str):
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    t_env.execute_sql(f"CREATE TABLE t ({columns}) PARTITIONED BY ({keys}) WITH ({given})")
    jobs = t_env._jobs
    graph = jobs.job_graph(jobs.plan_query(t_env.from_path("t")._plan), "t")
    return pickle.loads(pickle.dumps(graph.vertices[0].head.declaration.source))


def sink(t_env: TableEnvironment, columns: str, values: str, path: Path, more: str = "", **options: str):
    given = "".join(
        f", '{key if '.' in key else key.replace('__', '.').replace('_', '-')}' = '{value}'"
        for key, value in options.items()
    )
    t_env.execute_sql(
        f"CREATE TABLE t ({columns}) {more} WITH ('connector' = 'filesystem', 'path' = '{path}'{given})"
    )
    jobs = t_env._jobs
    insert = t_env._bind_one(f"INSERT INTO t VALUES {values}")
    graph = jobs.job_graph(jobs.plan_inserts([insert.sink]), "t")
    return pickle.loads(pickle.dumps(graph.vertices[-1].head.declaration.sink))


def write(made, rows: list[Row]) -> None:
    writer = made.create_writer(WriterContext(subtask=0, parallelism=1, epoch=0, attempt_id="a"))
    for row in rows:
        writer.write(row, None)
    committer = made.create_committer()
    committer.commit([Committable(0, 0, payload) for payload in writer.prepare_commit()])
    committer.close()


def test_datagen_makes_each_column_from_the_number_of_the_row(t_env):
    made = source(
        t_env,
        "id BIGINT, v INT, s STRING, b BOOLEAN",
        connector="datagen",
        number_of_rows="7",
        fields__id__kind="sequence",
        fields__id__start="10",
        fields__id__end="14",
        fields__v__min="1",
        fields__v__max="3",
        fields__s__length="4",
        fields__s__null_rate="0.5",
    )

    assert isinstance(made, RangeTableSource)
    assert made.count == 5
    assert made.columns[0] == "10L + id"
    assert "pmod(xxhash64(id, " in made.columns[1]
    assert made.columns[2].startswith("CASE WHEN")


def test_datagen_makes_shorter_texts_and_fields_of_rows_that_are_null(t_env):
    made = source(
        t_env,
        "s STRING, r ROW<x INT>",
        connector="datagen",
        fields__s__length="9",
        fields__s__var_len="true",
        fields__r__x__null_rate="0.5",
    )

    assert "pmod(xxhash64(id, " in made.columns[0].rpartition("left(")[2]
    assert ", 9L)" in made.columns[0]
    assert made.columns[1].startswith("struct(CASE WHEN")


def test_datagen_without_an_end_is_unbounded(t_env):
    assert source(t_env, "id BIGINT", connector="datagen").boundedness is Boundedness.CONTINUOUS_UNBOUNDED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number_of_rows": "many"}, "option 'number-of-rows' must be a whole number"),
        ({"fields__id__kind": "prime"}, "must be 'random' or 'sequence'"),
        ({"fields__id__kind": "sequence"}, "a sequence needs fields.id.start"),
        ({"rows": "1"}, "has no option 'rows'"),
        ({"fields__id__null_rate": "2"}, "'fields.id.null-rate' must be between 0 and 1; got '2'"),
        (
            {"fields__id__min": "2", "fields__id__max": "1"},
            "fields.id.max must not be less than fields.id.min",
        ),
    ],
)
def test_wrong_options_are_refused(t_env, options, message):
    with pytest.raises(SqlValidationError, match=message):
        source(t_env, "id BIGINT", connector="datagen", **options)


def test_files_are_read_by_spark_with_the_options_of_their_format(t_env, tmp_path):
    made = source(
        t_env,
        "id BIGINT, f STRING METADATA FROM 'file.name'",
        connector="filesystem",
        path=str(tmp_path),
        format="csv",
        csv__field_delimiter=";",
        source__monitor_interval="2 s",
    )

    assert isinstance(made, FileTableSource)
    assert made.options["sep"] == ";"
    assert not made.ignores_errors
    assert made.metadata == {"f": "_metadata.file_name"}
    assert made.discovery_interval_s == 2.0


def test_json_files_may_lack_fields(t_env, tmp_path):
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "json"}
    made = source(t_env, "id BIGINT", **options, json__fail_on_missing_field="false")
    assert isinstance(made, FileTableSource)
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(UnsupportedFeatureError, match="reads a missing field as NULL"):
        source(t_env, "id BIGINT", **options, json__fail_on_missing_field="true")


def test_a_misspelt_format_gets_a_suggestion(t_env, tmp_path):
    with pytest.raises(SqlValidationError) as refused:
        source(t_env, "id BIGINT", connector="filesystem", path=str(tmp_path), format="cvs")
    assert refused.value.hint == "did you mean 'csv'?"


def test_an_unknown_format_or_metadata_is_refused(t_env, tmp_path):
    with pytest.raises(
        SqlValidationError, match="option 'format' must be one of avro, csv, json, orc, parquet"
    ):
        source(t_env, "id BIGINT", connector="filesystem", path=str(tmp_path), format="xml")
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(SqlValidationError, match="files have no metadata column 'owner'"):
        columns = "id BIGINT, o STRING METADATA FROM 'owner'"
        source(t_env, columns, connector="filesystem", path=str(tmp_path), format="json")


def test_lines_are_written_below_the_path_and_partitions_in_directories_of_their_own(t_env, tmp_path):
    made = sink(t_env, "id BIGINT, day STRING", "(1, 'x')", tmp_path, "PARTITIONED BY (`day`)", format="json")

    write(made, [Row(1, "mon"), Row(2, "tue"), Row(3, "mon"), Row(4, None)])

    found = {file.parent.name: file.read_text() for file in tmp_path.rglob("part*") if file.is_file()}
    assert found == {
        "day=mon": '{"id":1}\n{"id":3}\n',
        "day=tue": '{"id":2}\n',
        "day=__DEFAULT_PARTITION__": '{"id":4}\n',
    }


def test_rows_without_a_partition_are_in_a_directory_with_a_name_of_choice(t_env, tmp_path):
    options = {"format": "json", "partition__default_name": "none"}
    made = sink(t_env, "id BIGINT, day STRING", "(1, 'x')", tmp_path, "PARTITIONED BY (`day`)", **options)
    write(made, [Row(1, "mon"), Row(4, None)])
    assert {file.parent.name for file in tmp_path.rglob("part*.json")} == {"day=mon", "day=none"}
    t_env.execute_sql("DROP TABLE t")
    made = source(t_env, "id BIGINT", connector="filesystem", path=str(tmp_path), **options)
    assert made.spark_read(()).no_value == "none"
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(
        SqlValidationError, match=r"'partition\.default-name' must be the name of a directory"
    ):
        options["partition__default_name"] = "a/b"
        source(t_env, "id BIGINT", connector="filesystem", path=str(tmp_path), **options)


def test_only_files_whose_paths_match_a_pattern_are_read(t_env, tmp_path):
    for name in ("a1.json", "b1.json", "deep/a2.json", "deep/a2.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "json"}
    made = source(t_env, "id BIGINT", **options, source__path__regex_pattern=".*/a.*[.]json")
    found = [split.location.path for split in made.create_enumerator(1).discover()]
    assert [Path(path).name for path in found] == ["a1.json", "a2.json"]
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(
        SqlValidationError, match=r"'source\.path\.regex-pattern' must be a regular expression"
    ):
        source(t_env, "id BIGINT", **options, source__path__regex_pattern="*")


def test_orc_is_written_with_its_properties(t_env, tmp_path):
    from pyarrow import orc

    made = sink(t_env, "id BIGINT, s STRING", "(1, 'x')", tmp_path, format="orc", orc__compress="SNAPPY")
    write(made, [Row(1, "a"), Row(2, None)])
    [file] = tmp_path.glob("part*.orc")
    assert orc.ORCFile(file).compression == "SNAPPY"
    assert orc.read_table(file).to_pylist() == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]


def test_parquet_is_written_as_its_options_say(t_env, tmp_path):
    import pyarrow.parquet as pq

    options = {
        "parquet__compression": "gzip",
        "parquet__enable__dictionary": "false",
        "parquet__block__size": "1",
        "parquet__writer__version": "PARQUET_2_0",
        "parquet__timestamp__time__unit": "millis",
    }
    columns = "id BIGINT, at TIMESTAMP(6)"
    made = sink(t_env, columns, "(1, CAST(NULL AS TIMESTAMP))", tmp_path, format="parquet", **options)
    # 16,384 rows become columns at a time, and these are more than a row group may have bytes.
    at = datetime.datetime(2024, 2, 29, 8, 0, 0, 123456)  # noqa: DTZ001
    write(made, [Row(number, at) for number in range(20_000)])
    [path] = tmp_path.glob("part*.parquet")
    file = pq.ParquetFile(path)
    column = file.metadata.row_group(0).column(1)
    assert column.compression == "GZIP"
    assert not column.has_dictionary_page
    assert file.metadata.num_row_groups == 2
    assert file.schema_arrow.field("at").type.unit == "ms"
    assert file.read_row_group(1).column("at")[0].as_py() == at.replace(microsecond=123000)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"compression": "zip"}, "SNAPPY"),
        ({"block.size": "0"}, "positive"),
        ({"batch-size": "5"}, "cannot be honoured"),
        ({"utc-timezone": "false"}, "cannot be honoured"),
        ({"write.int64.timestamp": "false"}, "cannot be honoured"),
        ({"timestamp.time.unit": "nanos"}, "micros, millis"),
        ({"page.rows": "5"}, "has no option"),
    ],
)
def test_options_of_parquet_that_cannot_be_honoured_are_refused(t_env, tmp_path, options, problem):
    given = {f"parquet__{key.replace('.', '__')}": value for key, value in options.items()}
    with pytest.raises(HeadraceError, match=problem):
        sink(t_env, "id BIGINT", "(1)", tmp_path, format="parquet", **given)


def test_avro_files_have_timestamps_without_a_zone_if_the_table_says_so(t_env, tmp_path):
    import fastavro

    options = {"format": "avro", "avro.timestamp_mapping.legacy": "false"}
    at = datetime.datetime(2024, 2, 29, 8)  # noqa: DTZ001
    write(sink(t_env, "at TIMESTAMP(3)", "(CAST(NULL AS TIMESTAMP(3)))", tmp_path, **options), [Row(at)])
    [path] = tmp_path.glob("part*.avro")
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        assert reader.writer_schema["fields"][0]["type"][1]["logicalType"] == "local-timestamp-millis"
        assert list(reader) == [{"at": at}]


def test_avro_is_read_as_it_was_written(t_env, tmp_path):
    at = datetime.datetime(2024, 2, 29, 8, 30, 0, 123000)  # noqa: DTZ001 - of no zone, as in rows
    types = "id BIGINT, s STRING, d DECIMAL(10, 2), ts TIMESTAMP(3), tags ARRAY<STRING>, place ROW<x INT, y STRING>"
    values = ", ".join(
        f"CAST(NULL AS {kind})" for kind in ("BIGINT", "STRING", "DECIMAL(10, 2)", "TIMESTAMP(3)")
    )
    values += ", CAST(NULL AS ARRAY<STRING>), CAST(NULL AS ROW<x INT, y STRING>)"
    made = sink(t_env, types, f"({values})", tmp_path, format="avro", avro__codec="bzip2")
    rows = [Row(1, "a", Decimal("1.50"), at, ["x", None], Row(1, "y")), Row(2, None, None, None, None, None)]
    write(made, rows)
    [file] = tmp_path.glob("part*.avro")
    assert b"bzip2" in file.read_bytes()[:2000]
    t_env.execute_sql("DROP TABLE t")
    read = source(t_env, f"{types}, more INT", connector="filesystem", path=str(tmp_path), format="avro")
    expected = [
        (1, "a", Decimal("1.50"), at, ["x", None], {"x": 1, "y": "y"}, None),
        (2, *[None] * 6),
    ]
    check_source(read, expected)
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(SqlValidationError, match=r"'avro\.codec' must be one of null, deflate, bzip2, xz"):
        source(t_env, "id INT", connector="filesystem", path="/x", format="avro", avro__codec="snappy")


def test_columns_around_avro_files_are_read_with_them(t_env, tmp_path):
    types = "n BIGINT, `day` DATE, name STRING"
    values = "(CAST(NULL AS BIGINT), CAST(NULL AS DATE), CAST(NULL AS STRING))"
    made = sink(t_env, types, values, tmp_path, more="PARTITIONED BY (`day`)", format="avro")
    day = datetime.date(2024, 2, 29)
    write(made, [Row(1, day, "a"), Row(2, None, "b")])
    t_env.execute_sql("DROP TABLE t")
    stored = {path.parent.name: path for path in tmp_path.rglob("part*.avro")}
    assert sorted(stored) == ["day=2024-02-29", "day=__DEFAULT_PARTITION__"]
    metadata = ", ".join(
        f"{name} {kind} METADATA FROM 'file.{key}'"
        for name, kind, key in (
            *(("p", "STRING NOT NULL", "path"), ("f", "STRING NOT NULL", "name")),
            *(("s", "BIGINT NOT NULL", "size"), ("m", "TIMESTAMP_LTZ(3) NOT NULL", "modification-time")),
        )
    )
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "avro"}

    def expected(row: tuple[Any, ...], path: Path) -> tuple[Any, ...]:
        found = path.stat()
        modified = datetime.datetime.fromtimestamp(found.st_mtime, datetime.UTC).replace(tzinfo=None)
        return (*row, f"file://{path}", path.name, found.st_size, modified)

    read = partitioned(t_env, f"{types}, {metadata}", **options)
    rows = [(1, day, "a"), (2, None, "b")]
    check_source(read, [expected(row, stored[name]) for row, name in zip(rows, sorted(stored), strict=True)])
    t_env.execute_sql("DROP TABLE t")
    options["source.path.regex-pattern"] = ".*/day=2024.*"
    check_source(partitioned(t_env, types, **options), rows[:1])


def test_a_partition_directory_of_avro_files_with_an_invalid_value_fails_with_its_path(t_env, tmp_path):
    made = sink(t_env, "n INT, k STRING", "(1, 'x')", tmp_path, more="PARTITIONED BY (k)", format="avro")
    write(made, [Row(1, "x")])
    t_env.execute_sql("DROP TABLE t")
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "avro"}
    read = partitioned(t_env, "n INT, k INT", keys="k", **options)
    with pytest.raises(FormatError, match=r"k=x/part.*: partition column k: cannot convert 'x' to INT"):
        check_source(read, [])
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(UnsupportedFeatureError, match=r"partition column 'k' of type ARRAY<INT>"):
        partitioned(t_env, "n INT, k ARRAY<INT>", keys="k", **options)


def test_csv_and_parquet_are_written(t_env, tmp_path):
    import pyarrow.parquet as pq

    write(sink(t_env, "id BIGINT, s STRING", "(1, 'x')", tmp_path / "c", format="csv"), [Row(1, "a,b")])
    assert [file.read_text() for file in (tmp_path / "c").glob("part*")] == ['1,"a,b"\n']
    t_env.execute_sql("DROP TABLE t")

    write(sink(t_env, "id BIGINT, s STRING", "(1, 'x')", tmp_path / "p", format="parquet"), [Row(1, "a")])
    (file,) = (tmp_path / "p").glob("part*")
    assert pq.read_table(file).to_pylist() == [{"id": 1, "s": "a"}]


def test_partitions_of_parquet_have_files_without_the_columns_of_the_directory(t_env, tmp_path):
    import pyarrow.parquet as pq

    made = sink(t_env, "d STRING, id BIGINT", "('x', 1)", tmp_path, "PARTITIONED BY (d)", format="parquet")
    write(made, [Row("x", 1), Row("y", 2), Row("x", 3)])
    found = {file.parent.name: pq.ParquetFile(file).read().to_pylist() for file in tmp_path.glob("d=*/part*")}
    assert found == {"d=x": [{"id": 1}, {"id": 3}], "d=y": [{"id": 2}]}


def test_csv_is_written_as_its_options_say(t_env, tmp_path):
    options = {"csv__quote_character": "%", "csv__null_literal": "n/a", "csv__array_element_delimiter": "|"}
    made = sink(
        t_env,
        "s STRING, a ARRAY<INT>",
        "('x', ARRAY[1])",
        tmp_path,
        format="csv",
        csv__field_delimiter=";",
        **options,
    )
    write(made, [Row("5 % a; b", [1, 2]), Row(None, None)])
    assert [file.read_text() for file in tmp_path.glob("part*")] == ["%5 %% a; b%;1|2\nn/a;n/a\n"]


@pytest.mark.parametrize(("notation", "expected"), [("true", "1E+2"), ("false", "100.00")])
def test_decimals_in_csv_have_an_exponent_or_not(t_env, tmp_path, notation, expected):
    option = {"csv__write_bigdecimal_in_scientific_notation": notation}
    made = sink(t_env, "n DECIMAL(10, 2)", "(1.5)", tmp_path, format="csv", **option)
    write(made, [Row(Decimal("100.00"))])
    [file] = tmp_path.glob("part*.csv")
    assert file.read_text() == f"{expected}\n"


def test_an_option_says_whether_plans_may_depend_on_the_size_of_files(t_env, tmp_path):
    path = f"file://{tmp_path}"
    for given, is_reported in (("ALL", True), ("none", False)):
        made = source(
            t_env,
            "id BIGINT",
            connector="filesystem",
            path=path,
            format="csv",
            source__report_statistics=given,
        )
        assert made.reports_statistics == is_reported
        t_env.execute_sql("DROP TABLE t")
    with pytest.raises(SqlValidationError, match="ALL, NONE"):
        sink(t_env, "id BIGINT", "(1)", tmp_path, format="csv", source__report_statistics="SOME")


def test_files_are_rolled_and_partitions_committed_as_the_table_says(t_env, tmp_path: Path):
    made = sink(
        t_env,
        "id BIGINT, day STRING",
        "(1, 'mon')",
        tmp_path,
        "PARTITIONED BY (day)",
        format="csv",
        sink__rolling_policy__file_size="1 mb",
        sink__rolling_policy__rollover_interval="2 min",
        sink__partition_commit__trigger="process-time",
        sink__partition_commit__delay="1 s",
        sink__partition_commit__policy__kind="success-file",
        sink__partition_commit__success_file__name="done",
    )

    assert (made.rolling_policy.part_size, made.rolling_policy.rollover_interval) == (2**20, 120_000)
    assert (made.partition_commit.delay_ms, made.partition_commit.success_file_name) == (1_000, "done")
    # Who reads the table does not mind what is said about writing.
    jobs = t_env._jobs
    jobs.job_graph(jobs.plan_query(t_env.from_path("t")._plan), "t")


def test_files_are_compacted_as_the_table_says(t_env, tmp_path: Path):
    def compacting(format_: str, **options: str) -> FileSink:
        t_env.execute_sql("DROP TABLE IF EXISTS t")
        made = sink(t_env, "id BIGINT", "(1)", tmp_path, format=format_, auto_compaction="true", **options)
        assert made.rolling_policy.rolls_on_checkpoint
        return made

    made = compacting("csv", compaction__file_size="2 mb", sink__rolling_policy__file_size="1 mb")
    assert (made.compacted_size, made.rolling_policy.is_full(2**20)) == (2 << 20, True)
    made = compacting("json", sink__rolling_policy__file_size="1 mb")
    assert made.compacted_size == 1 << 20
    assert compacting("parquet").compacted_size == 128 << 20
    with pytest.raises(
        SqlValidationError, match=r"rollover-interval.*only allowed without 'auto-compaction'"
    ):
        compacting("csv", sink__rolling_policy__rollover_interval="1 min")


@pytest.mark.parametrize("mode", [EnvironmentSettings.in_streaming_mode, EnvironmentSettings.in_batch_mode])
def test_rows_of_a_partition_come_to_one_writer_if_the_table_says_so(mode, tmp_path: Path):
    def shuffled(more: str) -> list[str]:
        t_env = TableEnvironment.create(mode())
        t_env.execute_sql(
            "CREATE TABLE t (id BIGINT, `day` STRING) PARTITIONED BY (`day`) WITH ('connector' = 'filesystem', "
            f"'path' = '{tmp_path}', 'format' = 'csv'{more})"
        )
        insert = t_env._bind_one("INSERT INTO t VALUES (1, 'mon')")
        graph = t_env._jobs.job_graph(t_env._jobs.plan_inserts([insert.sink]), "t")
        declaration = graph.vertices[-1].head.declaration
        places = {column.name: at for at, column in enumerate(declaration.schema)}
        return [["id", "day"][places[name]] for name in declaration.shuffle_by]

    assert shuffled("") == []
    assert shuffled(", 'sink.shuffle-by-partition.enable' = 'true'") == ["day"]


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("sink.partition-commit.trigger", "now", "process-time or partition-time"),
        ("partition.time-extractor.timestamp-pattern", "$day", "only allowed with"),
        ("partition.time-extractor.kind", "custom", "by 'partition.time-extractor.timestamp-pattern'"),
        ("partition.time-extractor.timestamp-formatter", "yyyyMMdd", "only allowed with"),
        ("sink.partition-commit.policy.kind", "success-file", "for tables that are PARTITIONED BY"),
        ("compaction.file-size", "1 mb", "only allowed with 'auto-compaction' = 'true'"),
        ("compaction.parallelism", "2", "the driver puts files together"),
        ("sink.shuffle-by-partition.enable", "maybe", "true or false"),
        ("sink.partition-commit.policy.kind", "metastore", "must be 'success-file'"),
        ("sink.partition-commit.delay", "1 s", "only allowed with 'sink.partition-commit.policy.kind'"),
        ("sink.parallelism", "4", "all operators of a table job have one parallelism"),
    ],
)
def test_an_option_about_writing_that_cannot_be_honoured_is_refused_by_name(
    t_env, tmp_path: Path, option: str, value: str, reason: str
):
    with pytest.raises(HeadraceError, match=option) as caught:
        sink(
            t_env,
            "id BIGINT",
            "(1)",
            tmp_path,
            format="csv",
            **{option.replace(".", "__").replace("-", "_"): value},
        )
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("options", "is_read"),
    [
        ("'connector' = 'datagen', 'scan.parallelism' = '2'", True),
        ("'connector' = 'print', 'sink.parallelism' = '2'", False),
    ],
)
def test_a_parallelism_of_one_table_is_refused(t_env, options: str, is_read: bool):
    t_env.execute_sql(f"CREATE TABLE alone (id INT) WITH ({options})")
    with pytest.raises(HeadraceError, match="all operators of a table job have one parallelism"):
        t_env.explain_sql("SELECT * FROM alone" if is_read else "INSERT INTO alone VALUES (1)")


def test_a_stream_does_not_overwrite(t_env, tmp_path: Path):
    t_env.execute_sql(
        f"CREATE TABLE t (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )
    insert = t_env._bind_one("INSERT OVERWRITE t VALUES (1)")
    with pytest.raises(UnsupportedFeatureError, match=r"OVERWRITE into .* in streaming mode"):
        t_env._jobs.job_graph(t_env._jobs.plan_inserts([insert.sink]), "t")


@pytest.mark.parametrize("connector", ["print", "blackhole"])
def test_only_files_are_overwritten(connector: str):
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.execute_sql(f"CREATE TABLE t (id BIGINT) WITH ('connector' = '{connector}')")
    insert = t_env._bind_one("INSERT OVERWRITE t VALUES (1)")
    with pytest.raises(UnsupportedFeatureError, match="can only be appended to"):
        t_env._jobs.job_graph(t_env._jobs.plan_inserts([insert.sink]), "t")


def test_partitions_are_committed_by_event_time_if_the_table_says_so(t_env, tmp_path: Path):
    made = sink(
        t_env,
        "id BIGINT, `day` STRING, `hour` STRING",
        "(1, '2024-02-29', '08')",
        tmp_path,
        "PARTITIONED BY (`day`, `hour`)",
        format="json",
        sink__partition_commit__policy__kind="success-file",
        sink__partition_commit__trigger="partition-time",
        sink__partition_commit__delay="1 h",
        partition__time_extractor__timestamp_pattern="$day $hour:00:00",
    )

    assert made.partition_commit == PartitionCommit(3_600_000, "_SUCCESS", PartitionTime("$day $hour:00:00"))


def test_the_time_of_partitions_may_be_written_in_other_ways(t_env, tmp_path: Path):
    made = sink(
        t_env,
        "id BIGINT, `day` STRING, `hour` STRING",
        "(1, '20240229', '8h')",
        tmp_path,
        "PARTITIONED BY (`day`, `hour`)",
        format="csv",
        sink__partition_commit__policy__kind="success-file",
        sink__partition_commit__trigger="partition-time",
        partition__time_extractor__kind="default",
        partition__time_extractor__timestamp_pattern="$day $hour",
        partition__time_extractor__timestamp_formatter="yyyyMMdd H''h''",
    )
    time = made.partition_commit.partition_time
    assert time.of("day=20240229/hour=8h") == PartitionTime("$day").of("day=2024-02-29") + 8 * 3_600_000
    with pytest.raises(ConnectorError, match="expected a time such as yyyyMMdd"):
        time.of("day=2024-02-29/hour=8h")


@pytest.mark.parametrize(("letters", "problem"), [("yyyy-DDD", "'DDD'"), ("yyyy yyyy", "twice")])
def test_formats_of_partition_times_that_make_no_sense_are_refused(letters: str, problem: str):
    with pytest.raises(JobDefinitionError, match=problem):
        PartitionTime("$day", letters)

"""Tables of databases, without Spark: what is made of options, and of rows with their kinds."""

from __future__ import annotations

import datetime
import pickle
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headrace.catalog.objects import CatalogTable, PhysicalColumn
from headrace.common.time import as_millis
from headrace.common.types import Row, RowKind
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Committable, WriterContext
from headrace.connectors.jdbc import _connections
from headrace.connectors.jdbc.changelog_sink import JdbcChangelogSink
from headrace.connectors.jdbc.factory import JdbcFactory
from headrace.connectors.jdbc.sink import JdbcSink
from headrace.connectors.lookup_tables import CacheKind
from headrace.connectors.tables import TableRequest
from headrace.errors import (
    ConnectorError,
    FormatError,
    JobDefinitionError,
    SqlValidationError,
    UnsupportedFeatureError,
)
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.types import DataTypes


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "shop.db"
    execute(
        path, 'CREATE TABLE totals (city TEXT, "order" INTEGER, cents INTEGER, PRIMARY KEY (city, "order"))'
    )
    yield path
    _connections.dispose_engines()


def execute(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(sql).fetchall()
        connection.commit()
        return found


def sink(columns: str, path: Path, **options: str) -> Any:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = "".join(
        f", '{key.replace('__', '.').replace('_', '-')}' = '{each}'" for key, each in options.items()
    )
    t_env.execute_sql(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{path}'{given})"
    )
    jobs = t_env._jobs
    insert = t_env._bind_one("INSERT INTO t VALUES ('Bern', 1, 5)")
    graph = jobs.job_graph(jobs.plan_inserts([insert.sink]), "t")
    return pickle.loads(pickle.dumps(graph.vertices[-1].head.declaration.sink))


def stage(made: Any, rows: Sequence[Row], epoch: int = 1, staging_dir: str = "") -> list[Committable]:
    context = WriterContext(0, 1, epoch, f"a-{epoch}", "job", "sink", staging_dir=staging_dir)
    writer = made.create_writer(context)
    for row in rows:
        writer.write(row, None)
    staged = [Committable(0, epoch, payload) for payload in writer.prepare_commit()]
    writer.close()
    return staged


def write(made: Any, rows: Sequence[Row]) -> None:
    staged = stage(made, rows)
    committer = made.create_committer()
    if committer is not None:
        committer.commit(staged)
        committer.close()


COLUMNS = "city STRING, `order` INT, cents INT"
KEYED = f"{COLUMNS}, PRIMARY KEY (city, `order`) NOT ENFORCED"


@pytest.mark.parametrize("max_rows", ["1", "2", "100", "0"])
def test_with_a_primary_key_the_table_follows_the_changes(database: Path, max_rows: str) -> None:
    execute(database, "INSERT INTO totals VALUES ('Bern', 1, 1), ('Basel', 9, 9)")
    made = sink(KEYED, database, table_name="totals", sink__buffer_flush__max_rows=max_rows)
    assert isinstance(made, JdbcChangelogSink)
    changes = [
        Row("Bern", 1, 5),
        Row.of_kind(RowKind.UPDATE_BEFORE, "Bern", 1, 5),
        Row.of_kind(RowKind.UPDATE_AFTER, "Bern", 1, 7),
        Row("Chur", 2, 3),
        Row.of_kind(RowKind.DELETE, "Chur", 2, 3),
        Row.of_kind(RowKind.DELETE, "Basel", 9, 9),
        Row("Thun", 1, None),
        Row("Zug", 1, 1),
        # What it became was filtered out.
        Row.of_kind(RowKind.UPDATE_BEFORE, "Zug", 1, 1),
    ]
    expected = [("Bern", 1, 7), ("Thun", 1, None)]
    for _ in range(2):  # an epoch that is run again ends in the same rows
        write(made, changes)
        assert execute(database, "SELECT * FROM totals ORDER BY city") == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sink__buffer_flush__max_rows": "-1"}, "'sink.buffer-flush.max-rows' must be at least 0"),
        ({"sink__max_retries": "-1"}, "'sink.max-retries' must be at least 0"),
        ({"lookup__cache": "PARTIAL"}, r"^table '[\w.]+': 'lookup.cache' = 'PARTIAL' needs a bound"),
    ],
)
def test_options_with_wrong_values_are_refused_by_name(
    database: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(SqlValidationError, match=message):
        sink(COLUMNS, database, table_name="totals", **options)


def test_rows_of_a_table_with_a_key_cannot_be_written_at_intervals(database: Path) -> None:
    columns = "city STRING, `order` INT, cents INT"
    keyed = f"{columns}, PRIMARY KEY (city, `order`) NOT ENFORCED"
    interval = {"table_name": "totals", "sink__buffer_flush__interval": "2 s"}
    with pytest.raises(UnsupportedFeatureError, match="when the checkpoint that covers them is complete"):
        sink(keyed, database, **interval)
    sink(keyed, database, **{**interval, "sink__buffer_flush__interval": "0"})
    sink(columns, database, **interval)


def test_rows_of_an_epoch_without_a_checkpoint_are_not_in_the_table(database: Path) -> None:
    made = sink(KEYED, database, table_name="totals")
    stage(made, [Row("Bern", 1, 5)])
    assert execute(database, "SELECT * FROM totals") == []


def test_epochs_of_a_checkpoint_are_written_in_their_order(database: Path) -> None:
    made = sink(KEYED, database, table_name="totals")
    later = stage(made, [Row("Bern", 1, 2)], epoch=2)
    earlier = stage(made, [Row("Bern", 1, 1), Row("Chur", 1, 1)], epoch=1)
    committer = made.create_committer()
    committer.commit([*later, *earlier])
    committer.close()
    assert execute(database, "SELECT * FROM totals ORDER BY city") == [("Bern", 1, 2), ("Chur", 1, 1)]


def test_a_checkpoint_whose_files_are_gone_was_written_before(database: Path, tmp_path: Path) -> None:
    made = sink(KEYED, database, table_name="totals")
    old = stage(made, [Row("Bern", 1, 1)], epoch=1)
    many = [Row("Bern", 1, 2), *(Row("x" * 100, number, 0) for number in range(1_000))]
    new = stage(made, many, epoch=2, staging_dir=str(tmp_path / "staged"))
    assert new[0].payload.place is not None, "too much for the report"
    committer = made.create_committer()
    committer.commit([*old, *new])
    committer.commit([*old, *new])  # by a driver that does not know: older rows do not come back
    committer.close()
    assert execute(database, "SELECT cents FROM totals WHERE city = 'Bern'") == [(2,)]


def test_without_a_primary_key_rows_are_appended(database: Path) -> None:
    execute(database, 'CREATE TABLE events (city TEXT, "order" INTEGER, cents INTEGER)')
    made = sink(COLUMNS, database, table_name="events")
    assert isinstance(made, JdbcSink)
    write(made, [Row("Bern", 1, 5), Row("Bern", 1, 5)])
    assert execute(database, "SELECT * FROM events") == [("Bern", 1, 5), ("Bern", 1, 5)]


def test_a_password_comes_from_a_variable_or_a_file_and_the_catalog_keeps_the_reference(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_USER", "ann")
    (tmp_path / "password").write_text("Geheim\n")
    secret = f"${{file:{tmp_path / 'password'}}}"
    made = sink(KEYED, database, table_name="totals", username="${env:DB_USER}", password=secret)
    assert (made.connection.user_name, made.connection.password) == ("ann", "Geheim")
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(f"CREATE TABLE t ({KEYED}) WITH ('connector' = 'jdbc', 'password' = '{secret}')")
    assert "Geheim" not in str(t_env.get_current_catalog()) + str(
        list(t_env.execute_sql("SHOW CREATE TABLE t").collect())
    )


def test_options_are_checked_and_passwords_are_not_shown(database: Path) -> None:
    made = sink(
        KEYED, database, table_name="totals", username="ann", password="Geheim", sink__max_retries="7"
    )
    assert (made.execution.max_retries, made.execution.batch_size) == (7, 100)
    assert "Geheim" not in repr(made)
    with pytest.raises(SqlValidationError, match="requires the option 'table-name'"):
        sink(COLUMNS, database)
    with pytest.raises(SqlValidationError, match="has no option 'tabel-name'"):
        sink(COLUMNS, database, table_name="totals", tabel_name="x")


def source(columns: str, path: Path, **options: str) -> Any:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = "".join(
        f", '{key.replace('__', '.').replace('_', '-')}' = '{each}'" for key, each in options.items()
    )
    t_env.execute_sql(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{path}'{given})"
    )
    jobs = t_env._jobs
    graph = jobs.job_graph(jobs.plan_query(t_env.from_path("t")._plan), "t")
    return pickle.loads(pickle.dumps(graph.vertices[0].head.declaration.source))


def read(made: Any) -> list[list[Any]]:
    """Return the rows of each range."""
    enumerator, reader = made.create_enumerator(1), made.create_reader()
    return [
        [row for batch in reader.read(enumerator.plan(split, None, 100)) for row in batch.values]
        for split in enumerator.discover()
    ]


ROWS = [("Basel", 9, 9), ("Bern", 1, 5), ("Bern", 2, None), ("Chur", 4, 4)]


def test_a_table_is_read_in_the_order_of_its_key(database: Path) -> None:
    execute(database, f"INSERT INTO totals VALUES {', '.join(map(str, ROWS))}".replace("None", "NULL"))

    assert read(source(COLUMNS, database, table_name="totals")) == [ROWS]
    assert read(source(KEYED, database, table_name="totals", scan__fetch_size="1")) == [ROWS]


def test_a_table_is_read_in_ranges(database: Path) -> None:
    execute(database, f"INSERT INTO totals VALUES {', '.join(map(str, ROWS))}".replace("None", "NULL"))
    ranges = {"column": "order", "num": "2", "lower_bound": "1", "upper_bound": "9"}
    options = {f"scan__partition__{key}": value for key, value in ranges.items()}

    found = read(source(COLUMNS, database, table_name="totals", **options))

    assert [sorted(each) for each in found] == [[*ROWS[1:3], ROWS[3]], ROWS[:1]]
    del options["scan__partition__num"]
    with pytest.raises(SqlValidationError, match=r"'scan.partition.num' is missing"):
        source(COLUMNS, database, table_name="totals", **options)


def test_values_become_what_the_table_declares(database: Path) -> None:
    execute(database, "CREATE TABLE kinds (id INTEGER PRIMARY KEY, b, d, n, at, f, s)")
    execute(
        database,
        "INSERT INTO kinds VALUES (1, 1, '2024-02-29', 3.5, '2024-02-29 12:30:00.005', 2, 'x'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    columns = "id BIGINT, b BOOLEAN, d DATE, n DECIMAL(10, 2), `at` TIMESTAMP(3), f DOUBLE, s STRING"

    [[first, second]] = read(source(columns, database, table_name="kinds"))

    at = datetime.datetime.fromisoformat("2024-02-29 12:30:00.005")
    assert first == (1, True, at.date(), Decimal("3.5"), at, 2.0, "x")
    assert second == (2, *[None] * 6)


def test_a_column_of_another_type_is_an_error_that_names_it(database: Path) -> None:
    execute(database, "INSERT INTO totals VALUES ('Bern', 1, 5)")

    with pytest.raises(FormatError, match=r"JDBC: totals: cannot convert 'Bern' to INT \(column 'city'\)"):
        read(source("city INT, `order` INT", database, table_name="totals"))
    with pytest.raises(UnsupportedFeatureError, match="reading column 'tags' as ARRAY<STRING>"):
        source("tags ARRAY<STRING>", database, table_name="totals")


def test_a_table_without_a_key_needs_one_to_be_declared(database: Path) -> None:
    execute(database, "CREATE TABLE events (city TEXT)")
    execute(database, "INSERT INTO events VALUES ('Bern')")

    with pytest.raises(JobDefinitionError, match="events has no primary key"):
        read(source("city STRING", database, table_name="events"))
    keyed = source("city STRING, PRIMARY KEY (city) NOT ENFORCED", database, table_name="events")
    assert read(keyed) == [[("Bern",)]]


def lookup(path: Path, **options: str) -> Any:
    """Return the settings of a lookup in a table with these options."""
    given = {key.replace("__", ".").replace("_", "-"): each for key, each in options.items()}
    table_options = TableOptions("t", {"url": f"jdbc:sqlite:{path}", "table-name": "totals", **given})
    table = CatalogTable((PhysicalColumn("city", DataTypes.STRING()),))
    request = TableRequest("t", table, table_options)
    made = JdbcFactory().lookup(request, ["city"])
    table_options.check()
    return made


def test_lookups_are_cached_by_the_old_names_of_the_options_too(database: Path) -> None:
    made = lookup(database, lookup__cache__max_rows="7", lookup__cache__ttl="2 s")
    assert made.options.cache is CacheKind.PARTIAL
    assert made.options.partial.max_rows == 7
    assert as_millis(made.options.partial.expire_after_write) == 2_000
    assert made.options.partial.cache_missing_key
    forgets = {"lookup__cache__max_rows": "7", "lookup__cache__ttl": "2 s"}
    made = lookup(database, **forgets, lookup__cache__caching_missing_key="false")
    assert not made.options.partial.cache_missing_key
    assert lookup(database).options.cache is CacheKind.NONE
    with pytest.raises(SqlValidationError, match="belong together"):
        lookup(database, lookup__cache__max_rows="7")


def test_how_long_a_database_is_waited_for_is_an_option(database: Path) -> None:
    made = lookup(database, connection__max_retry_timeout="2 s", scan__auto_commit="false")
    connection = made.ask.__self__.lookup.connection
    assert connection.longest_retry_delay_s == 2.0
    waited: list[float] = []

    def fail(_: Any) -> None:
        raise OperationalError("SELECT 1", {}, sqlite3.OperationalError("database is locked"))

    with pytest.raises(ConnectorError):
        _connections.transact(connection, fail, max_retries=9, what="reading", sleep=waited.append)
    assert 1.0 <= max(waited) <= 2.0
    with pytest.raises(SqlValidationError, match="at least a second"):
        lookup(database, connection__max_retry_timeout="10 ms")

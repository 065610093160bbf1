"""JdbcSink: URLs, placeholders, batches, retries, markers, and passwords that nobody sees."""

from __future__ import annotations

import logging
import pickle
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Row, Types
from headrace.connectors.base import Committable, CommitterContext, WriterContext
from headrace.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
    _connections,
    _publisher,
)
from headrace.connectors.jdbc._statements import JdbcStatement, upsert_sql
from headrace.connectors.jdbc._urls import DatabaseUrl
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError, UnsupportedFeatureError, UserFunctionError
from headrace.testing.mini_cluster import random_faults
from tests.unit.runtime.jobs import run

HERE = WriterContext(subtask=0, parallelism=1, epoch=1, attempt_id="a")


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    _connections.dispose_engines()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE words (word TEXT PRIMARY KEY, count INTEGER)")
    return path


def options(path: Path) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    return builder.with_url(f"jdbc:sqlite:{path}").with_driver_name("org.sqlite.JDBC").build()


def rows(path: Path, sql: str = "SELECT * FROM words ORDER BY word") -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


INSERT = "INSERT INTO words VALUES (?, ?)"

# --- URLs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://db:5432/shop", "postgresql+psycopg://ann:p%40ss@db:5432/shop"),
        (
            "jdbc:postgresql://db/shop?sslmode=require",
            "postgresql+psycopg://ann:p%40ss@db/shop?sslmode=require",
        ),
        ("jdbc:mysql://db/shop?useSSL=false", "mysql+pymysql://ann:p%40ss@db/shop"),
        ("jdbc:mariadb://db:3307/shop", "mariadb+pymysql://ann:p%40ss@db:3307/shop"),
        ("postgresql://db/shop", "postgresql+psycopg://ann:p%40ss@db/shop"),
        ("postgresql+psycopg2://db/shop", "postgresql+psycopg2://ann:p%40ss@db/shop"),
    ],
)
def test_urls_of_jdbc_and_of_sqlalchemy_mean_the_same(url, expected):
    parsed = DatabaseUrl.parse(url, "ann", "p@ss")

    assert parsed.text == expected
    assert parsed.shown == expected.replace("p%40ss", "***")


def test_user_and_password_may_be_in_the_url():
    for url in ("jdbc:postgresql://db/shop?user=ann&password=p%40ss", "postgresql://ann:p%40ss@db/shop"):
        assert DatabaseUrl.parse(url, None, None).text == "postgresql+psycopg://ann:p%40ss@db/shop"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:oracle:thin:@db:1521/shop", "unsupported URL: jdbc:oracle:"),
        ("jdbc:postgresql://db/shop?passwrd=secret", "unknown property 'passwrd'"),
        ("postgresql://ann:secret/x@db/shop", "is not a port number"),
        ("shop.db", "neither a JDBC nor a SQLAlchemy URL"),
        ("jdbc:sqlite::memory:", "an in-memory database exists in one process"),
        ("sqlite://", "an in-memory database exists in one process"),
        ("jdbc:mysql://db/shop?useSSL=true", "useSSL=true in the URL cannot be honoured"),
        ("", "no URL is set"),
    ],
)
def test_urls_that_cannot_be_used_are_refused_and_show_no_secret(url, message):
    with pytest.raises(JobDefinitionError, match=message) as caught:
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "name", "message"),
    [
        (
            "jdbc:postgresql://db/shop",
            "com.mysql.cj.jdbc.Driver",
            "is for mysql, but the URL is for postgresql",
        ),
        (
            "jdbc:postgresql://db/shop",
            "com.acme.Driver",
            "cannot be loaded: headrace connects with Python drivers",
        ),
    ],
)
def test_a_driver_class_that_does_not_fit_the_url_is_refused(url, name, message):
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_driver_name(name)
    with pytest.raises(JobDefinitionError, match=message):
        builder.build()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jdbc:mariadb://db/shop", "com.mysql.jdbc.Driver"),
        ("oracle+oracledb://db/shop", "oracle.jdbc.OracleDriver"),
        ("postgresql://db/shop", "org.postgresql.Driver"),
    ],
)
def test_a_driver_class_for_the_database_of_the_url_is_accepted(url, name):
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_driver_name(name)
    assert builder.build().get_driver_name() == name


def test_a_relative_path_is_understood_where_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("jdbc:sqlite:shop.db", "sqlite:///shop.db"):
        data = pickle.dumps(JdbcConnectionOptions(url))
        monkeypatch.chdir("/")
        assert pickle.loads(data).database_url().text == f"sqlite:///{tmp_path}/shop.db"
        monkeypatch.chdir(tmp_path)
    assert DatabaseUrl.parse("sqlite:////data/shop.db?timeout=1", None, None).text == (
        "sqlite:////data/shop.db?timeout=1"
    )


def test_a_database_that_sqlalchemy_does_not_know_is_an_error():
    with pytest.raises(ConnectorError, match="cannot use the URL dbase://ann:") as caught:
        _connections.engine_for(JdbcConnectionOptions("dbase://ann:hunter2@db/shop"))
    assert "hunter2" not in str(caught.value)


def test_options_have_pyflinks_getters():
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    connection = builder.with_url("jdbc:mysql://db/shop").with_user_name("ann").with_password("p").build()
    assert (connection.get_db_url(), connection.get_user_name()) == ("jdbc:mysql://db/shop", "ann")
    assert (connection.get_password(), connection.get_driver_name()) == ("p", None)

    execution = (
        JdbcExecutionOptions.builder()
        .with_batch_size(7)
        .with_batch_interval_ms(50)
        .with_max_retries(1)
        .build()
    )
    assert (execution.get_batch_size(), execution.get_batch_interval_ms(), execution.get_max_retries()) == (
        7,
        50,
        1,
    )
    assert JdbcExecutionOptions.defaults() == JdbcExecutionOptions(0, 5000, 3)
    with pytest.raises(JobDefinitionError, match="must be at least 1"):
        JdbcExecutionOptions.builder().with_batch_size(0).build()


# --- statements -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "qmark", "pyformat"),
    [
        ("INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (%s, %s)"),
        (
            "INSERT INTO t VALUES (?, '?%')",
            "INSERT INTO t VALUES (?, '?%')",
            "INSERT INTO t VALUES (%s, '?%%')",
        ),
        (
            "UPDATE t SET a = ? WHERE b ?? 'k'",
            "UPDATE t SET a = ? WHERE b ? 'k'",
            "UPDATE t SET a = %s WHERE b ? 'k'",
        ),
        ("INSERT /* ? */ INTO t VALUES (?) -- ?", None, "INSERT /* ? */ INTO t VALUES (%s) -- ?"),
        ("INSERT INTO \"a?\" VALUES (?, $x$ ? $x$, 'it''s ?')", None, None),
    ],
)
def test_placeholders_are_found_and_spelled_for_the_driver(sql, qmark, pyformat):
    statement = JdbcStatement.parse(sql, "postgresql")

    assert statement.render("qmark") == (qmark or sql)
    if pyformat:
        assert statement.render("pyformat") == pyformat
    assert statement.arity == statement.render("numeric").count(":")


def test_mysql_has_backslashes_in_texts():
    assert JdbcStatement.parse(r"INSERT INTO t VALUES ('it\'s ?', ?)", "mysql").arity == 1


def test_statements_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(JobDefinitionError, match="no placeholders"):
        JdbcSink.sink("INSERT INTO words VALUES (1)", None, options(tmp_path / "x"))
    three = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    with pytest.raises(JobDefinitionError, match="has 2 placeholders, but the type has 3 fields"):
        JdbcSink.sink(INSERT, three, options(tmp_path / "x"))


def test_upserts_are_spelled_for_the_database():
    assert upsert_sql("postgresql", "shop.words", ["word", "count"], ["word"]) == (
        'INSERT INTO "shop"."words" ("word", "count") VALUES (?, ?) '
        'ON CONFLICT ("word") DO UPDATE SET "count" = excluded."count"'
    )
    assert upsert_sql("mysql", "words", ["word", "count"], ["word"]) == (
        "INSERT INTO `words` (`word`, `count`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `count` = VALUES(`count`)"
    )
    assert upsert_sql("sqlite", "words", ["word"], ["word"]).endswith('ON CONFLICT ("word") DO NOTHING')
    with pytest.raises(JobDefinitionError, match="key columns must be among the columns word; got id"):
        upsert_sql("sqlite", "words", ["word"], ["id"])
    with pytest.raises(UnsupportedFeatureError, match="upsert_sink for oracle"):
        upsert_sql("oracle", "words", ["word"], ["word"])


# --- at least once --------------------------------------------------------------------------------


def test_rows_are_written_in_batches_and_the_rest_with_the_epoch(database):
    execution = JdbcExecutionOptions.builder().with_batch_size(2).build()
    type_info = Types.ROW([Types.STRING(), Types.INT()])
    sink = pickle.loads(pickle.dumps(JdbcSink.sink(INSERT, type_info, options(database), execution)))
    writer = sink.create_writer(HERE)

    writer.write_batch(Batch([Row("a", 1), Row("b", 2), ("c", 3)]))
    assert rows(database) == [("a", 1), ("b", 2)]
    assert writer.prepare_commit() == ()

    assert rows(database) == [("a", 1), ("b", 2), ("c", 3)]
    assert sink.create_committer() is None


def test_an_interval_writes_what_there_is(database):
    execution = JdbcExecutionOptions.builder().with_batch_interval_ms(1).build()
    writer = JdbcSink.sink(INSERT, None, options(database), execution).create_writer(HERE)
    writer._flushed -= 1

    writer.write(("a", 1), None)

    assert rows(database) == [("a", 1)]


def test_an_upsert_that_is_repeated_leaves_the_last_row(database):
    sink = JdbcSink.upsert_sink("words", ["word", "count"], ["word"], None, options(database))
    for count in (1, 2):
        writer = sink.create_writer(HERE)
        writer.write_batch(Batch([("a", count), ("b", count), ("a", count + 10)]))
        writer.prepare_commit()

    assert rows(database) == [("a", 12), ("b", 2)]


def test_a_record_that_is_no_such_row_is_the_users_error(database):
    writer = JdbcSink.sink(INSERT, None, options(database)).create_writer(HERE)

    with pytest.raises(UserFunctionError, match="expected a row of 2 fields; got 3") as caught:
        writer.write_batch(Batch([("a", 1), ("b", 2, 3)]))
    assert caught.value.record == "('b', 2, 3)"
    with pytest.raises(UserFunctionError, match="expected a row of 2 fields; got int"):
        writer.write(7, None)


def test_what_the_database_refuses_is_not_tried_again(database, monkeypatch):
    monkeypatch.setattr(_connections.time, "sleep", None)
    writer = JdbcSink.sink("INSERT INTO wrods VALUES (?, ?)", None, options(database)).create_writer(HERE)
    writer.write(("a", 1), None)

    with pytest.raises(
        ConnectorError, match=r"writing 1 rows failed at sqlite:.*no such table: wrods"
    ) as caught:
        writer.prepare_commit()
    assert not caught.value.retryable


def test_a_database_that_is_busy_is_asked_again(database, caplog):
    naps: list[float] = []
    url = f"sqlite:///{database}?timeout=0"
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        def nap(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 2:
                other.execute("COMMIT")

        with caplog.at_level(logging.WARNING):
            _connections.transact(
                JdbcConnectionOptions(url),
                lambda connection: connection.exec_driver_sql(INSERT, [("a", 1)]),
                max_retries=3,
                what="writing 1 rows",
                sleep=nap,
            )

    assert rows(database) == [("a", 1)]
    assert naps[0] < 0.2 < 2 * naps[1]
    assert "writing 1 rows failed; retrying" in caplog.text


def test_a_database_that_stays_away_is_an_error_that_may_be_tried_again(database):
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConnectorError, match="database is locked") as caught:
            _connections.transact(
                JdbcConnectionOptions(f"sqlite:///{database}?timeout=0"),
                lambda connection: connection.exec_driver_sql(INSERT, [("a", 1)]),
                max_retries=2,
                what="writing",
                sleep=lambda seconds: None,
            )
    assert caught.value.retryable


# --- exactly once ---------------------------------------------------------------------------------


def stage(sink: Any, values: list[Any], epoch: int = 1, staging_dir: str = "") -> list[Committable]:
    writer = sink.create_writer(WriterContext(0, 1, epoch, "a", "job", "op", staging_dir))
    writer.write_batch(Batch(values))
    return [Committable(0, epoch, payload) for payload in writer.prepare_commit()]


def test_rows_come_with_the_commit_and_once(database):
    sink = pickle.loads(pickle.dumps(JdbcSink.exactly_once_sink(INSERT, None, options(database))))
    committables = stage(sink, [("a", 1), ("b", 2)])
    assert rows(database) == []

    for _ in range(2):
        sink.create_committer(CommitterContext(sink_id="op")).commit(committables)

    assert rows(database) == [("a", 1), ("b", 2)]
    assert rows(database, "SELECT sink_id, subtask, epoch FROM headrace_commits") == [("op", 0, 1)]


def test_another_run_of_the_program_is_not_taken_for_a_repetition(database):
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database))
    for word in ("first run", "second run"):
        sink.create_committer().commit(stage(sink, [(word, 1)], epoch=1))

    assert rows(database) == [("first run", 1), ("second run", 1)]


def test_many_rows_wait_in_a_file_that_is_deleted_with_the_commit(database, tmp_path):
    staging = tmp_path / "sinks"
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database))
    values = [(f"{number:06}" * 5, number) for number in range(5000)]
    committables = stage(sink, values, staging_dir=str(staging))
    assert len(list(staging.rglob("1-0-*"))) == 1
    assert len(pickle.dumps(committables)) < 1000

    committer = sink.create_committer(CommitterContext("job", "op", str(staging)))
    committer.commit(committables)
    committer.commit(committables)

    assert rows(database) == values
    assert list(staging.rglob("1-0-*")) == []


def test_staged_rows_that_will_not_be_committed_are_removed(database, tmp_path):
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database))
    large = [("x" * 100_000, 1)]
    stage(sink, large, epoch=7, staging_dir=str(tmp_path / "sinks"))
    committer = sink.create_committer(
        CommitterContext("job", "op", str(tmp_path / "sinks"), is_checkpointed=True)
    )

    committer.commit([])
    committer.discard_after(6)

    assert [path for path in (tmp_path / "sinks").rglob("*") if path.is_file()] == []


def test_staged_rows_that_are_lost_are_an_error_unless_they_were_published(database, tmp_path):
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database))
    committables = stage(sink, [("x" * 100_000, 1)], staging_dir=str(tmp_path / "sinks"))
    next((tmp_path / "sinks").rglob("1-0-*")).unlink()

    with pytest.raises(ConnectorError, match=r"output of a completed checkpoint is lost: .*1-0-") as caught:
        sink.create_committer().commit(committables)
    assert not caught.value.retryable
    assert rows(database, "SELECT * FROM headrace_commits") == []


def test_old_markers_are_deleted_in_time(database):
    once = JdbcExactlyOnceOptions(marker_table="marks", marker_retention=timedelta(hours=1), sink_id="mine")
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database), None, once)
    clock = [1_000_000.0]
    for epoch in (1, 2, 3):
        publisher = sink.create_publisher(CommitterContext())
        publisher._clock = lambda: clock[0]
        committer = sink.create_committer()
        committer._publisher = publisher
        committables = stage(sink, [(f"epoch {epoch}", 1)], epoch=epoch)
        committer.commit(committables)
        clock[0] += 2000

    assert rows(database, "SELECT sink_id, epoch FROM marks ORDER BY epoch") == [("mine", 2), ("mine", 3)]


def test_a_user_who_may_not_create_tables_can_have_the_table_made(database, monkeypatch):
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database))
    sink.create_committer().commit(stage(sink, [("a", 1)]))

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ConnectorError("no rights", retryable=False)

    table = _publisher.marker_table("headrace_commits")
    monkeypatch.setattr(type(table), "create", refuse)
    sink.create_committer().commit(stage(sink, [("b", 1)]))

    assert rows(database) == [("a", 1), ("b", 1)]


def test_a_row_that_breaks_a_constraint_rolls_the_markers_back(database):
    sink = JdbcSink.exactly_once_sink(INSERT, None, options(database))
    committer = sink.create_committer()
    committer.commit(stage(sink, [("a", 1)]))

    with pytest.raises(ConnectorError, match="UNIQUE constraint failed") as caught:
        committer.commit(stage(sink, [("b", 1), ("a", 2)], epoch=2))

    assert not caught.value.retryable
    assert rows(database) == [("a", 1)]
    assert rows(database, "SELECT epoch FROM headrace_commits") == [(1,)]


@pytest.mark.parametrize("seed", range(3))
def test_a_job_with_large_rows_and_faults_writes_each_once(database, seed):
    words = [f"{number:05}" * 4000 for number in range(60)]

    def program(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_collection(words).rebalance()
        sink = JdbcSink.exactly_once_sink("INSERT INTO words VALUES (?, 1)", None, options(database))
        stream.map(lambda word: (word,)).sink_to(sink)
        return stream

    run(program, parallelism=2, max_records=20, faults=random_faults(seed, 0.1))

    assert [word for word, _ in rows(database)] == words


# --- passwords ------------------------------------------------------------------------------------

SECRET = "hunter2&co"


def test_no_password_is_in_a_repr():
    for connection in (
        JdbcConnectionOptions("jdbc:postgresql://db/shop", "ann", SECRET),
        JdbcConnectionOptions("jdbc:postgresql://db/shop?user=ann&password=hunter2%26co"),
        JdbcConnectionOptions("postgresql://ann:hunter2%26co@db/shop"),
    ):
        for sink in (
            JdbcSink.sink(INSERT, None, connection),
            JdbcSink.exactly_once_sink(INSERT, None, connection),
        ):
            assert "hunter2" not in f"{sink!r} {sink} {connection.database_url()!r}"


def test_no_password_is_in_an_error_or_a_log(caplog):
    connection = JdbcConnectionOptions("jdbc:postgresql://127.0.0.1:1/shop?connectTimeout=1", "ann", SECRET)
    execution = JdbcExecutionOptions.builder().with_max_retries(1).build()
    writer = JdbcSink.sink(INSERT, None, connection, execution).create_writer(HERE)
    writer.write(("a", 1), None)

    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(ConnectorError, match=r"at postgresql.*127\.0\.0\.1:1") as caught,
    ):
        writer.prepare_commit()

    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "hunter2" not in shown
    assert caught.value.retryable


def test_a_driver_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymysql", None)
    connection = JdbcConnectionOptions("jdbc:mysql://db/shop", "ann", SECRET)

    with pytest.raises(ConnectorError, match=r"which mysql.* needs, is not installed") as caught:
        _connections.engine_for(connection)
    assert "headrace[mysql]" in (caught.value.hint or "")

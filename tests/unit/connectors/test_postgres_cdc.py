"""`postgres-cdc` against a real PostgreSQL: snapshot, changes, what a snapshot has already, options."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from headrace.common import Row
from headrace.connectors.base import ReaderContext, Slice, SplitEnumerator
from headrace.connectors.postgres_cdc import PostgresCdcSource
from headrace.connectors.postgres_cdc._database import TablePlace
from headrace.errors import ConnectorError, HeadraceError
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.types import DataTypes
from tests.postgres import PostgresServer

#: A time of no zone, as in rows.
time_of = datetime.datetime
COLUMNS = (("id", DataTypes.INT()), ("name", DataTypes.STRING()))


OPEN: list[SplitEnumerator] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Table:
    """A table of its own, with a slot and a publication."""

    def __init__(self, server: PostgresServer, definition: str = "id INT PRIMARY KEY, name TEXT") -> None:
        self.server = server
        self.name = f"t{uuid.uuid4().hex[:10]}"
        server.execute(f"CREATE TABLE {self.name} ({definition})")
        server.execute(f"ALTER TABLE {self.name} REPLICA IDENTITY FULL")

    @property
    def place(self) -> TablePlace:
        server = self.server
        return TablePlace(
            *(server.host, server.port, server.user, server.password, "postgres", "public"),
            *(self.name, f"slot_{self.name}", f"publication_{self.name}"),
        )

    def run(self, *statements: str) -> None:
        """Execute statements about `t`, which stands for the table, in one transaction."""
        self.server.execute("; ".join(each.replace(" t ", f" {self.name} ") for each in statements))

    def source(self, **options: Any) -> PostgresCdcSource:
        return PostgresCdcSource(self.place, COLUMNS, **options)

    def drop(self) -> None:
        self.server.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            f"WHERE slot_name = 'slot_{self.name}'"
        )


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[Table]:
    made = Table(postgres)
    yield made
    made.drop()


class Reading:
    """A job over a source: epochs of some records, checkpoints, restarts."""

    def __init__(self, source: PostgresCdcSource, position: Any = None) -> None:
        self.source = source
        self.enumerator = source.create_enumerator(1)
        OPEN.append(self.enumerator)
        [self.split] = self.enumerator.discover()
        self.position = self.enumerator.start_position(self.split) if position is None else position

    def epoch(self, limit: int = 1000) -> list[Row] | None:
        piece = self.enumerator.plan(self.split, self.position, limit)
        return None if piece is None else self.read(piece)

    def read(self, piece: Slice) -> list[Row]:
        reader = self.source.create_reader()
        reader.open(ReaderContext())
        rows = [row for batch in reader.read(piece) for row in batch.values]
        self.position = reader.progress().position
        return rows

    def all(self, limit: int = 1000) -> list[Row]:
        found: list[Row] = []
        while (rows := self.epoch(limit)) is not None:
            found += rows
        return found

    def checkpoint(self) -> Any:
        self.enumerator.checkpoint_completed({self.split.split_id: self.position}, ())
        return self.position

    def restart(self, position: Any) -> Reading:
        self.enumerator.close()
        return Reading(self.source, position)


def kinds(rows: list[Row] | None) -> list[tuple[Any, ...]]:
    return [(row.get_row_kind().short_string(), *row) for row in rows or ()]


def test_a_snapshot_is_followed_by_changes(table: Table) -> None:
    table.run("INSERT INTO t VALUES (1, 'ann'), (2, NULL)")
    reading = Reading(table.source())
    table.run("INSERT INTO t VALUES (3, 'eve')")  # the slot has it, and so does the snapshot
    assert kinds(reading.all()) == [("+I", 1, "ann"), ("+I", 2, None), ("+I", 3, "eve")]
    table.run(
        "UPDATE t SET name = 'bob' WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET id = 9 WHERE id = 3",
    )
    assert kinds(reading.epoch()) == [
        ("-U", 2, None),
        ("+U", 2, "bob"),
        ("-D", 1, "ann"),
        ("-D", 3, "eve"),
        ("+I", 9, "eve"),
    ]
    assert reading.epoch() is None


def test_a_transaction_that_runs_during_the_snapshot_is_read_from_the_log(table: Table) -> None:
    import psycopg

    table.run("INSERT INTO t VALUES (1, 'ann')")
    reading = Reading(table.source())
    server = table.server
    place = (
        f"host={server.host} port={server.port} user={server.user} password={server.password} dbname=postgres"
    )
    with psycopg.connect(place) as other:
        other.execute(f"INSERT INTO {table.name} VALUES (2, 'late')")
        table.run("INSERT INTO t VALUES (3, 'early')")
        assert kinds(reading.epoch()) == [("+I", 1, "ann"), ("+I", 3, "early")]
    assert kinds(reading.all()) == [("+I", 2, "late")]


def test_a_snapshot_that_is_interrupted_continues_with_a_newer_one(table: Table) -> None:
    table.run(*(f"INSERT INTO t VALUES ({number}, 'a')" for number in (2, 4, 9, 10)))
    reading = Reading(table.source())
    assert kinds(reading.epoch(2)) == [("+I", 2, "a"), ("+I", 4, "a")]
    position = reading.checkpoint()
    reading.epoch(1)  # of an attempt that fails
    table.run(
        "UPDATE t SET name = 'b' WHERE id = 2",  # read before: comes from the log
        "DELETE FROM t WHERE id = 9",  # the newer snapshot knows
        "INSERT INTO t VALUES (11, 'c')",
        "INSERT INTO t VALUES (3, 'd')",
    )
    reading = reading.restart(position)
    assert kinds(reading.all(1)) == [
        ("+I", 10, "a"),
        ("+I", 11, "c"),
        ("-U", 2, "a"),
        ("+U", 2, "b"),
        ("+I", 3, "d"),
    ]


def test_changes_are_kept_until_a_checkpoint_has_them(table: Table) -> None:
    reading = Reading(table.source())
    assert reading.all() == []
    first = reading.position
    table.run("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 5) AS n")
    assert [row.id for row in reading.epoch(3) or ()] == [1, 2, 3], "an epoch has part of a transaction"
    middle = reading.checkpoint()
    assert [row.id for row in reading.all(1)] == [4, 5]
    reading = reading.restart(middle)
    assert [row.id for row in reading.all()] == [4, 5], "read again after a failure"
    last = reading.checkpoint()
    reading = reading.restart(last)
    assert reading.epoch() is None
    table.run("INSERT INTO t VALUES (6, 'y')")
    assert [row.id for row in reading.all()] == [6]
    reading.checkpoint()
    with pytest.raises(ConnectorError, match="changes in between are lost"):
        reading.restart(first).epoch()
    table.drop()
    with pytest.raises(ConnectorError, match="does not exist: changes in between are lost"):
        reading.restart(last).epoch()


def test_the_position_follows_a_log_of_other_tables(table: Table, postgres: PostgresServer) -> None:
    reading = Reading(table.source())
    reading.all()
    before = reading.position
    other = Table(postgres, "id INT, junk TEXT")
    other.run("INSERT INTO t SELECT n, repeat('x', 1000) FROM generate_series(1, 20000) AS n")
    assert reading.epoch() == []
    assert reading.position[1] > before[1]
    assert reading.epoch() is None


def test_upserts_need_no_more_than_the_key_of_old_rows(table: Table) -> None:
    table.run("ALTER TABLE t REPLICA IDENTITY DEFAULT", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with pytest.raises(ConnectorError, match="does not contain the old rows"):
        Reading(table.source())
    reading = Reading(table.source(is_upsert=True))
    assert len(reading.all()) == 3
    table.run(
        "UPDATE t SET name = 'z' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "UPDATE t SET id = 7 WHERE id = 3",
    )
    assert kinds(reading.all()) == [("+U", 1, "z"), ("-D", 2, None), ("-D", 3, None), ("+I", 7, "c")]


def test_a_large_value_that_was_left_alone_is_taken_from_the_old_row(table: Table) -> None:
    large = "md5(random()::text) || repeat('x', 10)"
    table.run(
        "ALTER TABLE t ALTER name SET STORAGE EXTERNAL",
        f"INSERT INTO t SELECT 1, string_agg({large}, '') FROM generate_series(1, 500)",
        "ALTER TABLE t ADD other INT",
    )
    reading = Reading(table.source())
    [row] = reading.all()
    table.run("UPDATE t SET other = 5")
    assert [each.name for each in reading.all()] == [row.name, row.name]
    table.run("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    reading = Reading(table.source(is_upsert=True))
    reading.all()
    table.run("UPDATE t SET other = 6")
    with pytest.raises(ConnectorError, match="REPLICA IDENTITY FULL"):
        reading.all()


def test_startup_without_a_snapshot(table: Table) -> None:
    table.run("INSERT INTO t VALUES (1, 'a')")
    assert Reading(table.source(startup="latest-offset")).all() == []
    table.run("INSERT INTO t VALUES (2, 'b')")
    assert [row.id for row in Reading(table.source(startup="committed-offset")).all()] == [2]
    assert Reading(table.source(startup="latest-offset")).all() == []


def test_values_are_the_same_in_snapshot_and_log(postgres: PostgresServer) -> None:
    kinds_of = {
        "id": ("INT", DataTypes.INT(), 1, "1"),
        "flag": ("BOOLEAN", DataTypes.BOOLEAN(), True, "true"),
        "wide": ("BIGINT", DataTypes.BIGINT(), 2**60, str(2**60)),
        "real": ("DOUBLE PRECISION", DataTypes.DOUBLE(), 0.1, "0.1"),
        "price": ("NUMERIC(10, 2)", DataTypes.DECIMAL(10, 2), Decimal("1.50"), "1.5"),
        "code": ("CHAR(4)", DataTypes.CHAR(4), "ab  ", "'ab'"),
        "raw": ("BYTEA", DataTypes.BYTES(), b"\x00\xff", r"'\x00ff'"),
        "day": ("DATE", DataTypes.DATE(), datetime.date(2024, 2, 29), "'2024-02-29'"),
        "clock": ("TIME", DataTypes.TIME(), datetime.time(10, 11, 12), "'10:11:12'"),
        "at": (
            "TIMESTAMP",
            DataTypes.TIMESTAMP(6),
            time_of(2024, 2, 29, 1, 2, 3, 4),
            "'2024-02-29 01:02:03.000004'",
        ),
        "moment": (
            "TIMESTAMPTZ",
            DataTypes.TIMESTAMP_LTZ(3),
            time_of(2024, 2, 29, 8),
            "'2024-02-29 10:00+02'",
        ),
        "doc": ("JSONB", DataTypes.STRING(), '{"a": 1}', """'{"a":1}'"""),
        "nothing": ("TEXT", DataTypes.STRING(), None, "NULL"),
    }
    made = Table(
        postgres, ", ".join(f"{name} {kind[0]}" for name, kind in kinds_of.items()) + ", PRIMARY KEY (id)"
    )
    columns = [(name, kind[1]) for name, kind in kinds_of.items()]
    made.run(f"INSERT INTO t VALUES ({', '.join(kind[3] for kind in kinds_of.values())})")
    metadata = ("table_name", "schema_name", "database_name", "op_ts", "row_kind")
    reading = Reading(PostgresCdcSource(made.place, columns, metadata))
    expected = [kind[2] for kind in kinds_of.values()]
    [row] = reading.all()
    assert list(row) == [*expected, made.name, "public", "postgres", time_of(1970, 1, 1), "+I"]
    made.run("UPDATE t SET id = 1")
    before, after = reading.all()
    assert list(before)[: len(expected)] == list(after)[: len(expected)] == expected
    assert after.op_ts.year >= 2024
    assert (before.row_kind, after.row_kind) == ("-U", "+U")
    reading = Reading(PostgresCdcSource(made.place, [("doc", DataTypes.INT())]))
    with pytest.raises(HeadraceError, match=r"column 'doc': cannot read .* as INT"):
        reading.all()
    made.drop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"place.table": "missing"}, "does not exist"),
        ({"columns": (("missing", DataTypes.INT()),)}, "has no column 'missing'"),
        ({"place.password": "wrong"}, "password authentication failed"),
    ],
)
def test_what_does_not_fit_the_database_is_refused(
    table: Table, change: dict[str, Any], message: str
) -> None:
    [(key, value)] = change.items()
    source = table.source()
    if key.startswith("place."):
        source = replace(source, place=replace(source.place, **{key.removeprefix("place."): value}))
    else:
        source = replace(source, **{key: value})
    with pytest.raises(ConnectorError, match=message) as raised:
        Reading(source)
    assert source.place.password not in str(raised.value)


def test_a_partitioned_table_is_refused(table: Table) -> None:
    whole = f"{table.name}_whole"
    table.server.execute(f"CREATE TABLE {whole} (id INT PRIMARY KEY) PARTITION BY RANGE (id)")
    source = table.source()
    with pytest.raises(ConnectorError, match="the log names the partitions"):
        Reading(replace(source, place=replace(source.place, table=whole)))


def test_a_table_without_primary_key_is_refused(postgres: PostgresServer) -> None:
    made = Table(postgres, "id INT, name TEXT")
    with pytest.raises(ConnectorError, match="has no primary key"):
        Reading(made.source())


WITH = {
    "connector": "postgres-cdc",
    "hostname": "localhost",
    "username": "u",
    "password": "secret",
    "database-name": "d",
    "schema-name": "s",
    "table-name": "t",
    "slot.name": "s1",
}


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"slot.name": "A-B"}, "id INT", "option 'slot.name' must be a name of lower-case letters"),
        ({"slot.name": None}, "id INT", "requires the option 'slot.name'"),
        (
            {"decoding.plugin.name": "wal2json"},
            "id INT",
            "'decoding.plugin.name' = 'wal2json' is not supported",
        ),
        ({"changelog-mode": "upsert"}, "id INT", "needs a primary key"),
        ({"changelog-mode": "some"}, "id INT", "option 'changelog-mode' must be all or upsert; got 'some'"),
        ({"scan.startup.mode": "never"}, "id INT", "one of initial, latest-offset, committed-offset"),
        ({"scan.incremental.snapshot.enabled": "true"}, "id INT", "cannot be honoured"),
        ({"heartbeat.interval.ms": "5s"}, "id INT", "cannot be honoured: the position advances"),
        ({"hostnam": "x"}, "id INT", "has no option 'hostnam'"),
        ({}, "id INT, tags ARRAY<INT>", "column 'tags' of type ARRAY<INT> cannot be read"),
        ({}, "id INT, ts TIMESTAMP_LTZ(3) METADATA FROM 'ts'", "has no metadata 'ts'"),
        ({}, "id INT, ts STRING METADATA FROM 'op_ts'", "metadata 'op_ts' is TIMESTAMP_LTZ"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(
    options: dict[str, str | None], columns: str, message: str
) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = {key: value for key, value in {**WITH, **options}.items() if value is not None}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({listed})")
    with pytest.raises(HeadraceError, match=message):
        t_env.explain_sql("SELECT * FROM t")


def test_plans_show_the_changelog_of_the_table() -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in WITH.items())
    t_env.execute_sql(f"CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED, n STRING) WITH ({listed})")
    t_env.execute_sql(
        f"CREATE TABLE u (id INT PRIMARY KEY NOT ENFORCED, n STRING) WITH ({listed}, 'changelog-mode' = 'upsert')"
    )
    assert "ChangelogNormalize" not in t_env.explain_sql("SELECT COUNT(*) FROM t")
    assert "ChangelogNormalize" in t_env.explain_sql("SELECT COUNT(*) FROM u")

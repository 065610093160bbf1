"""Statements about the catalog: what they make of it, and what they show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.catalog import CatalogTable, ComputedColumn, MetadataColumn, PhysicalColumn
from headrace.catalog.objects import WatermarkSpec
from headrace.errors import CatalogError, SqlError, SqlValidationError, UnsupportedFeatureError
from headrace.planner import ddl
from headrace.planner.statements import (
    CreateTableAs,
    Explain,
    ExplainDetail,
    Reset,
    Set,
    ShowJobs,
    ShowPartitions,
    StatementSet,
    StopJob,
)
from headrace.types import DataTypes as T
from tests.planner.environment import Session

ORDERS = """
CREATE TABLE orders (
  id BIGINT COMMENT 'the number',
  cents INT NOT NULL,
  euros AS cents / 100,
  ts TIMESTAMP(3),
  origin STRING METADATA FROM 'source' VIRTUAL,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'all of them' PARTITIONED BY (cents) WITH ('connector' = 'kafka', 'topic' = 'it''s')
"""


@pytest.fixture
def session() -> Session:
    return Session(ORDERS)


def table(session: Session, name: str = "orders") -> CatalogTable:
    found = session.manager.table(session.manager.qualify([name]))
    assert isinstance(found, CatalogTable)
    return found


def rows(session: Session, text: str) -> tuple[tuple[object, ...], ...]:
    given = session.one(text)
    assert isinstance(given, ddl.Rows)
    return given.rows


def test_a_table_keeps_everything_it_was_created_with(session: Session) -> None:
    made = table(session)
    assert made.columns == (
        PhysicalColumn("id", T.BIGINT(False), comment="the number"),
        PhysicalColumn("cents", T.INT(False)),
        ComputedColumn("euros", T.INT(False), "cents / 100"),
        PhysicalColumn("ts", T.TIMESTAMP(3)),
        MetadataColumn("origin", T.STRING(), "source", virtual=True),
    )
    assert made.watermark is not None
    assert made.watermark.expression == "ts - INTERVAL '5' SECOND"
    assert made.primary_key is not None
    assert made.primary_key.columns == ("id",)
    assert (made.partition_keys, made.comment) == (("cents",), "all of them")
    assert made.options == {"connector": "kafka", "topic": "it's"}


def test_show_create_makes_the_same_table_again(session: Session) -> None:
    ((text,),) = rows(session, "SHOW CREATE TABLE orders")
    before = table(session)
    session.run(f"DROP TABLE orders; {text}")
    # Columns in expressions are in backquotes by now, as in Flink.
    euros = ComputedColumn("euros", T.INT(False), "`cents` / 100")
    columns = tuple(euros if each.name == "euros" else each for each in before.columns)
    watermark = WatermarkSpec("ts", "`ts` - INTERVAL '5' SECOND")
    assert table(session) == replace(before, columns=columns, watermark=watermark)
    assert rows(session, "SHOW CREATE TABLE orders") == ((text,),)


def test_show_create_writes_types_and_expressions_as_flink_does(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a STRING, `SECOND` INT, r ROW<`STRING` ARRAY<BYTES>>, "
        "b AS UPPER(a)\n || ' a' || CAST(`SECOND` AS STRING), ts TIMESTAMP(3), "
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'blackhole')"
    )
    ((text,),) = rows(session, "SHOW CREATE TABLE t")
    assert text.splitlines()[1:7] == [
        "  `a` VARCHAR(2147483647),",
        "  `SECOND` INT,",
        "  `r` ROW<`STRING` ARRAY<VARBINARY(2147483647)>>,",
        "  `b` AS UPPER(`a`) || ' a' || CAST(`SECOND` AS STRING),",
        "  `ts` TIMESTAMP(3),",
        "  WATERMARK FOR `ts` AS `ts` - INTERVAL '5' SECOND",
    ]


def test_show_create_sorts_options_by_their_names(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a INT) WITH ('number-of-rows' = '3', 'connector' = 'datagen', 'fields.a.min' = '0')"
    )
    ((text,),) = rows(session, "SHOW CREATE TABLE t")
    assert [line.split("'")[1] for line in text.splitlines() if " = " in line] == [
        "connector",
        "fields.a.min",
        "number-of-rows",
    ]


def test_show_create_keeps_passwords_to_itself(session: Session) -> None:
    session.run(
        "CREATE TABLE people (id BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://ann:s3cret@db/people', "
        "'password' = 's3cret', 'properties.sasl.jaas.config' = 'login s3cret', 'table-name' = 'people')"
    )
    ((text,),) = rows(session, "SHOW CREATE TABLE people")
    assert "s3cret" not in text
    assert "'password' = '******'" in text
    assert "'url' = 'jdbc:postgresql://***@db/people'" in text
    assert "'table-name' = 'people'" in text


def test_describe_shows_six_columns_and_comments(session: Session) -> None:
    described = rows(session, "DESCRIBE orders")
    assert described[0][6] == "the number"
    assert tuple(row[:6] for row in described) == (
        ("id", "BIGINT", False, "PRI(id)", None, None),
        ("cents", "INT", False, None, None, None),
        ("euros", "INT", False, None, "AS `cents` / 100", None),
        ("ts", "TIMESTAMP(3) *ROWTIME*", True, None, None, "`ts` - INTERVAL '5' SECOND"),
        ("origin", "STRING", True, None, "METADATA FROM 'source' VIRTUAL", None),
    )


def test_show_columns_describes_those_that_match(session: Session) -> None:
    assert rows(session, "SHOW COLUMNS FROM orders LIKE 'e%'") == (
        ("euros", "INT", False, None, "AS `cents` / 100", None, None),
    )


def test_describe_has_a_comment_column_only_if_there_are_comments(session: Session) -> None:
    session.run("CREATE TABLE cups (id INT, ml INT)")

    assert [row[6:] for row in rows(session, "DESCRIBE cups")] == [(), ()]


def test_catalogs_and_modules_are_shown(session: Session) -> None:
    session.run("CREATE CATALOG mine WITH ('type' = 'generic_in_memory', 'default-database' = 'db')")

    assert rows(session, "DESCRIBE CATALOG mine") == (
        ("name", "mine"),
        ("type", "generic_in_memory"),
        ("comment", None),
    )
    ((text,),) = rows(session, "SHOW CREATE CATALOG mine")
    session.run(f"DROP CATALOG mine; {text}")
    assert ("mine",) in rows(session, "SHOW CATALOGS")
    assert rows(session, "SHOW MODULES") == (("core",),)
    assert rows(session, "SHOW FULL MODULES") == (("core", True),)
    with pytest.raises(SqlError, match="catalog 'none' does not exist"):
        session.run("DESCRIBE CATALOG none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE t (a INT, a INT) WITH ('c' = 'd')", "already exists"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", "column 'b' is not a physical column"),
        ("CREATE TABLE t (a INT, WATERMARK FOR a AS a)", "fractional digits, not INT"),
        ("CREATE TABLE t (a TIMESTAMP(6), WATERMARK FOR a AS a)", "at most 3 fractional digits"),
        ("CREATE TABLE t (a TIMESTAMP(9))", "more digits of a second than Spark keeps"),
        ("CREATE TABLE t (a AS b + 1, b STRING)", "takes numbers"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (b)", "column 'b' is not a physical column"),
        ("CREATE TABLE t (a INT) WITH ('x' = '1', 'x' = '2')", "twice"),
        ("CREATE TABLE t WITH ('a' = 'b')", "at least one column"),
        ("CREATE TABLE t (a INT PRIMARY KEY)", "cannot be enforced"),
        ("CREATE TABLE t (a INT) DISTRIBUTED INTO 4 BUCKETS", "DISTRIBUTED"),
        ("CREATE TABLE t LIKE nowhere", "does not exist"),
    ],
)
def test_tables_that_make_no_sense_are_refused(session: Session, text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        session.run(text)
    assert caught.value.column is not None


def test_like_copies_what_its_options_say(session: Session) -> None:
    session.run(
        "CREATE TABLE plain WITH ('connector' = 'print') "
        "LIKE orders (EXCLUDING GENERATED EXCLUDING METADATA EXCLUDING WATERMARKS EXCLUDING CONSTRAINTS)"
    )
    made = table(session, "plain")
    assert [column.name for column in made.columns] == ["id", "cents", "ts"]
    assert (made.watermark, made.primary_key) == (None, None)
    assert made.options == {"connector": "print", "topic": "it's"}


def test_strings_and_bytes_without_a_length_have_no_limit(session: Session) -> None:
    session.run(
        "CREATE TABLE s (a VARCHAR, b CHARACTER VARYING, c VARBINARY, d CHAR, e VARCHAR(3), f BINARY)"
    )
    types = [column.type for column in table(session, "s").physical_columns]
    assert types == [T.STRING(), T.STRING(), T.BYTES(), T.CHAR(1), T.VARCHAR(3), T.BINARY(1)]


def test_alter_table_changes_columns_options_and_keys(session: Session) -> None:
    session.run("""
        ALTER TABLE orders SET ('topic' = 'new');
        ALTER TABLE orders ADD (city STRING AFTER id, total AS cents * 2 FIRST);
        ALTER TABLE orders RENAME city TO town;
        ALTER TABLE orders MODIFY town VARCHAR(20);
        ALTER TABLE orders DROP euros;
        ALTER TABLE orders DROP WATERMARK;
        ALTER TABLE orders RESET ('connector');
        ALTER TABLE orders RENAME TO sales;
    """)
    made = table(session, "sales")
    assert [column.name for column in made.columns] == ["total", "id", "town", "cents", "ts", "origin"]
    assert made.column("town") == PhysicalColumn("town", T.VARCHAR(20))
    assert (made.options, made.watermark) == ({"topic": "new"}, None)


def test_a_column_in_use_is_not_dropped(session: Session) -> None:
    with pytest.raises(SqlValidationError, match="used by computed column 'euros'"):
        session.run("CREATE TABLE u LIKE orders (EXCLUDING PARTITIONS); ALTER TABLE u DROP cents")
    with pytest.raises(SqlValidationError, match="used by the primary key"):
        session.run("ALTER TABLE orders DROP id")


def test_temporary_objects_hide_and_uncover(session: Session) -> None:
    session.run("CREATE TEMPORARY TABLE orders (x INT) WITH ('connector' = 'print')")
    assert [column.name for column in table(session).columns] == ["x"]
    with pytest.raises(CatalogError, match="a temporary table shadows"):
        session.run("DROP TABLE orders")
    session.run("DROP TEMPORARY TABLE orders")
    assert table(session).column("cents") is not None


def test_what_is_there_is_not_created_again(session: Session) -> None:
    with pytest.raises(CatalogError, match="already"):
        session.run(ORDERS)
    session.run(ORDERS.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    with pytest.raises(CatalogError, match=r"table .* does not exist"):
        session.run("DROP TABLE nowhere")
    session.run("DROP TABLE IF EXISTS nowhere")


def test_databases_and_catalogs(session: Session) -> None:
    session.run("CREATE DATABASE d COMMENT 'x' WITH ('k' = 'v'); USE d; CREATE TABLE t (a INT)")
    assert rows(session, "SHOW CURRENT DATABASE") == (("d",),)
    with pytest.raises(CatalogError, match="in use"):
        session.run("DROP DATABASE d")
    session.run("USE default_database")
    with pytest.raises(CatalogError, match="not empty"):
        session.run("DROP DATABASE d RESTRICT")
    session.run("DROP DATABASE d CASCADE")
    session.run(
        "CREATE CATALOG c WITH ('type' = 'generic_in_memory', 'default-database' = 'main'); USE CATALOG c"
    )
    assert rows(session, "SHOW DATABASES") == (("main",),)
    assert rows(session, "SHOW CATALOGS") == (("c",), ("default_catalog",))
    with pytest.raises(UnsupportedFeatureError, match="cannot read or write their tables"):
        session.run("CREATE CATALOG i WITH ('type' = 'iceberg')")
    with pytest.raises(UnsupportedFeatureError, match="unknown catalog type 'nosuch'"):
        session.run("CREATE CATALOG n WITH ('type' = 'nosuch')")


def test_show_takes_patterns(session: Session) -> None:
    session.run("CREATE VIEW v AS SELECT id FROM orders; CREATE TABLE other (a INT)")
    assert rows(session, "SHOW TABLES") == (("orders",), ("other",), ("v",))
    assert rows(session, "SHOW TABLES LIKE 'o%'") == (("orders",), ("other",))
    assert rows(session, "SHOW TABLES NOT ILIKE 'OR%'") == (("other",), ("v",))
    assert rows(session, "SHOW VIEWS FROM default_database") == (("v",),)
    assert rows(session, "SHOW COLUMNS IN orders LIKE '%s'")[0][:2] == ("cents", "INT")
    assert ("SPLIT_INDEX",) in rows(session, "SHOW FUNCTIONS")
    assert rows(session, "SHOW USER FUNCTIONS") == ()


def test_modules_are_loaded_and_used(session: Session) -> None:
    assert rows(session, "SHOW FULL MODULES") == (("core", True),)
    session.run("UNLOAD MODULE core")
    assert rows(session, "SHOW MODULES") == ()
    assert session.schema("SELECT UPPER('a') AS x") == ["x CHAR(1) NOT NULL"], "the language itself has them"
    session.run("LOAD MODULE core; USE MODULES core")
    assert rows(session, "SHOW MODULES") == (("core",),)
    for wrong, message in (
        ("LOAD MODULE core", "already loaded"),
        ("USE MODULES core, core", "more than once"),
        ("USE MODULES hive", "module 'hive' does not exist"),
        ("UNLOAD MODULE hive", "module 'hive' does not exist"),
    ):
        with pytest.raises(CatalogError, match=message):
            session.run(wrong)
    with pytest.raises(UnsupportedFeatureError, match="the module 'pig'"):
        session.run("LOAD MODULE pig")


def test_functions_of_hive_are_found_while_its_module_is_in_use(session: Session) -> None:
    with pytest.raises(SqlValidationError, match="function 'nvl' does not exist"):
        session.schema("SELECT nvl('a', 'b') AS x")
    assert ("NVL",) not in rows(session, "SHOW FUNCTIONS")
    session.run("LOAD MODULE hive")
    assert rows(session, "SHOW FULL MODULES") == (("core", True), ("hive", True))
    assert session.schema("SELECT nvl(CAST(NULL AS INT), 2) AS x, date_add('2024-02-28', 2) AS y") == [
        "x INT NOT NULL",
        "y DATE",
    ]
    assert ("NVL",) in rows(session, "SHOW FUNCTIONS")
    session.run("USE MODULES core")
    with pytest.raises(SqlValidationError, match="function 'nvl' does not exist"):
        session.schema("SELECT nvl('a', 'b') AS x")
    session.run("USE MODULES hive, core; UNLOAD MODULE hive")
    assert rows(session, "SHOW FULL MODULES") == (("core", True),)


def test_catalogs_databases_and_functions_are_described(session: Session) -> None:
    session.run(
        "CREATE CATALOG c COMMENT 'hey' WITH ('type' = 'generic_in_memory', 'default-database' = 'd'); "
        "CREATE DATABASE b COMMENT 'of b' WITH ('k' = 'v'); CREATE TEMPORARY FUNCTION f AS 'm.f' LANGUAGE PYTHON"
    )
    about = (("name", "c"), ("type", "generic_in_memory"), ("comment", "hey"))
    assert rows(session, "DESCRIBE CATALOG c") == about
    assert rows(session, "DESC CATALOG EXTENDED c") == (*about, ("option:default-database", "d"))
    ((text,),) = rows(session, "SHOW CREATE CATALOG c")
    assert text == (
        "CREATE CATALOG `c`\nCOMMENT 'hey'\n"
        "WITH (\n  'default-database' = 'd',\n  'type' = 'generic_in_memory'\n)\n"
    )
    assert rows(session, "DESCRIBE DATABASE EXTENDED b") == (
        ("name", "b"),
        ("comment", "of b"),
        ("option:k", "v"),
    )
    plain = (("is system function", "true"), ("is temporary", "false"))
    assert rows(session, "DESCRIBE FUNCTION md5") == plain
    assert rows(session, "DESCRIBE FUNCTION EXTENDED md5") == (
        *plain,
        ("kind", "SCALAR"),
        ("signature", "MD5(text STRING)"),
    )
    assert dict(rows(session, "DESCRIBE FUNCTION EXTENDED array_agg"))["kind"] == "AGGREGATE"
    assert rows(session, "DESCRIBE FUNCTION f") == (
        ("is system function", "false"),
        ("is temporary", "true"),
        ("class name", "m.f"),
        ("function language", "PYTHON"),
        ("resource uris", "[]"),
    )
    assert rows(session, "DESCRIBE EXTENDED orders") == rows(session, "DESCRIBE orders")
    with pytest.raises(CatalogError, match="function 'nowhere' does not exist"):
        session.run("DESCRIBE FUNCTION nowhere")


def test_unsupported_objects_are_listed_as_empty_or_refused_by_name(session: Session) -> None:
    for what in ("JARS", "MODELS"):
        assert rows(session, f"SHOW {what}") == ()
    with pytest.raises(UnsupportedFeatureError, match="no procedures"):
        session.run("SHOW PROCEDURES")


def test_statements_about_jobs_and_partitions_are_for_others(session: Session) -> None:
    assert session.run(
        "SHOW JOBS; DESCRIBE JOB 'a'; STOP JOB 'a' WITH SAVEPOINT WITH DRAIN; STOP JOB 'b'"
    ) == [
        ShowJobs(),
        ShowJobs("a"),
        StopJob("a", with_savepoint=True, with_drain=True),
        StopJob("b"),
    ]
    shown = session.one("SHOW PARTITIONS orders PARTITION (cents = 5)")
    assert isinstance(shown, ShowPartitions)
    assert shown.values == {"cents": "5"}
    for wrong, message in (
        ("SHOW PARTITIONS nowhere", "does not exist"),
        ("SHOW PARTITIONS orders PARTITION (id = 5)", "not a partition column"),
        ("SHOW PARTITIONS orders PARTITION (cents)", "specify a partition"),
        ("STOP JOB 'a' WITH DRAIN", "needs WITH SAVEPOINT"),
    ):
        with pytest.raises(SqlError, match=message):
            session.run(wrong)
    session.run("CREATE TABLE flat (a INT)")
    with pytest.raises(SqlError, match="is not partitioned"):
        session.run("SHOW PARTITIONS flat")


def test_views_are_shown_altered_and_dropped(session: Session) -> None:
    session.run("CREATE VIEW v (n) COMMENT 'c' AS SELECT id FROM orders")
    ((text,),) = rows(session, "SHOW CREATE VIEW v")
    assert text == (
        "CREATE VIEW `default_catalog`.`default_database`.`v` (\n  `n`\n)\nCOMMENT 'c'\n"
        "AS SELECT id FROM `default_catalog`.`default_database`.`orders`\n"
    )
    session.run("ALTER VIEW v AS SELECT cents FROM orders; ALTER VIEW v RENAME TO w")
    assert session.schema("SELECT * FROM w") == ["cents INT NOT NULL"]
    session.run("DROP VIEW w")
    with pytest.raises(CatalogError, match=r"view .* does not exist"):
        session.run("DROP VIEW w")


def test_functions_are_named_and_dropped(session: Session) -> None:
    session.run(
        "CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON; CREATE TEMPORARY SYSTEM FUNCTION g AS 'm.g' LANGUAGE PYTHON"
    )
    assert rows(session, "SHOW USER FUNCTIONS") == (("f",), ("g",))
    session.run("DROP FUNCTION f; DROP TEMPORARY SYSTEM FUNCTION g; DROP FUNCTION IF EXISTS f")
    assert rows(session, "SHOW USER FUNCTIONS") == ()
    with pytest.raises(SqlError, match="a function in Java"):
        session.run("CREATE FUNCTION h AS 'com.example.H'")


def test_create_table_as_makes_a_table_and_an_insert(session: Session) -> None:
    bound = session.one(
        "CREATE TABLE s (c, i) WITH ('connector' = 'print') AS SELECT id AS i, cents AS c FROM orders"
    )
    assert isinstance(bound, CreateTableAs)
    assert [column.name for column in bound.create.table.columns] == ["c", "i"]
    assert [one.name for one in bound.insert.sink.input.schema] == ["c", "i"]
    assert bound.replaces is None
    for start in ("REPLACE", "CREATE OR REPLACE"):
        replacing = session.one(f"{start} TABLE orders WITH ('connector' = 'print') AS SELECT id FROM orders")
        assert isinstance(replacing, CreateTableAs)
        assert replacing.replaces == start
    with pytest.raises(SqlError, match="without AS SELECT"):
        session.run("CREATE OR REPLACE TABLE orders (a INT)")


def test_sets_settings_and_explains(session: Session) -> None:
    session.run("CREATE TABLE sink (id BIGINT) WITH ('connector' = 'print')")
    given = session.run("""
        SET 'a.b' = 'c'; SET; RESET 'a.b'; RESET;
        EXPLAIN CHANGELOG_MODE SELECT 1;
        BEGIN STATEMENT SET; INSERT INTO sink SELECT id FROM orders; INSERT INTO sink VALUES (1); END;
        EXPLAIN STATEMENT SET BEGIN INSERT INTO sink VALUES (1); END
    """)
    assert given[:4] == [Set("a.b", "c"), Set(), Reset("a.b"), Reset()]
    assert isinstance(given[4], Explain)
    assert given[4].details == {ExplainDetail.CHANGELOG_MODE}
    assert isinstance(given[5], StatementSet)
    assert len(given[5].inserts) == 2
    assert isinstance(given[6], Explain)

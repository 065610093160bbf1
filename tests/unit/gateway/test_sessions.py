"""The protocol of the SQL gateway over statements that need no Spark: sessions, options, catalogs, errors."""

from __future__ import annotations

import datetime
import gc
import json
import logging
import threading
import time
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from headrace.common.types import Row
from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import GatewayError, UnsupportedFeatureError
from headrace.gateway.operation import StatementOperation
from headrace.gateway.session import GatewaySession
from headrace.gateway.sessions import Sessions
from headrace.gateway.type_reading import type_from_json
from headrace.gateway.values import ResultRowFormat, fields_of, type_json
from headrace.rest.application import RestApplication
from headrace.rest.context import RestContext
from headrace.rest.operations import Operations
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import Dispatcher
from headrace.runtime.job.history import JobHistory
from headrace.types import DataTypes
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType
from headrace.types.logical import DataType

MISSING = "00000000-0000-4000-8000-000000000000"


class Client:
    """Asks a gateway without a socket."""

    def __init__(self, options: dict[str, str] | None = None, *, has_gateway: bool = True) -> None:
        self.now_s = 0.0
        configuration = Configuration(options or {})
        self.sessions = Sessions(ExecutionContext(configuration), clock=lambda: self.now_s)
        dispatcher = Dispatcher(archive=lambda job: {}, history=JobHistory())
        context = RestContext(
            dispatcher, configuration, Operations(), gateway=self.sessions if has_gateway else None
        )
        self._application = RestApplication(context, RestSettings())

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        response = self._application.answer(method, path, data, {"content-type": "application/json"})
        return response.status, json.loads(response.body)

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.ask(method, path, body)
        assert status == 200, answer
        return answer

    def open(self, **properties: str) -> str:
        return str(self.ok("POST", "/v2/sessions", {"properties": properties})["sessionHandle"])

    def submit(self, session: str, statement: str, **more: Any) -> str:
        body = {"statement": statement, **more}
        handle = str(self.ok("POST", f"/v2/sessions/{session}/statements", body)["operationHandle"])
        self.sessions.get(session).operation(handle).join(10)
        return handle

    def rows(self, session: str, statement: str, row_format: str = "JSON", **more: Any) -> list[list[Any]]:
        handle = self.submit(session, statement, **more)
        uri = f"/v2/sessions/{session}/operations/{handle}/result/0?rowFormat={row_format}"
        found: list[list[Any]] = []
        while uri is not None:
            answer = self.ok("GET", uri)
            found += [row["fields"] for row in answer.get("results", {}).get("data", [])]
            # A few times a second, as a client asks: more are refused.
            if not answer.get("results", {}).get("data"):
                threading.Event().wait(0.02)
            uri = answer.get("nextResultUri")
        return found

    def error(self, session: str, statement: str) -> tuple[int, str]:
        handle = self.submit(session, statement)
        status, answer = self.ask("GET", f"/v2/sessions/{session}/operations/{handle}/result/0")
        return status, answer["errors"][0]


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.sessions.close()


def test_a_client_finds_out_which_versions_there_are(client: Client) -> None:
    for prefix in ("", "/v1", "/v2", "/v3", "/v4"):
        assert client.ok("GET", f"{prefix}/api_versions") == {"versions": ["V1", "V2", "V3", "V4"]}
        assert client.ok("GET", f"{prefix}/info")["productName"] == "headrace"
    assert client.ask("GET", "/v2/jobs/overview")[0] == 404


def test_each_session_has_its_own_tables_and_options(client: Client) -> None:
    one, two = client.open(), client.open()
    create = "CREATE TABLE t (id INT) WITH ('connector' = 'datagen');"
    assert client.rows(one, create) == [["OK"]]
    assert client.rows(one, "SET 'parallelism.default' = '3'") == [["OK"]]
    assert client.rows(one, "SHOW TABLES") == [["t"]]
    assert client.rows(two, "SHOW TABLES") == []
    assert client.ok("GET", f"/v2/sessions/{one}")["properties"]["parallelism.default"] == "3"
    assert "parallelism.default" not in client.ok("GET", f"/v2/sessions/{two}")["properties"]


def test_the_first_portion_of_a_statement_says_what_comes(client: Client) -> None:
    session = client.open()
    handle = client.submit(session, "SHOW CATALOGS")
    place = f"/v2/sessions/{session}/operations/{handle}"
    assert client.ok("GET", f"{place}/status") == {"status": "FINISHED"}
    while client.sessions.get(session).operation(handle).is_busy:
        pass
    answer = client.ok("GET", f"{place}/result/0")
    assert answer == {
        "resultType": "PAYLOAD",
        "isQueryResult": False,
        "resultKind": "SUCCESS_WITH_CONTENT",
        "results": {
            "columns": [
                {
                    "name": "catalog name",
                    "logicalType": {"type": "VARCHAR", "nullable": True, "length": 2147483647},
                    "comment": None,
                }
            ],
            "rowFormat": "JSON",
            "data": [{"kind": "INSERT", "fields": ["default_catalog"]}],
        },
        "nextResultUri": f"{place}/result/1?rowFormat=JSON",
    }
    assert "?" not in client.ok("GET", f"/v1{place[3:]}/result/0")["nextResultUri"]
    end = client.ok("GET", f"{place}/result/1")
    assert (end["resultType"], "nextResultUri" in end) == ("EOS", False)
    assert client.ok("DELETE", f"{place}/close") == {"status": "CLOSED"}
    assert client.ask("GET", f"{place}/status")[0] == 404


def test_a_session_is_opened_with_the_options_of_a_client(client: Client) -> None:
    given = {"parallelism.default": "2", "jobmanager.rpc.address": "elsewhere", "unknown.key": "x"}
    session = client.open(**given)
    assert client.ok("GET", f"/v3/sessions/{session}")["properties"] == given
    status, answer = client.ask("POST", "/v2/sessions", {"properties": {"parallelism.default": "many"}})
    assert status == 400
    assert "parallelism.default" in answer["errors"][0]


def test_options_of_the_client_are_kept_for_it(client: Client) -> None:
    session = client.open()
    assert client.rows(session, "SET 'sql-client.execution.result-mode' = 'tableau';") == [["OK"]]
    properties = client.ok("GET", f"/v2/sessions/{session}")["properties"]
    assert properties == {"sql-client.execution.result-mode": "tableau"}
    assert client.rows(session, "RESET 'sql-client.execution.result-mode'") == [["OK"]]
    assert client.ok("GET", f"/v2/sessions/{session}")["properties"] == {}


def test_set_lists_options_of_the_session_of_the_client_and_of_the_process() -> None:
    client = Client({"parallelism.default": "3", "headrace.rest.token": "a-secret-of-the-process"})
    session = client.open()
    client.rows(session, "SET 'sql-client.execution.result-mode' = 'tableau'")
    client.rows(session, "SET 'table.exec.state.ttl' = '1 h'")
    of_the_process = [["headrace.rest.token", "***"], ["parallelism.default", "3"]]
    chosen = [["sql-client.execution.result-mode", "tableau"], ["table.exec.state.ttl", "1 h"]]
    assert client.rows(session, "SET;") == [*of_the_process, *chosen]
    client.rows(session, "RESET;")
    assert client.rows(session, "SET") == of_the_process
    client.sessions.close()


def test_options_of_a_statement_end_with_it(client: Client) -> None:
    session = client.open()
    rows = client.rows(session, "SET", executionConfig={"parallelism.default": "7"})
    assert ["parallelism.default", "7"] in rows
    assert client.rows(session, "SET") == []


def test_a_statement_that_is_wrong_fails_when_it_is_fetched(client: Client) -> None:
    session = client.open()
    status, text = client.error(session, "SELECT nope FROM missing")
    assert status == 400
    # Flink's clients show what is between the last cause and its stack.
    shown = text.split("Caused by: ")[-1].split("\tat ")[0]
    assert shown.startswith("org.apache.flink.table.api.ValidationException: table ")
    assert "1 | SELECT nope FROM missing" in shown
    status, text = client.error(session, "END")
    assert (status, "BEGIN STATEMENT SET" in text) == (400, True)


def test_a_statement_set_accepts_inserts_until_its_end(client: Client) -> None:
    session = client.open()
    assert client.rows(session, "BEGIN STATEMENT SET;") == [["OK"]]
    assert "accepts only INSERT" in client.error(session, "SHOW TABLES")[1]
    assert "does not exist" in client.error(session, "INSERT INTO nowhere SELECT 1")[1]
    assert client.rows(session, "END") == [["OK"]]
    assert client.rows(session, "SHOW TABLES") == []


def test_configuring_accepts_statements_that_start_no_job(client: Client) -> None:
    session = client.open()
    path = f"/v2/sessions/{session}/configure-session"
    assert client.ok("POST", path, {"statement": "SET 'parallelism.default' = '2'"}) == {}
    assert client.ok("GET", f"/v2/sessions/{session}")["properties"] == {"parallelism.default": "2"}
    assert client.ask("POST", path, {"statement": "SELECT 1"})[0] == 400
    assert client.ask("POST", path, {"statement": "CREATE TABLE t"})[0] == 400
    assert client.ask("POST", path, {"statement": "USE x", "executionTimeout": 5})[0] == 400


def test_words_are_completed(client: Client) -> None:
    session = client.open()
    client.rows(session, "CREATE TABLE orders (amount INT) WITH ('connector' = 'datagen')")

    def candidates(statement: str) -> list[str]:
        body = {"statement": statement, "position": len(statement)}
        found: list[str] = client.ok("GET", f"/v2/sessions/{session}/complete-statement", body)["candidates"]
        return found

    assert candidates("SEL") == ["SELECT"]
    assert candidates("SELECT * FROM ord") == ["default_catalog.default_database.orders"]
    assert candidates("SELECT * FROM default_catalog.d") == ["default_catalog.default_database.orders"]
    assert candidates("SELECT * FROM ") == ["default_catalog.default_database.orders"]
    assert "amount" in candidates("SELECT * FROM orders WHERE am")
    assert candidates("") == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW TAB", ["TABLES"]),
        ("show cre", ["CREATE"]),
        ("SHOW CREATE ", ["CATALOG", "MATERIALIZED", "TABLE", "VIEW"]),
        ("SHOW TABLES; USE ", ["CATALOG", "MODULES"]),
        ("DESCRIBE o", ["default_catalog.default_database.orders"]),
        ("DESCRIBE E", ["EXTENDED"]),
        ("INSERT IN", ["INTO"]),
        ("INSERT INTO o", ["default_catalog.default_database.orders"]),
        ("STOP J", ["JOB"]),
    ],
)
def test_the_words_of_statements_are_completed(client: Client, statement: str, expected: list[str]) -> None:
    session = client.open()
    client.rows(session, "CREATE TABLE orders (amount INT) WITH ('connector' = 'datagen')")
    body = {"statement": statement, "position": len(statement)}
    answer = client.ok("GET", f"/v2/sessions/{session}/complete-statement", body)
    assert answer["candidates"] == expected


def test_an_operation_can_be_closed_again(client: Client) -> None:
    session = client.open()
    handle = client.submit(session, "SHOW CATALOGS")
    for _ in range(2):
        answer = client.ok("DELETE", f"/v2/sessions/{session}/operations/{handle}/close")
        assert answer == {"status": "CLOSED"}


@pytest.mark.parametrize(("statement", "column"), [("DESCRIBE t", "null"), ("SHOW FULL MODULES", "used")])
def test_columns_of_true_and_false_have_the_type_boolean(client: Client, statement: str, column: str) -> None:
    session = client.open()
    client.rows(session, "CREATE TABLE t (id INT) WITH ('connector' = 'datagen')")
    handle = client.submit(session, statement)
    answer = client.ok("GET", f"/v2/sessions/{session}/operations/{handle}/result/0")
    types = {each["name"]: each["logicalType"]["type"] for each in answer["results"]["columns"]}
    assert types.pop(column) == "BOOLEAN"
    assert set(types.values()) == {"VARCHAR"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"/v2/sessions/{MISSING}", 404),
        ("POST", f"/v2/sessions/{MISSING}/heartbeat", 404),
        ("DELETE", f"/v2/sessions/{MISSING}", 404),
        ("GET", "/v2/sessions/nobody", 400),
        ("GET", f"/v2/sessions/{MISSING}/operations/{MISSING}/result/first", 400),
        ("GET", f"/v2/sessions/{MISSING}/operations/{MISSING}/result/0?rowFormat=XML", 400),
        ("GET", "/v5/sessions", 404),
    ],
)
def test_what_does_not_exist_is_refused(client: Client, method: str, path: str, status: int) -> None:
    answered, answer = client.ask(method, path)
    assert (answered, len(answer["errors"])) == (status, 1)


def test_without_a_gateway_no_session_is_opened() -> None:
    status, answer = Client(has_gateway=False).ask("POST", "/v2/sessions", {})
    assert status == 403
    assert "headrace sql-gateway" in answer["errors"][0]


def test_idle_sessions_are_closed_and_the_others_stay(client: Client) -> None:
    idle, used = client.open(), client.open()
    client.now_s = 599
    client.ok("POST", f"/v2/sessions/{used}/heartbeat")
    client.now_s = 601
    assert client.sessions.close_idle() == 1
    assert client.ask("GET", f"/v2/sessions/{idle}")[0] == 404
    client.ok("GET", f"/v2/sessions/{used}")


def test_there_is_a_limit_of_sessions() -> None:
    client = Client({"sql-gateway.session.max-num": "2"})
    first = client.open()
    client.open()
    status, answer = client.ask("POST", "/v2/sessions", {})
    assert status == 400
    assert "sql-gateway.session.max-num" in answer["errors"][0]
    client.ok("DELETE", f"/v2/sessions/{first}")
    client.open()
    client.sessions.close()


def test_an_incomplete_statement_says_so_to_clients_that_read_on(client: Client) -> None:
    session = client.open()
    start = "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT 1"
    assert 'Encountered "<EOF>"' in client.error(session, f"{start};")[1]
    assert 'Encountered "<EOF>"' in client.error(session, "SELECT 1 +")[1]
    assert 'Encountered "<EOF>"' not in client.error(session, "SELEC 1")[1]


def test_an_error_of_the_gateway_itself_is_shown_like_those_of_statements(client: Client) -> None:
    status, text = client.error(client.open(), "END")
    assert status == 400
    assert "Caused by: org.apache.flink.table.api.TableException: there is no statement set to submit" in text


def test_a_thousand_abandoned_sessions_are_closed_when_they_are_idle(client: Client) -> None:
    for _ in range(1_000):
        client.open()
    client.now_s = 600
    assert client.sessions.close_idle() == 1_000
    assert client.sessions._sessions == {}


@pytest.mark.slow
def test_a_thousand_abandoned_sessions_leave_neither_memory_nor_threads(client: Client) -> None:
    def abandon(count: int) -> None:
        for _ in range(count):
            session = client.open()
            client.submit(session, "CREATE TABLE t (id INT) WITH ('connector' = 'datagen')")
        client.now_s += 600
        assert client.sessions.close_idle() == count

    abandon(20)  # what is loaded with the first sessions stays
    gc.collect()
    threads = threading.active_count()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        abandon(1_000)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert client.sessions._sessions == {}
    assert kept < 1_000_000, f"closed sessions leave {kept} bytes"
    assert threading.active_count() <= threads


def test_intervals_are_written_as_by_flink() -> None:
    days = DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution.SECOND, 2, 3, nullable=False)
    months = YearMonthIntervalType(YearMonthIntervalType.YearMonthResolution.YEAR_TO_MONTH)
    row = Row(datetime.timedelta(days=2), 14)
    # As in flink_protocol.json.
    assert type_json(days) == {
        "type": "INTERVAL_DAY_TIME",
        "nullable": False,
        "precision": 2,
        "fractionalPrecision": 3,
        "resolution": "SECOND",
    }
    assert fields_of([days, months], ResultRowFormat.JSON, "UTC")(row) == [172800000, 14]
    assert fields_of([days, months], ResultRowFormat.PLAIN_TEXT, "UTC")(row) == ["+2 00:00:00.000", "+1-02"]


@pytest.mark.parametrize(
    "data_type",
    [
        DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution.DAY_TO_SECOND, 3, 6, nullable=False),
        YearMonthIntervalType(YearMonthIntervalType.YearMonthResolution.MONTH),
        DataTypes.VARIANT(),
    ],
    ids=str,
)
def test_clients_read_the_types_that_the_gateway_describes(data_type: DataType) -> None:
    assert type_from_json(type_json(data_type)) == data_type


def test_values_are_written_as_flinks_json_format_does() -> None:
    row = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    types = [
        DataTypes.DECIMAL(5, 2),
        DataTypes.BYTES(),
        DataTypes.TIMESTAMP(3),
        DataTypes.TIMESTAMP_LTZ(3),
        DataTypes.DATE(),
        DataTypes.MAP(DataTypes.STRING(), DataTypes.DATE()),
        DataTypes.ARRAY(row),
        DataTypes.DOUBLE(),
        DataTypes.BOOLEAN(),
        DataTypes.FLOAT(),
    ]
    in_utc = datetime.datetime(2024, 1, 1, 12, 0, 0, 500_000, datetime.UTC)
    moment = in_utc.replace(tzinfo=None)
    day = datetime.date(2024, 2, 29)
    values = Row(
        Decimal("1.50"),
        b"\x00\xff",
        moment,
        in_utc,
        day,
        {"k": day},
        [Row(1, None)],
        float("nan"),
        True,
        0.10000000149011612,
    )
    written = json.loads(msgspec.json.encode(fields_of(types, ResultRowFormat.JSON, "Europe/Berlin")(values)))
    assert written == [
        1.5,
        "AP8=",
        "2024-01-01T12:00:00.5",
        "2024-01-01T13:00:00.5Z",
        "2024-02-29",
        {"k": "2024-02-29"},
        [{"a": 1, "b": None}],
        "NaN",
        True,
        0.1,
    ]
    plain = fields_of(types, ResultRowFormat.PLAIN_TEXT, "UTC")(values)
    assert plain[0] == "1.50"
    assert plain[-2:] == ["TRUE", "0.1"]
    with pytest.raises(UnsupportedFeatureError, match="keys are not strings"):
        fields_of([DataTypes.MAP(DataTypes.INT(), DataTypes.INT())], ResultRowFormat.JSON, "UTC")(Row({1: 1}))


def test_types_are_described_as_flinks_clients_read_them() -> None:
    assert type_json(DataTypes.STRING()) == {"type": "VARCHAR", "nullable": True, "length": 2147483647}
    assert type_json(DataTypes.MAP(DataTypes.CHAR(3, False), DataTypes.TIME(0))) == {
        "type": "MAP",
        "nullable": True,
        "keyType": {"type": "CHAR", "nullable": False, "length": 3},
        "valueType": {"type": "TIME_WITHOUT_TIME_ZONE", "nullable": True, "precision": 0},
    }
    assert type_json(DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]))["fields"] == [
        {"name": "a", "fieldType": {"type": "INTEGER", "nullable": True}}
    ]


def test_a_closed_session_starts_nothing(client: Client) -> None:
    session = client.sessions.get(client.open())
    client.sessions.end(session.handle)
    with pytest.raises(GatewayError, match="is closed"):
        session.submit("SHOW TABLES")


def test_a_script_runs_in_the_background_in_its_own_session(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.gateway.sessions")
    session = client.open(**{"table.display.max-column-width": "17"})
    create = "CREATE TABLE t (id INT) WITH ('connector' = 'datagen'); SHOW TABLES; SET 'parallelism.default' = '2';"
    name = client.ok("POST", f"/v4/sessions/{session}/scripts", {"script": create})["clusterID"]
    failing = client.ok(
        "POST", f"/v4/sessions/{session}/scripts", {"script": f"{create} DROP TABLE u; SHOW JOBS"}
    )
    deadline = time.monotonic() + 30
    while len(client.sessions._sessions) > 1 and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert f"{name}: all 3 statements were executed" in caplog.text
    assert f"{failing['clusterID']}: statement 4 failed" in caplog.text
    assert client.rows(session, "SHOW TABLES") == []


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({}, 400, "`script` is missing"),
        ({"script": "SHOW TABLES; SELECT FROM"}, 400, "SqlParserException"),
        ({"scriptUri": "s3://bucket/job.sql"}, 400, "scriptUri is not supported"),
        (
            {"script": "SHOW TABLES", "executionConfig": {"parallelism.default": "x"}},
            400,
            "parallelism.default",
        ),
    ],
)
def test_scripts_that_cannot_run_are_refused(client: Client, body: Any, status: int, problem: str) -> None:
    answer = client.ask("POST", f"/v4/sessions/{client.open()}/scripts", body)
    assert answer[0] == status
    assert problem in answer[1]["errors"][0]
    assert len(client.sessions._sessions) == 1


def test_a_materialized_table_is_refreshed_by_a_request(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = client.open()
    run: list[tuple[str, Any]] = []

    def submit(self: GatewaySession, statement: str, options: Any = None) -> StatementOperation:
        run.append((statement, options))
        return self._start(lambda: self._execute("SHOW TABLES", {}))

    monkeypatch.setattr(GatewaySession, "submit", submit)
    options = {"parallelism.default": "1"}
    body = {"isPeriodic": False, "staticPartitions": {"day": "it's"}, "executionConfig": options}
    for name in ("shop.totals", "%60shop%60.%60totals%60"):
        answer = client.ok("POST", f"/v3/sessions/{session}/materialized-tables/{name}/refresh", body)
        assert client.sessions.get(session).operation(answer["operationHandle"])
    suspended = f"/sessions/{session}/materialized-tables/t%20SUSPEND/refresh"
    client.ok("POST", f"/v3{suspended}", {"isPeriodic": False})
    assert client.ask("POST", f"/v4{suspended}", {"isPeriodic": False})[0] == 404
    refresh = "ALTER MATERIALIZED TABLE `shop`.`totals` REFRESH PARTITION (`day` = 'it''s')"
    assert run == [
        *[(refresh, {"parallelism.default": "1"})] * 2,
        ("ALTER MATERIALIZED TABLE `t SUSPEND` REFRESH", {}),
    ]


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("t", {"isPeriodic": True}, "FRESHNESS"),
        ("t", {"isPeriodic": False, "scheduleTime": "2024-01-01 00:00:00"}, "FRESHNESS"),
        ("t", {"isPeriodic": False, "dynamicOptions": {"a": "b"}}, "executionConfig"),
        ("t", {"isPeriodic": False, "staticPartitions": {"day": 1}}, "Bad request"),
        ("t", {}, "isPeriodic"),
    ],
)
def test_refreshes_that_cannot_run_are_refused(client: Client, name: str, body: Any, problem: str) -> None:
    path = f"/v3/sessions/{client.open()}/materialized-tables/{name}/refresh"
    status, answer = client.ask("POST", path, body)
    assert status == 400
    assert problem in answer["errors"][0]

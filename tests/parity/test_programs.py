"""Small programs answer what PyFlink answered (`flink_programs.json`, written by `record_programs.py`)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace import pyflink_alias
from headrace.datastream import StreamExecutionEnvironment
from headrace.table import EnvironmentSettings, TableEnvironment
from tests.conftest import EnvironmentFactory
from tests.engines import MINI, SPARK
from tests.parity.programs import Case, all_cases, run_query, run_value

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("flink_programs.json").read_text(encoding="utf-8")
)
pyflink_alias.install()
try:
    CASES = all_cases()
finally:
    pyflink_alias.uninstall()


LISTED: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("program_differences.toml").read_text(encoding="utf-8")
)["differences"]
#: Why a program's result is another one, by its name.
REASONS = {name: entry["reason"] for entry in LISTED for name in entry["programs"]}
EXCHANGE = "headrace.exchange.kind"


def named(*kinds: str) -> list[Any]:
    return [pytest.param(case, id=name) for name, case in CASES.items() if case.kind in kinds]


def agrees(case: Case, found: dict[str, Any]) -> bool:
    """Whether a program did the same: the same text or lines, or an error, whose class and words are each one's own."""
    recorded = RECORDED[case.name]
    if "error" in recorded or "error" in found:
        return "error" in recorded and "error" in found
    if recorded.get("columns") != found.get("columns"):
        return False
    if "lines" in recorded or "lines" in found:
        return sorted(recorded.get("lines", [])) == sorted(found.get("lines", []))
    return recorded.get("text") == found.get("text")


def check(case: Case, found: dict[str, Any]) -> None:
    because = case.because or REASONS.get(case.name)
    if because is None:
        assert agrees(case, found), f"PyFlink: {RECORDED[case.name]}\nheadrace: {found}"
    else:
        assert not agrees(case, found), f"it is as in PyFlink now; take out: {because}"


def printed(
    case: Case, environment: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    try:
        case.run(environment).print("out")
        environment.execute(case.name)
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"lines": [line.removeprefix("out> ") for line in capsys.readouterr().out.splitlines()]}


#: Programs of streams that print what PyFlink printed.
STREAMS = [
    case for case in CASES.values() if case.kind == "stream" and not (case.because or case.name in REASONS)
]


def differing(
    cases: Sequence[Case], environment: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Run programs as one job, and return what those have printed that did not agree."""
    for case in cases:
        case.run(environment).print(case.name)
    environment.execute("programs")
    lines = [line.partition("> ") for line in capsys.readouterr().out.splitlines()]
    found = {case.name: {"lines": [text for name, _, text in lines if name == case.name]} for case in cases}
    return {name: each for name, each in found.items() if not agrees(CASES[name], each)}


def test_every_program_was_recorded():
    assert set(CASES) == set(RECORDED)


def test_differences_are_listed_once_for_programs_that_there_are():
    listed = [name for entry in LISTED for name in entry["programs"]]
    assert len(set(listed)) == len(listed)
    assert set(listed) <= set(CASES)


@pytest.mark.parametrize("case", named("value"))
def test_a_value_is_the_same(case: Case):
    check(case, run_value(case))


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("exchange", ["blocking", "pipelined"], ids=["epochs", "live"])
@pytest.mark.parametrize("case", named("stream", "failing"))
def test_a_stream_prints_the_same(
    case: Case, exchange: str, env: EnvironmentFactory, capsys: pytest.CaptureFixture[str]
):
    check(case, printed(case, env(parallelism=1, options={EXCHANGE: exchange}), capsys))


@pytest.fixture
def alias() -> Iterator[None]:
    """Have workers find `pyflink`, which the programs import."""
    pyflink_alias.install()
    yield
    pyflink_alias.uninstall()


def table_environment(is_streaming: bool) -> TableEnvironment:
    mode = EnvironmentSettings.in_streaming_mode if is_streaming else EnvironmentSettings.in_batch_mode
    t_env = TableEnvironment.create(mode())
    t_env.get_config().set("parallelism.default", "1")
    return t_env


#: Some queries for a quick look; all of them take a minute.
QUICK = ("queries.full_joined", "queries.grouped", "queries.some_columns")


@pytest.mark.spark
@pytest.mark.usefixtures("alias")
@pytest.mark.parametrize("case", [CASES[name] for name in QUICK], ids=QUICK)
def test_a_query_gives_the_same_columns_and_rows(case: Case):
    check(case, run_query(case, table_environment))


@pytest.mark.spark
@pytest.mark.slow(seconds=240)
@pytest.mark.usefixtures("alias")
def test_all_queries_give_the_same_columns_and_rows():
    queries = [case for case in CASES.values() if case.kind == "query"]
    found = {case.name: run_query(case, table_environment) for case in queries}
    differing = {case.name: found[case.name] for case in queries if not agrees(case, found[case.name])}
    assert sorted(differing) == sorted({case.name for case in queries} & set(REASONS)), differing


@pytest.mark.spark
@pytest.mark.slow(seconds=60)
@pytest.mark.usefixtures("alias")
@pytest.mark.parametrize("engine", [SPARK])
def test_streams_print_the_same_on_spark(env: EnvironmentFactory, capsys: pytest.CaptureFixture[str]):
    assert differing(STREAMS, env(parallelism=1), capsys) == {}

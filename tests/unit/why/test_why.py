"""`headrace why`: the question, how far back the answer reaches, and its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.common import Types
from headrace.config import Configuration
from headrace.datastream import BroadcastProcessFunction, KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.state import MapStateDescriptor, ValueStateDescriptor
from headrace.errors import StateError
from headrace.replay.recordings import JobRecording, find_recording
from headrace.testing.mini_cluster import MiniExecutor
from headrace.why.answer import RowAnswer
from headrace.why.history import History
from headrace.why.question import why
from headrace.why.text import render

ORDERS = ["ann,5", "bob,7", "ann,3", "bob,1", "ann,4", "bob,2"]
DOCS = Path(__file__).parents[3] / "docs" / "debugging.md"


class Total(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, order: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        customer, amount = order.split(",")
        self.total.update((self.total.value() or 0) + int(amount))
        yield customer, self.total.value()


class CountsInAField(Total):
    def __init__(self) -> None:
        self.count = 0

    def process_element(self, order: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count += 1
        for customer, _ in super().process_element(order, ctx):
            yield customer, self.count


class FailsForAWhile(Total):
    """Fails at an order, more often than a task is tried, so that the job is restarted."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def process_element(self, order: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        marker = Path(self.marker)
        tries = marker.read_text() if marker.exists() else ""
        if order == "ann,4" and len(tries) < 5:
            marker.write_text(tries + "x")
            raise ValueError("not yet")
        yield from super().process_element(order, ctx)


def run_job(directory: Path, function: KeyedProcessFunction | None = None, **options: str) -> list[Any]:
    values = {
        "headrace.replay.keep": "100",
        "headrace.replay.dir": str(directory),
        "headrace.epoch.max-records": "2",
        "parallelism.default": "2",
    }
    values |= {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    with ExecutionContext(Configuration(values), executors={"spark": MiniExecutor()}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        keyed = env.from_collection(ORDERS).key_by(lambda order: order.split(",")[0])
        with keyed.process(function or Total()).name("Total").execute_and_collect() as rows:
            return list(rows)


def ask(directory: Path, **question: Any) -> RowAnswer:
    return why(find_recording(str(directory)), **question)


def inputs(answer: RowAnswer) -> list[tuple[int, str]]:
    return [(each.epoch, each.record) for each in answer.inputs]


def test_a_row_is_explained_by_its_records_and_by_the_state_of_each_epoch(tmp_path: Path) -> None:
    run_job(tmp_path)
    answer = ask(tmp_path, row="('ann', 12)")
    assert inputs(answer) == [(1, "'ann,5'"), (2, "'ann,3'"), (3, "'ann,4'")]
    states = [(step.epoch, each.before, each.after) for step in answer.steps for each in step.state]
    assert states == [(1, None, "5"), (2, "5", "8"), (3, "8", "12")]
    assert [step.emits_row for step in answer.steps] == [False, False, True]
    assert answer.unknown == []


@pytest.mark.parametrize("text", ["('bob', 10)", "2> ('bob', 10)", "bob', 10", "10"])
def test_a_row_is_found_as_it_was_printed_or_by_a_part_of_it(text: str, tmp_path: Path) -> None:
    run_job(tmp_path)
    assert ask(tmp_path, row=text).row == "('bob', 10)"


def test_the_last_row_of_a_key_is_found_and_epochs_narrow_the_question(tmp_path: Path) -> None:
    run_job(tmp_path)
    assert ask(tmp_path, key="ann").row == "('ann', 12)"
    assert ask(tmp_path, key="ann", epoch=2).row == "('ann', 8)"


def test_a_row_that_was_not_emitted_is_answered_with_some_that_were(tmp_path: Path) -> None:
    run_job(tmp_path)
    with pytest.raises(StateError, match=r"no row 'cid' in the recorded epochs 1 to 3") as refused:
        ask(tmp_path, row="cid")
    assert "('bob', 10)" in str(refused.value.hint)


def test_the_answer_says_where_the_history_ends(tmp_path: Path) -> None:
    run_job(tmp_path, headrace__replay__keep="1")
    answer = ask(tmp_path, row="('ann', 12)")
    assert inputs(answer) == [(3, "'ann,4'")]
    (past,) = answer.unknown
    assert (past.state, past.key, past.value, past.version, past.oldest_epoch) == (
        "total",
        "'ann'",
        "8",
        2,
        3,
    )
    assert "was 8 at state version 2" in render(answer)
    assert "whole history" not in render(answer)


def test_epochs_that_a_failure_has_undone_are_not_part_of_the_history(tmp_path: Path) -> None:
    """Without checkpoints, a restart begins at the beginning: epochs 1 and 2 have happened twice."""
    rows = run_job(
        tmp_path,
        FailsForAWhile(tmp_path / "failed"),
        restart_strategy__type="fixed-delay",
        **{
            "restart_strategy__fixed_delay__delay": "1 ms",
            "headrace__epoch__max_records": "1",
        },
    )
    assert ("ann", 12) in rows
    answer = ask(tmp_path, row="('ann', 12)")
    assert [record for _, record in inputs(answer)] == ["'ann,5'", "'ann,3'", "'ann,4'"]
    first = min(epoch for epoch, _ in inputs(answer))
    assert first > 5
    assert answer.unknown == []


def test_only_epochs_up_to_the_restored_checkpoint_count_of_a_run_that_failed() -> None:
    """Run A has epochs 1 to 4, of which 4 was not completed; run B was restored from version 1."""
    files = {
        **{
            number: SimpleNamespace(lineage="A", start_version=0, is_completed=number < 4)
            for number in (1, 2, 3, 4)
        },
        **{number: SimpleNamespace(lineage="B", start_version=1, is_completed=True) for number in (5, 6)},
    }
    history = History(JobRecording("/nowhere"))
    history.numbers = sorted(files, reverse=True)
    history._files = files  # type: ignore[assignment]
    assert list(history.before(6)) == [5, 1]
    assert list(history.before(3)) == [2, 1]


def test_values_in_fields_of_functions_are_named_as_not_followed(tmp_path: Path) -> None:
    run_job(tmp_path, CountsInAField())
    answer = ask(tmp_path, key="ann")
    assert answer.with_fields == ["Total"]
    assert "Total also keeps values in fields" in render(answer)


class Rules(BroadcastProcessFunction):
    DESCRIPTOR = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limit = ctx.get_broadcast_state(self.DESCRIPTOR).get("limit") or 0
        if value > limit:
            yield value, limit

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(self.DESCRIPTOR).put(*value)


def test_broadcast_state_is_followed_to_the_record_that_set_it(tmp_path: Path) -> None:
    values = {
        "headrace.replay.keep": "100",
        "headrace.replay.dir": str(tmp_path),
        "headrace.epoch.max-records": "2",
        "parallelism.default": "2",
    }
    with ExecutionContext(Configuration(values), executors={"spark": MiniExecutor()}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        rules = env.from_collection([("limit", 3), ("other", 8), ("limit", 4)]).broadcast(Rules.DESCRIPTOR)
        values_stream = env.from_collection([1, 5, 9, 2, 7, 6])
        with values_stream.connect(rules).process(Rules()).execute_and_collect() as rows:
            assert (6, 4) in list(rows)
    answer = ask(tmp_path, row="(6, 4)")
    assert sorted(record for _, record in inputs(answer)) == ["('limit', 4)", "6"]


def test_the_command_prints_json_for_scripts(tmp_path: Path) -> None:
    run_job(tmp_path)
    result = CliRunner().invoke(cli, ["why", str(tmp_path), "--row", "('ann', 8)", "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert answer["epoch"] == 2
    assert [each["record"] for each in answer["inputs"]] == ["'ann,5'", "'ann,3'"]


def test_the_command_asks_for_a_row_or_a_key(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["why", str(tmp_path)])
    assert result.exit_code == 2
    assert "give --row or --key" in result.output


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (("--row", "('ann', 12)"), {}),
        (("--key", "ann"), {"headrace__replay__keep": "1"}),
    ],
)
def test_the_text_in_the_documentation_is_what_the_command_prints(
    question: tuple[str, str], options: dict[str, str], tmp_path: Path
) -> None:
    run_job(tmp_path, **options)
    name, value = question
    command = f"{name} {value}" if value.isalpha() else f'{name} "{value}"'
    pattern = rf"```text\n\$ headrace why \S+ {re.escape(command)}\n(.*?)```"
    shown = re.search(pattern, DOCS.read_text(), re.S)
    assert shown is not None
    result = CliRunner().invoke(cli, ["why", str(tmp_path), *question])
    assert result.output == shown.group(1)


LIVE = {"headrace__exchange__kind": "pipelined", "headrace__live__barrier_interval": "5ms"}


def test_a_row_of_a_live_job_is_explained(tmp_path: Path) -> None:
    run_job(tmp_path, **LIVE)
    answer = ask(tmp_path, row="('ann', 12)")
    assert [record for _, record in inputs(answer)] == ["'ann,5'", "'ann,3'", "'ann,4'"]
    assert [each.after for step in answer.steps for each in step.state] == ["5", "8", "12"]
    assert answer.differences == []
    assert answer.unknown == []

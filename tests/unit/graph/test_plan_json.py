from __future__ import annotations

import json

from headrace.config.options.execution import RuntimeExecutionMode
from headrace.graph.partitioning import Broadcast, KeyGroups
from headrace.graph.plan_json import describe, job_plan, stream_plan
from tests.unit.graph.programs import JOB_ID, Program


def word_count(**settings: object) -> Program:
    program = Program(**settings)
    words = program.op(program.source("lines"), "FlatMap")
    program.sink(program.op(program.partition(words, KeyGroups(len)), "Reduce"), "Print to Std. Out")
    return program


def test_the_stream_plan_has_the_shape_of_flinks_visualizer() -> None:
    program = Program(parallelism=2)
    mapped = program.op(program.source("lines", parallelism=1), "Map", description="Map(split)")
    program.sink(program.partition(mapped, KeyGroups(len)), "out")

    plan = stream_plan(program.stream_graph())

    assert plan == {
        "nodes": [
            {
                "id": 1,
                "type": "Source: lines",
                "pact": "Data Source",
                "contents": "Source: lines",
                "parallelism": 1,
            },
            {
                "id": 2,
                "type": "Map",
                "pact": "Operator",
                "contents": "Map(split)",
                "parallelism": 2,
                "predecessors": [{"id": 1, "ship_strategy": "REBALANCE", "side": "second"}],
            },
            {
                "id": 4,
                "type": "Sink: out",
                "pact": "Data Sink",
                "contents": "Sink: out",
                "parallelism": 2,
                "predecessors": [{"id": 2, "ship_strategy": "HASH", "side": "second"}],
            },
        ]
    }
    json.dumps(plan)


def test_the_job_plan_has_the_shape_of_flinks_rest_api() -> None:
    plan = job_plan(word_count().job_graph())

    reduce, source = plan["plan"].pop("nodes")
    assert plan == {"plan": {"jid": JOB_ID, "name": "test", "type": "STREAMING"}}
    assert reduce == {
        "id": reduce["id"],
        "operator": "",
        "parallelism": 2,
        "operator_strategy": "",
        "description": "Reduce<br/>+- Sink: Print to Std. Out<br/>",
        "optimizer_properties": {},
        "inputs": [{"id": source["id"], "num": 0, "exchange": "pipelined_bounded", "ship_strategy": "HASH"}],
    }
    assert "inputs" not in source


def test_a_batch_plan_is_marked_as_such() -> None:
    plan = job_plan(word_count(runtime_mode=RuntimeExecutionMode.BATCH).job_graph())["plan"]
    assert plan["type"] == "BATCH"
    assert plan["nodes"][0]["inputs"][0]["exchange"] == "blocking"


def test_descriptions_are_trees_in_html() -> None:
    program = Program()
    parse = program.op(program.source("a<b"), "Parse")
    program.sink(program.op(parse, "Count"), "count")
    program.sink(parse, "all")

    (node,) = job_plan(program.job_graph())["plan"]["nodes"]

    assert node["description"].split("<br/>") == [
        "Source: a&lt;b",
        "+- Parse",
        "   :- Count",
        "   :  +- Sink: count",
        "   +- Sink: all",
        "",
    ]


def test_describe_draws_the_job() -> None:
    assert describe(word_count(parallelism=4).job_graph()).splitlines() == [
        "job 'test' (STREAMING), 2 vertices on 2 levels, needs 4 slots",
        "",
        "level 0",
        "  [1] Source: lines -> FlatMap   parallelism 4, max 128",
        "        Source: lines",
        "        +- FlatMap",
        "",
        "level 1",
        "  [2] Reduce -> Sink: Print to Std. Out   parallelism 4, max 128",
        "        Reduce",
        "        +- Sink: Print to Std. Out",
        "      <- HASH from [1] FlatMap",
    ]


def test_describe_shows_groups_side_outputs_and_second_inputs() -> None:
    program = Program(parallelism=1)
    parse = program.op(program.source(), "Parse")
    rules = program.source("rules", slot_sharing_group="io")
    program.co(parse, program.partition(rules, Broadcast()), "Apply")
    program.sink(program.partition(program.side(parse, "bad"), KeyGroups(len)), "bad")

    text = describe(program.job_graph())

    assert "needs 2 slots" in text
    assert "slots by group: default 1, io 1" in text
    assert "<- BROADCAST from [2], second input" in text
    assert "<- HASH from [1] Parse, side output 'bad'" in text
    assert "parallelism 1, max 128, group io" in text

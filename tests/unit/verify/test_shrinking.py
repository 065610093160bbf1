"""A difference is made small, and printed as a test that names what is left of it."""

from __future__ import annotations

from collections.abc import Callable

from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.testing.live_faults import LiveFault
from headrace.verify.inputs import InputRecord, read_inputs, source_names
from headrace.verify.report import kept_test
from headrace.verify.scenario import Event, Interruption, Scenario
from headrace.verify.shrinking import VerifyCase, shrink
from headrace.verify.verification import VerifyDifference, VerifySettings
from tests.unit.runtime.jobs import make_env

NEVER = float("inf")


def shrunk(
    scenario: Scenario, differs: Callable[[VerifyCase], bool], records: int = 20
) -> tuple[Scenario, list[int]]:
    inputs = {"a": [InputRecord(index, "split", index) for index in range(records)]}
    case = shrink(VerifyCase(scenario, inputs), differs, NEVER)
    return case.scenario, [record.index for record in case.inputs["a"]]


def test_epochs_become_smaller_so_that_fewer_records_are_needed() -> None:
    def has_two_epochs(case: VerifyCase) -> bool:
        return len(case.inputs["a"]) > case.scenario.max_records

    scenario, records = shrunk(Scenario(max_records=7), has_two_epochs)
    assert (scenario.max_records, len(records)) == (1, 2)


def test_what_does_not_matter_is_left_out() -> None:
    scenario = Scenario(
        seed=5,
        max_records=7,
        parallelism=3,
        is_live=True,
        live_faults=(LiveFault(10, "cut"), LiveFault(20, "kill"), LiveFault(30, "late")),
        events=(Event(3, Interruption.SAVEPOINT, 2),),
    )

    def is_killed(case: VerifyCase) -> bool:
        return any(fault.kind == "kill" for fault in case.scenario.live_faults) and 13 in {
            record.index for record in case.inputs["a"]
        }

    left, records = shrunk(scenario, is_killed)
    assert left == Scenario(seed=5, is_live=True, live_faults=(LiveFault(20, "kill"),))
    assert records == [13]


def test_the_job_is_interrupted_as_soon_as_possible() -> None:
    scenario = Scenario(max_records=5, events=(Event(4, Interruption.SAVEPOINT, 2),))
    left, _ = shrunk(scenario, lambda case: bool(case.scenario.events) and case.scenario.max_records < 100)
    assert left.events == (Event(1, Interruption.SAVEPOINT),)


def job_of_two_sources() -> JobGraph:
    env = make_env(1)
    env.from_collection([1, 2, 3]).union(env.from_collection([4])).print()
    return build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="two sources")


def test_the_printed_test_tells_sources_of_one_name_apart() -> None:
    job = job_of_two_sources()
    assert sorted(source_names(job).values()) == ["Source: Collection Source", "Source: Collection Source #2"]
    scenario = Scenario(seed=3, is_live=True, live_faults=(LiveFault(20, "kill"),))
    difference = VerifyDifference("a difference", "", VerifyCase(scenario, read_inputs(job, 10)), [])
    test = kept_test(difference, job, "job.py", (), VerifySettings())
    assert "kept = {'Source: Collection Source': [0, 1, 2], 'Source: Collection Source #2': [0]}" in test
    names: dict[str, object] = {}
    exec(compile(test.partition("    kept =")[0] + "    return scenario\n", "kept", "exec"), names)
    made = names["test_job_seed_3"]
    assert callable(made)
    assert made() == scenario


def test_a_source_whose_records_do_not_matter_is_left_without_any() -> None:
    inputs = {name: [InputRecord(index, "split", index) for index in range(4)] for name in ("a", "b")}

    def has_the_last(case: VerifyCase) -> bool:
        return 3 in {record.index for record in case.inputs["b"]}

    left = shrink(VerifyCase(Scenario(), inputs), has_the_last, NEVER).inputs
    assert {name: [record.index for record in records] for name, records in left.items()} == {
        "a": [],
        "b": [3],
    }

"""Records that a barrier has overtaken: what is written down of them, and who gets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, EndOfInput, Watermark
from headrace.errors import DamagedStateError
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.runtime.epoch.in_flight import InFlight, InFlightFile, can_be_overtaken
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.exchange.buffers import Header, decode, encode_items, pack, payload_of, rest_of
from headrace.runtime.task.overtaken import overtaken_buffers, write_overtaken
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.jobs import make_env

GATE = {"0/0": (5, True, False), "0/1": (3, True, False), "watermark": 3, "idle": False}


def job_of(route: Any, parallelism: int) -> tuple[JobGraph, str]:
    """Return a job with one routed edge, and the vertex after it."""
    env: StreamExecutionEnvironment = make_env(parallelism)
    stream: DataStream = env.from_collection(list(range(4)))
    route(stream).sink_to(MarkedSink("overtaken"))
    job = build_job_graph(env._build_stream_graph(), job_id="0" * 32, name="overtaken")
    (edge,) = (each for each in job.edges if can_be_overtaken(each))
    return job, edge.target_vertex


def written(path: Path, subtask: int, *payloads: tuple[int, list[Any]], gate: Any = None) -> InFlightFile:
    buffers = []
    for producer, items in payloads:
        header = Header(1, subtask, 0, producer, 0, 0)
        buffers.append((header, pack(header, encode_items(items))))
    size = write_overtaken(str(path), gate or GATE, buffers)
    assert size == path.stat().st_size
    return InFlightFile(subtask, str(path), size, 7)


def elements(in_flight: InFlight, job: JobGraph, vertex_id: str, subtask: int) -> list[Any]:
    """Return what a subtask gets: records, and events with their channel."""
    (edge,) = job.inputs_of(vertex_id)
    producers = job.vertex(edge.source_vertex).parallelism
    channels = [(edge.edge_id, producer) for producer in range(producers)]
    found: list[Any] = []
    for header, buffer in overtaken_buffers(in_flight, job, SubtaskId(vertex_id, subtask), channels):
        for element in decode(payload_of(buffer)):
            if isinstance(element, Batch):
                found += element.values
            else:
                found.append((header.producer, element))
    return found


def rerouted(*files: InFlightFile, edge: int, **named: Any) -> InFlight:
    return InFlight(files, is_rerouted=True, edge_numbers={0: edge}, **named)


def test_in_the_same_shape_a_subtask_gets_records_and_events_as_they_came(tmp_path: Path) -> None:
    job, vertex_id = job_of(lambda stream: stream.key_by(lambda n: n).map(str), 2)
    file = written(tmp_path / "f", 1, (0, [([1, 2], None), 8]), (1, [([3], [30]), None]))
    assert elements(InFlight((file,)), job, vertex_id, 1) == [
        *(1, 2, (0, Watermark(8))),
        *(3, (1, EndOfInput())),
    ]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "route",
    [
        lambda stream: stream.key_by(lambda n: n % 10).map(str),
        lambda stream: stream.partition_custom(lambda key, width: key % width, lambda n: n).map(str),
        lambda stream: stream.rebalance().map(str),
        lambda stream: stream.shuffle().map(str),
    ],
)
def test_in_another_shape_each_record_has_one_taker_and_time_is_the_lowest(
    tmp_path: Path, route: Any, parallelism: int
) -> None:
    job, vertex_id = job_of(route, parallelism)
    (edge,) = job.inputs_of(vertex_id)
    files = [
        written(tmp_path / "0", 0, (0, [(list(range(20)), None), 9]), (1, [7])),
        written(tmp_path / "1", 1, (0, [([20, 21], [20, 21])]), (1, [4])),
    ]
    in_flight = rerouted(*files, edge=edge.edge_id)
    found = [elements(in_flight, job, vertex_id, subtask) for subtask in range(parallelism)]
    records = [element for own in found for element in own if isinstance(element, int)]
    assert sorted(records) == list(range(22))
    producers = range(job.vertex(edge.source_vertex).parallelism)
    for own in found:
        # After the records: channel 0 of the second subtask stood at 5, channel 1 came to 4.
        count = len([element for element in own if isinstance(element, int)])
        assert own[count:] == [(producer, Watermark(4)) for producer in producers]


def test_records_of_a_key_stay_with_the_owner_of_its_key_group(tmp_path: Path) -> None:
    job, vertex_id = job_of(lambda stream: stream.key_by(lambda n: n % 10).map(str), 3)
    (edge,) = job.inputs_of(vertex_id)
    file = written(tmp_path / "f", 0, (0, [(list(range(100)), None)]))
    found = [elements(rerouted(file, edge=edge.edge_id), job, vertex_id, subtask) for subtask in range(3)]
    owners: dict[int, set[int]] = {}
    for subtask, own in enumerate(found):
        for value in own:
            if isinstance(value, int):
                owners.setdefault(value % 10, set()).add(subtask)
    assert [len(each) for each in owners.values()] == [1] * 10
    assert len(set().union(*owners.values())) > 1


def test_time_does_not_pass_subtasks_without_records_in_flight(tmp_path: Path) -> None:
    job, vertex_id = job_of(lambda stream: stream.rebalance().map(str), 1)
    (edge,) = job.inputs_of(vertex_id)
    file = written(tmp_path / "f", 0, (0, [9]), (1, [9]))
    low = rerouted(file, edge=edge.edge_id, watermark=6)
    assert elements(low, job, vertex_id, 0) == [(0, Watermark(6))]
    none = rerouted(file, edge=edge.edge_id, watermark=MIN_WATERMARK)
    assert elements(none, job, vertex_id, 0) == []


def test_an_edge_that_has_ended_ends_after_the_records_in_flight(tmp_path: Path) -> None:
    job, vertex_id = job_of(lambda stream: stream.rebalance().map(str), 1)
    (edge,) = job.inputs_of(vertex_id)
    file = written(tmp_path / "f", 0, (0, [([1], None), MAX_WATERMARK, None]))
    in_flight = rerouted(file, edge=edge.edge_id, ended_edges=(edge.edge_id,))
    assert elements(in_flight, job, vertex_id, 0) == [1, (0, Watermark(MAX_WATERMARK)), (0, EndOfInput())]


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    job, vertex_id = job_of(lambda stream: stream.rebalance().map(str), 1)
    file = written(tmp_path / "f", 0, (0, [([1], None)]))
    data = bytearray((tmp_path / "f").read_bytes())
    data[20] ^= 1
    (tmp_path / "f").write_bytes(bytes(data))
    with pytest.raises(DamagedStateError, match="checksum"):
        elements(InFlight((file,)), job, vertex_id, 0)


def test_the_rest_of_a_buffer_begins_after_the_records_that_were_worked_off() -> None:
    header = Header(1, 0, 0, 0, 0, 0)
    whole = pack(header, encode_items([([1, 2], None), 5, ([3, 4, 5], [30, 40, 50]), None]))
    left = list(decode(payload_of(rest_of(whole, 1, 1))))
    assert [(each.values, each.timestamps) for each in left[:1]] == [([4, 5], [40, 50])]  # type: ignore[union-attr]
    assert left[1:] == [EndOfInput()]
    assert len(list(decode(payload_of(rest_of(whole, 0, 0))))) == 4

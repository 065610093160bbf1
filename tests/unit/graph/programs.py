"""Programs as transformations, built without the API: what the graph tests are about stands in each test."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.partitioning import EdgePartitioner
from headrace.graph.stream_graph import GraphSettings, StreamGraph, build_stream_graph
from headrace.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

JOB_ID = "0" * 31 + "1"


@dataclass(frozen=True)
class Reads:
    """A declaration of an operator with one input."""

    label: str = ""
    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    def build(self) -> NoReturn:
        raise AssertionError("graphs do not build operators")


@dataclass(frozen=True)
class ReadsTwo(Reads):
    inputs: ClassVar[int] = 2


@dataclass(frozen=True)
class ReadsNothing(Reads):
    inputs: ClassVar[int] = 0


@dataclass(frozen=True)
class Rolling(Reads):
    """A declaration that can emit final results only, as reduce does."""

    emits_final_only: bool = False


class Program:
    """Adds transformations and builds graphs of them."""

    def __init__(self, **settings: Any) -> None:
        self._ids = itertools.count(1)
        self.operators: list[Transformation] = []
        self.settings = GraphSettings(**{"parallelism": 2, **settings})

    def source(self, name: str = "s", *, is_bounded: bool = True, **more: Any) -> SourceTransformation:
        declaration = ReadsNothing(name)
        return SourceTransformation(
            id=next(self._ids), name=name, declaration=declaration, is_bounded=is_bounded, **more
        )

    def op(
        self, read: Transformation, name: str = "Map", declaration: Any = None, **more: Any
    ) -> OneInputTransformation:
        step = OneInputTransformation(
            id=next(self._ids), name=name, declaration=declaration or Reads(name), input=read, **more
        )
        self.operators.append(step)
        return step

    def co(
        self, first: Transformation, second: Transformation, name: str = "Co", **more: Any
    ) -> TwoInputTransformation:
        step = TwoInputTransformation(
            id=next(self._ids), name=name, declaration=ReadsTwo(name), first=first, second=second, **more
        )
        self.operators.append(step)
        return step

    def sink(self, read: Transformation, name: str = "out", **more: Any) -> SinkTransformation:
        step = SinkTransformation(id=next(self._ids), name=name, declaration=Reads(name), input=read, **more)
        self.operators.append(step)
        return step

    def partition(self, read: Transformation, partitioner: EdgePartitioner) -> PartitionTransformation:
        return PartitionTransformation(id=next(self._ids), input=read, partitioner=partitioner)

    def union(self, *streams: Transformation) -> UnionTransformation:
        return UnionTransformation(id=next(self._ids), streams=streams)

    def side(self, read: Transformation, tag_id: str) -> SideOutputTransformation:
        return SideOutputTransformation(id=next(self._ids), input=read, tag_id=tag_id)

    def stream_graph(self) -> StreamGraph:
        return build_stream_graph(self.operators, self.settings)

    def job_graph(self) -> JobGraph:
        return build_job_graph(self.stream_graph(), job_id=JOB_ID, name="test")


def edges_by_name(graph: StreamGraph) -> list[tuple[str, str, str, int, str | None]]:
    """Show edges as (from, ship strategy, to, input, side tag)."""
    return [
        (
            graph.node(edge.source).name,
            edge.partitioner.name,
            graph.node(edge.target).name,
            edge.target_input,
            edge.side_tag,
        )
        for edge in graph.edges
    ]

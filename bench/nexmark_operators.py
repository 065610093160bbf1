"""Stateful operators of Nexmark's queries without Spark: what their rows cost in a worker, in processor time.

    python -m bench.nexmark_operators q9 q18 q19 q20 --events 500000

The rows are those that the operator would get of Spark, all in one subtask, an epoch per hundred thousand events. The
copy of state is in the memory file system. Prints one JSON object per query: seconds per million events.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.nexmark import NexmarkEvents
from headrace.operators.table.base import HASHES, SEQUENCE, EpochTime
from headrace.operators.table.declarations import (
    DeduplicateDeclaration,
    JoinDeclaration,
    JoinKind,
    Order,
    RankDeclaration,
    StatefulNode,
)
from headrace.operators.table.factory import build_operator
from headrace.operators.table.steps import Schema, StepColumn
from headrace.state.changes import table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.handles import StateChain, StateFile

GROUPS = 128
EPOCH = 100_000
EVENTS = NexmarkEvents()
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_JOINED_BID = ("auction", "bidder", "price", "dateTime", "extra")
Inputs = Mapping[int, pa.Table]


@dataclass(frozen=True)
class Case:
    """A node, the columns of its inputs, and what it gets of some events."""

    node: StatefulNode
    schemas: list[Schema]
    rows: Callable[[range], Inputs]


def events_of(kind: str, indexes: range, keys: tuple[str, ...], names: tuple[str, ...] = ()) -> pa.Table:
    """Return events with the numbers of their keys, as an exchange has them."""
    made = EVENTS.of_kind(kind, indexes)
    table = pa.table({name: made[name] for name in names or tuple(made)})
    times = [name for name in table.column_names if pa.types.is_timestamp(table.schema.field(name).type)]
    for name in times:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.timestamp("us")))
    hashes = np.zeros(table.num_rows, np.uint64)
    for key in keys:
        hashes = (hashes * np.uint64(31) + table.column(key).to_numpy().astype(np.uint64)) * _SPREAD
        hashes ^= hashes >> np.uint64(29)
    for name, numbers in zip(
        HASHES, (hashes.astype(np.int64), np.zeros(table.num_rows, np.int64)), strict=True
    ):
        table = table.append_column(name, pa.array(numbers))
    return table


def schema_of(table: pa.Table, prefix: str = "") -> Schema:
    """Return the columns of rows that are the query's."""
    fields = [field for field in table.schema if not field.name.startswith("__")]
    return tuple(StepColumn(prefix + field.name, "", field.type) for field in fields)


def join(left: Callable[[range], pa.Table], right: Callable[[range], pa.Table], **how: Any) -> Case:
    """Return an inner join of two kinds of events."""
    some = range(1000)
    schemas = [schema_of(left(some)), schema_of(right(some))]
    output = (
        *(replace(c, name=f"l_{c.name}") for c in schemas[0]),
        *(replace(c, name=f"r_{c.name}") for c in schemas[1]),
    )
    node = JoinDeclaration(
        output, kind=JoinKind.INNER, left=schemas[0], right=schemas[1], is_insert_only=True, **how
    )
    return Case(node, schemas, lambda events: {0: left(events), 1: right(events)})


def ordered_bids(*keys: str) -> Callable[[range], Inputs]:
    """Return what makes bids of events, with their order and their time as a number."""

    def make(events: range) -> Inputs:
        bids = events_of("bid", events, keys)
        bids = bids.append_column("time", bids.column("dateTime").cast(pa.int64()))
        return {0: bids.append_column(SEQUENCE, pa.array(np.arange(bids.num_rows)))}

    return make


def cases() -> dict[str, Case]:
    """Return the operators that are measured."""

    def some_auctions(events: range) -> pa.Table:
        auctions = events_of("auction", events, ("id",))
        return auctions.filter(pc.equal(auctions.column("category"), 10))

    rank = StepColumn("rank_number", "BIGINT", pa.int64())
    top, last = ordered_bids("auction"), ordered_bids("bidder", "auction")
    bid = schema_of(top(range(100))[0])
    return {
        "q9": join(
            lambda events: events_of("auction", events, ("id",)),
            lambda events: events_of("bid", events, ("auction",), _JOINED_BID),
            left_keys=("id",),
            right_keys=("auction",),
            condition="(r3 BETWEEN l5 AND l6)",
        ),
        "q18": Case(
            DeduplicateDeclaration(
                bid, keys=("bidder", "auction"), time="time", keep_last=True, emits_update_before=False
            ),
            [bid],
            last,
        ),
        "q19": Case(
            RankDeclaration(
                (*bid, rank),
                partition=("auction",),
                order=(Order("price", ascending=False, nulls_first=False),),
                last=10,
                rank_column=rank,
                emits_update_before=False,
            ),
            [bid],
            top,
        ),
        "q20": join(
            lambda events: events_of("bid", events, ("auction",)),
            some_auctions,
            left_keys=("auction",),
            right_keys=("id",),
        ),
    }


def measure(case: Case, events: int) -> dict[str, float]:
    """Return the seconds that each step of all epochs took, per million events."""
    operator = build_operator(case.node, case.schemas, [False] * len(case.schemas))
    taken: Counter[str] = Counter()
    rows = 0

    def timed(step: str, began: float) -> None:
        taken[step] += time.process_time() - began  # type: ignore[assignment]

    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        copy, chain = TableCopy(f"{directory}/copy", operator.layouts), StateChain("0")
        for number, first in enumerate(range(0, events, EPOCH), 1):
            inputs = case.rows(range(first, min(first + EPOCH, events)))
            began = time.process_time()
            copy.catch_up(chain, range(GROUPS))
            timed("state brought up to date", began)
            began = time.process_time()
            output = operator.process(inputs, copy.tables, EpochTime(0, 0, epoch=number))
            timed("rows processed", began)
            copy.release()
            began = time.process_time()
            change, path = table_change(output.changes, GROUPS), f"{directory}/{number}"
            if change:
                chain = chain.append(StateFile(path, chain.version, number, write_change(path, change)))
                copy.remember(path, output.changes)
            timed("state written", began)
            rows += output.rows.num_rows
        copy.close()
    costs = {step: round(seconds / events * 1e6, 2) for step, seconds in taken.items()}
    return {**costs, "total": round(sum(taken.values()) / events * 1e6, 2), "rows out": rows}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("queries", nargs="*", default=["q9", "q18", "q19", "q20"])
    parser.add_argument("--events", type=int, default=500_000)
    arguments = parser.parse_args()
    for name, case in cases().items():
        if name in arguments.queries:
            print(json.dumps({"query": name, **measure(case, arguments.events)}), flush=True)


if __name__ == "__main__":
    main()

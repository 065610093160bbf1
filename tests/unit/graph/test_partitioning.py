from __future__ import annotations

import pytest

from headrace.graph.partitioning import (
    Broadcast,
    Custom,
    EdgePartitioner,
    Forward,
    Global,
    KeyGroups,
    Rebalance,
    Rescale,
    Shuffle,
)


@pytest.mark.parametrize(
    ("partitioner", "name", "is_pointwise"),
    [
        (Forward(), "FORWARD", True),
        (Rescale(), "RESCALE", True),
        (Rebalance(), "REBALANCE", False),
        (Shuffle(), "SHUFFLE", False),
        (Broadcast(), "BROADCAST", False),
        (Global(), "GLOBAL", False),
        (KeyGroups(len), "HASH", False),
        (Custom(max, len), "CUSTOM", False),
    ],
)
def test_partitioners_have_flinks_ship_strategy_names(
    partitioner: EdgePartitioner, name: str, is_pointwise: bool
) -> None:
    assert (partitioner.name, partitioner.is_pointwise) == (name, is_pointwise)


def test_partitioners_compare_by_what_they_declare() -> None:
    assert Rebalance() == Rebalance()
    assert KeyGroups(len) == KeyGroups(len)
    assert KeyGroups(len) != KeyGroups(str)

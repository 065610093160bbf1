"""How many records sources of live jobs read at a time: few where functions in the same subtask are slow.

A barrier waits for the round of reading that a source is in.
"""

from __future__ import annotations

from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.operators.leased_splits import LeasedSplits
from headrace.runtime.run.source_feeder import _Pace


def test_first_rounds_have_few_records_because_nobody_knows_how_slow_they_are() -> None:
    lease = LeasedSplits(DataGeneratorSource(lambda index: index, None), 1)
    assert lease._records <= 10
    assert _Pace(None).records <= 10


def test_rounds_of_slow_records_have_one_and_those_of_fast_records_many() -> None:
    lease = LeasedSplits(DataGeneratorSource(lambda index: index, None), 1)
    pace = _Pace(None)
    for _ in range(20):
        lease.advance({}, lease._records, lease._records * 0.1)
        pace.observe(pace.records, pace.records * 0.1)
    assert (lease._records, pace.records) == (1, 1)
    for _ in range(20):
        lease.advance({}, lease._records, lease._records * 1e-6)
        pace.observe(pace.records, pace.records * 1e-6)
    assert lease._records >= 10_000
    assert pace.records >= 10_000

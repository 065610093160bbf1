"""Arithmetic of aggregates, where Python's or Arrow's own would not do."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from headrace.operators.table.accumulators import average

_KEPT, _SHOWN = pa.decimal128(38, 2), pa.decimal128(38, 6)


def averages(*totals: str) -> list[Decimal | None]:
    sums = pa.array([Decimal(each) for each in totals], _KEPT)
    return average(sums, pa.array([3] * len(totals)), _SHOWN).to_pylist()


def test_an_average_has_all_digits_of_its_type():
    many = "1" + "0" * 30
    assert averages(many, "-0.02") == [Decimal("3" * 30 + ".333333"), Decimal("-0.006667")]


def test_an_average_that_does_not_fit_its_type_is_null():
    assert averages("9" * 36) == [None]

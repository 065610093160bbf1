"""What crossed the border between streams and tables fits together, or the epoch is run again."""

from __future__ import annotations

import pytest

from headrace.errors import TaskLostError
from headrace.runtime.epoch.messages import Crossing, SubtaskId, SubtaskReport, rows_producer
from headrace.spark.parts import check_crossings

SOURCE, READER = SubtaskId("source", 0), SubtaskId("reader", 1)
MADE = Crossing(rows_producer("reader", 1), "c", is_made=True)


def reports(read: str = "c") -> list[SubtaskReport]:
    return [
        SubtaskReport(SOURCE, attempt_id="a"),
        SubtaskReport(READER, attempt_id="b", consumed={rows_producer("reader", 1): read}),
    ]


def test_rows_of_the_attempts_that_reported_fit():
    check_crossings(reports(), [Crossing(SOURCE, "a", is_made=False), MADE])


@pytest.mark.parametrize(
    ("read", "crossings"),
    [
        ("c", [Crossing(SOURCE, "z", is_made=False), MADE]),
        ("d", [MADE]),
        ("c", [MADE, MADE._replace(attempt_id="d")]),
    ],
    ids=["rows of another attempt of a stream", "rows of another attempt of a table", "made twice"],
)
def test_rows_of_another_attempt_do_not(read: str, crossings: list[Crossing]):
    with pytest.raises(TaskLostError, match="computed twice"):
        check_crossings(reports(read), crossings)

"""Functions with edge cases as arguments answer what Flink 2.3 answers: refusals, types, values, failures.

`flink_sweep.json` was written by Flink (`make_sweep.py`), which answered the same in both modes. What is answered
otherwise stands in `sweep_differences.json` with the reason, and has to differ: a longer list would hide something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.planner.sweep import DIFFERENT, FLINK, REFUSED, Answers, Bound, Evaluation

if TYPE_CHECKING:
    from pyspark import SparkContext

#: Every how many-th expression the quick tests take.
STEP = 4
#: Expressions of a query.
WIDTH = 250


def test_the_answers_are_many_and_the_differences_few() -> None:
    assert len(FLINK) > 7000
    assert set(DIFFERENT) <= set(FLINK)
    assert len(DIFFERENT) < len(FLINK) * 0.1


def test_types_and_refusals_are_flinks() -> None:
    answers = Answers()
    wrong = {}
    for text in list(FLINK)[::STEP]:
        difference = _difference_when_bound(text, answers.bound(text))
        if difference is not None and text not in DIFFERENT:
            wrong[text] = difference
    assert wrong == {}


@pytest.mark.spark
def test_values_are_flinks(spark_session: SparkContext) -> None:
    texts = [text for text in list(FLINK)[1::STEP] if text not in DIFFERENT and _gives_a_value(text)]
    assert _differences(spark_session, texts) == {}


@pytest.mark.slow(seconds=600)
@pytest.mark.spark
def test_everything_is_flinks_but_what_is_listed(spark_session: SparkContext) -> None:
    wrong = _differences(spark_session, list(FLINK))
    assert {text: why for text, why in wrong.items() if text not in DIFFERENT} == {}
    assert [text for text in DIFFERENT if text not in wrong] == []


def _gives_a_value(text: str) -> bool:
    return FLINK[text] != REFUSED and not isinstance(FLINK[text][1], dict)


def _differences(spark_session: SparkContext, texts: list[str]) -> dict[str, str]:
    from pyspark.sql import SparkSession

    answers = Answers()
    bound = {text: answers.bound(text) for text in texts}
    wrong = {}
    for text, one in bound.items():
        difference = _difference_when_bound(text, one)
        if difference is not None:
            wrong[text] = difference
    asked = {
        text: one
        for text, one in bound.items()
        if one is not None and text not in wrong and FLINK[text] != REFUSED
    }
    evaluation = Evaluation(SparkSession(spark_session).newSession(), answers.schema())
    values: dict[str, Any] = {}
    plain = [text for text in asked if _gives_a_value(text)]
    for place in range(0, len(plain), WIDTH):
        values |= evaluation.values({text: asked[text] for text in plain[place : place + WIDTH]})
    for text, one in asked.items():
        if text not in values:
            values |= evaluation.values({text: one})
    for text, value in values.items():
        wanted = FLINK[text][1]
        if isinstance(wanted, dict):
            if not isinstance(value, Exception):
                wrong[text] = f"gives {value!r} where Flink fails"
        elif isinstance(value, Exception):
            wrong[text] = f"fails where Flink gives {wanted!r}: {str(value)[:200]}"
        elif value != wanted:
            wrong[text] = f"{value!r} instead of {wanted!r}"
    return wrong


def _difference_when_bound(text: str, bound: Bound | None) -> str | None:
    wanted = FLINK[text]
    if bound is None:
        # What fails when it runs may be refused before.
        is_wanted = wanted == REFUSED or isinstance(wanted[1], dict)
        return None if is_wanted else f"refused instead of {wanted}"
    if wanted == REFUSED:
        return f"{bound.type} where Flink refuses"
    return None if bound.type == wanted[0] else f"{bound.type} instead of {wanted[0]}"

"""How `make parity` compares two runs, and that the documents name the examples that are not compared line by line."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.parity.run_examples import EXAMPLES, Example, Run, differences, run

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"


def said(*lines: str) -> Run:
    return Run(0, list(lines), "", 1.0, 1.0)


def test_lines_are_compared_without_their_order_and_subtask():
    example = Example("a.py")

    assert differences(said("1> a", "2> b"), said("b", "a"), example) == []
    assert differences(said("a", "a"), said("a", "c"), example) == ["- a", "+ c"]


def test_the_final_rows_of_a_changelog_are_compared():
    example = Example("a.py", is_changelog=True)
    flink = said("+I[a, 1]", "-U[a, 1]", "+U[a, 2]", "+I[b, 1]")

    assert differences(flink, said("+I[a, 2]", "+I[b, 1]"), example) == []
    assert differences(flink, said("+I[a, 3]", "+I[b, 1]"), example) == ["- [a, 2]", "+ [a, 3]"]


def test_lines_that_are_skipped_are_not_compared():
    example = Example("a.py", skips=re.compile("=="))

    assert differences(said("== plan", "a"), said("== another", "a"), example) == []


def test_the_documents_name_every_example_that_is_not_compared_as_it_is():
    text = DIFFERENCES.read_text(encoding="utf-8")
    section = text.partition("## Flink's examples")[2].partition("\n## ")[0]
    listed = re.findall(r"^- (table/[\w/.]+):", section, flags=re.MULTILINE)

    assert listed == [example.path for example in EXAMPLES if example.because]


def test_an_endless_example_is_stopped_by_lines_of_its_own(tmp_path: Path) -> None:
    program = (
        "print('PYFLINK_CYTHON_ENABLED: True', *'abcdef', sep='\\n', flush=True); import time; time.sleep(60)"
    )

    done = run([sys.executable, "-c", program], enough_lines=3, environment=os.environ, directory=tmp_path)

    assert done.lines == ["PYFLINK_CYTHON_ENABLED: True", "a", "b", "c"]

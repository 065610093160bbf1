"""The notebook of the examples, executed by a real kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(180)]

_NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def outputs() -> dict[str, dict[str, Any]]:
    """What the cells of the notebook show at the end, by their first lines."""
    notebook = nbformat.read(_NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, kernel_name="python3", timeout=150).execute()
    shown = {}
    for cell in notebook.cells:
        results = [each for each in cell.get("outputs", []) if "data" in each]
        if results:
            shown[f"{cell.source.splitlines()[0]} ({cell.id})"] = results[-1]["data"]
    return shown


def _of(outputs: dict[str, dict[str, Any]], beginning: str) -> dict[str, Any]:
    return next(data for line, data in outputs.items() if line.startswith(beginning))


def _cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_a_query_shows_its_table(outputs: dict[str, dict[str, Any]]) -> None:
    data = _of(outputs, "%%flink_sql (")
    header, *rows = _cells(data["text/html"])
    assert header == ["page", "clicks"]
    assert sorted(rows) == [["/cart", "100"], ["/search", "200"]]
    assert data["text/plain"] == "2 rows; finished"


def test_a_changelog_shows_kinds(outputs: dict[str, dict[str, Any]]) -> None:
    header, *rows = _cells(_of(outputs, "%%flink_sql --changelog")["text/html"])
    assert header == ["op", "page", "clicks"]
    assert {row[0] for row in rows} <= {"+I", "-U", "+U"}


def test_a_chart_is_an_image(outputs: dict[str, dict[str, Any]]) -> None:
    assert _of(outputs, "%%flink_sql --plot")["image/png"]


def test_a_stream_shows_its_records(outputs: dict[str, dict[str, Any]]) -> None:
    header, *rows = _cells(_of(outputs, "from headrace.datastream")["text/html"])
    assert header == ["value"]
    assert sorted(rows) == [["ANN"], ["ANN"], ["BOB"]]

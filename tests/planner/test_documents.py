"""The SQL in the reference pages is what the page says it is: each statement is read, bound and carried out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.errors import SqlValidationError
from tests.planner.environment import Session

PAGES = Path(__file__).parents[2] / "docs" / "sql"


@pytest.mark.parametrize("page", ["statements.md", "types.md"])
def test_the_statements_of_a_page_run_one_after_the_other(page: str) -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```", (PAGES / page).read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    session = Session()
    for block in blocks:
        session.run(block)


def test_the_error_on_the_page_is_the_one_that_is_given() -> None:
    session = Session("CREATE TABLE orders (id INT, cents INT) WITH ('connector' = 'print')")
    with pytest.raises(SqlValidationError) as caught:
        session.run("SELECT id, cent FROM orders")
    assert f"```text\n{caught.value}\n```" in (PAGES / "statements.md").read_text(encoding="utf-8")

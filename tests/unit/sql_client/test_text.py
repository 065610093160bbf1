"""Where statements end, and when Enter executes what was typed."""

from __future__ import annotations

import pytest

from headrace.sql_client.text import highlighted, is_complete, split_statements


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        (" ; ;\n", []),
        ("-- only a comment;\n", []),
        ("SHOW TABLES", ["SHOW TABLES"]),
        ("SHOW TABLES; SHOW JOBS;", ["SHOW TABLES", "SHOW JOBS"]),
        ("SELECT 'a;''b;', `c;d` /* ; */ FROM t;", ["SELECT 'a;''b;', `c;d` /* ; */ FROM t"]),
        ("SELECT 1 -- it's one;\n; SELECT 2", ["SELECT 1 -- it's one;", "SELECT 2"]),
        ("SELECT * FROM t /*+ OPTIONS('a;' = 'b') */;", ["SELECT * FROM t /*+ OPTIONS('a;' = 'b') */"]),
        (
            "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;",
            ["BEGIN STATEMENT SET", "INSERT INTO a SELECT 1", "END"],
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END; SHOW JOBS;",
            ["EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END", "SHOW JOBS"],
        ),
        ("SELECT 'no end; SELECT 2;", ["SELECT 'no end; SELECT 2"]),
    ],
)
def test_a_script_is_split_at_the_ends_of_its_statements(script: str, statements: list[str]) -> None:
    assert split_statements(script) == statements


@pytest.mark.parametrize("text", ["", "  ", "SELECT 1;", "SELECT 1;  -- done", "help", "QUIT;", "clear "])
def test_enter_executes(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT ';",
        "SELECT 1; SELECT",
        "-- ;",
        "/* ;",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;",
    ],
)
def test_enter_begins_a_line(text: str) -> None:
    assert not is_complete(text)


def test_pieces_of_a_text_make_it_again() -> None:
    text = "select `a`, 'x\ny', 1.5e3 -- c\n/*+ h */ /* open"
    pieces = highlighted(text)
    assert "".join(piece for _, piece in pieces) == text
    styles = {piece: style for style, piece in pieces}
    assert styles["select"] == "class:sql.keyword"
    assert styles["'x\ny'"] == "class:sql.string"
    assert styles["/* open"] == "class:sql.comment"

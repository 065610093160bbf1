"""docs/configuration.md follows from the options."""

from __future__ import annotations

from headrace.config.docs import PAGE, main, render
from headrace.config.registry import known_options


def test_the_reference_page_is_not_stale():
    assert PAGE.read_text(encoding="utf-8") == render(), "run python -m headrace.config.docs"


def test_every_option_is_on_the_page():
    page = render()
    for each in known_options():
        assert f"| `{each.key}` |" in page


def test_check_fails_on_a_stale_page_until_it_is_written_again(tmp_path, capsys):
    page = tmp_path / "docs" / "configuration.md"
    assert main(["--check", "--page", str(page)]) == 1
    assert "is stale" in capsys.readouterr().err
    assert main(["--page", str(page)]) == 0
    assert main(["--check", "--page", str(page)]) == 0

"""The page's pure modules, tested in Node; and what the files of the page must never have."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.web import page_files

HERE = Path(__file__).parent


def test_the_pure_modules() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js on PATH to run tests/unit/web/modules.test.mjs")
    result = subprocess.run(
        [node, "--test", str(HERE / "modules.test.mjs")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"^# pass 1[0-9]$|ℹ pass 1[0-9]$", result.stdout, re.MULTILINE), result.stdout


def test_no_text_can_become_markup_or_code() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    )
    for name, (body, _) in page_files().items():
        assert not forbidden.search(body.decode()), name


def test_the_page_is_complete_and_needs_no_network() -> None:
    files = page_files()
    index = files["index.html"][0].decode()
    for reference in re.findall(r'(?:src|href)="([^"#]+)"', index):
        assert reference.startswith("web/"), reference
        assert reference.removeprefix("web/") in files
    assert "style=" not in index
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=", index)
    for name, (body, _) in files.items():
        text = body.decode()
        if name.endswith(".js"):
            for imported in re.findall(r'from "([^"]+)"', text):
                place = (Path("/") / name).parent / imported
                resolved = Path(*_normal(place.parts))
                assert str(resolved).lstrip("/") in files, (name, imported)
        if name.endswith((".js", ".css", ".html")):
            addresses = set(re.findall(r"https?://[\w.-]+", text)) - {"http://www.w3.org"}
            assert not addresses, (name, addresses)


def _normal(parts: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if part == "..":
            found.pop()
        elif part != ".":
            found.append(part)
    return found

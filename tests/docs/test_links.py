"""Links lead somewhere, and what should be mentioned is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, anchors_of, links_of, prose_of


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    wrong = []
    for link in links_of(path):
        if re.match(r"[a-z]+://", link):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        if not target.exists():
            wrong.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors_of(target):
            wrong.append(f"{link}: there is no such heading")
    assert not wrong, "\n".join(wrong)


def test_every_example_is_in_the_list_of_examples() -> None:
    linked = {Path(link).name for link in links_of(ROOT / "docs" / "examples.md")}
    assert {path.name for path in (ROOT / "examples").glob("*.py")} <= linked


def test_every_document_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in links_of(index)}
    documents = {path for path in (ROOT / "docs").rglob("*.md") if path != index}
    assert documents <= linked


def test_every_document_is_in_the_navigation_of_the_site() -> None:
    """Design notes are found by themselves, and docs/README.md is the page with all others."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"(?:- |: )([\w./-]+\.md)$", text, flags=re.MULTILINE))
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    found = {name for name in documents if name.startswith("design/")} | {"README.md"}
    missing = documents - listed - found
    assert not missing, f"add to `nav` in mkdocs.yml: {sorted(missing)}"


def test_files_that_documents_name_exist() -> None:
    """Paths in backquotes: of the repository, of the package, or of a folder of the package."""
    places = (ROOT, ROOT / "src" / "headrace", *(ROOT / "src" / "headrace").iterdir())
    wrong = []
    for path in DOCUMENTS:
        for name in re.findall(r"`((?:\w[\w.]*/)+[\w.]*)`", prose_of(path)):
            is_media_type = name.startswith("application/")
            if not is_media_type and not any((place / name).exists() for place in places):
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert not wrong, "\n".join(wrong)


def test_files_that_the_architecture_names_without_their_folder_exist() -> None:
    folders = (ROOT.glob("*.*"), (ROOT / "src").rglob("*.*"), (ROOT / "tests").rglob("*.*"))
    there = {path.name for paths in folders for path in paths}
    named = re.findall(r"`([a-z_]\w*\.(?:py|js|json|toml))`", prose_of(ROOT / "docs" / "architecture.md"))
    assert set(named) <= there


def test_the_architecture_names_what_is_there() -> None:
    """Names in backquotes that look like classes or functions are defined in the package."""
    defined: set[str] = set()
    for path in (ROOT / "src" / "headrace").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
    text = prose_of(ROOT / "docs" / "architecture.md")
    named = re.findall(r"`_?([A-Z][a-z]\w+)(?:\.(\w+))?`", text) + [
        ("", name) for name in re.findall(r"`([a-z]+_[a-z_]+)\(?\)?`", text)
    ]
    missing = {part for pair in named for part in pair if part and part not in defined}
    assert not missing

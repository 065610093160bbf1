"""What MkDocs needs to make a site of documents that are also read on GitHub.

Pages are added that live outside docs/ (README, CHANGELOG, examples) or only in the code (the API), links to them are
turned to where they are on the site, and links to other files of the repository become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

#: Files of the repository and the page each becomes.
PAGES = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/README.md": "bench.md",
} | {
    path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).with_suffix(".md").as_posix()
    for path in sorted((ROOT / "examples").rglob("*.py"))
}

#: The public packages, in the order of the navigation.
MODULES = (
    "headrace.datastream",
    "headrace.datastream.functions",
    "headrace.datastream.state",
    "headrace.datastream.window",
    "headrace.datastream.connectors",
    "headrace.datastream.formats",
    "headrace.common",
    "headrace.table",
    "headrace.table.expressions",
    "headrace.table.udf",
    "headrace.table.catalog",
    "headrace.state_processor",
    "headrace.connectors.base",
    "headrace.connectors.tables",
    "headrace.formats.tables",
    "headrace.metrics",
    "headrace.testing",
    "headrace.config",
    "headrace.errors",
)

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
#: The list of headings at the top of a page, which the site shows beside it.
_CONTENTS = re.compile(r"^(?:- (?:\[[^\]]*\]\(#[^)]*\)(?: and )?)+\n)+\n?", flags=re.MULTILINE)
_FENCED = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", flags=re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the lists of the navigation that follow from the code and from the folder of design notes."""
    notes = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs/design").glob("*.md"))
    lists = {
        "API": [{module.removeprefix("headrace."): f"api/{module}.md"} for module in MODULES],
        "Design notes": notes,
    }
    _fill_in(config.nav or [], lists)
    return config


def _fill_in(nav: list[Any], lists: dict[str, list[Any]]) -> None:
    for entry in nav:
        for title, pages in entry.items() if isinstance(entry, dict) else ():
            if title in lists:
                entry[title] = lists[title]
            elif isinstance(pages, list):
                _fill_in(pages, lists)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for file in list(files):
        if file.src_uri == "README.md":
            files.remove(file)
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=_page_of(source)))
    for module in MODULES:
        files.append(File.generated(config, f"api/{module}.md", content=f"# {module}\n\n::: {module}\n"))
    for image in (ROOT / "bench").glob("*.png"):
        files.append(File.generated(config, image.name, abs_src_path=str(image)))
    return files


def _page_of(source: str) -> str:
    text = (ROOT / source).read_text(encoding="utf-8")
    if source.endswith(".py"):
        return f"# {source}\n\n```python\n{text}```\n"
    return text


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Turn links from where files are in the repository to where they are on the site."""
    pages = {name: source for source, name in PAGES.items()}
    source = pages.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    markdown = re.sub(r"^(```\w+) .*$", r"\1", markdown, flags=re.MULTILINE)
    markdown = _CONTENTS.sub("", markdown, count=1)
    kept: list[str] = []

    def hide(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    def turn(found: re.Match[str]) -> str:
        return _turn_link(found, source, page.file.src_uri, files)

    turned = _LINK.sub(turn, _FENCED.sub(hide, markdown))
    while "\0" in turned:
        turned = re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], turned)
    return turned


def _turn_link(found: re.Match[str], source: str, page: str, files: Files) -> str:
    place, hash_sign, anchor = found["target"].partition("#")
    if not place or re.match(r"[a-z]+:", place):
        return found[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), place))
    if not (ROOT / target).exists():
        return found[0]  # MkDocs says that the link is broken
    name = PAGES.get(target, target.removeprefix("docs/"))
    if files.get_file_from_path(name) is None:
        name = target.removeprefix("bench/")
    if files.get_file_from_path(name) is None:
        return found["text"]
    link = posixpath.relpath(name, posixpath.dirname(page) or ".")
    return f"{found['image']}[{found['text']}]({link}{hash_sign}{anchor})"

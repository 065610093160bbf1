"""Every program in the documents runs, and prints what the document says it prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.util.plugins import CATALOGS, CONNECTORS, FORMATS
from tests.conftest import EnvironmentFactory
from tests.docs.documents import DOCUMENTS, ROOT, Block, blocks_of, programs

PROGRAMS = list(programs())
#: Statements in `sql` blocks are read by `tests/planner/test_documents.py`, the `toml` block by
#: `tests/spark/test_connector_package.py`.
LANGUAGES = {"python", "python fragment", "sql", "text", "sh", "toml"}
GROUPS = {CATALOGS.group, CONNECTORS.group, FORMATS.group}


@pytest.mark.spark
@pytest.mark.parametrize(("program", "expected"), [pytest.param(*each, id=each[0].name) for each in PROGRAMS])
def test_a_program_of_the_documents_runs(
    env: EnvironmentFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    program: Block,
    expected: str | None,
) -> None:
    script = tmp_path / "program.py"
    script.write_text(program.text, encoding="utf-8")
    # As `headrace run` does it: the program is the main module while its jobs run.
    runpy.run_path(str(script), run_name="__main__")
    assert rows_in_order(capsys.readouterr().out) == rows_in_order(expected or "")


def rows_in_order(text: str) -> list[str]:
    """Return the lines; where there is a table, sorted: its keys have an order of their own in every job."""
    lines = text.splitlines()
    return sorted(lines) if "+----+" in text else lines


def test_there_are_programs_in_the_readme_and_in_the_guides() -> None:
    found = {block.path.relative_to(ROOT).as_posix() for block, _ in PROGRAMS}
    assert {
        "README.md",
        "docs/state.md",
        "docs/time.md",
        "docs/sources_and_sinks.md",
        "docs/testing.md",
    } <= found


def test_the_program_of_the_readme_has_thirty_lines() -> None:
    block = next(block for block, _ in PROGRAMS if block.path.name == "README.md")
    assert len(block.text.splitlines()) <= 30


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_say_what_they_are(path: Path) -> None:
    """A block without a mark, or with another one, would silently not be run."""
    assert {block.info for block in blocks_of(path)} <= LANGUAGES


@pytest.mark.parametrize(
    "fragment",
    [block for path in DOCUMENTS for block in blocks_of(path) if block.info == "python fragment"],
    ids=lambda block: block.name,
)
def test_a_fragment_compiles(fragment: Block) -> None:
    compile(fragment.text, fragment.name, "exec")


def test_commands_of_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for path in DOCUMENTS:
        quoted = re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8"))
        typed = [line for block in blocks_of(path) if block.info == "sh" for line in block.text.splitlines()]
        said = [*quoted, *typed]
        assert {found[1] for line in said if (found := re.match(r"make ([a-z][a-z-]*)", line))} <= targets, (
            path
        )
        commands = {found[1] for line in said if (found := re.match(r"headrace ([a-z][a-z-]*)", line))}
        assert commands <= set(cli.commands), path


def test_the_plan_in_the_documents_is_what_info_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    [(command, shown)] = re.findall(
        r"^    \$ headrace (info .*)\n((?:    .*\n|\n)+)", text, flags=re.MULTILINE
    )
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli, command.split())
    expected = [line.removeprefix("    ") for line in shown.rstrip().splitlines()]
    assert [line.rstrip() for line in result.stdout.rstrip().splitlines()] == expected


def test_options_of_the_documents_exist() -> None:
    known = set(
        re.findall(
            r"^\| `([a-z0-9.-]+)` \|", (ROOT / "docs/configuration.md").read_text(), flags=re.MULTILINE
        )
    )
    mapped = re.findall(
        r"^\| `([a-z0-9.-]+)` \|.*\| mapped \|",
        (ROOT / "docs/flink_keys.md").read_text(),
        flags=re.MULTILINE,
    )
    known.update(mapped)
    for path in DOCUMENTS:
        if path.name in {"configuration.md", "flink_keys.md"}:
            continue
        text = path.read_text(encoding="utf-8")
        keys = re.findall(r"`((?:headrace|execution|pipeline|state|parallelism)\.[a-z]+[a-z.-]*)`", text)
        others = {key for key in keys if is_module(key) or key.endswith((".log", ".yaml"))} | GROUPS
        assert set(keys) - others <= known, path


def is_module(name: str) -> bool:
    base = ROOT / "src" / Path(*name.split("."))
    return base.is_dir() or base.with_suffix(".py").is_file()

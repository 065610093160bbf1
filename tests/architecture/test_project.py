"""What holds for the repository as a whole: targets, packages, errors, and what no file may say."""

from __future__ import annotations

import ast
import enum
import importlib
import importlib.metadata
import inspect
import pickle
import re
import subprocess
import tomllib
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "headrace"


def read_pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


# --- targets --------------------------------------------------------------------------------------


def makefile_targets() -> set[str]:
    """Targets a user can type: lower case, no pattern, no file."""
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, flags=re.MULTILINE))


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    described = dict(re.findall(r"^  ([a-z-]+) +(\S.*)$", shown, flags=re.MULTILINE))
    assert set(described) == makefile_targets()


def test_plain_make_shows_the_help() -> None:
    plain = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert plain.startswith("usage: make")


def test_every_target_is_phony_so_that_no_file_can_shadow_it() -> None:
    phony = set(re.findall(r"^\.PHONY: *([a-z-]+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert phony == makefile_targets()


def steps_of(target: str, venv: Path) -> list[str]:
    """The set-up steps that a target takes on a machine where nothing has been installed."""
    planned = subprocess.run(
        ["make", "--dry-run", target, f"VENV={venv}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    calls = re.findall(r"EXTRAS=(\S*) sh scripts/setup.sh (.*)", planned)
    return [
        step if step != "packages" else f"packages[{extras}]"
        for extras, steps in calls
        for step in steps.split()
    ]


def test_the_demo_installs_java_and_headrace_and_nothing_for_developers(tmp_path: Path) -> None:
    assert steps_of("demo", tmp_path / "venv") == ["java", "venv", "packages[]"]


def test_the_tests_install_everything_they_need(tmp_path: Path) -> None:
    steps = steps_of("test", tmp_path / "venv")
    assert set(steps) == {
        "java",
        "venv",
        "packages[]",
        "postgres",
        "mariadb",
        "chromium",
        "packages[dev]",
        "kafka",
    }


def test_a_finished_set_up_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / ".ready-run").touch()
    assert steps_of("demo", tmp_path) == []
    assert steps_of("setup", tmp_path) == ["postgres", "mariadb", "chromium", "packages[dev]", "kafka"]


def test_the_ci_script_calls_existing_targets_only() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    called = set(re.findall(r"^ *(?:\w+\) )?run ([a-z-]+)", script, flags=re.MULTILINE))
    assert {"lint", "type", "test", "test-rotation"} <= called <= makefile_targets()


def test_contributing_names_existing_targets_only() -> None:
    named = re.findall(r"`make ([a-z -]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert {target for names in named for target in names.split()} <= makefile_targets()


# --- package --------------------------------------------------------------------------------------


def test_the_installed_version_is_the_one_in_the_package() -> None:
    import headrace

    assert importlib.metadata.version("headrace") == headrace.__version__


def test_console_scripts_lead_to_callables() -> None:
    for target in read_pyproject()["project"]["scripts"].values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), target


def test_every_folder_of_the_package_is_a_package_with_a_docstring() -> None:
    folders = {SOURCE} | {path.parent for path in SOURCE.rglob("*.py")}
    wrong = []
    for folder in sorted(folders):
        init = folder / "__init__.py"
        if not init.exists():
            wrong.append(f"{folder.relative_to(ROOT)}: no __init__.py")
        elif not ast.get_docstring(ast.parse(init.read_text())):
            wrong.append(f"{init.relative_to(ROOT)}: no docstring")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("call", "home"),
    [
        (r"(from|import) pyarrow\.fs\b|from pyarrow import .*\bfs\b", "storage/remote.py"),
        (r"\bfsync\(", "storage/local.py"),
    ],
    ids=["pyarrow.fs", "fsync"],
)
def test_files_are_opened_and_synced_by_the_storage_layer_only(call: str, home: str) -> None:
    # import-linter sees an external package as a whole, so it cannot tell pyarrow.fs from pyarrow.
    users = [path for path in SOURCE.rglob("*.py") if re.search(call, path.read_text())]
    assert users == [SOURCE / home]


def test_the_package_says_that_it_is_typed() -> None:
    assert (SOURCE / "py.typed").exists()


def test_every_requirement_says_which_versions_it_was_made_for() -> None:
    project = read_pyproject()["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    bare = [name for name in [*project["dependencies"], *extras] if not re.search(r"==|>=", name)]
    assert not bare, f"without a lower end: {bare}"


def locked_versions() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def own_requirements() -> list[Requirement]:
    project = read_pyproject()["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    requirements = map(Requirement, [*project["dependencies"], *extras])
    return [each for each in requirements if each.name != project["name"]]


def test_the_lock_has_a_version_that_fits_for_every_requirement() -> None:
    locked = locked_versions()
    wrong = [
        f"{each}: {locked.get(canonicalize_name(each.name), 'missing')}"
        for each in own_requirements()
        if not each.specifier.contains(locked.get(canonicalize_name(each.name), "0"))
    ]
    assert not wrong, f"run `make upgrade lock`: {wrong}"


def test_the_lock_has_a_version_that_fits_for_everything_the_requirements_need() -> None:
    """As far as it is installed: what an extra that is not installed needs is not known."""
    locked = locked_versions()
    wrong = []
    for name in locked:
        try:
            needs = importlib.metadata.requires(name) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        if importlib.metadata.version(name) != locked[name]:
            continue  # another version, with needs of its own
        for need in map(Requirement, needs):
            needed = canonicalize_name(need.name)
            if need.marker is not None and not need.marker.evaluate({"extra": ""}):
                continue
            if not need.specifier.contains(locked.get(needed, "0"), prereleases=True):
                wrong.append(f"{name} needs {need}: {locked.get(needed, 'missing')}")
    assert not wrong, f"run `make upgrade lock`: {wrong}"


def test_the_lock_says_nothing_but_names_and_versions() -> None:
    first, *lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert first.startswith("# ")
    assert lines == sorted(lines, key=lambda line: line.split("==")[0])
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.+!]*", line)] == []


def test_set_up_installs_the_locked_versions() -> None:
    assert '${LOCK:+--constraint "$LOCK"}' in (ROOT / "scripts" / "setup.sh").read_text()
    rule = re.search(r"^\$\(READY_RUN\): (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert rule is not None
    assert "requirements.lock" in rule[1].split()


# --- text -----------------------------------------------------------------------------------------


def project_files() -> list[Path]:
    """Files that are in the repository or would be with the next `git add`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def lines_with(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """(place, line) for all lines of all text files that have a pattern, which is within a line."""
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if pattern.search(text) is None:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}", line


#: Written in pieces, or this file would be the first to be found.
MACHINE_PATH = re.compile(r"(?<![\w.}])/" + r"(?:root|work|home/[a-z]\w*|Users/[A-Za-z]\w*)/")
REGISTRY = re.compile(
    r"\b(?:pypi\." + r"org|pythonhosted\." + r"org|repo1?\.maven\." + r"|registry\.npmjs\.|proxy\.golang\.)"
    r"|--(?:extra-)?index-" + r"url|\bindex-" + r"url *="
)


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        pytest.param("a path of one machine", MACHINE_PATH, id="machine-path"),
        pytest.param("a package registry", REGISTRY, id="registry"),
    ],
)
def test_no_file_names(what: str, pattern: re.Pattern[str]) -> None:
    found = [f"{place}: {line.strip()[:80]}" for place, line in lines_with(pattern)]
    assert not found, f"names {what}:\n" + "\n".join(found)


@pytest.mark.parametrize("text", ["cd /" + "work/x", "'/" + "root/.cache'", "file:///" + "home/ann/in.csv"])
def test_a_machine_path_is_recognised(text: str) -> None:
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("text", ["src/work/x", "${base}/root/x", "/workers/1", "https://host.example/home/"])
def test_an_innocent_path_is_left_alone(text: str) -> None:
    assert not MACHINE_PATH.search(text)


def test_shell_scripts_are_executable() -> None:
    scripts = [ROOT / ".ci" / "run", *(ROOT / "scripts").glob("*.sh")]
    assert [path.name for path in scripts if not path.stat().st_mode & 0o100] == []


# --- errors ---------------------------------------------------------------------------------------


def error_classes() -> list[type[Exception]]:
    errors = importlib.import_module("headrace.errors")
    base: type[Exception] = errors.HeadraceError
    values = [value for _, value in sorted(vars(errors).items())]
    return [value for value in values if inspect.isclass(value) and issubclass(value, base)]


def sample(annotation: Any) -> Any:
    """A value that is neither the default nor empty, for a constructor parameter of this type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return arguments[-1]
    if origin in (typing.Union, types.UnionType):
        return sample(next(argument for argument in arguments if argument is not type(None)))
    if inspect.isclass(annotation) and issubclass(annotation, enum.Enum):
        return list(annotation)[-1]
    simple = {str: "some text", int: 3, bool: True, float: 1.5, object: ("a", 1), Any: ("a", 1)}
    if annotation in simple:
        return simple[annotation]
    if origin is not None and issubclass(origin, typing.Iterable):
        return ["first", "second"]
    pytest.fail(f"no sample for a parameter of type {annotation}: add one here")


def build(kind: type[Exception]) -> Exception:
    """An error with every parameter given."""
    constructor: Any = kind.__init__
    hints = typing.get_type_hints(constructor)
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    named = {p.name: sample(hints[p.name]) for p in parameters if p.kind is p.KEYWORD_ONLY}
    in_order = [sample(hints[p.name]) for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*in_order, **named)


def test_there_is_a_tree_of_errors() -> None:
    assert len(error_classes()) > 5


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_every_error_survives_the_way_between_processes(kind: type[Exception], protocol: int) -> None:
    sent = build(kind)
    received = pickle.loads(pickle.dumps(sent, protocol))
    assert type(received) is kind
    assert received.args == sent.args
    assert vars(received) == vars(sent)
    assert str(received) == str(sent)
    for attribute in ("domain", "retryable", "hint"):
        assert getattr(received, attribute) == getattr(sent, attribute)

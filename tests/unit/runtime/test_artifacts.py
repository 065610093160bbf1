"""Artifacts from the options to a worker's workplace, without Spark: files are found, staged, unpacked, installed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.errors import ConfigurationError, JobDefinitionError
from headrace.runtime.artifacts import bundle, find_artifacts, stage, unbundle
from headrace.runtime.task.workplace import Workplace, prepare, unpack


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory to work in; working directory and import path are as before when the test is over."""
    before = os.getcwd(), sys.path[:]
    yield tmp_path
    os.chdir(before[0])
    sys.path[:] = before[1]


def place(folder: Path, options: dict[str, str]) -> Workplace:
    """Ship what options name to an executor whose directory is another one."""
    staging, root = folder / "staging", folder / "executor"
    staging.mkdir(exist_ok=True)
    root.mkdir(exist_ok=True)
    artifacts = find_artifacts(Configuration(options))
    shipped = [stage(each, staging)[0] for each in artifacts]
    return prepare(shipped, str(root), lambda name: str(staging / name))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def zipped(path: Path, entries: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return path


def test_a_file_uri_names_a_file_as_its_path_does(folder: Path) -> None:
    path = write(folder / "a model" / "weights", "1 2 3")
    workplace = place(folder, {"pipeline.cached-files": f"name:weights,path:{path.as_uri()}"})
    assert Path(workplace.cached_files["weights"]).read_text() == "1 2 3"
    with pytest.raises(
        ConfigurationError, match=r"(?s)cached file: cannot use path file://models/a.*file:///models/a"
    ):
        find_artifacts(Configuration({"pipeline.cached-files": "name:a,path:'file://models/a'"}))


def test_a_missing_file_on_an_object_store_is_an_error_that_names_it(folder: Path, s3: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the python file '{s3}/gone.py' cannot be read"):
        place(folder, {"python.files": f"{s3}/gone.py"})


def test_python_files_of_all_kinds_can_be_imported(folder: Path) -> None:
    write(folder / "art_one.py", "VALUE = 1")
    write(folder / "package" / "art_two" / "__init__.py", "VALUE = 2")
    zipped(folder / "three.zip", {"art_three.py": "VALUE = 3"})
    files = ";".join(str(folder / name) for name in ("art_one.py", "package", "three.zip"))
    workplace = place(folder, {"python.files": files})
    code = "import art_one, art_two, art_three; print(art_one.VALUE, art_two.VALUE, art_three.VALUE)"
    path = os.pathsep.join(workplace.import_paths)
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert said.stdout.split() == ["1", "2", "3"]


def test_archives_are_in_the_working_directory_under_their_names(folder: Path) -> None:
    zipped(folder / "data.zip", {"words/a.txt": "alpha"})
    with tarfile.open(folder / "more.tar.gz", "w:gz") as archive:
        archive.add(write(folder / "b.txt", "beta"), "b.txt")
    place(folder, {"python.archives": f"{folder}/data.zip#data,{folder}/more.tar.gz"}).enter()
    assert Path("data/words/a.txt").read_text() == "alpha"
    assert Path("more.tar.gz/b.txt").read_text() == "beta"


def test_what_is_there_is_not_unpacked_again(folder: Path) -> None:
    options = {"python.archives": str(zipped(folder / "data.zip", {"a.txt": "alpha"}))}
    first = place(folder, options)
    assert first.directory is not None
    (Path(first.directory) / "data.zip" / "mark").touch()
    assert place(folder, options) == first
    assert (Path(first.directory) / "data.zip" / "mark").exists()
    # Other content under the same name is another archive.
    zipped(folder / "data.zip", {"a.txt": "changed"})
    assert place(folder, options).directory != first.directory


def test_programs_in_archives_stay_programs(folder: Path) -> None:
    tool = write(folder / "env" / "tool", "#!/bin/sh\necho works\n")
    tool.chmod(0o755)
    with zipfile.ZipFile(folder / "env.zip", "w") as archive:
        archive.write(tool, "bin/tool")
    place(folder, {"python.archives": f"{folder}/env.zip#env"}).enter()
    assert subprocess.run(["env/bin/tool"], capture_output=True, check=True).stdout == b"works\n"


def test_cached_files_are_found_by_name(folder: Path) -> None:
    tool = write(folder / "tool.sh", "#!/bin/sh\necho works\n")
    write(folder / "models" / "a.bin", "model")
    text = f"name:tool,path:{tool},executable:true;name:models,path:'{folder / 'models'}'"
    cached = place(folder, {"pipeline.cached-files": text}).cached_files
    assert subprocess.run([cached["tool"]], capture_output=True, check=True).stdout == b"works\n"
    assert (Path(cached["models"]) / "a.bin").read_text() == "model"
    assert os.stat(cached["tool"]).st_mode & stat.S_IXUSR


@pytest.fixture
def packages(folder: Path) -> Path:
    """A directory with one package, as `pip download` leaves it."""
    info = "art_wheel-1.0.dist-info"
    wheel = {
        "art_wheel.py": "VALUE = 'from the wheel'",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: art-wheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    (folder / "packages").mkdir()
    zipped(folder / "packages" / "art_wheel-1.0-py3-none-any.whl", wheel)
    return folder / "packages"


def test_requirements_are_installed_from_a_directory_without_an_index(folder: Path, packages: Path) -> None:
    needs = write(folder / "requirements.txt", "art-wheel==1.0\n")
    workplace = place(folder, {"python.requirements": f"{needs}#{packages}"})
    assert (Path(workplace.import_paths[0]) / "art_wheel.py").exists()


def test_what_pip_says_is_in_the_error(folder: Path, packages: Path) -> None:
    needs = write(folder / "requirements.txt", "art-wheel==2.0\n")
    with pytest.raises(JobDefinitionError, match=r"cannot be installed(.|\n)*art-wheel==2\.0") as failure:
        place(folder, {"python.requirements": f"{needs}#{packages}"})
    assert failure.value.hint is not None
    assert not list((folder / "executor" / "headrace-artifacts").glob("packages-*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"python.files": "/nowhere/a.py"}, r"python file '/nowhere/a.py' does not exist"),
        ({"python.requirements": "/nowhere/r.txt"}, r"requirements file '/nowhere/r.txt' does not exist"),
        ({"python.archives": "/nowhere/a.zip#a"}, r"archive '/nowhere/a.zip' does not exist"),
        ({"pipeline.cached-files": "name:a"}, r"pipeline.cached-files: expected entries such as"),
        ({"python.archives": f"{sys.executable}#../up"}, r"cannot be unpacked into '../up'"),
        ({"python.archives": f"{sys.executable}#a,/bin/sh#a"}, r"both are named 'a'"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        find_artifacts(Configuration(options))


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil"])
def test_a_zip_file_writes_nothing_outside_of_its_directory(tmp_path: Path, name: str) -> None:
    source = zipped(tmp_path / "bad.zip", {name: "evil"})
    (tmp_path / "target").mkdir()
    with pytest.raises(JobDefinitionError, match="points outside the archive"):
        unpack(source, "bad.zip", tmp_path / "target")


def test_nothing_is_written_through_a_link_of_a_zip_file(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(tmp_path / "outside"))
        archive.writestr("link/evil", "evil")
    (tmp_path / "target").mkdir()
    with pytest.raises(JobDefinitionError, match="points outside the archive"):
        unpack(tmp_path / "bad.zip", "bad.zip", tmp_path / "target")
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("name", ["../evil", "/tmp/headrace-evil"])
def test_a_tar_file_writes_nothing_outside_of_its_directory(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        archive.addfile(entry, BytesIO(b"evil"))
    target = tmp_path / "deep" / "target"
    target.mkdir(parents=True)
    try:
        unpack(tmp_path / "bad.tar", "bad.tar", target)
    except JobDefinitionError:
        pass
    inside = {path.resolve() for path in target.rglob("*")}
    assert not Path("/tmp/headrace-evil").exists()
    assert not (tmp_path / "deep" / "evil").exists()
    assert all(path.is_relative_to(target.resolve()) for path in inside)


def test_an_invalid_archive_is_reported(tmp_path: Path) -> None:
    with pytest.raises(JobDefinitionError, match=r"'notes' is neither a zip nor a tar file"):
        unpack(write(tmp_path / "notes.txt", "hello"), "notes", tmp_path)
    with pytest.raises(JobDefinitionError, match=r"'a.zip' cannot be unpacked"):
        unpack(write(tmp_path / "a.zip", "hello"), "a.zip", tmp_path)


def test_another_driver_gets_the_same_artifacts(folder: Path, packages: Path) -> None:
    write(folder / "art_one.py", "VALUE = 1")
    write(folder / "package" / "art_two.py", "VALUE = 2")
    zipped(folder / "data.zip", {"a.txt": "alpha"})
    needs = write(folder / "requirements.txt", "art-wheel\n")
    here = {
        "python.files": f"{folder}/art_one.py;{folder}/package",
        "python.archives": str(folder / "data.zip"),
        "python.requirements": f"{needs}#{packages}",
        "pipeline.cached-files": f"name:models,path:{folder}/package",
        "parallelism.default": "2",
    }
    named, content = bundle(Configuration(here))
    there = unbundle({**here, **named}, content, str(folder / "elsewhere"))
    assert there["parallelism.default"] == "2"
    assert str(folder / "art_one.py") not in str(there)
    first = [(each.kind, each.name, each.is_directory) for each in find_artifacts(Configuration(here))]
    assert [
        (each.kind, each.name, each.is_directory) for each in find_artifacts(Configuration(there))
    ] == first
    place(folder, there).enter()
    assert Path("data.zip/a.txt").read_text() == "alpha"
    names = {name for path in sys.path[:3] for name in os.listdir(path)}
    assert {"art_one.py", "art_two.py", "art_wheel.py"} <= names


def test_a_bundle_with_other_names_than_ours_is_refused(tmp_path: Path) -> None:
    for name in ("../../evil", "/etc/evil", "0123456789abcdef/../evil", "0123456789abcdef/..", "a/b"):
        with pytest.raises(ConfigurationError, match="not a valid artifact name"):
            unbundle({}, {name: b"evil"}, str(tmp_path / "deep"))
    with pytest.raises(ConfigurationError, match="was not sent with the job"):
        unbundle({"python.files": "/etc/passwd"}, {}, str(tmp_path / "deep"))

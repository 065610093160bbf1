"""Artifacts for tests: a Python file, a directory, an archive, a program, and a package to install offline."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

EXPECTED = {
    "file": "from the file",
    "package": "from the directory",
    "wheel": "from the wheel",
    "archive": "from the archive",
    "tool": "from the tool",
}


def make_artifacts(folder: Path) -> None:
    """Write everything that `artifacts_program` uses."""
    (folder / "shipped_file.py").write_text("VALUE = 'from the file'\n")
    package = folder / "library" / "shipped_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "inner.py").write_text("VALUE = 'from the directory'\n")
    with zipfile.ZipFile(folder / "data.zip", "w") as archive:
        archive.writestr("words.txt", "from the archive")
    (folder / "tool.sh").write_text("#!/bin/sh\necho from the tool\n")
    # An interpreter in an archive: the one that is here, with a mark.
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nSHIPPED_INTERPRETER=yes exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with tarfile.open(folder / "interpreter.tar.gz", "w:gz") as packed:
        packed.add(python, "bin/python")
    (folder / "requirements.txt").write_text("shipped-wheel==1.0\n")
    (folder / "packages").mkdir()
    info = "shipped_wheel-1.0.dist-info"
    with zipfile.ZipFile(folder / "packages" / "shipped_wheel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("shipped_wheel.py", "VALUE = 'from the wheel'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: shipped-wheel\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def check_rows(rows: list[dict[str, Any]], driver_directory: Path) -> None:
    """Every function had everything, in a process and a working directory that are not the driver's."""
    assert len(rows) == 40
    for row in rows:
        assert {key: row[key] for key in EXPECTED} == EXPECTED
        assert not Path(row["directory"]).is_relative_to(driver_directory)
    # Two executors, each with its own directory.
    assert len({row["directory"] for row in rows}) == 2
    assert len({row["pid"] for row in rows}) == 2

"""Writes the package `headrace-pyflink`: `import pyflink` in plain Python and in IDEs, with type stubs.

    python scripts/make_pyflink_alias.py [DIRECTORY]

At run time it only installs `headrace.pyflink_alias`. For type checkers there is a stub for every module of PyFlink
that headrace has, which names what is in headrace's module. A test holds that the stubs are current.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

from headrace.pyflink_alias._imports import IMPORTS

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "packages" / "pyflink-alias" / "src" / "pyflink"
SURFACE = ROOT / "tests" / "parity" / "pyflink_surface.json"


def stubs() -> dict[str, str]:
    """Return the files of the package by their path below it: a stub for each module."""
    modules = json.loads(SURFACE.read_text(encoding="utf-8"))["modules"]
    version = "from headrace.pyflink_alias.version import __version__ as __version__\n"
    found: dict[str, str] = {"__init__.pyi": version, "version.pyi": version}
    packages = {name.rpartition(".")[0] for name in modules}
    for name in sorted(modules):
        real = "headrace" + name.removeprefix("pyflink")
        try:
            ours = importlib.import_module(real)
        except ImportError:
            continue
        known = modules[name]
        words = {
            *known["names"].split(),
            *known.get("classes", {}),
            *re.findall(r"(\w+)\(", known.get("functions", "")),
        }
        names = {each: real for each in words if each in vars(ours)}
        for origin, more in IMPORTS.get(name.removeprefix("pyflink."), {}).items():
            where = f"headrace.{origin}"
            names |= {each: where for each in more.split() if each not in names and has(where, each)}
        path = name.removeprefix("pyflink.").replace(".", "/")
        is_package = name in packages or hasattr(ours, "__path__")
        lines = [f"from {names[each]} import {each} as {each}\n" for each in sorted(names)]
        found[f"{path}/__init__.pyi" if is_package else f"{path}.pyi"] = "".join(lines)
    return found


def has(module: str, name: str) -> bool:
    """Whether a module of headrace's has a name."""
    try:
        return name in vars(importlib.import_module(module))
    except ImportError:
        return False


def main(target: Path = TARGET) -> None:
    """Write the stubs, and remove those of modules that are gone."""
    current = stubs()
    for old in target.rglob("*.pyi"):
        if old.relative_to(target).as_posix() not in current:
            old.unlink()
    for path, text in current.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(each) for each in sys.argv[1:2]))

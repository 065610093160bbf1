"""Packages for tests: what pip leaves in a site directory, and wheels for pip to install without a network."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

#: Groups of entry points, and in each of them objects by name.
EntryPoints = Mapping[str, Mapping[str, str]]


def place_package(
    site: Path, name: str, entry_points: EntryPoints, modules: Mapping[str, str] | None = None
) -> None:
    """Put a package where Python finds it, as pip would."""
    for path, text in _files(name, "1.0", entry_points, modules or {}).items():
        file = site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def build_wheel(
    directory: Path, name: str, version: str, entry_points: EntryPoints, modules: Mapping[str, str]
) -> Path:
    """Write a wheel of pure Python. Nothing is downloaded, as a build backend might be."""
    files = _files(name, version, entry_points, modules)
    info = next(path for path in files if path.endswith("/METADATA")).removesuffix("METADATA")
    files[f"{info}WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{path},,\n" for path in [*files, f"{info}RECORD"])
    wheel = directory / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}RECORD": record}.items():
            archive.writestr(path, text)
    return wheel


def _files(name: str, version: str, entry_points: EntryPoints, modules: Mapping[str, str]) -> dict[str, str]:
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in objects.items())
        for group, objects in entry_points.items()
    )
    return {
        **{f"{module}.py": text for module, text in modules.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/entry_points.txt": "\n".join(groups),
    }

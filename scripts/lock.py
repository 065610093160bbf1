"""Writes requirements.lock: the version of every package that headrace, with all its extras, has in this environment.

python scripts/lock.py

The file is for pip's --constraint: it says which version to take of what is needed, and needs nothing itself. So it
holds no hashes, no addresses and no markers, and one file serves all Pythons.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
HEAD = """\
# The versions headrace was tested with, for pip's --constraint. Written by `make lock`; CONTRIBUTING.md says when.
"""


def installed_versions(name: str, extras: frozenset[str]) -> dict[str, str]:
    """Return the version of a package's requirements, and of theirs, by canonical name.

    Raises:
        PackageNotFoundError: If one of them is not installed.
    """
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra) for extra in ("", *extras)]
    while waiting:
        package, extra = waiting.pop()
        if (package, extra) in seen:
            continue
        seen.add((package, extra))
        installed = distribution(package)
        versions[package] = installed.version
        for text in installed.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                needed = canonicalize_name(requirement.name)
                waiting += [(needed, each) for each in ("", *requirement.extras)]
    del versions[name]
    return versions


def main() -> int:
    extras = distribution("headrace").metadata.get_all("Provides-Extra") or []
    try:
        versions = installed_versions("headrace", frozenset(extras))
    except PackageNotFoundError as error:
        print(
            f"{error.name} is not installed: run `make lock`, which installs all extras first",
            file=sys.stderr,
        )
        return 1
    LOCK.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))
    print(f"headrace: {LOCK.name} has {len(versions)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())

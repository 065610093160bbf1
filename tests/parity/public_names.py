"""Every public name of PyFlink, and why some of them are not there.

`pyflink_names.json` has the names of the modules of apache-flink 2.3's Python package, and the members of their
classes, and what they have from other modules (`record_imports.py`); handles of the JVM and type variables are left
out. `docs/pyflink_names.md` lists those that headrace does not
have:

    python -m tests.parity.public_names        writes the page again; `make docs` does it
"""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from headrace import pyflink_alias
from headrace.errors import UnsupportedFeatureError

_HERE = Path(__file__).parent
NAMES: dict[str, dict[str, object]] = json.loads(
    _HERE.joinpath("pyflink_names.json").read_text(encoding="utf-8")
)
PAGE = _HERE.parents[1] / "docs" / "pyflink_names.md"
#: Which part of Flink's system a gap belongs to, which says nothing to a reader of the page.
_PART = re.compile(r" \([A-Z]\d+\)$")
_HEAD = """# Names of PyFlink that are not there

<!-- Written by `make docs` from tests/parity/known_gaps.toml and other_gaps.toml. -->

Every public name of PyFlink 2.3 works in headrace but for these. To import or call one of them raises an error that
says so. `()` behind a name: it is there, and takes other parameters. [differences.md](differences.md) is about what
behaves otherwise.

"""


@dataclass(frozen=True)
class Reason:
    """Why some names are not there."""

    text: str
    names: tuple[str, ...]
    #: Which members of these modules it is about; none: all of it.
    members: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Whether it is why a name is not there."""
        is_inside = any(name == each or name.startswith(f"{each}.") for each in self.names)
        return is_inside and (not self.members or name.rpartition(".")[2] in self.members)


def reasons() -> list[Reason]:
    """Return all reasons."""
    found = []
    for file in ("known_gaps.toml", "other_gaps.toml"):
        for entry in tomllib.loads(_HERE.joinpath(file).read_text(encoding="utf-8"))["gaps"]:
            found.append(Reason(entry["reason"], tuple(entry["names"]), tuple(entry.get("members", ()))))
    return [each for each in found if each.names]


def missing_names() -> Iterator[tuple[str, str]]:
    """Yield each name that is not there, with what happens instead: ``refused``, or the name of another error."""
    pyflink_alias.install()
    try:
        for module, content in NAMES.items():
            yield from _missing_of(module, content)
    finally:
        pyflink_alias.uninstall()


def _missing_of(module: str, content: dict[str, object]) -> Iterator[tuple[str, str]]:
    members: dict[str, str] = content["members"]  # type: ignore[assignment]
    names = str(content["names"]).split()
    for name in [*names, *(f"{owner}.{each}" for owner, own in members.items() for each in own.split())]:
        try:
            reduce(getattr, name.split("."), importlib.import_module(module))
        except UnsupportedFeatureError:
            yield f"{module}.{name}", "refused"
        except (ImportError, AttributeError) as error:
            yield f"{module}.{name}", type(error).__name__
    yield from _missing_imports(module, content["imports"])  # type: ignore[arg-type]


def _missing_imports(module: str, imports: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what a module should have from others: what is refused there, under its name there."""
    try:
        ours = importlib.import_module(module)
    except UnsupportedFeatureError:
        return  # its own names say so
    for origin, names in imports.items():
        for name in names.split():
            try:
                getattr(ours, name)
            except UnsupportedFeatureError:
                yield f"{origin}.{name}", "refused"
            except (ImportError, AttributeError) as error:
                yield f"{module}.{name}", type(error).__name__


def page() -> str:
    """Return the page that lists them."""
    parts = []
    for reason in reasons():
        names = ", ".join(f"`{name}`" for name in reason.names)
        members = ", ".join(f"`{member}`" for member in reason.members)
        text = _PART.sub("", reason.text)
        parts.append(
            f"- {text[0].upper()}{text[1:]}: "
            + (f"{members} of the classes of {names}" if members else names)
        )
    return _HEAD + "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

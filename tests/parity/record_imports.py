"""Adds to pyflink_names.json what PyFlink's modules have from each other, and writes the alias's table of it.

`pyflink.datastream.window` has `Time` because it imports it, and `pyflink.datastream.connectors` has `FileSource`
because it puts it there when it is imported. Neither is in an `__all__`, and programs import both. Needs PyFlink:

    /path/to/env/bin/python tests/parity/record_imports.py
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from textwrap import fill

_HERE = Path(__file__).parent
NAMES = _HERE / "pyflink_names.json"
TABLE = _HERE.parents[1] / "src" / "headrace" / "pyflink_alias" / "_imports.py"
#: Handles of the JVM, type variables and classes of PyFlink's own workers.
NOT_PUBLIC = re.compile(r"_.*|Java.*|Internal.*|(.*_)?(j|java|py4j|jarray)(_.*)?|[A-Z]|ACC|IN\d?|OUT|KEY|W2")
HEAD = '''"""What PyFlink's modules have from each other, which the alias looks up where it is.

Written by tests/parity/record_imports.py: modules with the modules whose names they have.
"""

from __future__ import annotations

from typing import Final

#: Modules below `pyflink`, each with the modules where its further names are.
IMPORTS: Final[dict[str, dict[str, str]]] = {
'''


def imports_of(module: str, known: dict[str, dict[str, object]]) -> dict[str, str]:
    """Return what a module has from others, by the module where it is."""
    found: dict[str, list[str]] = {}
    for name, value in sorted(vars(importlib.import_module(module)).items()):
        origin = getattr(value, "__module__", None)
        if NOT_PUBLIC.fullmatch(name) or inspect.ismodule(value) or origin in (None, module):
            continue
        if origin in known and not origin.startswith("pyflink.util."):
            found.setdefault(origin, []).append(name)
    return {origin: " ".join(names) for origin, names in sorted(found.items())}


def table(known: dict[str, dict[str, object]]) -> str:
    """Return the text of the alias's table."""
    lines = [HEAD]
    for module, content in known.items():
        own = set(str(content["names"]).split()) if has_face(module) else set()
        rows = []
        for origin, names in content["imports"].items():  # type: ignore[attr-defined]
            words = [name for name in names.split() if name not in own]
            if words:
                quoted = fill(" ".join(words), 90).split("\n")
                texts = [f'"{line} "' for line in quoted[:-1]] + [f'"{quoted[-1]}"']
                value = (
                    texts[0]
                    if len(texts) == 1
                    else "(\n            " + "\n            ".join(texts) + "\n        )"
                )
                rows.append(f'        "{origin.removeprefix("pyflink.")}": {value},\n')
        if rows:
            lines += [f'    "{module.removeprefix("pyflink.")}": {{\n', *rows, "    },\n"]
    return "".join([*lines, "}\n"])


def has_face(module: str) -> bool:
    """Whether a module is a package whose `__all__` names what it has from its own modules."""
    return module in {"pyflink.common", "pyflink.datastream", "pyflink.table", "pyflink.metrics"}


def main() -> None:
    """Read PyFlink's modules, and write both files."""
    known = json.loads(NAMES.read_text(encoding="utf-8"))
    for module, content in known.items():
        content["imports"] = imports_of(module, known)
    NAMES.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    TABLE.write_text(table(known), encoding="utf-8")  # `ruff format` makes its lines short
    sys.stdout.write(f"{sum(len(each['imports']) for each in known.values())} rows\n")


if __name__ == "__main__":
    main()

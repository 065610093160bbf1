"""Makes pyflink_surface.json of an inventory of PyFlink's names, one module a block:

    [pyflink.common.time]  __all__: Duration Instant Time
      class Time()  init(milliseconds)
        static: seconds(seconds); minutes(minutes)
        def: to_milliseconds()

    python -m tests.parity.make_surface inventory.txt

Modules of the present stage keep their signatures; of the others only the public names are kept.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

SURFACE = Path(__file__).with_name("pyflink_surface.json")

#: Modules whose surface is compared with ours.
STAGE = re.compile(
    r"pyflink\.(common|metrics|table|util)(\..*)?"
    r"|pyflink\.datastream(\.(?!connectors)\w+(\..*)?|\.connectors(\.(base|file_system|number_seq))?)?"
)
#: Type variables and imports that are not meant for users.
NOISE = set("ABC TYPE_CHECKING T K V ACC IN IN1 IN2 OUT KEY W W2".split())
#: How objects are pickled is not for programs to call.
PICKLING = {"__getstate__", "__setstate__", "__reduce__"}
#: Handles of the JVM, and classes that only PyFlink's own workers use.
NOT_PUBLIC = re.compile(r"_.*|Java.*|Internal.*|(.*_)?(j|java|py4j)(_.*)?")

#: How PyFlink's table types hand values to the JVM and back.
CONVERSION = re.compile(r"need_conversion|(to|from)_sql_type|bridged_to|EPOCH_ORDINAL|__ne__")

CALL = re.compile(r"(\w+)\(((?:[^()']|'[^']*')*)\)")


def is_public(name: str) -> bool:
    return not NOT_PUBLIC.fullmatch(name)


def read_inventory(text: str) -> dict[str, Any]:
    """Turn the inventory into modules, with classes by qualified name and members as signatures."""
    modules: dict[str, Any] = {}
    module: dict[str, Any] = {}
    members: dict[str, Any] = {}
    for line in text.splitlines():
        if head := re.match(r"\[([\w.]+)\](?:\s+__all__: (.*))?", line):
            module = modules[head[1]] = {"names": sorted(set((head[2] or "").split())), "classes": {}}
        elif found := re.match(r"  class ([\w.]+)\((.*?)\)(?:\s+init\((.*)\))?$", line):
            members = module["classes"][found[1]] = {}
            if found[3] is not None:
                members["init"] = found[3]
        elif found := re.match(r"  (constants): (.*)", line):
            imported = set() if head_is_constants(modules) else {"MAX_LONG_VALUE", "MIN_LONG_VALUE"}
            module["names"] += [name for name in found[2].split() if name not in NOISE | imported]
        elif found := re.match(r"  functions: (.*)", line):
            module["functions"] = [f"{name}({given})" for name, given in CALL.findall(found[1])]
        elif found := re.match(r"    (static|class|def): (.*)", line):
            members[found[1]] = [f"{name}({given})" for name, given in CALL.findall(found[2])]
        elif found := re.match(r"    (attr|op): (.*)", line):
            members[found[1]] = [name for name in found[2].split("; ") if name not in PICKLING]
    return modules


def head_is_constants(modules: dict[str, Any]) -> bool:
    return next(reversed(modules)).endswith(".constants")


def public_part(module: dict[str, Any]) -> dict[str, Any]:
    """Leave out what no program can use, and write what is left in few lines."""
    kept: dict[str, Any] = {"names": " ".join(sorted(filter(is_public, set(module["names"]))))}
    functions = "; ".join(text for text in module.get("functions", ()) if is_public(text.split("(")[0]))
    if functions:
        kept["functions"] = functions
    classes = {}
    for name, members in module["classes"].items():
        if all(map(is_public, name.split("."))):
            classes[name] = {}
            for kind, texts in members.items():
                if kind == "init":
                    classes[name][kind] = texts
                elif public := [text for text in texts if kind == "op" or is_public(text.split("(")[0])]:
                    classes[name][kind] = "; ".join(public)
    if classes:
        kept["classes"] = classes
    return kept


def without_conversions(module: dict[str, Any]) -> dict[str, Any]:
    """Leave out of table types what turns values into the JVM's form: here they stay what they are."""
    for members in module["classes"].values():
        for kind in ("def", "attr", "op"):
            kept = [each for each in members.get(kind, ()) if not CONVERSION.fullmatch(each.split("(")[0])]
            members[kind] = kept
    return module


def make_surface(text: str) -> dict[str, Any]:
    inventory = read_inventory(text)
    if "pyflink.table.types" in inventory:
        without_conversions(inventory["pyflink.table.types"])
    modules = {name: public_part(module) for name, module in inventory.items()}
    version = re.search(r"pyflink (\d[\d.]*)", text)
    return {
        "version": version[1] if version else "unknown",
        "modules": {name: module for name, module in modules.items() if STAGE.fullmatch(name)},
        "later": {
            name: " ".join(
                sorted(
                    {
                        *module["names"].split(),
                        *(each for each in module.get("classes", ()) if "." not in each),
                    }
                )
            )
            for name, module in modules.items()
            if not STAGE.fullmatch(name)
        },
    }


if __name__ == "__main__":
    surface = make_surface(Path(sys.argv[1]).read_text(encoding="utf-8"))
    SURFACE.write_text(json.dumps(surface, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

"""One word for one thing: a public class name stands for one class, and says whether it is a declaration or logic."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "headrace"

#: Nodes of the two plans have the names of relational algebra; code that sees both writes the module before them.
PLANS = {"planner/logical.py", "planner/physical.py"}
#: PyFlink has these names in several packages, or headrace's own class stands after the one that PyFlink names.
OF_PYFLINK = {
    "AggregateFunction": "datastream and table functions",
    "Catalog": "what the manager asks of a catalog, and PyFlink's class over it",
    "CatalogDatabase": "a database as the catalog keeps it, and PyFlink's class",
    "CatalogFunction": "as CatalogDatabase",
    "CloseableIterator": "results of streams and of tables",
    "ComputedColumn": "a column as the catalog keeps it, and as PyFlink's schema shows it",
    "Configuration": "typed layers, and the map that PyFlink's programs set",
    "JdbcCatalog": "the catalog of the connector, and PyFlink's class",
    "MetadataColumn": "as ComputedColumn",
    "ObjectIdentifier": "the name of an object, and PyFlink's class for it",
    "PhysicalColumn": "as ComputedColumn",
    "StatementSet": "a bound statement, and PyFlink's class",
    "WatermarkSpec": "as ComputedColumn",
    "TaskAttempt": "of a worker, and of the test kit's cluster",
}


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(SOURCE)))
    return found


def test_a_class_name_stands_for_one_class() -> None:
    recurring = {
        name: places
        for name, places in public_classes().items()
        if len(places) > 1 and name not in OF_PYFLINK and not PLANS & set(places)
    }
    assert recurring == {}


def test_listed_exceptions_still_recur() -> None:
    classes = public_classes()
    assert [name for name in OF_PYFLINK if len(classes[name]) < 2] == []


def test_declarations_of_operators_are_called_declarations() -> None:
    """What `build()` makes of a declaration is the operator; the two must not be taken for each other."""
    wrong = []
    for path in sorted((SOURCE / "operators").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_class = isinstance(node, ast.ClassDef)
            if (
                is_class
                and node.name.endswith("Operator")
                and _builds(node)
                and not node.name.startswith("_")
            ):
                wrong.append(f"{path.relative_to(SOURCE)}: {node.name}")
    assert wrong == []


def _builds(node: ast.ClassDef) -> bool:
    return any(isinstance(each, ast.FunctionDef) and each.name == "build" for each in node.body)

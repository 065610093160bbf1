"""Runs scripts of SQL against catalogs, without planning or running queries."""

from __future__ import annotations

from headrace.catalog import CatalogFunction, CatalogManager, FunctionKind, UserFunction
from headrace.planner import bind, ddl, parse_statements
from headrace.planner.statements import (
    BoundStatement,
    CatalogStatement,
    QueryStatement,
)
from headrace.types import DataTypes as T


def load(name: str, function: CatalogFunction) -> UserFunction:
    """A function with the catalog's name; it is never called here."""
    return UserFunction(name, FunctionKind.SCALAR, print, (T.STRING(), T.STRING()), T.BIGINT())


class Session:
    """Catalogs, and what the last statement gave."""

    def __init__(self, script: str = "") -> None:
        self.manager = CatalogManager()
        if script:
            self.run(script)

    def run(self, script: str, batch: bool = False) -> list[BoundStatement | ddl.Rows]:
        """Bind every statement, and carry out those about the catalog."""
        given: list[BoundStatement | ddl.Rows] = []
        for statement in parse_statements(script):
            bound = bind(statement, self.manager, load, batch=batch)
            if isinstance(bound, CatalogStatement):
                given.append(ddl.execute(bound, self.manager))
            else:
                given.append(bound)
        return given

    def one(self, text: str) -> BoundStatement | ddl.Rows:
        """What a single statement gives."""
        (given,) = self.run(text)
        return given

    def schema(self, query: str, batch: bool = False) -> list[str]:
        """The columns of a query, as `name TYPE`."""
        (bound,) = self.run(query, batch)
        assert isinstance(bound, QueryStatement)
        return [f"{field.name} {field.summary()}" for field in bound.plan.schema]

"""The full name of an object: catalog, database, name."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.types.logical import quote_name

__all__ = ["ObjectIdentifier"]


@dataclass(frozen=True, order=True)
class ObjectIdentifier:
    """Where an object lives.

    >>> print(ObjectIdentifier("default_catalog", "default_database", "bids"))
    `default_catalog`.`default_database`.`bids`
    """

    catalog: str
    database: str
    name: str

    @property
    def parts(self) -> tuple[str, str, str]:
        """Catalog, database and object name, in this order."""
        return self.catalog, self.database, self.name

    def dotted(self) -> str:
        """The name as messages and plans show it, without quotes."""
        return ".".join(self.parts)

    def __str__(self) -> str:
        return ".".join(map(quote_name, self.parts))

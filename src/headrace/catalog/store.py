"""Stores the definitions of catalogs, so that the next program finds them: a file for each catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

import yaml

from headrace.errors import CatalogError
from headrace.storage.store import Purpose
from headrace.storage.stores import find_store

__all__ = ["CatalogDefinition", "FileCatalogStore"]

_PURPOSE: Final = Purpose("the definition of a catalog", "set table.catalog-store.file.path to a larger disk")
_ENDING: Final = ".yaml"
#: Flink's files have the options alone.
_COMMENT: Final = "headrace.comment"


@dataclass(frozen=True)
class CatalogDefinition:
    """What CREATE CATALOG said."""

    options: Mapping[str, str]
    comment: str | None = None


class FileCatalogStore:
    """Definitions as YAML files in a directory, local or on an object store, as Flink's file store writes them.

    The options are written as they were given, passwords too: let nobody else read the directory.

    Args:
        directory: A path or URI.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory.rstrip("/")

    def names(self) -> list[str]:
        """Return the names of the catalogs."""
        store, inner = find_store(self._directory)
        return sorted(
            unquote(name.removesuffix(_ENDING)) for name in store.names(inner) if name.endswith(_ENDING)
        )

    def get(self, name: str) -> CatalogDefinition | None:
        """Return how a catalog was created; None if it is not kept here.

        Raises:
            CatalogError: The file is damaged.
        """
        store, inner = find_store(self._path(name))
        try:
            with store.open(inner) as file:
                read = yaml.safe_load(file)
        except FileNotFoundError:
            return None
        except yaml.YAMLError as error:
            raise self._damaged(name) from error
        if not isinstance(read, dict) or "type" not in read:
            raise self._damaged(name)
        options = {str(key): str(value) for key, value in read.items()}
        comment = options.pop(_COMMENT, None)
        return CatalogDefinition(options, comment)

    def put(self, name: str, definition: CatalogDefinition) -> None:
        """Keep how a catalog was created; it outlives a power loss once this returns.

        Raises:
            CatalogError: There is one with this name.
        """
        said = {} if definition.comment is None else {_COMMENT: definition.comment}
        text = yaml.safe_dump({**definition.options, **said}, allow_unicode=True)
        store, inner = find_store(self._path(name))
        try:
            store.publish(inner, text.encode(), _PURPOSE)
        except FileExistsError:
            raise CatalogError(
                f"catalog {name!r} already exists in the catalog store {self._directory}"
            ) from None

    def remove(self, name: str) -> None:
        """Forget a catalog; one that is not kept here is fine."""
        store, inner = find_store(self._path(name))
        store.delete(inner)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{quote(name, safe=' ')}{_ENDING}"

    def _damaged(self, name: str) -> CatalogError:
        return CatalogError(
            f"the definition of catalog {name!r} cannot be read: {self._path(name)}",
            hint="it should be a YAML file with the options of the catalog; DROP CATALOG removes it",
        )

"""Endpoints, and how the endpoint of a path is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from headrace.rest.errors import RestError
from headrace.rest.http import Request

if TYPE_CHECKING:
    from headrace.rest.context import RestContext

_MOST_DIGITS = 18
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Handler = Callable[["RestContext", Request], Any]

_HEX_ID = re.compile(r"[0-9a-fA-F]{32}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_COUNT = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}")
#: The name of a table, with those of its catalog and database, maybe in backquotes.
_PATH = re.compile(r"[^/\\\x00-\x1f]{1,512}")
#: What a parameter of a path may look like, and how the OpenAPI document says it.
PARAMETERS: Mapping[str, tuple[re.Pattern[str], dict[str, Any]]] = {
    "jobid": (_HEX_ID, {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}),
    "vertexid": (_HEX_ID, {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}),
    "triggerid": (_HEX_ID, {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}),
    "datasetid": (_HEX_ID, {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}),
    "subtaskindex": (_COUNT, {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}),
    "attempt": (_COUNT, {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}),
    "checkpointid": (_COUNT, {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}),
    "taskmanagerid": (_NAME, {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}),
    "filename": (_NAME, {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}),
    "sessionhandle": (_UUID, {"type": "string", "format": "uuid"}),
    "operationhandle": (_UUID, {"type": "string", "format": "uuid"}),
    "tablename": (_PATH, {"type": "string", "pattern": r"^[^/\\\x00-\x1f]{1,512}$"}),
    "token": (_COUNT, {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}),
    "jarid": (_NAME, {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}),
}


@dataclass(frozen=True)
class QueryParameters:
    """A parameter of a query, for the OpenAPI document."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    #: Values that are not in the document, and that the handler refuses in its own words.
    told_by_handler: tuple[str, ...] = ()
    #: Whether capitals and small letters are the same.
    ignores_case: bool = False

    def check(self, values: Sequence[str]) -> None:
        """Make sure that what was given is what the document says.

        Raises:
            RestError: If it is not.
        """
        if len(values) > 1:
            raise RestError(400, f"Bad request: {self.name} is given {len(values)} times")
        for value in values:
            if not self._allows(value) and value not in self.told_by_handler:
                raise RestError(
                    400, f"Bad request: {self.name} must be {self._expected()}; got {value[:50]!r}"
                )

    def _allows(self, value: str) -> bool:
        schema = self.schema
        if schema.get("type") == "boolean":
            return value in {"true", "false"}
        if schema.get("type") == "integer":
            is_number = value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS
            return is_number and schema.get("minimum", 0) <= int(value) <= schema.get("maximum", 10**18)
        if "enum" in schema:
            return (value.upper() if self.ignores_case else value) in schema["enum"]
        return "pattern" not in schema or re.fullmatch(schema["pattern"], value) is not None

    def _expected(self) -> str:
        schema = self.schema
        if schema.get("type") == "boolean":
            return "true or false"
        if schema.get("type") == "integer":
            return f"a number between {schema.get('minimum', 0)} and {schema.get('maximum', 10**18)}"
        return f"one of {', '.join(schema['enum'])}" if "enum" in schema else f"like {schema['pattern']}"


@dataclass(frozen=True)
class Endpoint:
    """One method of one path."""

    method: Method
    #: Such as ``/jobs/{jobid}``; every parameter is in `PARAMETERS`.
    path: str
    summary: str
    handler: Handler = field(repr=False)
    #: The type of the answer; None for text.
    answer: Any
    body: Any = None
    query: tuple[QueryParameters, ...] = ()
    status: int = 200
    #: Whether it is rendered when a job ends, and answered from there.
    is_archived: bool = False
    #: Whether it takes long, so that it must not hold up others.
    is_slow: bool = False
    #: Whether it changes something although its method is GET.
    is_changing_get: bool = False
    #: Whether the body is a job rather than JSON, and may be large.
    takes_job: bool = False
    #: The versions of the SQL gateway's protocol that have it; None: all.
    versions: frozenset[int] | None = None
    #: Returns what the answer depends on, for one that is asked for often: while that is the same, so is the answer.
    depends_on: Callable[[RestContext], object] | None = field(default=None, repr=False)

    @property
    def is_about_a_job(self) -> bool:
        return self.path.startswith("/jobs/{jobid}")

    def is_of(self, version: int | None) -> bool:
        """Whether a version of the protocol has it; a path without a version leads to all endpoints."""
        return version is None or self.versions is None or version in self.versions


class _Node:
    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.parameter: tuple[str, _Node] | None = None
        self.endpoints: dict[str, Endpoint] = {}


class RouteTable:
    """Finds endpoints by path, one segment after the other."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._root = _Node()
        for endpoint in self.endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        node = self._root
        for segment in endpoint.path.strip("/").split("/"):
            if segment.startswith("{"):
                name = segment.strip("{}")
                if name not in PARAMETERS or (node.parameter and node.parameter[0] != name):
                    raise ValueError(f"{endpoint.path}: unknown parameter {name!r}")
                node.parameter = node.parameter or (name, _Node())
                node = node.parameter[1]
            else:
                node = node.fixed.setdefault(segment, _Node())
        if endpoint.method in node.endpoints:
            raise ValueError(f"two endpoints for {endpoint.method} {endpoint.path}")
        node.endpoints[endpoint.method] = endpoint

    def find(self, method: str, path: str, version: int | None = None) -> tuple[Endpoint, dict[str, str]]:
        """Return the endpoint of a path, and the path's parameters.

        Args:
            method: The method of the request.
            path: The path, without a version.
            version: The version that the path names.

        Raises:
            RestError: If there is none, or a parameter is not of its form.
        """
        node = self._root
        found: list[tuple[str, str]] = []
        for segment in path.strip("/").split("/"):
            fixed = node.fixed.get(segment)
            if fixed is not None:
                node = fixed
            elif node.parameter is not None:
                name, node = node.parameter
                found.append((name, segment))
            else:
                raise RestError(404, f"Not found: {path}")
        if not any(each.is_of(version) for each in node.endpoints.values()):
            raise RestError(404, f"Not found: {path}" + (f" in version {version}" if node.endpoints else ""))
        endpoint = node.endpoints.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            allowed = ", ".join(sorted(node.endpoints))
            status = 404 if path.startswith("/sessions") else 405  # as Flink's gateway
            raise RestError(
                status, f"{method} is not allowed for this path; use {allowed}", {"Allow": allowed}
            )
        return endpoint, {name: _checked(name, value) for name, value in found}


def _checked(name: str, value: str) -> str:
    form, _ = PARAMETERS[name]
    if not form.fullmatch(value):
        raise RestError(
            400,
            "Bad request, could not parse parameters: "
            f'Cannot resolve path parameter ({name}) from value "{value[:100]}".',
        )
    return value.lower() if form in (_HEX_ID, _UUID) else value

"""The OpenAPI document, made from the endpoints and the types of their bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from headrace import __version__
from headrace.rest.routing import PARAMETERS, Endpoint

_PREFIX = "#/components/schemas/{name}"
_JSON = "application/json"


class Errors(msgspec.Struct, frozen=True):
    """What went wrong, the root first."""

    errors: list[str]


def openapi_document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document as plain data."""
    endpoints = tuple(endpoints)
    types = [kind for each in endpoints for kind in (each.answer, each.body) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, Errors], ref_template=_PREFIX)
    schema_of = dict(zip(map(repr, [*types, Errors]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(f"/v1{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "headrace REST API",
            "version": __version__,
            "description": "Flink 2.3's monitoring API, served by headrace. Every path also works without /v1.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": PARAMETERS[name][1]}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    parameters += [
        {"name": each.name, "in": "query", "description": each.description, "schema": dict(each.schema)}
        for each in endpoint.query
    ]
    content = (
        {"text/plain": {"schema": {"type": "string"}}}
        if endpoint.answer is None
        else {_JSON: {"schema": schema_of[repr(endpoint.answer)]}}
    )
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}{re.sub(r'[^a-zA-Z0-9]+', '_', endpoint.path)}",
        "summary": endpoint.summary,
        "tags": [endpoint.path.split("/")[1]],
        "responses": {
            str(endpoint.status): {"description": "The answer.", "content": content},
            "default": {
                "description": "The request failed.",
                "content": {_JSON: {"schema": schema_of[repr(Errors)]}},
            },
        },
    }
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": not _may_be_left_out(endpoint.body),
            "content": {_JSON: {"schema": schema_of[repr(endpoint.body)]}},
        }
    elif endpoint.takes_job:
        operation["requestBody"] = {
            "content": {"application/vnd.headrace.job": {"schema": {"type": "string", "format": "binary"}}}
        }
    return operation


def _may_be_left_out(body: Any) -> bool:
    """Whether `{}`, which no body stands for, is one of its values."""
    try:
        msgspec.convert({}, body)
    except msgspec.ValidationError:
        return False
    return True

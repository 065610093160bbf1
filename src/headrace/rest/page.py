"""Serves the web page: the files of `headrace.web`, under a content security policy that allows nothing else.

The files say nothing about jobs, so everyone who can reach the server may load them; the data they show is requested
through REST, with the token that the user types in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.rest.http import Response
from headrace.web import page_files

#: Scripts and styles are files of ours; no text becomes markup or code (trusted types); nothing is loaded elsewhere.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    # Asked for every time, answered with 304: a new version is seen at once.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class _File:
    body: bytes
    content_type: str
    tag: str


class Page:
    """The files of the page by path."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        for name, (body, content_type) in page_files().items():
            path = "/" if name == "index.html" else f"/web/{name}"
            tag = hashlib.sha256(body).hexdigest()[:20]
            self._files[path] = _File(body, content_type, f'"{tag}"')

    def has(self, method: str, path: str) -> bool:
        """Whether a request is for a file of the page."""
        return method in {"GET", "HEAD"} and path in self._files

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> Response:
        file = self._files[path]
        more = {**_HEADERS, "ETag": file.tag}
        if headers.get("if-none-match") == file.tag:
            return Response(b"", 304, file.content_type, more)
        return Response(b"" if method == "HEAD" else file.body, 200, file.content_type, more)

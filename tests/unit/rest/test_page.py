"""The web page as it is served: its policy, its files, and who gets them."""

from __future__ import annotations

import json

import pytest

from headrace.rest.settings import RestSettings
from headrace.web import page_files
from tests.unit.rest.conftest import RestCluster

TOKEN = "a-token-that-nobody-knows"


def test_the_page_comes_with_a_policy_that_allows_no_inline_code(cluster: RestCluster) -> None:
    response = cluster.ask("GET", "/")
    assert response.status == 200
    assert response.content_type == "text/html; charset=utf-8"
    policy = dict(
        part.strip().partition(" ")[::2] for part in response.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_every_file_is_served_and_not_sent_twice(cluster: RestCluster) -> None:
    for name, (body, content_type) in page_files().items():
        path = "/" if name == "index.html" else f"/web/{name}"
        response = cluster.ask("GET", path)
        assert (response.status, response.body, response.content_type) == (200, body, content_type)
        again = cluster.ask("GET", path, **{"if-none-match": response.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/web/", "/web/nothing.js", "/web/../__init__.py", "/web/%2e%2e/__init__.py", "/web/__init__.py"]
)
def test_nothing_else_is_served(cluster: RestCluster, path: str) -> None:
    assert cluster.ask("GET", path).status in {400, 404}


def test_the_page_cannot_be_written(cluster: RestCluster) -> None:
    assert cluster.ask("POST", "/").status == 404


def test_everybody_gets_the_page_but_only_a_token_gets_data() -> None:
    cluster = RestCluster(settings=RestSettings(token=TOKEN))
    assert cluster.ask("GET", "/").status == 200
    assert cluster.ask("GET", "/web/js/main.js").status == 200
    assert cluster.ask("GET", "/config").status == 401
    assert cluster.ask("GET", "/config", authorization=f"Bearer {TOKEN}").status == 200


def test_the_page_of_another_name_is_refused(cluster: RestCluster) -> None:
    response = cluster.ask("GET", "/", host="evil.example:8081")
    assert response.status == 403
    assert json.loads(response.body)["errors"]

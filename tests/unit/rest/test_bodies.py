"""How the JSON of requests is read."""

from __future__ import annotations

import pytest

from headrace.rest.errors import RestError
from headrace.rest.http import Request
from headrace.rest.resources.gateway import CompletionRequest


def read(body: str) -> CompletionRequest:
    return Request("GET", "/complete-statement", body=body.encode()).read(CompletionRequest)


@pytest.mark.parametrize("position", ["3", "3.0", "30e-1"])
def test_a_whole_number_may_be_written_as_a_fraction(position: str) -> None:
    assert read(f'{{"statement": "SE", "position": {position}}}').position == 3


@pytest.mark.parametrize("position", ["3.5", "-1.0", '"3"', "true", "1e999"])
def test_a_value_that_is_not_a_whole_number_is_refused(position: str) -> None:
    with pytest.raises(RestError, match="invalid body"):
        read(f'{{"statement": "SE", "position": {position}}}')

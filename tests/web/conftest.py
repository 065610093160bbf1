"""One browser for the tests of a module; a tab for each, which must stay without errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.rest.server import RestServer
from headrace.rest.settings import RestSettings
from tests.unit.rest.conftest import RestCluster
from tests.web.browser import Tab, launched


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Not longer: as long as it lives, no other event loop can run in this process.
    with launched() as found:
        yield found


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a tab; at the end none of them may have had a problem."""
    tabs: list[Tab] = []

    def open_one(**options: Any) -> Any:
        tabs.append(Tab(browser, **options))
        return tabs[-1].page

    yield open_one
    for tab in tabs:
        tab.close()


@pytest.fixture
def page(open_tab: Callable[..., Any]) -> Any:
    return open_tab()


@pytest.fixture
def served() -> Iterator[RestCluster]:
    """A cluster in this process, without Spark, behind a real server; its address is `cluster.context.url`."""
    cluster = RestCluster({"web.refresh-interval": "200 ms"})
    server = RestServer(cluster.application, RestSettings())
    server.start()
    yield cluster
    cluster.close()
    server.close(fetch_s=0)

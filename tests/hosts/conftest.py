"""The cluster that tests over several hosts share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.hosts.cluster import Cluster, run_cluster
from tests.hosts.network import NoNetworkError
from tests.kafka import NoBrokerError
from tests.postgres import NoServerError


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    for module in ("moto", "psycopg", "confluent_kafka"):
        pytest.importorskip(module)
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(run_cluster("one", "two"))
        except (NoNetworkError, NoServerError, NoBrokerError) as error:
            pytest.skip(f"no cluster of several hosts: {error}")
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """Return a cluster of two hosts, `one` and `two`, with a core each; the test may do to it what it likes."""
    shared_cluster.restore("one", "two")
    shared_cluster.wait_for_storage()
    yield shared_cluster
    shared_cluster.driver.kill_processes()

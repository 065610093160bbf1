"""What the driver, Spark's Java process and its workers listen on while a job runs on this machine."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.sockets import listening_addresses, process_tree
from tests.spark.support import run_and_collect

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no /proc here"),
]


def test_nothing_of_a_local_spark_listens_to_the_network(env: Callable[..., Any]) -> None:
    run_and_collect(env().from_collection([1, 2, 3]).map(lambda n: n + 1))  # workers are there by now
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None
    assert context.getConf().get("spark.authenticate") == "true"
    tree = process_tree(os.getpid())
    found = listening_addresses(tree)
    assert any(pid != os.getpid() for pid, _ in found), "Spark's Java process was not looked at"
    assert {address for _, address in found if not ipaddress.ip_address(address).is_loopback} == set()


def test_a_socket_that_listens_to_the_network_is_found() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        assert (os.getpid(), "0.0.0.0") in listening_addresses([os.getpid()])

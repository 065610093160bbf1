"""A master that cannot be there is said at once."""

from __future__ import annotations

import pytest

from headrace.errors import ClusterError, ConfigurationError
from headrace.spark.masters import ClusterManager, check_master


class Network:
    """Notes who is called; those that are there answer."""

    def __init__(self, *there: tuple[str, int]) -> None:
        self.there = there
        self.called: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> None:
        self.called.append((host, port))
        if (host, port) not in self.there:
            raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("master", "manager"),
    [
        ("local", ClusterManager.LOCAL),
        ("local[*]", ClusterManager.LOCAL),
        ("local[2,4]", ClusterManager.LOCAL),
        ("local-cluster[2, 1, 1024]", ClusterManager.LOCAL_CLUSTER),
        ("spark://host:7077", ClusterManager.STANDALONE),
        ("yarn", ClusterManager.YARN),
        ("k8s://https://host:6443", ClusterManager.KUBERNETES),
    ],
)
def test_a_master_says_who_runs_spark(master: str, manager: ClusterManager) -> None:
    assert ClusterManager.of(master) is manager


@pytest.mark.parametrize("master", ["", "here", "local[x]", "host:7077", "mesos://host", "spark://"])
def test_an_invalid_master_is_refused_with_the_list_of_valid_ones(master: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_master(master)
    assert "spark://HOST:PORT" in str(refused.value)


def test_a_master_that_does_not_answer_is_named() -> None:
    network = Network()
    with pytest.raises(ClusterError, match=r"spark://a:7077,b:7078 \(a:7077: Connection refused; b:7078: "):
        check_master("spark://a:7077,b:7078", connect=network)
    assert network.called == [("a", 7077), ("b", 7078)]


def test_one_of_several_masters_is_enough() -> None:
    check_master("spark://a,b:7078", connect=Network(("b", 7078)))


@pytest.mark.parametrize("master", ["spark://a:x", "spark://:7077"])
def test_an_address_that_is_none_is_refused(master: str) -> None:
    with pytest.raises(ConfigurationError, match="such as spark://host:7077"):
        check_master(master, connect=Network())


def test_yarn_wants_to_be_found() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_master("yarn", environment={})
    assert refused.value.hint is not None
    assert "HADOOP_CONF_DIR" in refused.value.hint
    check_master("yarn", environment={"HADOOP_CONF_DIR": "/etc/hadoop"})


def test_a_driver_that_spark_has_started_on_yarn_needs_no_configuration_of_hadoop() -> None:
    check_master("yarn", environment={"PYSPARK_GATEWAY_PORT": "45001"})


def test_other_masters_are_not_connected_to() -> None:
    network = Network()
    for master in ("local[2]", "k8s://https://host:6443"):
        check_master(master, connect=network)
    assert network.called == []

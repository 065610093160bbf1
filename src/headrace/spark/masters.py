"""Masters: what may stand in `headrace.spark.master`, and whether the cluster behind it can be there at all.

Spark itself takes a minute to say that nobody answers at an address, and does not say which. So it is tried before.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from enum import Enum

from headrace.errors import ClusterError, ConfigurationError

_CONNECT_S = 3.0
#: How a driver that spark-submit has started finds its Java process.
STARTED_BY_SPARK = "PYSPARK_GATEWAY_PORT"
_STANDALONE_PORT = 7077
_FORMS = "local[N], local[*], spark://HOST:PORT, yarn, k8s://https://HOST:PORT"


class ClusterManager(Enum):
    """Who runs Spark's processes."""

    LOCAL = "this process"
    LOCAL_CLUSTER = "this machine"
    STANDALONE = "Spark standalone"
    YARN = "YARN"
    KUBERNETES = "Kubernetes"

    @classmethod
    def of(cls, master: str) -> ClusterManager:
        """Return the cluster manager that a master URL stands for.

        Raises:
            ConfigurationError: If it is not a master URL.

        Example:
            >>> ClusterManager.of("local[2]"), ClusterManager.of("yarn")
            (<ClusterManager.LOCAL: 'this process'>, <ClusterManager.YARN: 'YARN'>)
        """
        for pattern, manager in _MASTERS.items():
            if re.fullmatch(pattern, master):
                return manager
        raise ConfigurationError(
            f"headrace.spark.master: {master!r} is not a Spark master", hint=f"use one of {_FORMS}"
        )


_MASTERS: Mapping[str, ClusterManager] = {
    r"local(\[(\*|\d+)( *, *\d+)?\])?": ClusterManager.LOCAL,
    r"local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]": ClusterManager.LOCAL_CLUSTER,
    r"spark://.+": ClusterManager.STANDALONE,
    r"yarn": ClusterManager.YARN,
    r"k8s://.+": ClusterManager.KUBERNETES,
}


def _connect(host: str, port: int) -> None:
    socket.create_connection((host, port), _CONNECT_S).close()


def check_master(
    master: str,
    environment: Mapping[str, str] = os.environ,
    connect: Callable[[str, int], object] = _connect,
) -> None:
    """Refuse a cluster that cannot be reached, before Spark spends a minute on it.

    Args:
        master: The URL.
        environment: Of the process.
        connect: Opens a connection; raises OSError if there is no answer.

    Raises:
        ConfigurationError: If it is not a master, or the configuration of YARN is missing.
        ClusterError: If no master answers.
    """
    manager = ClusterManager.of(master)
    if STARTED_BY_SPARK in environment:
        return  # spark-submit has found the cluster; in YARN's containers there is no HADOOP_CONF_DIR
    if manager is ClusterManager.YARN and not ({"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & set(environment)):
        raise ConfigurationError(
            "the master is yarn, but HADOOP_CONF_DIR is not set",
            hint="set HADOOP_CONF_DIR to the directory with yarn-site.xml and core-site.xml",
        )
    if manager is not ClusterManager.STANDALONE:
        return
    problems = []
    for host, port in _standalone_addresses(master):
        try:
            connect(host, port)
        except OSError as error:
            problems.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return  # one that leads is enough
    raise ClusterError(
        f"no Spark master answers at {master} ({'; '.join(problems)})",
        hint="start one with sbin/start-master.sh in Spark's home, and use the URL shown in its log or web page",
    )


def _standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Return the addresses of a URL; a cluster with standby masters has several: `spark://a:7077,b:7077`."""
    addresses = []
    for part in master.removeprefix("spark://").split(","):
        host, colon, port = part.strip().rpartition(":")
        if not colon:
            host, port = port, str(_STANDALONE_PORT)
        if not host or not port.isdigit():
            raise ConfigurationError(
                f"headrace.spark.master: expected a master such as spark://host:7077; got {master!r}"
            )
        addresses.append((host.strip("[]"), int(port)))
    return addresses


def is_local(master: str) -> bool:
    """Whether Spark runs tasks in the driver's own process.

    Example:
        >>> [is_local(master) for master in ("local[2]", "local", "local-cluster[2,1,1024]", "spark://a:7077")]
        [True, True, False, False]
    """
    return master.startswith("local") and not master.startswith("local-cluster")


def local_threads(master: str) -> int:
    """Return how many threads the tasks of a local Spark have.

    Example:
        >>> local_threads("local[3]"), local_threads("local[26,4]"), local_threads("local")
        (3, 26, 1)
    """
    said = re.match(r"local\[ *(\*|\d+)", master)
    if said is None:
        return 1
    return os.cpu_count() or 1 if said[1] == "*" else int(said[1])

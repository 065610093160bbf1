"""The hosts that other tests break: each has its own network, processes and disk, and a killed run leaves none."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.cluster import ROOT
from tests.hosts.network import Host, Network, NoNetworkError, Place, Process, network, wait_until

pytestmark = pytest.mark.chaos

_LISTEN = """
import socket, sys
server = socket.create_server((sys.argv[1], 9))
print("up", flush=True)
while True:
    server.accept()
"""
_END_WITH_7 = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
print("up", flush=True)
signal.pause()
"""
_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 9), 0.5)"
#: Boots a host, says where it is, and is killed.
_RUN = """
import os, signal
from tests.hosts.network import network
with network() as between:
    between.add_host("orphan").start(between.shared / "log", "sleep", "1000")
    print(between.hub.card, between.hosts["orphan"]._pid, between.shared, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def between() -> Iterator[Network]:
    try:
        with network() as made:
            made.add_host("one")
            made.add_host("two", disk="8m")
            yield made
    except NoNetworkError as error:
        pytest.skip(f"no hosts here: {error}")


def listen(network: Network, host: Host) -> Process:
    log = network.shared / f"{host.name}.log"
    log.unlink(missing_ok=True)
    process = host.start(log, sys.executable, "-c", _LISTEN, host.address)
    wait_until(lambda: "up" in process.log, lambda: process.log, 20)
    return process


def reaches(place: Place, host: Host) -> bool:
    try:
        place.run(sys.executable, "-c", _CONNECT, host.address)
    except NoNetworkError:
        return False
    return True


def test_a_partition_separates_two_hosts_and_no_others(between: Network) -> None:
    one, two = between.hosts["one"], between.hosts["two"]
    process = listen(between, two)
    assert reaches(one, two)
    with between.partition(one, two):
        assert not reaches(one, two)
        assert reaches(between.hub, two)
    assert reaches(one, two)
    with between.partition(between.hub, two):
        assert not reaches(between.hub, two)
    process.kill()


def test_a_host_that_is_paused_continues_where_it_was(between: Network) -> None:
    two = between.hosts["two"]
    clock = two.path("/tmp/clock")
    count = "n=0; while true; do n=$((n+1)); echo $n > /tmp/clock; sleep 0.01; done"
    process = two.start(between.shared / "clock.log", "sh", "-c", count)
    wait_until(lambda: clock.exists() and clock.read_text() > "", "the clock", 20)
    two.pause()
    stopped = clock.read_text()
    with pytest.raises(AssertionError):
        wait_until(lambda: clock.read_text() != stopped, "the clock to go on", 0.2)
    two.resume()
    wait_until(lambda: clock.read_text() not in ("", stopped), "the clock to go on", 20)
    two.kill_processes()
    assert process.wait(20) == -signal.SIGKILL
    assert two.processes() == []


def test_a_process_on_a_host_gets_signals_and_ends_with_its_own_code(between: Network) -> None:
    process = between.hosts["one"].start(between.shared / "signal.log", sys.executable, "-c", _END_WITH_7)
    wait_until(lambda: "up" in process.log, lambda: process.log, 20)
    process.signal(signal.SIGINT)
    assert process.wait(20) == 7


def test_a_disk_that_is_full_is_that_of_one_host(between: Network) -> None:
    one, two = between.hosts["one"], between.hosts["two"]
    two.fill("/tmp")
    with pytest.raises(OSError, match="No space left"):
        two.path("/tmp/more").write_bytes(bytes(1 << 13))
    one.path("/tmp/more").write_bytes(bytes(1 << 13))
    two.empty("/tmp")
    two.path("/tmp/more").write_bytes(bytes(1 << 13))


def test_hosts_share_one_directory_and_nothing_else_that_they_write(between: Network) -> None:
    one, two = between.hosts["one"], between.hosts["two"]
    one.run("sh", "-c", f"echo shared > {between.shared}/word; echo own > /dev/shm/word")
    assert two.run("cat", str(between.shared / "word")) == "shared\n"
    assert two.files("/dev/shm", "*") == []


def test_what_a_killed_run_leaves_is_removed_by_the_next(between: Network) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=ROOT, capture_output=True, text=True, check=False
    )
    bridge, pid, shared = killed.stdout.split()
    wait_until(lambda: not Path(f"/proc/{pid}/root/tmp").exists(), "the host to be gone with its run", 20)
    assert bridge in between.hub.run("ip", "link")
    assert Path(shared).is_dir()
    with network():
        assert not Path(shared).exists()

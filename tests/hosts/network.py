"""Hosts that are namespaces of this machine, and the network between them.

    this machine (the hub: Spark's master, databases, S3)      10.77.N.1
        |  bridge hr-N
        +---- driver       10.77.N.2    each host has a network, processes, a name, /tmp and /dev/shm of its own;
        +---- one          10.77.N.3    /tmp is its disk, of a limited size
        +---- two          10.77.N.4

    <network>.shared                    the directory that all of them have mounted, at the same path

A host lives in the namespaces of its first process, which dies with the test run, however that ends; the kernel then
kills what else runs on the host and takes its mounts and its network card away. What is left of a run that was killed
is a bridge and the shared directory: the bridge says whose they are, and the next run removes both.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.postgres import ends_with_tests

#: Where a packet for a host that is out of reach goes: no network card has this address.
_NOBODY = "02:00:00:00:00:00"
_MOST_NETWORKS = 200
#: What every host must see: this repository and the Python that runs it.
_PROGRAMS = {str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix}
_TOOLS = ("ip", "unshare", "nsenter", "setpriv", "mount")
#: The first process of a host: it mounts what is the host's own, and then does nothing but collect dead processes.
_INIT = """
set -e
{keep}
mount -t tmpfs -o size={memory} tmpfs /dev/shm
mount -t tmpfs -o size={disk} tmpfs /tmp
{bring_back}
hostname {name}
printf '127.0.0.1 localhost\\n{address} {name}\\n' > /tmp/.hosts
mount --bind /tmp/.hosts /etc/hosts
echo up > /tmp/.up
exec env --ignore-signal=CHLD sleep infinity
"""


class NoNetworkError(Exception):
    """This machine does not let us make hosts; the message says why."""


class Process:
    """A process on a host, or on this machine.

    Args:
        started: The process, or the one that has brought it onto its host and waits for its end.
        log: What it writes.
        is_on_host: Which of both it is.
    """

    def __init__(self, started: subprocess.Popen[bytes], log: Path, *, is_on_host: bool) -> None:
        self._started = started
        self._is_on_host = is_on_host
        self.log_file = log

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def is_running(self) -> bool:
        return self._started.poll() is None

    def wait(self, timeout_s: float) -> int:
        """Wait for its end; return its exit code, or minus the signal that ended it."""
        return self._started.wait(timeout_s)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        for pid in _children(self._started.pid) if self._is_on_host else [self._started.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def resume(self) -> None:
        """Have the one that waits for it go on: it has stopped with the process."""
        self._started.send_signal(signal.SIGCONT)

    def stop(self, timeout_s: float = 20.0) -> None:
        """End it: in order, or else by force."""
        self.signal(signal.SIGTERM)
        try:
            self.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it, and those it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._started.pid, signal.SIGKILL)
        self.wait(30)


class Place:
    """Something with an address: a host, or the machine that the tests run on."""

    def __init__(self, name: str, address: str, card: str, enter: tuple[str, ...]) -> None:
        self.name = name
        self.address = address
        #: What its packets leave by.
        self.card = card
        #: What a command begins with that is to run there.
        self._enter = enter
        self._processes: list[Process] = []

    def start(self, log: Path, *command: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start a process; it ends with the tests at the latest."""
        with log.open("ab") as stream:
            started = subprocess.Popen(
                [*ends_with_tests(), *self._enter, *command],
                env={**os.environ, **(environment or {})},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self._processes.append(Process(started, log, is_on_host=bool(self._enter)))
        return self._processes[-1]

    def run(self, *command: str) -> str:
        """Run a command there and return what it says."""
        return run(*self._enter, *command)

    def cut_off(self, other: Place) -> None:
        """Lose all packets to another place, silently, as a broken network does."""
        nowhere = ("lladdr", _NOBODY, "dev", self.card, "nud", "permanent")
        self.run("ip", "neigh", "replace", other.address, *nowhere)

    def reach(self, other: Place) -> None:
        """Undo `cut_off`."""
        self.run("ip", "neigh", "del", other.address, "dev", self.card)


class Host(Place):
    """A host; `Network.add_host` makes one."""

    def __init__(self, name: str, address: str, first: subprocess.Popen[bytes], pid: int) -> None:
        super().__init__(name, address, "eth0", ("nsenter", "--target", str(pid), "--all", "--"))
        self._first = first
        self._pid = pid

    def path(self, path: str | Path) -> Path:
        """Return where this machine sees a file of the host."""
        return Path(f"/proc/{self._pid}/root{path}")

    def files(self, directory: str, pattern: str) -> list[str]:
        """Return the names of the host's files that fit a pattern."""
        return sorted(each.name for each in self.path(directory).glob(pattern))

    def processes(self, word: str = "") -> list[int]:
        """Return the processes on the host with a word in their command, without the first."""
        namespace = os.readlink(f"/proc/{self._pid}/ns/pid")
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.readlink(entry / "ns" / "pid") != namespace or int(entry.name) == self._pid:
                    continue
                if word in (entry / "cmdline").read_text() and _state(int(entry.name)) not in "ZX":
                    found.append(int(entry.name))
        return sorted(found)

    def signal(self, number: signal.Signals, word: str = "") -> set[int]:
        """Send a signal to all processes of the host, or to those with a word in their command; return them."""
        reached: set[int] = set()
        # One that was just being started is found the second time.
        while more := set(self.processes(word)) - reached:
            for pid in more:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            reached |= more
        return reached

    def pause(self) -> None:
        """Stop the host where it is, as a virtual machine that is moved, or one that runs out of memory."""
        self.signal(signal.SIGSTOP)
        wait_until(
            lambda: all(_state(pid) in "TZX" for pid in self.processes()), f"host {self.name} to stop", 20
        )

    def resume(self) -> None:
        self.signal(signal.SIGCONT)
        for process in self._processes:
            process.resume()

    def kill_processes(self, word: str = "") -> None:
        """Kill processes; the host stays, with its files."""
        killed = self.signal(signal.SIGKILL, word)
        wait_until(lambda: not killed.intersection(self.processes(word)), "processes to be gone", 20)

    def power_off(self) -> None:
        """Lose the host: its processes, its address, its memory and its disk."""
        self._first.kill()
        self._first.wait()
        # What ran there has been killed by the kernel, and is gone a moment later.
        wait_until(
            lambda: not Path(f"/proc/{self._pid}/root/tmp").exists(), f"host {self.name} to be gone", 20
        )
        for process in self._processes:
            process.kill()

    def fill(self, directory: str) -> None:
        """Leave no room in a directory of the host, as a log does that grows and grows: what is freed is taken too."""
        ballast = f"{directory}/ballast"
        with open(self.path(ballast), "ab", buffering=0) as stream:
            os.posix_fallocate(stream.fileno(), 0, shutil.disk_usage(self.path(directory)).free)
        grow = f"while true; do cat /dev/zero >> {ballast}; sleep 0.01; done"
        self.start(Path(os.devnull), "sh", "-c", grow)

    def empty(self, directory: str) -> None:
        """Undo `fill`."""
        self.kill_processes(f"{directory}/ballast")

        def has_room() -> bool:
            # The last that wrote it has it open still; one that was about to write makes it again.
            self.path(f"{directory}/ballast").unlink(missing_ok=True)
            return shutil.disk_usage(self.path(directory)).free > 0

        wait_until(has_room, f"room in {directory}", 20)

    def recover(self) -> None:
        """Undo all that was done to the host, but for what was killed."""
        self.resume()
        for directory in ("/tmp", "/dev/shm"):
            self.empty(directory)


class Network:
    """Hosts that reach each other; `network()` makes one and takes it down."""

    def __init__(self, number: int, shared: Path) -> None:
        self.shared = shared
        self._number = number
        self._bridge = f"hr-{number}"
        self._addresses = itertools.count(2)
        self.hosts: dict[str, Host] = {}
        self.hub = Place("hub", f"10.77.{number}.1", self._bridge, ())

    def add_host(self, name: str, *, disk: str = "256m", memory: str = "600m") -> Host:
        """Boot a host: what it had under this name before is gone.

        Args:
            name: Its name.
            disk: The size of its `/tmp`.
            memory: The size of its `/dev/shm`; with less than 512 MB free, state goes to the disk.
        """
        assert name not in self.hosts, f"there is a host {name} already"
        number = next(self._addresses)
        address = f"10.77.{self._number}.{number}"
        script = _INIT.format(name=name, address=address, disk=disk, memory=memory, **self._programs())
        first = subprocess.Popen(
            [
                *ends_with_tests(),
                *(
                    "unshare",
                    "--net",
                    "--mount",
                    "--uts",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "--mount-proc",
                    "--",
                ),
                *("sh", "-c", script),
            ],
            stdin=subprocess.DEVNULL,
        )
        wait_until(lambda: bool(_children(first.pid)), f"host {name} to be there", 20)
        host = Host(name, address, first, _children(first.pid)[0])
        wait_until(lambda: host.path("/tmp/.up").exists(), f"host {name} to be up", 20)
        port = f"{self._bridge}-{number}"
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(host._pid))
        run("ip", "link", "set", port, "master", self._bridge, "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        host.run("ip", "link", "set", "lo", "up")
        self.hosts[name] = host
        return host

    def _programs(self) -> dict[str, str]:
        """Return the commands that keep what hosts run, if it is in a directory of which each host has its own."""
        hidden = sorted(path for path in _PROGRAMS if path.startswith(("/tmp/", "/dev/shm/")))
        keep, bring_back = [], []
        for number, path in enumerate(hidden):
            holder = f"{self.shared}/programs-{number}"
            keep.append(f"mkdir -p {holder}; mount --bind {shlex.quote(path)} {holder}")
            bring_back.append(f"mkdir -p {shlex.quote(path)}; mount --bind {holder} {shlex.quote(path)}")
        return {"keep": "\n".join(keep), "bring_back": "\n".join(bring_back)}

    def remove_host(self, name: str) -> None:
        """Take a host away without a warning, as a loss of power does."""
        host = self.hosts.pop(name)
        host.power_off()
        _delete_link(f"{self._bridge}-{host.address.rpartition('.')[2]}")

    @contextmanager
    def partition(self, one: Place, other: Place) -> Iterator[None]:
        """Let no packet through between two places while the `with` lasts."""
        one.cut_off(other)
        other.cut_off(one)
        try:
            yield
        finally:
            one.reach(other)
            other.reach(one)

    def close(self) -> None:
        """Take everything down."""
        for name in list(self.hosts):
            self.remove_host(name)
        _remove(self._bridge)


@contextmanager
def network() -> Iterator[Network]:
    """Make a network without hosts.

    Raises:
        NoNetworkError: If this machine does not allow it.
    """
    _check_possible()
    _sweep()
    made = _claim()
    try:
        yield made
    finally:
        made.close()


def _check_possible() -> None:
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoNetworkError(f"there is no {', '.join(missing)} here")
    if os.geteuid() != 0:
        raise NoNetworkError("namespaces with a network between them need root")
    own = ("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc")
    tried = subprocess.run(
        [*own, "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        raise NoNetworkError(f"this machine allows no namespaces: {tried.stderr.strip()}")


def _claim() -> Network:
    """Take the first number that no other run of tests has: only one of them can make a bridge of one name."""
    problem = ""
    for number in range(_MOST_NETWORKS):
        bridge = f"hr-{number}"
        try:
            run("ip", "link", "add", bridge, "type", "bridge")
        except NoNetworkError as error:
            problem = str(error)
            continue
        shared = Path(tempfile.mkdtemp(prefix=f"headrace-{bridge}-", dir="/var/tmp"))
        run("ip", "link", "set", bridge, "alias", f"{_identity(os.getpid())} {shared}")
        run("ip", "address", "add", f"10.77.{number}.1/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        return Network(number, shared)
    raise NoNetworkError(f"no bridge can be made: {problem}")


def _sweep() -> None:
    """Remove what runs of tests left that were killed."""
    for bridge, (owner, _) in _bridges().items():
        pid = owner.partition("@")[0]
        if not pid.isdigit() or _identity(int(pid)) != owner:
            _remove(bridge)


def _remove(bridge: str) -> None:
    _, shared = _bridges()[bridge]
    for port in re.findall(rf"\b{bridge}-\d+", run("ip", "-brief", "link", "show", "master", bridge)):
        _delete_link(port)
    _delete_link(bridge)
    if Path(shared).name.startswith(f"headrace-{bridge}-"):
        shutil.rmtree(shared, ignore_errors=True)


def _delete_link(name: str) -> None:
    with suppress(NoNetworkError):  # the kernel, or another run of tests, was first
        run("ip", "link", "delete", name)


def _bridges() -> dict[str, tuple[str, str]]:
    """Return the bridges of tests, each with its owner and its shared directory."""
    found = {}
    for link in re.split(
        r"^(?=\d+: )", run("ip", "-details", "link", "show", "type", "bridge"), flags=re.MULTILINE
    ):
        name, alias = (
            re.match(r"\d+: (hr-\d+):", link),
            re.search(r"^ +alias (\S+) (\S+)", link, re.MULTILINE),
        )
        if name and alias:
            found[name[1]] = (alias[1], alias[2])
    return found


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _state(pid: int) -> str:
    """Return what a process does, by the kernel's letter: T if it is stopped, Z or X if it is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _identity(pid: int) -> str:
    """Name a process as no other is ever named: by its number and when it was started."""
    try:
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "gone"
    return f"{pid}@{started}"


def run(*command: str) -> str:
    """Run a command and return what it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoNetworkError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def wait_until(condition: Callable[[], bool], what: str | Callable[[], str], timeout_s: float) -> None:
    """Wait for a condition; `what` is waited for, or says more when it does not come."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s for {what if isinstance(what, str) else what()}")
        time.sleep(0.02)

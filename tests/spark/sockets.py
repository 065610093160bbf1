"""Which sockets processes listen on, from /proc: no other tool is needed."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from pathlib import Path

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def process_tree(root: int) -> list[int]:
    """Return a process and all that it has started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.parent.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def listening_addresses(pids: list[int]) -> set[tuple[int, str]]:
    """Return the processes that listen on a TCP port, with the address."""
    addresses = _listening()
    found = set()
    for pid in pids:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:  # it has ended
            continue
        for descriptor in descriptors:
            try:
                match = _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
            except OSError:
                continue
            if match and match[1] in addresses:
                found.add((pid, addresses[match[1]]))
    return found


def _listening() -> dict[str, str]:
    """Return the addresses that somebody listens on, by the socket's inode."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN:
                found[fields[9]] = _address(fields[1].partition(":")[0])
    return found


def _address(text: str) -> str:
    words = [bytes.fromhex(text[at : at + 8]) for at in range(0, len(text), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    address = ipaddress.ip_address(packed)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)

"""A leader for `test_leadership`: completes checkpoint after checkpoint of a job until it no longer leads.

python leader_program.py DIRECTORY LEASE_MS NAME [--stop-inside-write]

It says on its output what it does, a word and a number a line. With the option it stops itself inside a write: after
it has made sure that it leads, before the file is there.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from headrace.errors import LeadershipError
from headrace.runtime.checkpoint import storage
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease, LeaseKeeper


def say(*words: object) -> None:
    print(*words, flush=True)


def main() -> None:
    directory, lease_ms, name, *flags = sys.argv[1:]
    settings = HighAvailabilitySettings(directory, "cluster", int(lease_ms))
    lease = LeaderLease(settings, name=name)
    say("waits", 0)
    lease.acquire(60)
    say("leads", lease.token)
    keeper = LeaseKeeper(lease, on_lost=lambda _: None)
    keeper.start()
    checkpoints = storage.CheckpointDirectory(directory, "job", lease.token)
    checkpoints.take_over()
    first = checkpoints.highest_id() + 1
    for number in range(first, first + 100_000):
        if number == first + 2 and flags:
            stop_inside_next_write()
        try:
            lease.ensure_leader()
            checkpoints.write(CheckpointMetadata("checkpoint", number, "job", name, number, 0))
        except LeadershipError:
            say("lost", number)
            return
        say("wrote", number)
        time.sleep(0.01)


def stop_inside_next_write() -> None:
    publish = storage.publish_file

    def stopping(path: str, data: bytes) -> None:
        storage.publish_file = publish
        say("stops", 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        publish(path, data)

    storage.publish_file = stopping


if __name__ == "__main__":
    main()

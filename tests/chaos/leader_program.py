"""A leader for `test_leadership`: points a job to checkpoint after checkpoint until it may no longer.

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
from headrace.runtime import job_store
from headrace.runtime.high_availability import HighAvailabilitySettings, LeaderLease, LeaseKeeper
from headrace.runtime.job_store import CheckpointPointer, JobStore, StoredJob


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
    store = JobStore(settings.jobs_directory, lease)
    if store.get("job") is None:
        store.put(StoredJob("job", name, b"", {}, 0))
    for number in range(1, 100_000):
        if number == 3 and flags:
            stop_inside_next_write()
        try:
            store.point_to("job", CheckpointPointer(number, f"{name}/chk-{number}"))
        except LeadershipError:
            say("lost", number)
            return
        say("wrote", number)
        time.sleep(0.01)


def stop_inside_next_write() -> None:
    publish = job_store.publish_file

    def stopping(path: str, data: bytes) -> None:
        job_store.publish_file = publish
        say("stops", 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        publish(path, data)

    job_store.publish_file = stopping


if __name__ == "__main__":
    main()

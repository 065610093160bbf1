"""High availability: who leads a job when its driver may be lost, and where jobs are kept for the next one."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

TYPE = (
    option("high-availability.type", str)
    .default("NONE")
    .describe(
        "How drivers agree on who leads. `filesystem` keeps a lease and the jobs in a directory that all of them "
        "have mounted, and needs no further service. `NONE`: a job ends with its driver."
    )
    .deprecates("high-availability")
    .one_of("NONE", "filesystem")
)
STORAGE_DIRECTORY = (
    option("high-availability.storageDir", str)
    .no_default()
    .describe(
        "The directory of leases and jobs, on a local or network file system that every driver has mounted. "
        "It must be able to create a file only if it is new, which object stores cannot."
    )
)
CLUSTER_ID = (
    option("high-availability.cluster-id", str)
    .default("default")
    .describe("Names those who stand in for each other: drivers with the same id lead one after the other.")
)
LEASE_DURATION = (
    option("headrace.high-availability.lease-duration", timedelta)
    .default(timedelta(seconds=15))
    .describe("How long a driver leads without renewing its lease; so long a lost one is waited for.")
    .at_least(timedelta(milliseconds=100))
)

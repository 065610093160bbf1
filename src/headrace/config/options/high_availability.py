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
    .describe("Drivers with the same id replace each other: one leads, the others wait.")
)
LEASE_DURATION = (
    option("headrace.high-availability.lease-duration", timedelta)
    .default(timedelta(seconds=15))
    .describe(
        "How long a lease is valid without being renewed, and so how long it takes to replace a lost driver."
    )
    .at_least(timedelta(milliseconds=100))
)
RESULT_STORE_PATH = (
    option("job-result-store.storage-path", str)
    .no_default()
    .describe(
        "Where the results of jobs are recorded, so that the next start does not run them again: a path or URI that "
        "every driver can reach. By default `job-result-store/<cluster-id>` below `high-availability.storageDir`."
    )
)
RESULT_STORE_DELETE_ON_COMMIT = (
    option("job-result-store.delete-on-commit", bool)
    .no_default()
    .describe(
        "Whether the result of a job is deleted as soon as the job has been cleaned up. By default it is kept for the "
        "job of a program, which has the same id on every start, and deleted for jobs of a session. With `true` a "
        "program that is started again after it has finished processes its input again."
    )
)

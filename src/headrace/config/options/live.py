"""Live mode: subtasks that last as long as a run, with Spark's pipelined shuffle between them."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

PORT = (
    option("headrace.live.port", int)
    .default(0)
    .describe(
        "The driver's port that subtasks of live jobs connect to, for control only. 0 means any free port."
    )
    .at_least(0)
    .at_most(65535)
)
TRUSTED_NETWORK = (
    option("headrace.live.trusted-network", bool)
    .default(False)
    .describe(
        "Whether live jobs may run on a cluster whose Spark asks for authentication or encryption. Spark's pipelined "
        "shuffle has neither: set this only where nobody else can reach the executors' ports."
    )
)
BARRIER_INTERVAL = (
    option("headrace.live.barrier-interval", timedelta)
    .default(timedelta(milliseconds=200))
    .describe(
        "How often a live job without checkpoints sends a barrier through its subtasks, with which sinks publish what "
        "they have staged. If no sink waits for barriers (`print`, for instance, does not), there is at most one a "
        "second, with which metrics are counted. With checkpoints, every checkpoint is a barrier."
    )
    .at_least(timedelta(milliseconds=1))
)
IDLE_POLL_INTERVAL = (
    option("headrace.live.idle-poll-interval", timedelta)
    .default(timedelta(milliseconds=2))
    .describe("How long a live job waits before it polls sources again that had no new records.")
    .at_least(timedelta(milliseconds=1))
)
HEARTBEAT_INTERVAL = (
    option("headrace.live.heartbeat-interval", timedelta)
    .default(timedelta(seconds=1))
    .describe("How often a live subtask sends the driver a heartbeat.")
    .at_least(timedelta(milliseconds=10))
)
LOST_AFTER = (
    option("heartbeat.timeout", timedelta)
    .default(timedelta(seconds=50))
    .describe(
        "How long the driver waits for a heartbeat before it takes a live subtask for lost and the run fails; also "
        "`spark.network.timeout`, after which Spark takes an executor for lost, if the option is set."
    )
    .at_least(timedelta(milliseconds=100))
)
HEARTBEAT_TIMEOUT = (
    option("headrace.live.heartbeat-timeout", timedelta)
    .no_default("heartbeat.timeout")
    .describe("How long the driver waits for a heartbeat of a live subtask before the run fails.")
    .at_least(timedelta(milliseconds=100))
)

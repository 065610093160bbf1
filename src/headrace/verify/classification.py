"""What a difference looks like, from what is left of the scenario that shows it."""

from __future__ import annotations

from headrace.verify.runs import RunOutcome, RunTimeoutError
from headrace.verify.scenario import Interruption, Scenario


def classify(
    scenario: Scenario, outcome: RunOutcome, *, is_of_sink: bool, sources: int = 1
) -> tuple[str, str]:
    """Say what a difference looks like, from what is left of the scenario.

    Args:
        scenario: What is left of it.
        outcome: Of a run that differs.
        is_of_sink: Whether only what the job's own sinks have written differs, not the records that they got.
        sources: How many sources still have records.
    """
    if outcome.error is not None:
        return _of_error(scenario, outcome.error)
    if scenario == Scenario(seed=scenario.seed):
        return (
            "a function is not deterministic",
            "Two runs of the same job over the same input give different output: a function uses random numbers, "
            "uuid4(), id(), the clock, or a global variable of a module that the program imports. Derive such values "
            "from the record, or keep them in state.",
        )
    if scenario.duplicate_seed is not None:
        return (
            "a duplicate record is counted twice",
            "With --duplicates, records that arrive twice must not change the output. Keep the ids of records in keyed "
            "state, with a time to live, and drop records whose id is there already.",
        )
    if not scenario.has_failures and (of_machine := _of_machine(scenario)):
        return of_machine
    if is_of_sink:
        return _of_sink(scenario)
    return _of_failures(scenario) or _of_order(scenario, sources)


def _of_sink(scenario: Scenario) -> tuple[str, str]:
    if scenario.has_failures:
        return (
            "a sink is not idempotent",
            "After a failure the sink receives records or committables again and publishes them twice, or a function "
            "writes by itself. Publish in the committer of a sink, together with a marker, and skip epochs whose "
            "marker is there.",
        )
    return (
        "what a sink writes depends on epochs and subtasks",
        "The sink receives the same records, but writes something else if they arrive in other epochs or at other "
        "subtasks: it overwrites or skips what another epoch or subtask has written. Use the epoch and the subtask in "
        "the names of what it writes.",
    )


def _of_error(scenario: Scenario, error: BaseException) -> tuple[str, str]:
    if isinstance(error, RunTimeoutError):
        return (
            "the job does not end",
            "The job ends without faults, but did not end in this run: a function waits for something that does not "
            "happen again, such as a lock or an answer. If no function does, this is a bug in headrace: please report "
            "it.",
        )
    if scenario.in_other_process:
        return (
            "the job fails in another process",
            "The job runs in the process of its program, but fails in a new one, such as a worker: a function needs "
            "what the program has set up, such as a global variable of a module. Set it up in open().",
        )
    return (
        "state cannot be restored, or a function fails when it is run again",
        "The job runs without faults, but fails when it reads its state again. Only keep values in state that can be "
        "pickled completely: no locks, connections, lambdas or classes with their own __reduce__.",
    )


def _of_machine(scenario: Scenario) -> tuple[str, str] | None:
    if scenario.clock_shift_s:
        return (
            "a function reads the wall clock",
            "The output depends on time.time(), time.strftime() or datetime.now(). Use the timestamp of the record, or "
            "ctx.timer_service().current_processing_time().",
        )
    if scenario.in_other_process:
        return (
            "a function is not the same in every process",
            "Results depend on hash() of a str, the order of a set, id() or os.getpid(), which differ from process to "
            "process. Sort sets before their order matters, and hash with hashlib or zlib.crc32().",
        )
    if scenario.time_zone is not None:
        return (
            "a function uses the time zone of the machine",
            "Results depend on TZ: datetime.fromtimestamp() and datetime.timestamp() without a zone, and "
            "time.localtime(), use it. Name the zone, as in datetime.fromtimestamp(seconds, tz=timezone.utc).",
        )
    return None


def _of_failures(scenario: Scenario) -> tuple[str, str] | None:
    if any(event.kind is Interruption.RESCALE or event.parallelism for event in scenario.events):
        return (
            "state outside of keyed state",
            "Results change with the parallelism: a function keeps values of a key in a field or in a global "
            "variable. Keep them in keyed state.",
        )
    if scenario.has_failures:
        return (
            "state outside of headrace's state",
            "Results change when a worker is lost or the job is restored: a function keeps values in a global variable "
            "or in a field that cannot be pickled. Keep them in state.",
        )
    return None


def _of_order(scenario: Scenario, sources: int) -> tuple[str, str]:
    if scenario.order_seed is not None:
        return (
            "results depend on the order of events",
            "Records that arrive in another order, within the bounds of the watermark strategy, give other results. "
            "Sort them by time in a window or with timers.",
        )
    if sources > 1:
        return (
            "results depend on the order of records of different inputs",
            "Only epochs, buffers, parallelism or the engine were changed, and records of more than one input are "
            "needed to show it. Which input's records arrive first is not defined. Keep records that arrive too early "
            "in state until those that they need are there, or compare timestamps.",
        )
    return (
        "results depend on the order of records, or on which subtask gets them",
        "Only epochs, buffers, parallelism or the engine were changed. Records of different subtasks and splits arrive "
        "in any order, and global variables and fields belong to one worker, not to a key. Use keyed state, also for "
        "values that a timer needs, and do not rely on the order of two inputs.",
    )

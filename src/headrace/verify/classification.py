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
            "The same run twice gives different output: a function uses random numbers, uuid4(), id(), the "
            "clock, or a global variable of a module that the program imports. Derive such values from the record, and "
            "keep others in state.",
        )
    if scenario.duplicate_seed is not None:
        return (
            "a duplicate record is counted twice",
            "--duplicates requires that it is not. Keep the ids of records in keyed state, with a time to "
            "live, and drop records whose id is known.",
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
            "After a failure the sink gets records or committables again, and publishes them twice, or a function "
            "writes by itself. Publish in the committer of a sink, and skip an epoch that a marker shows as "
            "published.",
        )
    return (
        "what a sink writes depends on epochs and subtasks",
        "The sink gets the same records, and writes something else if they come in other epochs or at other subtasks: "
        "it overwrites or skips what another epoch or subtask has written. Name what it writes by both.",
    )


def _of_error(scenario: Scenario, error: BaseException) -> tuple[str, str]:
    if isinstance(error, RunTimeoutError):
        return (
            "the job does not end",
            "The job ends without faults, and did not end in this run: a function waits for something that does not "
            "come again, such as a lock or an answer. If none does, this is a bug in headrace: please report it.",
        )
    if scenario.in_other_process:
        return (
            "the job fails in another process",
            "The job runs where its program runs, and fails in a new process, as workers are: a function needs what "
            "the program has set up, such as a global variable of a module. Set it up in open().",
        )
    return (
        "state cannot be restored, or a function fails when it is run again",
        "The job runs without faults, and fails when its state is read again. Keep values in state that pickle "
        "completely: no locks, connections, lambdas or classes with their own __reduce__.",
    )


def _of_machine(scenario: Scenario) -> tuple[str, str] | None:
    if scenario.clock_shift_s:
        return (
            "a function reads the wall clock",
            "Output follows time.time(), time.strftime() or datetime.now(). Use the timestamp of the record, or "
            "ctx.timer_service().current_processing_time().",
        )
    if scenario.in_other_process:
        return (
            "a function is not the same in every process",
            "Results depend on hash() of a str, the order of a set, id() or os.getpid(), which are different in "
            "another process. Sort sets before their order matters, and hash with hashlib or zlib.crc32().",
        )
    if scenario.time_zone is not None:
        return (
            "a function uses the time zone of the machine",
            "Results depend on TZ: datetime.fromtimestamp(), datetime.timestamp() without a zone or time.localtime() "
            "follow it. Name the zone, as in datetime.fromtimestamp(seconds, tz=timezone.utc).",
        )
    return None


def _of_failures(scenario: Scenario) -> tuple[str, str] | None:
    if any(event.kind is Interruption.RESCALE or event.parallelism for event in scenario.events):
        return (
            "state outside of keyed state",
            "Results change with the parallelism: a function keeps what belongs to a key in a field or in a "
            "global variable. Keep it in keyed state.",
        )
    if scenario.has_failures:
        return (
            "state outside of headrace's state",
            "Results change when a worker is lost or the job is restored: a function keeps something in a global "
            "variable or in a field that cannot be pickled. Keep it in state.",
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
            "Only epochs, buffers, parallelism or the engine were changed, and it takes records of more than one "
            "input. Which of them comes first is chance. Keep a record that comes too early in state until the one "
            "that it needs is there, or compare times.",
        )
    return (
        "results depend on the order of records, or on which subtask gets them",
        "Only epochs, buffers, parallelism or the engine were changed. Records of different subtasks and splits come "
        "in any order, and global variables and fields belong to one worker, not to a key. Use keyed state, also for "
        "what a timer needs, and do not rely on which of two inputs comes first.",
    )

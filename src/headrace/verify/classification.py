"""What a difference looks like, from what is left of the scenario that shows it."""

from __future__ import annotations

from headrace.verify.runs import RunOutcome
from headrace.verify.scenario import Interruption, Scenario


def classify(scenario: Scenario, outcome: RunOutcome, *, has_own_sinks: bool) -> tuple[str, str]:
    """Say what a difference looks like, from what is left of the scenario."""
    if outcome.error is not None and (scenario.faults or scenario.events or scenario.max_records):
        return (
            "state cannot be restored, or a function fails when it is run again",
            "The job runs without faults, and fails when its state is read again. Keep values in state that pickle "
            "completely: no locks, connections, lambdas or classes with their own __reduce__.",
        )
    if scenario == Scenario(seed=scenario.seed):
        return (
            "a function is not deterministic",
            "The same run twice gives different output: a function uses random numbers, uuid4(), id(), hash() of a "
            "str or the clock. Derive such values from the record, or seed them with it.",
        )
    if scenario.duplicate_seed is not None:
        return (
            "a record that comes twice counts twice",
            "You said with --duplicates that it should not. Keep the ids of records in keyed state, with a time to "
            "live, and drop those that are known.",
        )
    if scenario.clock_shift_s and not scenario.faults and not scenario.events:
        return (
            "a function reads the wall clock",
            "Output follows time.time() or datetime.now(). Use the timestamp of the record, or "
            "ctx.timer_service().current_processing_time().",
        )
    if has_own_sinks and (scenario.faults or scenario.events):
        return (
            "a sink is not idempotent",
            "After a failure the sink gets records or committables again, and publishes them twice. Publish in "
            "the committer, and skip what a mark of the epoch says was published.",
        )
    return _of_failures(scenario) or _of_order(scenario)


def _of_failures(scenario: Scenario) -> tuple[str, str] | None:
    if any(event.kind is Interruption.RESCALE or event.parallelism for event in scenario.events):
        return (
            "state outside of keyed state",
            "Results change when the parallelism does: a function keeps what belongs to a key in a field or in a "
            "global variable. Keep it in keyed state.",
        )
    if scenario.faults or scenario.events:
        return (
            "state outside of headrace's state",
            "Results change when a worker is lost or the job is restored: a function keeps something in a global "
            "variable or in a field that cannot be pickled. Keep it in state.",
        )
    return None


def _of_order(scenario: Scenario) -> tuple[str, str]:
    if scenario.order_seed is not None:
        return (
            "results depend on the order of events",
            "Records that come in another order, within the bounds of the watermark strategy, give other results. "
            "Sort them by time in a window or with timers.",
        )
    return (
        "results depend on the order of records, or on which subtask gets them",
        "Only epochs, buffers or parallelism were changed. Records of different subtasks and splits come in any "
        "order, and global variables and fields belong to one worker. Use keyed state, and do not rely on which of two "
        "inputs comes first.",
    )

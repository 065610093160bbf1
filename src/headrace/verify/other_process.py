"""Runs scenarios in another process, where `hash()` of a str, the order of sets and process ids are different.

    verification --job, records--> OtherProcess ==> python -m headrace.verify.other_process
                 --scenario, numbers of records-->  run_scenario
                 <--outcome--

It is started for the first of these runs, and serves all of them: one takes as long as in this process.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, BinaryIO

from headrace.errors import JobExecutionError
from headrace.spark.user_code import dump_by_value, pack_graph, unpack_graph
from headrace.verify.runs import RunOutcome, Subject, describe, run_scenario
from headrace.verify.scenario import Scenario

_WAITS_S = 10.0


class OtherProcess:
    """Another process for the runs of a job. A context manager that ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._packed: tuple[Any, ...] = ()

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_WAITS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def prepare(self, subject: Subject) -> Subject:
        """Return the job so that its scenarios run there; to be called before it is run anywhere else."""
        self._packed = _packed(subject)
        return replace(subject, elsewhere=self._run)

    def _run(self, subject: Subject, scenario: Scenario) -> RunOutcome:
        if self._process is None:
            self._process = _started()
            self._send(self._packed)
        numbers = {name: [each.index for each in records] for name, records in subject.inputs.items()}
        self._send((replace(scenario, in_other_process=False), numbers, subject.clock_times))
        assert self._process.stdout is not None
        try:
            outcome: RunOutcome = pickle.load(self._process.stdout)
        except EOFError:
            return RunOutcome(error=JobExecutionError("the other process ended"), scenario=scenario)
        return replace(outcome, scenario=replace(outcome.scenario, in_other_process=True))

    def _send(self, value: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # then there will be no answer
            pickle.dump(value, self._process.stdin)
            self._process.stdin.flush()


def _started() -> subprocess.Popen[bytes]:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    return subprocess.Popen(
        [sys.executable, "-m", "headrace.verify.other_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )


def _packed(subject: Subject) -> tuple[Any, ...]:
    """Return the job with its records, and where its modules are found."""
    plain = replace(subject, job=None, inputs={}, configuration=None)  # type: ignore[arg-type]
    return (
        [os.path.abspath(path) for path in sys.path],
        sys.argv,
        pack_graph(subject.job),
        dump_by_value((plain, subject.inputs, subject.configuration)),
    )


def serve(requests: BinaryIO, answer: Callable[[RunOutcome], None]) -> None:
    """Run what is asked for, until nobody asks any more."""
    packed = pickle.load(requests)
    try:
        subject = _unpacked(*packed)
    except Exception as error:  # noqa: BLE001 - whatever it is, workers would fail with it
        failed = RunOutcome(error=JobExecutionError(describe(error)))
        for _ in _requests(requests):
            answer(failed)
        return
    for scenario, numbers, clock_times in _requests(requests):
        kept = {
            name: [each for each in subject.inputs[name] if each.index in set(chosen)]
            for name, chosen in numbers.items()
        }
        outcome = run_scenario(replace(subject, inputs=kept, clock_times=clock_times), scenario)
        if outcome.error is not None:  # one of the program's own classes may not be known there
            outcome = replace(outcome, error=JobExecutionError(describe(outcome.error)))
        answer(outcome)


def _requests(requests: BinaryIO) -> Iterator[Any]:
    with suppress(EOFError):
        while True:
            yield pickle.load(requests)


def _unpacked(paths: list[str], arguments: list[str], graph: bytes, packed: bytes) -> Subject:
    sys.path.extend(path for path in paths if path not in sys.path)
    sys.argv = arguments
    job = unpack_graph(graph)
    vars(sys.modules["__main__"]).update(job.main_classes or {})  # state is pickled by the names of classes
    plain, inputs, configuration = pickle.loads(packed)
    subject: Subject = replace(plain, job=job, inputs=inputs, configuration=configuration)
    return subject


def main() -> None:
    """Serve the process that has started this one; what functions print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logging.getLogger("headrace").setLevel(logging.CRITICAL + 1)

    def answer(outcome: RunOutcome) -> None:
        pickle.dump(outcome, answers)
        answers.flush()

    serve(sys.stdin.buffer, answer)


if __name__ == "__main__":
    main()

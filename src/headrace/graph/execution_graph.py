"""The execution graph: subtasks, their attempts, and the states of all of them and of the job.

The JobMaster owns it and tells it what happened; it checks that this could happen and keeps the history. No
clock, no thread: times come in with each call, in milliseconds since the epoch.

    ExecutionGraph --1:n--> ExecutionJobVertex --1:parallelism--> ExecutionVertex --1:attempts--> Execution
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from headrace.common.job_status import JobStatus
from headrace.errors import InvariantViolation
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.state.key_groups import key_group_range


class ExecutionState(Enum):
    """Where an attempt to run a subtask stands.

    CREATED -> SCHEDULED -> DEPLOYING -> INITIALIZING -> RUNNING -> FINISHED
       |           |            |             |             |
       |           |            +-------------+-------------+--> CANCELING -> CANCELED
       +-----------+---- never deployed: cancelled at once -------------------^

    FAILED can be reached from every state that is not an end.
    """

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing comes after it."""
        return not EXECUTION_TRANSITIONS[self]


_E = ExecutionState
#: State -> the states that may follow it.
EXECUTION_TRANSITIONS: Final[Mapping[ExecutionState, frozenset[ExecutionState]]] = MappingProxyType(
    {
        _E.CREATED: frozenset({_E.SCHEDULED, _E.CANCELED, _E.FAILED}),
        _E.SCHEDULED: frozenset({_E.DEPLOYING, _E.CANCELED, _E.FAILED}),
        _E.DEPLOYING: frozenset({_E.INITIALIZING, _E.CANCELING, _E.FAILED}),
        # Without INITIALIZING -> FINISHED a subtask that has nothing to do would have to pretend to run.
        _E.INITIALIZING: frozenset({_E.RUNNING, _E.FINISHED, _E.CANCELING, _E.FAILED}),
        _E.RUNNING: frozenset({_E.FINISHED, _E.CANCELING, _E.FAILED}),
        _E.CANCELING: frozenset({_E.CANCELED, _E.FAILED}),
        _E.FINISHED: frozenset(),
        _E.CANCELED: frozenset(),
        _E.FAILED: frozenset(),
    }
)

_J = JobStatus
#: Status of a job -> those that may follow it. SUSPENDED: this master gives the job up, another may continue.
#:
#:     CREATED -> RUNNING -> FINISHED
#:        |        |  ^ |
#:        |        v  | +--> CANCELLING -> CANCELED      also from CREATED, RESTARTING, FAILING
#:        |   RESTARTING |
#:        +--------+-----+--> FAILING -> FAILED          FAILING -> RESTARTING when the strategy allows it
JOB_TRANSITIONS: Final[Mapping[JobStatus, frozenset[JobStatus]]] = MappingProxyType(
    {
        _J.CREATED: frozenset({_J.RUNNING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED}),
        _J.RUNNING: frozenset({_J.FINISHED, _J.RESTARTING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED}),
        _J.RESTARTING: frozenset({_J.CREATED, _J.RUNNING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED}),
        _J.FAILING: frozenset({_J.FAILED, _J.RESTARTING, _J.CANCELLING, _J.SUSPENDED}),
        _J.CANCELLING: frozenset({_J.CANCELED, _J.FAILING, _J.SUSPENDED}),
        _J.RECONCILING: frozenset({_J.RUNNING, _J.RESTARTING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED}),
        _J.FINISHED: frozenset(),
        _J.CANCELED: frozenset(),
        _J.FAILED: frozenset(),
        _J.SUSPENDED: frozenset(),
    }
)

#: Ended attempts a subtask remembers (Flink's ``jobmanager.execution.attempts-history-size``).
ATTEMPTS_KEPT: Final = 16
#: Transitions an entity remembers for its story.
STORY_LENGTH: Final = 32


class Execution:
    """One attempt to run one subtask."""

    def __init__(self, name: str, attempt: int, now_ms: int) -> None:
        #: The subtask for people: ``Map (2/4)``.
        self.name = name
        #: Counts from 0.
        self.attempt = attempt
        self.state = ExecutionState.CREATED
        #: When each state was entered, first time; in order.
        self.timestamps: dict[ExecutionState, int] = {ExecutionState.CREATED: now_ms}
        #: Why it failed; set if and only if the state is FAILED.
        self.failure_cause: BaseException | None = None
        self._story = deque([f"{now_ms} CREATED"], maxlen=STORY_LENGTH)

    @property
    def story(self) -> tuple[str, ...]:
        """The last transitions, oldest first."""
        return tuple(self._story)

    def transition(self, state: ExecutionState, now_ms: int, cause: BaseException | None = None) -> None:
        """Enter a state.

        Raises:
            InvariantViolation: If the state cannot follow the present one, or only one of FAILED and a cause
                was given.
        """
        if state not in EXECUTION_TRANSITIONS[self.state]:
            raise self._violation(f"{self.state.name} -> {state.name} is not a legal transition")
        if (state is ExecutionState.FAILED) != (cause is not None):
            raise self._violation(
                f"-> {state.name} with cause {cause!r}: FAILED, and only FAILED, has a cause"
            )
        self._story.append(f"{now_ms} {self.state.name} -> {state.name}" + (f": {cause!r}" if cause else ""))
        self.state = state
        self.timestamps[state] = now_ms
        self.failure_cause = cause

    def _violation(self, what: str) -> InvariantViolation:
        return InvariantViolation(f"{self.name}, attempt {self.attempt}: {what}", story=self.story)

    def __repr__(self) -> str:
        return f"Execution({self.name!r}, attempt={self.attempt}, {self.state.name})"


class ExecutionVertex:
    """One subtask, with its attempts."""

    def __init__(self, vertex: JobVertex, subtask_index: int, now_ms: int) -> None:
        self.subtask_index = subtask_index
        self.name = f"{vertex.name} ({subtask_index + 1}/{vertex.parallelism})"
        #: The key groups whose state it owns.
        self.key_groups = key_group_range(subtask_index, vertex.max_parallelism, vertex.parallelism)
        #: Oldest first; the last one is the present one. Only `ATTEMPTS_KEPT` ended ones are kept.
        self.attempts = [Execution(self.name, 0, now_ms)]

    @property
    def current(self) -> Execution:
        """The latest attempt at running the subtask."""
        return self.attempts[-1]

    def new_attempt(self, now_ms: int) -> Execution:
        """Start over.

        Raises:
            InvariantViolation: If the present attempt has not ended.
        """
        ended = self.current
        if not ended.state.is_terminal:
            raise InvariantViolation(
                f"{self.name}: a new attempt while attempt {ended.attempt} is {ended.state.name}",
                story=ended.story,
            )
        self.attempts.append(Execution(self.name, ended.attempt + 1, now_ms))
        del self.attempts[: -ATTEMPTS_KEPT - 1]
        return self.current

    def __repr__(self) -> str:
        return f"ExecutionVertex({self.name!r}, {self.current.state.name})"


class ExecutionJobVertex:
    """A vertex of the job graph with its subtasks."""

    def __init__(self, vertex: JobVertex, now_ms: int) -> None:
        self.vertex = vertex
        self.subtasks = tuple(ExecutionVertex(vertex, index, now_ms) for index in range(vertex.parallelism))

    def state_counts(self) -> dict[ExecutionState, int]:
        """Say how many subtasks are in each state; every state is listed."""
        counts = Counter(subtask.current.state for subtask in self.subtasks)
        return {state: counts[state] for state in ExecutionState}

    @property
    def state(self) -> ExecutionState:
        """The state of the whole vertex, as Flink sums it up: trouble first, then activity."""
        counts = self.state_counts()
        for state in (_E.FAILED, _E.CANCELING, _E.CANCELED, _E.INITIALIZING, _E.RUNNING):
            if counts[state]:
                return state
        if counts[_E.FINISHED]:
            return _E.FINISHED if counts[_E.FINISHED] == len(self.subtasks) else _E.RUNNING
        return _E.CREATED

    def __repr__(self) -> str:
        return f"ExecutionJobVertex({self.vertex.name!r}, {self.state.name})"


class ExecutionGraph:
    """The states of a job and of everything in it. Made by `build_execution_graph`."""

    def __init__(self, job_graph: JobGraph, now_ms: int) -> None:
        self.job_graph = job_graph
        #: By vertex id, in the job graph's order.
        self.job_vertices: dict[str, ExecutionJobVertex] = {
            vertex.vertex_id: ExecutionJobVertex(vertex, now_ms) for vertex in job_graph.vertices
        }
        self.status = JobStatus.CREATED
        #: When each status was entered, last time.
        self.status_timestamps: dict[JobStatus, int] = {JobStatus.CREATED: now_ms}
        #: Why the job last began to fail or restart.
        self.failure_cause: BaseException | None = None
        self._story = deque([f"{now_ms} CREATED"], maxlen=STORY_LENGTH)

    @property
    def story(self) -> tuple[str, ...]:
        """The job's last transitions, oldest first."""
        return tuple(self._story)

    def __iter__(self) -> Iterator[ExecutionJobVertex]:
        return iter(self.job_vertices.values())

    def subtask(self, vertex_id: str, subtask: int) -> ExecutionVertex:
        return self.job_vertices[vertex_id].subtasks[subtask]

    def subtasks(self) -> Iterator[tuple[str, ExecutionVertex]]:
        """All subtasks, each with the id of its vertex."""
        for vertex_id, job_vertex in self.job_vertices.items():
            for subtask in job_vertex.subtasks:
                yield vertex_id, subtask

    def transition(
        self,
        vertex_id: str,
        subtask: int,
        state: ExecutionState,
        now_ms: int,
        cause: BaseException | None = None,
    ) -> None:
        """Put the present attempt of a subtask into a state.

        Raises:
            InvariantViolation: If the state cannot follow the present one.
        """
        self.subtask(vertex_id, subtask).current.transition(state, now_ms, cause)

    def schedule(self, now_ms: int) -> None:
        """All subtasks that were just created wait for slots."""
        for _, subtask in self.subtasks():
            if subtask.current.state is _E.CREATED:
                subtask.current.transition(_E.SCHEDULED, now_ms)

    def deploy(self, now_ms: int, vertices: Collection[str] | None = None) -> None:
        """All subtasks, or those of some vertices, have slots, and run."""
        self.schedule(now_ms)
        for state in (_E.DEPLOYING, _E.INITIALIZING, _E.RUNNING):
            for vertex_id, subtask in self.subtasks():
                if vertices is None or vertex_id in vertices:
                    subtask.current.transition(state, now_ms)

    def finish(self, vertex_id: str, subtask: int, now_ms: int) -> None:
        """A subtask has done all it ever will; nothing changes if it has ended already."""
        current = self.subtask(vertex_id, subtask).current
        if not current.state.is_terminal:
            current.transition(_E.FINISHED, now_ms)

    def end(
        self,
        state: ExecutionState,
        now_ms: int,
        cause: BaseException | None = None,
        vertices: Collection[str] | None = None,
    ) -> None:
        """All subtasks, or those of some vertices, that have not ended do so: CANCELED or FAILED."""
        for vertex_id, subtask in self.subtasks():
            current = subtask.current
            if current.state.is_terminal or not (vertices is None or vertex_id in vertices):
                continue
            if state is _E.CANCELED and current.state is _E.RUNNING:
                current.transition(_E.CANCELING, now_ms)
            current.transition(state, now_ms, cause)

    def new_attempt(self, vertex_id: str, subtask: int, now_ms: int) -> Execution:
        """Start a subtask over; its last attempt must have ended."""
        return self.subtask(vertex_id, subtask).new_attempt(now_ms)

    def set_job_status(self, status: JobStatus, now_ms: int, cause: BaseException | None = None) -> None:
        """Put the job into a status.

        Raises:
            InvariantViolation: If the status cannot follow the present one, or the job would be FINISHED
                while a subtask is not.
        """
        if status not in JOB_TRANSITIONS[self.status]:
            raise self._violation(f"{self.status.name} -> {status.name} is not a legal transition")
        if status is JobStatus.FINISHED:
            open_ones = [s.name for _, s in self.subtasks() if s.current.state is not ExecutionState.FINISHED]
            if open_ones:
                raise self._violation(f"FINISHED while {open_ones[0]} is not ({len(open_ones)} in all)")
        self._story.append(
            f"{now_ms} {self.status.name} -> {status.name}" + (f": {cause!r}" if cause else "")
        )
        self.status = status
        self.status_timestamps[status] = now_ms
        if cause is not None:
            self.failure_cause = cause

    def vertex_state(self, vertex_id: str) -> ExecutionState:
        """The state of a whole vertex, as Flink sums it up."""
        return self.job_vertices[vertex_id].state

    def state_counts(self) -> dict[ExecutionState, int]:
        """Say how many subtasks of the job are in each state; every state is listed."""
        counts = Counter(subtask.current.state for _, subtask in self.subtasks())
        return {state: counts[state] for state in ExecutionState}

    def _violation(self, what: str) -> InvariantViolation:
        return InvariantViolation(f"job {self.job_graph.name!r}: {what}", story=self.story)

    def __repr__(self) -> str:
        return f"ExecutionGraph({self.job_graph.name!r}, {self.status.name})"


def build_execution_graph(job_graph: JobGraph, now_ms: int) -> ExecutionGraph:
    """Create the subtasks of every vertex, all in state CREATED."""
    return ExecutionGraph(job_graph, now_ms)

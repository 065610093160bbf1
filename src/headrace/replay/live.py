"""Has a live task do what its loop had it do when the job ran (`runtime/task/script.py`)."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

from headrace.errors import StateError
from headrace.runtime.exchange.buffers import Header, read_header
from headrace.runtime.task.live_task import LiveTask
from headrace.runtime.task.script import Script, ScriptStep

_Arguments = tuple[int, ...]


class ScriptPlayer:
    """Plays the script of one subtask.

    Args:
        script: What it did.
        name: The subtask, for messages.
        buffers: What those before it have sent in the replay.
        has_failed: Whether the subtask failed; those before it are not replayed, then.

    Raises:
        StateError: If the script is not complete.
    """

    def __init__(
        self, script: Script, name: str, buffers: Sequence[tuple[Header, bytes]], *, has_failed: bool
    ) -> None:
        lacks_input = has_failed and script.buffers is None
        if script.is_cut_short or lacks_input:
            what = "the input of" if lacks_input else "the order of the input of"
            raise StateError(
                f"{what} {name} in this epoch is not recorded: it was larger than headrace.replay.live.max-size",
                hint="raise headrace.replay.live.max-size, or take checkpoints more often",
            )
        self._script = script
        self._name = name
        #: Buffers that were sent again, each channel's in order.
        self._sent: dict[tuple[int, int], list[tuple[Header, bytes]]] = defaultdict(list)
        for header, buffer in buffers:
            self._sent[header.edge_id, header.producer].append((header, buffer))
        #: Those that a task which failed had kept.
        self._kept = script.buffers
        self._next_kept = 0
        #: How many buffers were not sent again.
        self.missing = 0

    @property
    def has_copies(self) -> bool:
        """Whether some of the input is of another epoch."""
        return bool(self._script.copies)

    @property
    def input(self) -> list[tuple[Header, bytes]]:
        """The buffers that the task gets, in their order, without those of other epochs."""
        self._next_kept = 0
        wanted = (arguments for step, arguments in self._script.steps if step is ScriptStep.BUFFER)
        return [found for found in map(self._buffer, wanted) if found is not None]

    def play(self, task: LiveTask) -> None:
        """Have the task do all of it."""
        self._next_kept = 0
        reading: Iterator[None] = iter(())
        steps = self._script.steps
        for (step, arguments), following in itertools.zip_longest(steps, steps[1:]):
            is_cut = following is not None and following[0] is ScriptStep.CUT
            most = following[1][0] if is_cut else None
            match step:
                case ScriptStep.BUFFER:
                    self._take(task, self._buffer(arguments), most)
                case ScriptStep.COPY:
                    copy = self._script.copies[arguments[0]]
                    self._take(task, (read_header(copy), copy), most)
                case ScriptStep.FEED:
                    reading = task.feed(self._script.feeds[arguments[0]])
                case ScriptStep.READ_ON:
                    next(reading, None)
                case ScriptStep.TICK:
                    task.tick()
                case ScriptStep.WATERMARKS:
                    task.emit_periodic_watermarks()
                case ScriptStep.FLUSH:
                    task.flush()
                case ScriptStep.END:
                    task.end()
                case ScriptStep.MARK:
                    task.mark_latency()
                case ScriptStep.CHECKPOINT_ENDED:
                    task.notify_checkpoint(arguments[0], is_complete=bool(arguments[1]))

    def _take(self, task: LiveTask, found: tuple[Header, bytes] | None, most: int | None) -> None:
        if found is None:
            self.missing += 1
            return
        questions = itertools.count(1)
        task.take_buffer(*found, lambda: next(questions) == most)

    def _buffer(self, arguments: _Arguments) -> tuple[Header, bytes] | None:
        if self._kept is not None:
            buffer = self._kept[self._next_kept]
            self._next_kept += 1
            return read_header(buffer), buffer
        edge_id, producer, number = arguments
        sent = self._sent[edge_id, producer]
        return sent[number] if number < len(sent) else None

"""LiveSampling: samples the stack of a live subtask's loop while a user looks at its flame graph."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

from headrace.runtime.control.messages import Message, SampleStacks, SubtaskSamples
from headrace.runtime.task.stack_sampling import StackSampler


class LiveSampling:
    """The samples of one subtask: started and stopped by the thread that listens, sent by the one that beats.

    Args:
        tell: Sends a message to the driver.
    """

    def __init__(self, tell: Callable[[Message], None]) -> None:
        self._tell = tell
        self._loop: int | None = None
        self._sampler: StackSampler | None = None

    def begin(self) -> None:
        """The loop runs in this thread."""
        self._loop = threading.get_ident()

    def on_request(self, request: SampleStacks) -> None:
        """Start to sample the loop, or stop; not by the loop, which may be at work on a record for long."""
        self.close()
        if request.delay_s and self._loop is not None:
            self._sampler = StackSampler(request.delay_s, request.depth, self._loop)
            self._sampler.__enter__()

    def send(self) -> None:
        """Send the samples since the last time, if there are any."""
        sampler = self._sampler
        samples = {} if sampler is None else sampler.take()
        if samples:
            self._tell(SubtaskSamples(pickle.dumps(samples, protocol=5)))

    def close(self) -> None:
        """Stop; samples that were not sent are not needed any more."""
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.__exit__(None, None, None)

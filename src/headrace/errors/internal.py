"""The error for a bug in headrace."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors.base import HeadraceError


class InvariantViolation(HeadraceError):
    """Headrace reached a state it should never be in. This is a bug in headrace.

    Cause:
        A mistake in headrace, not in your program. `story` lists what happened before.

    Remedy:
        Report it with the whole message. Restarting the job from its last checkpoint usually lets it continue.

    Args:
        message: Which invariant does not hold.
        story: The last transitions of the thing concerned, oldest first.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(InvariantViolation("finished twice", story=["CREATED -> RUNNING", "RUNNING -> FINISHED"]))
        finished twice
          story: CREATED -> RUNNING
                 RUNNING -> FINISHED
    """

    def __init__(
        self,
        message: str,
        *,
        story: Iterable[object] = (),
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.story = tuple(str(event) for event in story)

    def _details(self) -> list[str]:
        leads = ["  story: ", *["         "] * len(self.story)]
        return [lead + event for lead, event in zip(leads, self.story, strict=False)]

"""What all errors have in common: who has to act, whether to try again, and what a running job does about them."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Literal

Domain = Literal["user", "external", "internal"]


class RecoveryAction(Enum):
    """What a running job does about an error."""

    #: The epoch runs again, with the same input, a few times; then the restart strategy decides.
    RUN_EPOCH_AGAIN = "run the epoch again"
    #: The job goes back to its newest checkpoint without damage at once, whatever the restart strategy.
    RESTORE = "restore"
    #: The restart strategy decides.
    ASK_STRATEGY = "ask the restart strategy"
    #: The job fails: another try with nothing changed would end in the same way.
    FAIL = "fail"
    #: The job ends as cancelled.
    CANCEL = "cancel"
    #: The job ends here, and continues in the process that leads it.
    HAND_OVER = "hand over"


def recovery_of(error: BaseException) -> RecoveryAction:
    """Return what a running job does about any error; those of others may go away with a restart."""
    if isinstance(error, HeadraceError):
        return error.recovery
    return RecoveryAction.ASK_STRATEGY if isinstance(error, Exception) else RecoveryAction.FAIL


class HeadraceError(Exception):
    """Base class of all errors that headrace raises.

    Cause:
        Never raised itself. Catch it to catch every error of headrace.

    Remedy:
        Read the message, and the hint on its last line. `domain` says who has to act: you (`user`), an external system
        (`external`) or headrace (`internal`).

    Args:
        message: Where it happened, what was expected, what came.
        hint: What to do about it; shown on a line of its own.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(HeadraceError("the tank is empty", hint="fill it"))
        the tank is empty
        hint: fill it
    """

    #: Who has to act: the author of the program, an external system, or headrace itself.
    domain: Domain = "internal"
    #: Whether trying again, with nothing changed, may succeed.
    retryable: bool = False
    #: Set where `retryable` does not say enough.
    _recovery: ClassVar[RecoveryAction | None] = None

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

    @property
    def recovery(self) -> RecoveryAction:
        """What a running job does about this error."""
        return self._recovery or (RecoveryAction.ASK_STRATEGY if self.retryable else RecoveryAction.FAIL)

    def _details(self) -> list[str]:
        """Lines shown between the message and the hint."""
        return []

    def __str__(self) -> str:
        lines = [self.message, *self._details()]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with `args` alone and lose keyword arguments. A cause travels only
        # if it is ours: a class of the user's might not be importable where the error is read.
        cause = self.__cause__
        if cause is self or not isinstance(cause, HeadraceError):
            cause = None
        return _restore, (type(self), self.args, dict(self.__dict__), cause)


def _restore(
    kind: type[HeadraceError], args: tuple[Any, ...], attributes: dict[str, Any], cause: HeadraceError | None
) -> HeadraceError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    if cause is not None:
        error.__cause__ = cause
    return error

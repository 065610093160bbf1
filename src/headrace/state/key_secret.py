"""The secret of a job that goes into the hashes of its SQL keys, so that nobody can choose two keys that collide."""

from __future__ import annotations

import secrets
from typing import Self

import msgspec

#: As many bits as the hashes have.
_BYTES = 16


class KeySecret(msgspec.Struct, frozen=True):
    """Random bytes that a job gets when it first starts, and keeps with its state from then on.

    Keys are found in state by their hashes, so a job that is restored, rescaled or restarted must have the same secret.
    It never appears in text: not in logs, plans or answers of the REST API.
    """

    value: bytes

    @classmethod
    def new(cls) -> Self:
        """Return a secret that cannot be predicted."""
        return cls(secrets.token_bytes(_BYTES))

    def __repr__(self) -> str:
        return "KeySecret(...)"

"""Which objects may be shared, and copies of those that may not.

A function may continue changing an object it has emitted or stored. Numbers, strings and tuples of them cannot be
changed, so they are passed on as they are; anything else is copied, as Flink copies between operators unless object
reuse is enabled.
"""

from __future__ import annotations

import datetime
import pickle
import uuid
from decimal import Decimal
from typing import Any

ATOMS = frozenset(
    {
        int,
        str,
        float,
        bool,
        type(None),
        bytes,
        complex,
        Decimal,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        uuid.UUID,
    }
)
is_all_atoms = ATOMS.issuperset


def is_immutable(value: Any) -> bool:
    """Whether a value can be shared without a copy: an atom, or a plain tuple of such."""
    kind = type(value)
    if kind in ATOMS:
        return True
    return kind is tuple and (is_all_atoms(map(type, value)) or all(map(is_immutable, value)))


def isolated(value: Any) -> Any:
    """Return the value itself if it cannot be changed, a copy otherwise."""
    if type(value) in ATOMS or is_immutable(value):
        return value
    return pickle.loads(pickle.dumps(value, protocol=5))

"""How an edge chooses the channel of a record: the declarations.

The API puts one on an edge, the job graph carries it, the exchange builds the function that does it. User
functions stay as they were given (a callable, or an object with ``get_key`` / ``partition``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class EdgePartitioner:
    """Base of the declarations below; `name` is what plans show as the ship strategy."""

    name: ClassVar[str]
    #: Whether a producer reaches only some consumers, chosen by position.
    is_pointwise: ClassVar[bool] = False


@dataclass(frozen=True)
class Forward(EdgePartitioner):
    """Subtask i to subtask i; both sides have the same parallelism."""

    name = "FORWARD"
    is_pointwise = True


@dataclass(frozen=True)
class Rebalance(EdgePartitioner):
    """Round robin over all consumers."""

    name = "REBALANCE"


@dataclass(frozen=True)
class Rescale(EdgePartitioner):
    """Round robin over the consumers near the producer.

    Of 2 producers and 4 consumers, the first producer serves consumers 0 and 1, the second 2 and 3.
    """

    name = "RESCALE"
    is_pointwise = True


@dataclass(frozen=True)
class Shuffle(EdgePartitioner):
    """Sends each record to a random subtask."""

    name = "SHUFFLE"


@dataclass(frozen=True)
class Broadcast(EdgePartitioner):
    """Every consumer gets every record."""

    name = "BROADCAST"


@dataclass(frozen=True)
class Global(EdgePartitioner):
    """Everything to the first consumer."""

    name = "GLOBAL"


@dataclass(frozen=True)
class KeyGroups(EdgePartitioner):
    """The consumer that owns the key group of the record's key."""

    name = "HASH"

    key_selector: Any


@dataclass(frozen=True)
class Custom(EdgePartitioner):
    """The consumer whose number the user's partitioner returns for the record's key."""

    name = "CUSTOM"

    partitioner: Any
    key_selector: Any

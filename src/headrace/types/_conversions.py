"""What PyFlink's table types have for its way to the JVM, and headrace's do not."""

from __future__ import annotations

from headrace.util.missing_members import MissingMember

_HINT = "leave it out: values stay Python's"


class NoConversions:
    """A type whose values are never converted, so it has no methods for that."""

    __slots__ = ()

    bridged_to = MissingMember(_HINT)
    from_sql_type = MissingMember(_HINT)
    need_conversion = MissingMember(_HINT)
    to_sql_type = MissingMember(_HINT)


class NoEpoch:
    """A type whose values are not counted from a first day."""

    __slots__ = ()

    EPOCH_ORDINAL = MissingMember(_HINT)

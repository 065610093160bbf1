"""String functions that workers compute as Spark does: LOWER, regular expressions, splitting.

Regular expressions of Java and of Arrow (RE2) agree only for patterns that `is_plain_pattern` accepts.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import NotComputedError

__all__ = ["is_plain_pattern", "lower", "matched", "part", "parts"]

#: Signs that stand for themselves.
_SIGNS: Final = r"\w=/:,;@#%<>~ !&"
#: Signs and classes of them, groups, alternatives; repeated, but for groups: what a group that matches nothing has last
#: matched is not the same everywhere. No ``.`` and ``$``: lines end elsewhere.
_PLAIN: Final = re.compile(
    rf"(?:(?:[{_SIGNS}-]|\[\^?[{_SIGNS}]+\])(?:[*+?](?![*+?]))?|\((?![?*+])|\)(?![?*+])|\||\^(?![*+?]))*",
    re.ASCII,
)


def is_plain_pattern(pattern: str) -> bool:
    r"""Whether a regular expression means the same to Java and to Arrow.

    >>> is_plain_pattern("(&|^)channel_id=([^&]*)")
    True
    >>> [is_plain_pattern(each) for each in ("a.c", "a$", r"\d", "(a|b)*", "a*+", "[a&&b]", "(?i)a", "(a")]
    [False, False, False, False, False, False, False, False]
    """
    if _PLAIN.fullmatch(pattern) is None or "&&" in pattern:
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def lower(texts: pa.Array) -> pa.Array:
    """Return texts in small letters.

    Raises:
        NotComputedError: There are letters beyond ASCII.
    """
    if pc.all(pc.string_is_ascii(texts)).as_py() is False:
        raise NotComputedError("LOWER of letters beyond ASCII")
    return pc.ascii_lower(texts)


def matched(texts: pa.Array, pattern: str) -> pa.Array:
    """Return what the groups of a pattern have matched, as ``g1``, ``g2``, ...; NULL where nothing was found."""
    groups = re.compile(pattern).groups
    if not groups:
        found = pc.match_substring_regex(texts, pattern)
        nothing = pa.nulls(len(texts), pa.string())
        return pa.StructArray.from_arrays([nothing], ["g1"], mask=pc.invert(pc.fill_null(found, False)))
    pieces = pattern.split("(")
    named = pieces[0] + "".join(f"(?P<g{at}>{piece}" for at, piece in enumerate(pieces[1:], 1))
    return pc.extract_regex(texts, named)


def parts(texts: pa.Array, separator: str) -> pa.Array:
    """Return what is between separators, as lists."""
    return pc.split_pattern(texts, separator)


def part(lists: pa.Array, place: int) -> pa.Array:
    """Return one element of each list; NULL where there are fewer."""
    offsets: Any = lists.offsets.to_numpy()
    places = offsets[:-1].astype(np.int64) + place
    is_missing = (places >= offsets[1:]) | lists.is_null().to_numpy(zero_copy_only=False)
    return lists.values.take(pa.array(places, mask=is_missing))

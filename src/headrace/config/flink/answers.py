"""What headrace makes of a key of Flink's that is not one of its own options.

    mapped       stands for settings of Spark or variables of the environment, and is turned into them
    no effect    asks for nothing that a result or an operator could miss; setting it is pointed out once
    refused      asks for something that is not there: an error that names what to use instead

A key that is refused may still be set to Flink's own default, which asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Answer", "AnswerKind", "Rules", "mapped", "no_effect", "refused"]

#: Turns the value of a key, and what is left of the key after the prefix of its rule, into settings.
Settings = Callable[[str, str], Mapping[str, str]]


class AnswerKind(Enum):
    """What happens to a key."""

    MAPPED = "mapped"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Answer:
    """What happens to a key, or of all keys with a prefix."""

    kind: AnswerKind
    #: For a mapped key what it becomes, else the reason and what to use instead.
    text: str
    #: Of a mapped key: raises ValueError for a value that it cannot turn into settings.
    settings: Settings | None = field(default=None, compare=False)


def mapped(text: str, settings: Settings) -> Answer:
    """Have a key stand for settings; those that start with `spark.` are Spark's, others are variables."""
    return Answer(AnswerKind.MAPPED, text, settings)


def no_effect(reason: str) -> Answer:
    """Accept a key, and say that it does nothing."""
    return Answer(AnswerKind.NO_EFFECT, reason)


def refused(reason: str) -> Answer:
    """Refuse a key, unless it has Flink's default value."""
    return Answer(AnswerKind.REFUSED, reason)


class Rules:
    """Answers by key, or by a prefix that ends in a dot; the longest match counts.

    Example:
        >>> rules = Rules({"pekko.": no_effect("Spark has its own calls"), "pekko.ssl.enabled": refused("no TLS")})
        >>> rules.find("pekko.throughput")[0].kind, rules.find("pekko.ssl.enabled")[0].kind
        (<AnswerKind.NO_EFFECT: 'no effect'>, <AnswerKind.REFUSED: 'refused'>)
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = dict(answers)

    def __iter__(self) -> Iterator[tuple[str, Answer]]:
        return iter(self._answers.items())

    def find(self, key: str) -> tuple[Answer, str] | None:
        """Return the answer to a key with what follows the prefix of its rule, if there is one."""
        exact = self._answers.get(key)
        if exact is not None:
            return exact, ""
        end = key.rfind(".")
        while end >= 0:
            found = self._answers.get(key[: end + 1])
            if found is not None:
                return found, key[end + 1 :]
            end = key.rfind(".", 0, end)
        return None

"""Renders docs/flink_keys.md: every key of Flink's configuration pages, and what happens to it here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from headrace.config.flink.answers import AnswerKind
from headrace.config.flink.documented import DocumentedKey, documented_keys
from headrace.config.flink.reporters import answer_of_reporter
from headrace.config.options.table import Only
from headrace.config.registry import KnownKey, known_options

__all__ = ["FLINK_PAGE", "answer_in_words", "render_flink_keys"]

#: The page in a checkout of the repository.
FLINK_PAGE: Final = Path(__file__).parents[3] / "docs" / "flink_keys.md"

_HEAD: Final = """\
# Flink's configuration keys

<!-- Written by `python -m headrace.config.docs` from src/headrace/config/flink. Change it there. -->

You can use the configuration file of a Flink cluster: copy its `config.yaml` to `headrace.yaml`. This page lists all {count}
keys that Flink 2.3 documents, and what headrace does with them:

| answer | keys | meaning |
|---|---|---|
| honoured | {honoured} | an option of headrace with the same meaning: [configuration.md](configuration.md) |
| mapped | {mapped} | becomes the settings of Spark, or the environment variables, that are named. A `spark.*` setting of yours is stronger |
| no effect | {no_effect} | tunes something that headrace or Spark does not have. `headrace run` says so when it starts |
| refused | {refused} | asks for something that is not there. Any value but Flink's default is an error, which names what to use instead |

`headrace config` shows what became of each key that you have set. Names that Flink's keys had in earlier
versions work, with a warning that names the present one. Keys that neither Flink nor headrace has are errors.
"""  # noqa: E501  # rows of a table are one line each


def answer_in_words(known: KnownKey) -> tuple[str, str]:
    """Return what happens to a key, in a word, and the counterpart or reason."""
    if known.ignored_because:
        return AnswerKind.NO_EFFECT.value, known.ignored_because
    if known.answer is not None:
        return known.answer.kind.value, known.answer.text
    assert known.option is not None  # keys of Spark are not Flink's
    check = known.option.check
    if isinstance(check, Only) and len(check.allowed) == 1:
        return AnswerKind.REFUSED.value, check.reason
    if known.option.key == known.key:
        return "honoured", ""
    return "honoured", f"as `{known.option.key}`"


def render_flink_keys() -> str:
    """Make the text of the page."""
    rows = [(each, *_answer(each)) for each in documented_keys().values()]
    counts = Counter(answer for _, answer, _ in rows)
    head = _HEAD.format(
        count=len(rows),
        honoured=counts["honoured"],
        mapped=counts["mapped"],
        no_effect=counts["no effect"],
        refused=counts["refused"],
    )
    table = ["| key | type | default in Flink | here | counterpart or reason |", "|---|---|---|---|---|"]
    return "\n".join([head, *table, *(_row(*row) for row in rows), ""])


def _answer(key: DocumentedKey) -> tuple[str, str]:
    return answer_of_reporter(key.key) or answer_in_words(known_options().look_up(key.example))


def _row(key: DocumentedKey, answer: str, text: str) -> str:
    default = f"`{key.default}`" if key.default and key.default != "(none)" else ""
    cells = (f"`{key.key}`", f"`{key.type}`" if "<" in key.type else key.type, default, answer, text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

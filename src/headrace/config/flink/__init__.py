"""Keys of Flink's configuration pages, and what happens to those that are not options of headrace.

`keys.tsv` has the names, types and defaults of all keys that Flink 2.3 documents (`scripts/flink_keys.py` writes it).
`mapped.py` and `others.py` answer those that have no option of their own; docs/flink_keys.md is made of all three.
`former.tsv` has names of earlier versions that Flink 2.3 still reads, each with the present one.
"""

from headrace.config.flink.answers import Answer, AnswerKind
from headrace.config.flink.documented import DocumentedKey, documented_keys, former_keys
from headrace.config.flink.table import RULES, answer_to, is_flinks_default

__all__ = [
    "RULES",
    "Answer",
    "AnswerKind",
    "DocumentedKey",
    "answer_to",
    "documented_keys",
    "former_keys",
    "is_flinks_default",
]

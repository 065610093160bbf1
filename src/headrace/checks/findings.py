"""What a check finds: the rules by code, and one finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.util.call_sites import ProgramLine

__all__ = ["RULES", "CheckFinding", "Rule"]


@dataclass(frozen=True)
class Rule:
    """One thing that is checked."""

    code: str
    title: str
    #: What goes wrong if nobody does anything about it.
    reason: str
    #: What to do.
    hint: str


RULES: Final[dict[str, Rule]] = {
    rule.code: rule
    for rule in (
        Rule(
            "HR101",
            "stateful operator without uid",
            "Its id is generated from the shape of the program, so its state cannot be restored after a step is added "
            "or removed.",
            "call .uid('a-stable-name') on the operator",
        ),
        Rule(
            "HR201",
            "key made of hash() or id()",
            "hash() of a str differs from process to process, and id() from object to object: records of one key meet "
            "in different places, and state is not found again.",
            "return the value itself; headrace hashes keys, the same way in every process",
        ),
        Rule(
            "HR202",
            "key is a float",
            "Results of float arithmetic that should be equal often are not, and NaN equals nothing.",
            "round to an int, or use a str or Decimal",
        ),
        Rule(
            "HR203",
            "key is a mutable object",
            "A key that changes after it was used no longer leads to its state; lists, dicts and sets are refused "
            "when the job runs.",
            "return a tuple, a str or a frozen dataclass",
        ),
        Rule(
            "HR204",
            "key selector is not deterministic",
            "A task that is retried sends the same record to another key.",
            "compute the key from the record alone",
        ),
        Rule(
            "HR301",
            "function captures a large object",
            "It is pickled with the job and sent to every worker.",
            "load it in open(), or ship it as a file with add_python_archive or register_cached_file",
        ),
        Rule(
            "HR302",
            "function captures a connection, lock, file or thread",
            "It cannot be pickled, or means nothing in another process.",
            "create it in open() and release it in close()",
        ),
        Rule(
            "HR401",
            "nondeterministic call in a keyed function",
            "A retried epoch computes other results than the first attempt, of which parts may have been seen.",
            "use ctx.timestamp(), ctx.timer_service().current_processing_time(), random.Random(seed of the record), or "
            "zlib.crc32() in place of hash()",
        ),
        Rule(
            "HR402",
            "function changes a variable outside of it",
            "Each worker process has its own copy, checkpoints do not contain it, and a retried task changes it twice.",
            "keep it in keyed state or operator state",
        ),
        Rule(
            "HR501",
            "state that grows without limit",
            "The input does not end, and nothing removes the state of keys that no longer occur.",
            "set a time to live (StateTtlConfig, table.exec.state.ttl), use a window, or clear() it from a timer",
        ),
        Rule(
            "HR601",
            "at-least-once sink in an exactly-once job",
            "After a failure the sink writes some records twice.",
            "use an exactly-once sink, or one that writes by key; see docs/sinks.md",
        ),
    )
}


@dataclass(frozen=True)
class CheckFinding:
    """Something in a job that is likely to be a mistake.

    Example:
        >>> place = ProgramLine("/jobs/job.py", 12)
        >>> finding = CheckFinding("HR202", "TOTALS", "the key selector returns a float", place)
        >>> print(finding.text())
        /jobs/job.py:12: HR202 key is a float [TOTALS]
            the key selector returns a float
            fix: round to an int, or use a str or Decimal
    """

    code: str
    #: The operator's name.
    operator: str
    #: What was found there.
    message: str
    place: ProgramLine | None = None

    @property
    def rule(self) -> Rule:
        """The rule that the program breaks."""
        return RULES[self.code]

    def text(self) -> str:
        """Return the finding as `headrace check` prints it."""
        where = "" if self.place is None else f"{self.place}: "
        return f"{where}{self.code} {self.rule.title} [{self.operator}]\n    {self.message}\n    fix: {self.rule.hint}"

    def line(self) -> str:
        """Return the finding in one line, for warnings."""
        where = "" if self.place is None else f"{self.place}: "
        return f"{where}{self.code} {self.rule.title} [{self.operator}]: {self.message}"

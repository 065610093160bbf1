"""`headrace check`: what may go wrong with a job, found in its graph and its functions before it runs.

    program --execute()--> job graph --check_job()--> findings

Nothing is run, opened or called: the graph is read, and the source of the user's functions as syntax trees. `check_job`
is a pure function of the two, so it costs milliseconds, and `headrace run` asks it, too.
"""

from headrace.checks.findings import RULES, CheckFinding, Rule
from headrace.checks.job import check_job

__all__ = ["RULES", "CheckFinding", "Rule", "check_job"]

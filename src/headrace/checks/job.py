"""Runs all rules over a job."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.checks.captures import check_captures
from headrace.checks.determinism import check_determinism
from headrace.checks.findings import CheckFinding
from headrace.checks.keys import check_keys
from headrace.checks.source_code import is_silenced
from headrace.checks.state import check_growth, check_uid
from headrace.checks.view import ReviewedJob, ReviewedOperator
from headrace.config import Configuration
from headrace.config.options.checks import IGNORE
from headrace.connectors.base import DeliveryGuarantee
from headrace.graph.job_graph import JobGraph
from headrace.operators.io import SinkDeclaration

__all__ = ["check_job"]


def check_job(job: JobGraph, configuration: Configuration) -> list[CheckFinding]:
    """Return what is likely to go wrong with a job, in the order of its operators.

    Args:
        job: The job; nothing of it is called.
        configuration: All layers. ``headrace.check.ignore`` names rules that are left out.
    """
    view = ReviewedJob(job, configuration)
    codes = configuration.get(IGNORE)
    ignored = set(codes)
    found: dict[CheckFinding, None] = {}  # a function that two operators share is told once for each
    for operator in view.operators():
        for rule in (check_uid, check_keys, check_captures, check_determinism, check_growth, _check_sink):
            for finding in rule(view, operator):
                if finding.code not in ignored and not is_silenced(finding.code, finding.place):
                    found[finding] = None
    return list(found)


def _check_sink(job: ReviewedJob, operator: ReviewedOperator) -> Iterator[CheckFinding]:
    declaration = operator.declaration
    if not job.is_exactly_once or not isinstance(declaration, SinkDeclaration):
        return
    guarantee = declaration.sink.delivery_guarantee
    if guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        name = type(declaration.sink).__name__
        message = f"the delivery guarantee of {name} is {guarantee.value}; checkpoints are EXACTLY_ONCE"
        yield operator.finding("HR601", message)

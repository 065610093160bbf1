"""Checks: what `headrace check` and `headrace run` warn about."""

from __future__ import annotations

from headrace.config.option import option

ON_RUN = (
    option("headrace.check.on-run", bool)
    .default(True)
    .describe(
        "Whether `headrace run` prints the findings of `headrace check` as warnings before a job starts."
    )
)
IGNORE = (
    option("headrace.check.ignore", list[str])
    .default([])
    .describe(
        "Codes of findings that are not reported, such as `HR101;HR501`. A comment `# headrace: ignore[HR401]` "
        "silences one line."
    )
)

"""The interactive client, `headrace sql`: how it shows rows."""

from __future__ import annotations

from enum import Enum

from headrace.config.option import option


class ResultMode(Enum):
    """How the rows of a query are shown."""

    #: On the whole screen, as the table that all changes make.
    TABLE = "table"
    #: On the whole screen, as a list of changes.
    CHANGELOG = "changelog"
    #: Below each other, in a frame, with what they do to the table.
    TABLEAU = "tableau"


RESULT_MODE = (
    option("sql-client.execution.result-mode", ResultMode)
    .no_default("`table` on a terminal, `tableau` otherwise")
    .describe(
        "How `headrace sql` shows the rows of a query: `table` and `changelog` on the whole screen while it "
        "runs, `tableau` below each other."
    )
)
MAX_ROWS = (
    option("sql-client.execution.max-table-result.rows", int)
    .default(1_000_000)
    .describe(
        "How many rows of a query `headrace sql` keeps in the modes `table` and `changelog`; the oldest are dropped."
    )
    .at_least(1)
)

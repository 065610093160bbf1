"""Names for output that waits for its checkpoint, shared by all sinks that stage files."""

from __future__ import annotations

import re


def staging_name(job_id: str, sink_id: str) -> str:
    """Return the directory of one sink in one job. Jobs may stage below the same path."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{job_id or 'job'}-{sink_id or 'sink'}")

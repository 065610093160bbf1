"""What is not collected: it runs with PyFlink's own environment."""

from __future__ import annotations

collect_ignore = ["make_sweep.py"]

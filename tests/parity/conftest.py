"""What is not collected: it runs with PyFlink's own environment."""

from __future__ import annotations

collect_ignore = [
    "make_process_changelogs.py",
    "make_changelogs.py",
    "make_functions.py",
    "make_json.py",
    "make_matches.py",
    "make_production.py",
    "make_session_changelogs.py",
    "make_conflicts.py",
    "make_timed_changelogs.py",
    "record_programs.py",
]
collect_ignore_glob = ["programs/*.py", "tutorials/*.py"]

"""Upsert sinks whose primary key is not the query's own key: which row of a key they get, and ON CONFLICT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.config.options.table import UpsertMaterialize
from headrace.errors import SqlValidationError
from headrace.planner.inference import infer_changelogs
from headrace.planner.keys import Keys, fits
from headrace.planner.logical import OnConflict
from headrace.planner.physical import PhysicalNode, Sink, TableScan, walk

__all__ = ["ConflictRules", "with_conflicts"]


@dataclass(frozen=True)
class ConflictRules:
    """What the configuration says.

    Args:
        materialize: `table.exec.sink.upsert-materialize`.
        requires_clause: `table.exec.sink.require-on-conflict`.
    """

    materialize: UpsertMaterialize = UpsertMaterialize.AUTO
    requires_clause: bool = False


def with_conflicts(
    root: PhysicalNode, keys: Mapping[PhysicalNode, Keys], rules: ConflictRules
) -> PhysicalNode:
    """Return a sink that gets one row of each primary key, where it must be worked out which.

    Raises:
        SqlValidationError: If ON CONFLICT is not valid for the sink, or is missing.
    """
    assert isinstance(root, Sink)
    clause = root.on_conflict
    is_append, is_retract = root.accepts.is_insert_only, root.accepts.has_update_before
    if clause is not None and (is_append or is_retract or not root.keys):
        if is_append or not root.keys:
            reason = "it only takes insert-only rows, or has no PRIMARY KEY"
        else:
            reason = "it takes UPDATE_BEFORE"
        raise SqlValidationError(
            f"ON CONFLICT needs a sink that writes by primary key, and {root.name!r} does not: {reason}",
            hint="leave ON CONFLICT out, or declare PRIMARY KEY (...) NOT ENFORCED on a sink that can update",
        )
    if clause in (OnConflict.ERROR, OnConflict.NOTHING):
        _check_watermarks(root, clause)
    if not root.keys or is_append or is_retract or rules.materialize is UpsertMaterialize.NONE:
        return root
    own = keys[root.input]
    made = replace(root, materializes=True, upsert_key=_smallest(own))
    if rules.materialize is UpsertMaterialize.FORCE:
        return made
    is_insert_only = infer_changelogs([root.input], dict(keys))[root.input].is_insert_only
    primary = frozenset(root.keys)
    if rules.requires_clause and clause is None and not any(key <= primary for key in own):
        raise _missing_clause(root, own)
    if clause in (None, OnConflict.DEDUPLICATE):
        is_right = is_insert_only or fits(own, root.keys)
    else:
        is_right = any(key <= primary for key in own)
    return root if is_right else made


def _check_watermarks(root: Sink, clause: OnConflict) -> None:
    """DO NOTHING and DO ERROR wait for the watermark: all tables need one."""
    missing = [
        node.scan.identifier.dotted()
        for node in walk([root])
        if isinstance(node, TableScan) and node.scan.table.watermark is None
    ]
    if missing:
        raise SqlValidationError(
            f"ON CONFLICT DO {clause.value} resolves conflicts when the watermark advances, but these tables have "
            f"no watermark: {', '.join(missing)}",
            hint="declare WATERMARK FOR on them, or use ON CONFLICT DO DEDUPLICATE",
        )


def _missing_clause(root: Sink, own: Keys) -> SqlValidationError:
    names = root.names
    shown = [f"({', '.join(names[at] for at in sorted(key))})" for key in sorted(own, key=sorted)]
    primary = ", ".join(names[at] for at in root.keys)
    return SqlValidationError(
        f"the rows for {root.name!r} have the key {' or '.join(shown) or 'none'}, which is not its primary key "
        f"({primary}): several rows may share a primary key",
        hint="choose what happens to them: ON CONFLICT DO DEDUPLICATE (the last one counts), DO NOTHING (the first "
        "one) or DO ERROR (the job fails)",
    )


def _smallest(keys: Keys) -> tuple[int, ...]:
    """Return the shortest key of rows; empty if they have none."""
    found = sorted(keys, key=lambda each: (len(each), sorted(each)))
    return tuple(sorted(found[0])) if found else ()

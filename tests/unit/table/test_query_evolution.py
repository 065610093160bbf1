"""A changed query and a savepoint of the one it was: what means the same continues, the rest is named."""

from __future__ import annotations

import pytest

from headrace.config.options.checkpointing import ChangedOperators
from headrace.errors import StateError
from headrace.graph.job_graph import JobGraph
from headrace.operators.table.declarations import StatefulNode
from headrace.planner.statements import Insert, StatementSet
from headrace.runtime.checkpoint.evolution import evolved
from headrace.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    FileRef,
    KeyedPart,
    OperatorSnapshot,
    PendingCommittable,
    SourceSnapshot,
)
from headrace.runtime.checkpoint.restore import starting_point
from headrace.state.key_secret import KeySecret
from headrace.table import EnvironmentSettings, TableEnvironment

_GROUPS = "SELECT k, COUNT(DISTINCT v) AS n, SUM(v) AS s FROM t WHERE id > 3 GROUP BY k"
_JOIN = "SELECT l.k, l.v + r.v AS n FROM t l LEFT JOIN u r ON l.id = r.id AND l.v < r.v"
_RANK = "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM t) WHERE rn <= 3"


@pytest.fixture
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name in "tu":
        t_env.execute_sql(
            f"CREATE TABLE {name} (id BIGINT, k STRING, v BIGINT, x BIGINT) WITH ('connector' = 'datagen')"
        )
    for name in "op":
        t_env.execute_sql(f"CREATE TABLE {name} (k STRING, n BIGINT) WITH ('connector' = 'print')")
    return t_env


def job_of(t_env: TableEnvironment, *inserts: str) -> JobGraph:
    statement = t_env._bind_one(f"EXECUTE STATEMENT SET BEGIN {';'.join(inserts)}; END")
    assert isinstance(statement, StatementSet)
    assert all(isinstance(each, Insert) for each in statement.inserts)
    plan = t_env._jobs.plan_inserts([each.sink for each in statement.inserts])
    return t_env._jobs.job_graph(plan, "job")


def savepoint_of(job: JobGraph, *, by_place: bool = False) -> CheckpointMetadata:
    """What a job leaves: positions of sources, and a file of state of every operator that keeps rows."""
    made = []
    for vertex in job.vertices:
        node = vertex.head
        keyed = ()
        if isinstance(node.declaration, StatefulNode):
            keyed = (KeyedPart(0, (FileRef(f"/d/{node.operator_id}", 10, 0, 1),)),)
        made.append(
            OperatorSnapshot(
                (node.place_id or "") if by_place else node.operator_id,
                None,
                node.name,
                vertex.parallelism,
                vertex.max_parallelism,
                keyed=keyed,
                source=SourceSnapshot(b"position") if vertex.is_source else None,
            )
        )
    return CheckpointMetadata("savepoint", 1, "b" * 32, "job", 5, 0, tuple(made), key_secret=KeySecret.new())


def restored(
    job: JobGraph, stored: CheckpointMetadata, policy: ChangedOperators
) -> tuple[set[str], set[str]]:
    """Return the operators with keyed state, and the sources that continue, by their kinds and tables."""
    kept = evolved(job, stored, policy)
    start, _ = starting_point(job, kept, "line", allow_non_restored=False)
    names = {vertex.head.operator_id: vertex.head.name.partition("[")[0] for vertex in job.vertices}
    keyed = {names[each] for part in start.keyed.values() for each in part}
    return keyed, {names[each] for each in start.sources}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            f"INSERT INTO o SELECT k, n - s FROM ({_GROUPS})",
            f"INSERT INTO o SELECT UPPER(k), n + s FROM ({_GROUPS})",
            id="another column",
        ),
        pytest.param(
            f"INSERT INTO o SELECT k, n FROM ({_GROUPS}) WHERE s > 1",
            f"INSERT INTO o SELECT k, n FROM ({_GROUPS}) WHERE s < n",
            id="another filter",
        ),
        pytest.param(
            f"INSERT INTO o SELECT k, n FROM ({_GROUPS})",
            f"INSERT INTO p SELECT k, n FROM ({_GROUPS})",
            id="another sink",
        ),
        pytest.param(
            f"INSERT INTO o SELECT k, n FROM ({_GROUPS})",
            f"INSERT INTO p SELECT k, x FROM u; INSERT INTO o SELECT k, n FROM ({_GROUPS})",
            id="one more query",
        ),
        pytest.param(
            f"INSERT INTO o {_JOIN}",
            f"INSERT INTO o SELECT * FROM ({_JOIN}) WHERE n IS NULL OR n > 3",
            id="a filter behind a join",
        ),
        pytest.param(
            f"INSERT INTO o {_RANK}",
            f"INSERT INTO o SELECT k, v * 2 FROM ({_RANK})",
            id="a column of a top n",
        ),
    ],
)
def test_operators_that_mean_the_same_keep_their_state(t_env, before, after):
    first, second = job_of(t_env, before), job_of(t_env, after)

    keyed, sources = restored(second, savepoint_of(first), ChangedOperators.REFUSE)

    names = {vertex.head.name.partition("[")[0] for vertex in first.vertices}
    assert keyed == {name for name in names if not name.startswith(("Source", "Sink"))}
    assert sources >= {name for name in names if name.startswith("Source")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_GROUPS, _GROUPS.replace("id > 3", "id > 4")),
        (_GROUPS, _GROUPS.replace("SUM(v)", "SUM(x)")),
        (_GROUPS, _GROUPS.replace("FROM t", "FROM (SELECT id, k, v + 1 AS v FROM t)")),
        (_JOIN, _JOIN.replace("l.v < r.v", "l.v > r.v")),
        (_RANK, _RANK.replace("v DESC", "v")),
        (_RANK, _RANK.replace("PARTITION BY k", "PARTITION BY id")),
    ],
)
def test_an_operator_with_another_meaning_is_named_and_refused(t_env, before, after):
    columns = "SELECT k, s FROM" if before is _GROUPS else "SELECT * FROM"
    first, second = (job_of(t_env, f"INSERT INTO o {columns} ({query})") for query in (before, after))

    with pytest.raises(StateError, match=r"the query has changed.*the checkpoint has state of") as caught:
        restored(second, savepoint_of(first), ChangedOperators.REFUSE)

    changed = [v.head for v in second.vertices if isinstance(v.head.declaration, StatefulNode)]
    assert any(node.description in str(caught.value) for node in changed)
    assert "headrace.sql.changed-operators" in (caught.value.hint or "")


def test_changed_operators_start_empty_or_with_their_sources_on_request(t_env):
    other = "INSERT INTO p SELECT k, COUNT(*) FROM u GROUP BY k"
    first = job_of(t_env, f"INSERT INTO o SELECT k, s FROM ({_GROUPS})", other)
    changed = _GROUPS.replace("SUM", "MAX")
    second = job_of(t_env, f"INSERT INTO o SELECT k, s FROM ({changed})", other)
    stored = savepoint_of(first)

    empty = restored(second, stored, ChangedOperators.EMPTY)
    assert empty == ({"GroupAggregate"}, {"Source: t", "Source: u"})
    assert restored(second, stored, ChangedOperators.BOOTSTRAP) == ({"GroupAggregate"}, {"Source: u"})


def test_what_a_sink_has_staged_is_published_even_if_its_query_is_bootstrapped(t_env):
    first = job_of(t_env, f"INSERT INTO o SELECT k, s FROM ({_GROUPS})")
    second = job_of(t_env, f"INSERT INTO o SELECT k, s FROM ({_GROUPS.replace('SUM', 'MAX')})")
    stored = savepoint_of(first)
    *others, sink = stored.operators
    staged = PendingCommittable(0, 5, b"payload")
    sink = OperatorSnapshot(
        sink.operator_id, None, sink.name, 1, sink.max_parallelism, committables=(staged,), ended=(0,)
    )
    stored = CheckpointMetadata("savepoint", 1, "b" * 32, "job", 5, 0, (*others, sink))

    (kept,) = evolved(second, stored, ChangedOperators.BOOTSTRAP).operators

    assert (kept.committables, kept.ended) == ((staged,), ())


def test_a_new_query_with_sources_of_its_own_needs_no_state(t_env):
    first = job_of(t_env, f"INSERT INTO o SELECT k, s FROM ({_GROUPS})")
    second = job_of(
        t_env,
        f"INSERT INTO o SELECT k, s FROM ({_GROUPS})",
        "INSERT INTO p SELECT k, COUNT(*) FROM u GROUP BY k",
    )

    keyed, sources = restored(second, savepoint_of(first), ChangedOperators.REFUSE)

    assert (keyed, sources) == ({"GroupAggregate"}, {"Source: t"})


def test_state_under_ids_of_places_is_found(t_env):
    job = job_of(t_env, f"INSERT INTO o SELECT k, s FROM ({_GROUPS})")

    keyed, sources = restored(job, savepoint_of(job, by_place=True), ChangedOperators.REFUSE)

    assert (keyed, sources) == ({"GroupAggregate"}, {"Source: t"})


def test_ids_do_not_depend_on_how_changes_are_emitted(t_env):
    text = f"INSERT INTO o {_JOIN}; INSERT INTO p {_RANK}"
    by_epoch = job_of(t_env, text)
    t_env.get_config().set("table.exec.mini-batch.enabled", "false")

    by_row = job_of(t_env, text)

    assert [v.vertex_id for v in by_row.vertices] == [v.vertex_id for v in by_epoch.vertices]

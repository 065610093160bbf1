"""What `postgres-cdc` asks of PostgreSQL: the table, its publication and slot, snapshots, and the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import ConnectorError

if TYPE_CHECKING:
    import psycopg

__all__ = ["Database", "HeldSnapshot", "TablePlace", "TableFacts", "lsn_text"]

_log = logging.getLogger(__name__)

_FETCH_ROWS: Final = 2_000
#: A slot serves one session at a time; a session that was cut off holds it until the server notices.
_BUSY_TRIES: Final = 100
_BUSY_PAUSE_S: Final = 0.1
#: So that values print in one way, whatever the server's settings are.
_SESSION: Final = (
    "-c timezone=UTC -c datestyle=ISO,YMD -c extra_float_digits=1 "
    "-c bytea_output=hex -c intervalstyle=postgres"
)


@dataclass(frozen=True)
class TablePlace:
    """Where the table is, and under which names changes are kept."""

    host: str
    port: int
    user: str
    password: str
    database: str
    schema: str
    table: str
    slot: str
    publication: str
    connect_timeout_s: int = 30

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}/{self.database} {self.schema}.{self.table}"


@dataclass(frozen=True)
class TableFacts:
    """What PostgreSQL knows about the table.

    Attributes:
        columns: Types as SQL, by name.
        key: The columns of the primary key.
        has_full_identity: Whether changes come with the whole row as it was (REPLICA IDENTITY FULL).
    """

    columns: dict[str, str]
    key: tuple[str, ...]
    has_full_identity: bool


@dataclass(frozen=True)
class HeldSnapshot:
    """A snapshot that other sessions can read with, as long as the connection is open.

    Attributes:
        name: For SET TRANSACTION SNAPSHOT.
        visible: What it sees, as `pg_current_snapshot()` prints it.
        until: A place of the log after everything it sees.
        connection: The session that holds it.
    """

    name: str
    visible: str
    until: int
    connection: psycopg.Connection[Any]


def lsn_text(lsn: int) -> str:
    """Return a place of the log as PostgreSQL writes it.

    Example:
        >>> lsn_text(0x1_0000_00FF)
        '1/FF'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


class Database:
    """Sessions of PostgreSQL, each opened for one purpose.

    Args:
        place: Where.
    """

    def __init__(self, place: TablePlace) -> None:
        self._place = place

    @contextmanager
    def _session(self) -> Iterator[psycopg.Connection[Any]]:
        """Open a session that commits every statement; errors say where."""
        import psycopg

        try:
            with self._connect() as connection:
                yield connection
        except psycopg.Error as error:
            raise self._failure(error) from error

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        place = self._place
        return psycopg.connect(
            host=place.host,
            port=place.port,
            user=place.user,
            password=place.password,
            dbname=place.database,
            connect_timeout=place.connect_timeout_s,
            options=_SESSION,
            autocommit=True,
        )

    def _failure(self, error: psycopg.Error) -> ConnectorError:
        import psycopg

        text = str(error).strip() or type(error).__name__
        if self._place.password:
            text = text.replace(self._place.password, "***")
        is_away = isinstance(error, psycopg.OperationalError)
        hint = "check that the database is running and reachable" if is_away else None
        return ConnectorError(f"postgres-cdc: {self._place!r}: {text}", hint=hint, retryable=is_away)

    # -- what there is -----------------------------------------------------------------------------------------

    def facts(self) -> TableFacts:
        """Look the table up.

        Raises:
            ConnectorError: There is no such table, or it has no primary key, or the server keeps no logical log.
        """
        place = self._place
        with self._session() as session:
            level = _one(session.execute("SHOW wal_level"))
            if level != "logical":
                raise ConnectorError(
                    f"postgres-cdc: {place!r}: the server has wal_level = {level}, so its log does not contain rows",
                    hint="set wal_level = logical in postgresql.conf and restart the server",
                    retryable=False,
                )
            found = session.execute(
                "SELECT c.oid, c.relreplident::text, c.relkind::text FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')",
                (place.schema, place.table),
            ).fetchone()
            if found is None:
                raise ConnectorError(
                    f"postgres-cdc: {place!r}: table {place.schema}.{place.table} does not exist",
                    hint="'schema-name' and 'table-name' name one table; patterns are not supported",
                    retryable=False,
                )
            oid, identity, kind = found
            if kind == "p":
                raise ConnectorError(
                    f"postgres-cdc: {place!r}: the log names the partitions of a partitioned table, not the table",
                    hint="read its partitions, each with a table and a slot of its own",
                    retryable=False,
                )
            columns = session.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                (oid,),
            ).fetchall()
            key = session.execute(
                "SELECT a.attname FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(num, at) "
                "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num "
                "WHERE i.indrelid = %s AND i.indisprimary ORDER BY k.at",
                (oid,),
            ).fetchall()
        if not key:
            raise ConnectorError(
                f"postgres-cdc: {place!r}: the table has no primary key, so its rows cannot be identified",
                hint="add one: ALTER TABLE ... ADD PRIMARY KEY (...)",
                retryable=False,
            )
        return TableFacts(dict(columns), tuple(name for (name,) in key), identity == "f")

    def confirmed(self) -> int | None:
        """Return from where on the slot keeps changes; None if there is no slot.

        Raises:
            ConnectorError: The slot is of another kind, or has lost what it should keep.
        """
        place = self._place
        with self._session() as session:
            found = session.execute(
                "SELECT plugin, database, confirmed_flush_lsn::text, wal_status FROM pg_replication_slots "
                "WHERE slot_name = %s",
                (place.slot,),
            ).fetchone()
        if found is None:
            return None
        plugin, database, confirmed, status = found
        if plugin != "pgoutput" or database != place.database:
            raise ConnectorError(
                f"postgres-cdc: {place!r}: slot {place.slot!r} is of database {database!r} with plugin {plugin!r}",
                hint="choose another 'slot.name': the slot must use the plugin pgoutput",
                retryable=False,
            )
        if status == "lost":
            raise ConnectorError(
                f"postgres-cdc: {place!r}: the server has discarded changes that slot {place.slot!r} needs",
                hint="raise max_slot_wal_keep_size, drop the slot, and start the job without a checkpoint",
                retryable=False,
            )
        return _lsn(confirmed)

    # -- set-up ------------------------------------------------------------------------------------------------

    def prepare(self) -> int:
        """Create the publication and the slot, unless they exist, and return from where on changes are kept."""
        self._publish()
        confirmed = self.confirmed()
        if confirmed is not None:
            return confirmed
        with self._session() as session:
            made = session.execute(
                "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')",
                (self._place.slot,),
            )
            return _lsn(_one(made))

    def _publish(self) -> None:
        from psycopg import sql

        place = self._place
        table = sql.Identifier(place.schema, place.table)
        publication = sql.Identifier(place.publication)
        with self._session() as session:
            listed = session.execute(
                "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = %s), EXISTS (SELECT FROM "
                "pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s)",
                (place.publication, place.publication, place.schema, place.table),
            ).fetchone()
            assert listed is not None
            exists, has_table = listed
            if has_table:
                return
            with session.transaction():
                # Changes of transactions that began before would not be published; so none may be under way.
                session.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(table))
                if exists:
                    change = "ALTER PUBLICATION {} ADD TABLE {}"
                else:
                    change = "CREATE PUBLICATION {} FOR TABLE {}"
                session.execute(sql.SQL(change).format(publication, table))

    # -- snapshots ---------------------------------------------------------------------------------------------

    def hold_snapshot(self) -> HeldSnapshot:
        """Begin to hold a snapshot; close its connection when it was read."""
        import psycopg

        try:
            connection = self._connect()
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = connection.execute(
                "SELECT pg_export_snapshot(), pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
            ).fetchone()
        except psycopg.Error as error:
            raise self._failure(error) from error
        assert found is not None
        return HeldSnapshot(found[0], found[1], _lsn(found[2]), connection)

    def rows_after(
        self,
        snapshot: str,
        facts: TableFacts,
        columns: Sequence[str],
        key: tuple[str, ...] | None,
        limit: int | None,
    ) -> Iterator[list[list[str | None]]]:
        """Yield rows after a key, in its order, in portions: the columns, then the key, as texts.

        Args:
            snapshot: Its name.
            facts: Those of the table.
            columns: What to read.
            key: Where to continue; None: from the first row on.
            limit: How many rows at most.
        """
        from psycopg import sql

        place = self._place
        keys = sql.SQL(", ").join(map(sql.Identifier, facts.key))
        query = sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(map(sql.Identifier, (*columns, *facts.key))),
            sql.Identifier(place.schema, place.table),
        )
        if key is not None:
            bounds = [sql.SQL("%s::" + facts.columns[name]) for name in facts.key]
            query += sql.SQL(" WHERE ({}) > ({})").format(keys, sql.SQL(", ").join(bounds))
        query += sql.SQL(" ORDER BY {}").format(keys)
        if limit is not None:
            query += sql.SQL(f" LIMIT {int(limit)}")
        with self._session() as session, session.transaction():
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            session.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            yield from self._texts(session, query, key or ())

    def _texts(
        self, session: psycopg.Connection[Any], query: Any, parameters: Sequence[Any]
    ) -> Iterator[list[list[str | None]]]:
        """Run a query and yield rows as PostgreSQL prints them, as the log does, too."""
        with session.cursor(name="headrace") as cursor:
            cursor.execute(query, tuple(parameters))
            while cursor.fetchmany(_FETCH_ROWS):
                result = cursor.pgresult
                assert result is not None
                values = [
                    [result.get_value(row, column) for column in range(result.nfields)]
                    for row in range(result.ntuples)
                ]
                yield [[None if value is None else bytes(value).decode() for value in row] for row in values]

    def range_of(self, facts: TableFacts, key: Sequence[str], bounds: Sequence[tuple[str, ...]]) -> int:
        """Return how many of these keys, in ascending order, are less than a key, by the database's own order."""
        from psycopg import sql

        casts = sql.SQL(", ").join(sql.SQL("%s::" + facts.columns[name]) for name in facts.key)
        query = sql.SQL("SELECT ({}) > ({})").format(casts, casts)
        with self._session() as session:
            for at, bound in enumerate(bounds):
                if not _one(session.execute(query, (*key, *bound))):
                    return at
        return len(bounds)

    # -- the log -----------------------------------------------------------------------------------------------

    def commits_after(self, lsn: int, most: int) -> tuple[list[int], int]:
        """Return where commits after a place end, as many as wanted, and how far the log goes."""
        query = (
            "SELECT lsn::text FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, "
            "'proto_version', '1', 'publication_names', %s) WHERE get_byte(data, 0) = 67 AND lsn > %s::pg_lsn LIMIT %s"
        )
        arguments = (self._place.slot, self._publication_names(), lsn_text(lsn), most)
        with self._session() as session:
            end = _lsn(_one(session.execute("SELECT pg_current_wal_flush_lsn()::text")))
            rows = _once_free(lambda: session.execute(query, arguments).fetchall())
        return [_lsn(text) for (text,) in rows], end

    def messages(self, upto: int) -> Iterator[bytes]:
        """Yield what the plugin says about all transactions that the slot keeps, up to a place."""
        query = (
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, NULL, "
            "'proto_version', '1', 'publication_names', %s)"
        )
        arguments = (self._place.slot, lsn_text(upto), self._publication_names())
        with self._session() as session:
            cursor = _once_free(lambda: session.execute(query, arguments))
            for (data,) in cursor:
                yield bytes(data)

    def confirm(self, lsn: int) -> None:
        """Let the server discard changes before a place. Does not raise: the next checkpoint confirms more."""
        with suppress_and_log(self._place.slot), self._session() as session:
            _once_free(
                lambda: session.execute(
                    "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
                    "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn",
                    (lsn_text(lsn), self._place.slot, lsn_text(lsn)),
                )
            )

    def _publication_names(self) -> str:
        return '"' + self._place.publication.replace('"', '""') + '"'


@contextmanager
def suppress_and_log(slot: str) -> Iterator[None]:
    """Log an error of the connector instead of raising it."""
    try:
        yield
    except ConnectorError as error:
        _log.warning("changes that slot %s no longer needs were not confirmed: %s", slot, error)


def _once_free(work: Any) -> Any:
    """Do something with the slot, as soon as no other session uses it."""
    from psycopg.errors import ObjectInUse

    for _ in range(_BUSY_TRIES):
        with suppress(ObjectInUse):
            return work()
        time.sleep(_BUSY_PAUSE_S)
    return work()


def _one(cursor: psycopg.Cursor[Any]) -> Any:
    found = cursor.fetchone()
    assert found is not None
    return found[0]

"""The options of a database connection and of writing to it. No repr contains a password."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from headrace.connectors.jdbc._urls import DatabaseUrl
from headrace.errors import JobDefinitionError


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """Where the database is. Build it with `JdbcConnectionOptions.JdbcConnectionOptionsBuilder()`.

    Example:
        >>> builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        >>> options = builder.with_url("jdbc:sqlite:/tmp/shop.db").with_password("secret").build()
        >>> options
        JdbcConnectionOptions(url='sqlite:////tmp/shop.db', user_name=None)
    """

    url: str
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    driver_name: str | None = None
    #: How long a worker waits at most before it asks a database again that was away.
    longest_retry_delay_s: float = 10.0
    #: Understood where the program runs, since paths are relative to its directory and not to a worker's.
    _parsed: DatabaseUrl = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parsed = DatabaseUrl.parse(self.url, self.user_name, self.password)
        if self.driver_name is not None:
            parsed.check_driver_class(self.driver_name)
        object.__setattr__(self, "_parsed", parsed)

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions(url={self._parsed.shown!r}, user_name={self.user_name!r})"

    def database_url(self) -> DatabaseUrl:
        """Return the URL as SQLAlchemy takes it, with user and password."""
        return self._parsed

    def get_db_url(self) -> str:
        """Return the URL as it was given."""
        return self.url

    def get_driver_name(self) -> str | None:
        """Return the name of the class of a JDBC driver, or None if it is not set."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """Return the user name, or None if it is part of the URL or not set."""
        return self.user_name

    def get_password(self) -> str | None:
        """Return the password, or None if it is part of the URL or not set."""
        return self.password

    class JdbcConnectionOptionsBuilder:
        """Collects the settings of a connection."""

        def __init__(self) -> None:
            self._url: str | None = None
            self._driver_name: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Say where the database is.

            Args:
                url: `jdbc:postgresql://host/db`, `jdbc:mysql://…`, `jdbc:mariadb://…`, `jdbc:sqlite:file`, or
                    a URL of SQLAlchemy, for instance `postgresql+psycopg://host/db`.
            """
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the class of a JDBC driver, which must be one for the database of the URL.

            The URL decides which Python driver connects.
            """
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the name of the database user."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password. It is never shown, but it travels to the workers with the job."""
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """Make the options.

            Raises:
                JobDefinitionError: There is no URL, or it is of a database that is not known.
            """
            if not self._url:
                raise JobDefinitionError("JdbcConnectionOptions: no URL is set", hint="call with_url(...)")
            return JdbcConnectionOptions(self._url, self._user_name, self._password, self._driver_name)


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """How rows are batched and what is done when the database is away."""

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def __post_init__(self) -> None:
        if self.batch_interval_ms < 0 or self.batch_size < 1 or self.max_retries < 0:
            raise JobDefinitionError(
                "JdbcExecutionOptions: the batch size must be at least 1, and interval and retries "
                f"must not be negative; got {self}"
            )

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Batches of 5000 rows, three retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Begin with the defaults."""
        return JdbcExecutionOptions.Builder()

    def get_batch_interval_ms(self) -> int:
        """Return after how many ms rows are written though the batch is not full; 0 means at the epoch's end."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """Return how many rows are written at once."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """Return how often a batch is retried when the database is not available."""
        return self.max_retries

    class Builder:
        """Builder for `JdbcExecutionOptions`: batch size, flush interval and retries."""

        def __init__(self) -> None:
            self._interval_ms = 0
            self._size = 5000
            self._retries = 3

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set how many rows are written at once."""
            self._size = size
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set after how many ms rows are written though the batch is not full."""
            self._interval_ms = interval_ms
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set how often a batch is retried when the database is not available."""
            self._retries = max_retries
            return self

        def build(self) -> JdbcExecutionOptions:
            """Return the settings as `JdbcExecutionOptions`."""
            return JdbcExecutionOptions(self._interval_ms, self._size, self._retries)


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """How `JdbcSink.exactly_once_sink` remembers what it has written.

    Args:
        sink_id: What markers are kept under; the operator's id if None. It serves for cleaning up and for
            looking at the table: every marker is unique by itself.
        marker_table: The table of markers; it is created if it is not there.
        marker_retention: How long a marker is kept at least. Restoring a checkpoint whose markers are gone
            writes its last rows again.
    """

    sink_id: str | None = None
    marker_table: str = "headrace_commits"
    marker_retention: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        if not self.marker_table or self.marker_retention < timedelta(0):
            raise JobDefinitionError(
                "JdbcExactlyOnceOptions: the table name must not be empty, and the retention not negative; "
                f"got {self}"
            )

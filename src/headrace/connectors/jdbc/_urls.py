"""`jdbc:` URLs, and SQLAlchemy's, as one thing; and how to speak of them without the password."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from headrace.errors import JobDefinitionError

#: The driver that is used where the URL names none, by SQLAlchemy's name of the database.
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlite": "sqlite",
}
#: The extra that has a driver.
_EXTRAS = {"psycopg": "headrace[jdbc]", "pymysql": "headrace[mysql]"}
#: Properties of JDBC drivers that mean something to the Python driver, under its name for them.
_PROPERTIES = {
    "postgresql": {
        "sslmode": "sslmode",
        "sslrootcert": "sslrootcert",
        "sslcert": "sslcert",
        "sslkey": "sslkey",
        "connectTimeout": "connect_timeout",
        "ApplicationName": "application_name",
        "options": "options",
    },
    "mysql": {"characterEncoding": "charset", "connectTimeout": "connect_timeout"},
    "sqlite": {},
}
#: ... and such as change nothing here: how Java sends batches and sees time zones.
_IGNORED = {
    *("reWriteBatchedInserts", "rewriteBatchedStatements", "useUnicode", "serverTimezone", "autoReconnect"),
    *("allowPublicKeyRetrieval", "zeroDateTimeBehavior", "prepareThreshold", "stringtype"),
}
#: Classes of JDBC drivers, and the databases that they are for, by SQLAlchemy's names.
_CLASSES = {
    "org.postgresql.Driver": {"postgresql"},
    "com.mysql.jdbc.Driver": {"mysql", "mariadb"},
    "com.mysql.cj.jdbc.Driver": {"mysql", "mariadb"},
    "org.mariadb.jdbc.Driver": {"mysql", "mariadb"},
    "org.sqlite.JDBC": {"sqlite"},
    "oracle.jdbc.OracleDriver": {"oracle"},
    "oracle.jdbc.driver.OracleDriver": {"oracle"},
    "com.microsoft.sqlserver.jdbc.SQLServerDriver": {"mssql"},
    "com.ibm.db2.jcc.DB2Driver": {"db2", "ibm_db_sa"},
}
_CHARSETS = {"utf-8": "utf8mb4", "utf8": "utf8mb4"}


@dataclass(frozen=True)
class DatabaseUrl:
    """A URL for SQLAlchemy."""

    #: With user and password.
    text: str = field(repr=False)
    #: With `***` in place of the password.
    shown: str
    #: What must not be seen, in all spellings.
    secrets: tuple[str, ...] = field(repr=False)
    #: `postgresql`, `mysql`, `mariadb`, `sqlite` or another of SQLAlchemy's.
    dialect: str

    @classmethod
    def parse(cls, text: str, user: str | None, password: str | None) -> DatabaseUrl:
        """Understand a URL.

        Raises:
            JobDefinitionError: It is not valid, or of a database that is not known.
        """
        if text.startswith("jdbc:"):
            name, _, rest = text.removeprefix("jdbc:").partition(":")
            if name == "sqlite":
                return cls._sqlite(rest)
            if name not in _DRIVERS or not rest.startswith("//"):
                raise JobDefinitionError(
                    f"JdbcConnectionOptions: unsupported URL: jdbc:{_word(name)}:...",
                    hint="supported are jdbc:postgresql://, jdbc:mysql://, jdbc:mariadb:// and jdbc:sqlite:; for "
                    "other databases use a SQLAlchemy URL",
                )
            return cls._from_jdbc(name, f"{name}:{rest}", user, password)
        return cls._from_sqlalchemy(text, user, password)

    @classmethod
    def _sqlite(cls, path: str) -> DatabaseUrl:
        path, mark, query = path.removeprefix("file:").partition("?")
        if path in {"", ":memory:"}:
            raise JobDefinitionError(
                "JdbcConnectionOptions: an in-memory database exists in one process only, and a job runs in several",
                hint="use a file, for example jdbc:sqlite:/data/shop.db",
            )
        text = f"sqlite:///{os.path.abspath(path)}{mark}{query}"
        return cls(text, text, (), "sqlite")

    @classmethod
    def _from_jdbc(cls, name: str, text: str, user: str | None, password: str | None) -> DatabaseUrl:
        uri = urlsplit(text)
        known = _PROPERTIES["mysql" if name == "mariadb" else name]
        query = []
        for key, value in parse_qsl(uri.query, keep_blank_values=True):
            if key == "user":
                user = user or value
            elif key == "password":
                password = password or value
            elif key == "currentSchema" and name == "postgresql":
                query.append(("options", f"-csearch_path={value}"))
            elif key in known:
                spelled = _CHARSETS.get(value.lower(), value) if key == "characterEncoding" else value
                query.append((known[key], spelled))
            elif key == "useSSL" and name in {"mysql", "mariadb"}:
                _refuse_encryption(value)
            elif key not in _IGNORED:
                raise JobDefinitionError(
                    f"JdbcConnectionOptions: unknown property {_word(key)!r} in the URL",
                    hint=f"supported are user, password, {', '.join(sorted(known))}; for others use a SQLAlchemy URL",
                )
        host = uri.netloc.rpartition("@")[2]
        user = user or (unquote(uri.username) if uri.username else None)
        password = password or (unquote(uri.password) if uri.password else None)
        return cls._build(_DRIVERS[name], user, password, host, uri.path, query)

    @classmethod
    def _from_sqlalchemy(cls, text: str, user: str | None, password: str | None) -> DatabaseUrl:
        scheme, mark, rest = text.partition("://")
        if not mark or not scheme.replace("+", "").replace("_", "").isalnum():
            raise JobDefinitionError(
                "JdbcConnectionOptions: the URL is neither a JDBC nor a SQLAlchemy URL",
                hint="for example jdbc:postgresql://host/db or postgresql+psycopg://host/db",
            )
        if scheme.partition("+")[0] == "sqlite":
            return cls._sqlite(rest.removeprefix("/"))
        uri = urlsplit(f"db://{rest}")
        host = uri.netloc.rpartition("@")[2]
        user = user or (unquote(uri.username) if uri.username else None)
        password = password or (unquote(uri.password) if uri.password else None)
        query = parse_qsl(uri.query, keep_blank_values=True)
        return cls._build(_DRIVERS.get(scheme, scheme), user, password, host, uri.path, query)

    @classmethod
    def _build(
        cls,
        scheme: str,
        user: str | None,
        password: str | None,
        host: str,
        path: str,
        query: list[tuple[str, str]],
    ) -> DatabaseUrl:
        try:
            urlsplit(f"//{host}").port  # noqa: B018 - raises
        except ValueError:
            # Not chained: what stands in the place of a port may be a piece of a password.
            raise JobDefinitionError(
                "JdbcConnectionOptions: the text after the host in the URL is not a port number",
                hint="write host or host:port; set user and password with with_user_name and with_password, or "
                "percent-encode special characters in them (@ is %40, / is %2F)",
            ) from None
        tail = host + path
        if query:
            tail += "?" + "&".join(f"{key}={quote_plus(value)}" for key, value in query)
        name = quote(user, safe="") if user else ""
        secret = quote(password, safe="") if password else ""
        given = f"{name}:{secret}@" if secret else f"{name}@" if name else ""
        shown = f"{name}:***@" if secret else given
        spellings = (password, secret, quote_plus(password)) if password else ()
        return cls(
            text=f"{scheme}://{given}{tail}",
            shown=f"{scheme}://{shown}{tail}",
            secrets=tuple(dict.fromkeys(filter(None, spellings))),
            dialect=scheme.partition("+")[0],
        )

    def check_driver_class(self, name: str) -> None:
        """Refuse a class of a JDBC driver that is not for this database; the URL chooses the Python driver.

        Raises:
            JobDefinitionError: It is for another database, or not known.
        """
        databases = _CLASSES.get(name)
        if databases is None:
            raise JobDefinitionError(
                f"JdbcConnectionOptions: driver class {name!r} cannot be loaded: headrace connects with Python drivers",
                hint="leave the driver out; the URL says which one is needed",
            )
        if self.dialect not in databases:
            raise JobDefinitionError(
                f"JdbcConnectionOptions: driver class {name!r} is for {sorted(databases)[-1]}, but the URL is for "
                f"{self.dialect}",
                hint="correct one of them, or leave the driver out",
            )

    def scrub(self, text: str) -> str:
        """Return a text in which the password does not appear."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    @property
    def driver_extra(self) -> str:
        """What to install for this database."""
        driver = self.text.partition("://")[0].partition("+")[2]
        return _EXTRAS.get(driver, driver or "its driver")


def _refuse_encryption(use_ssl: str) -> None:
    if use_ssl.lower() != "false":
        raise JobDefinitionError(
            "JdbcConnectionOptions: useSSL=true in the URL cannot be honoured: the connection would not be encrypted",
            hint="use a SQLAlchemy URL with a certificate: mysql+pymysql://host/db?ssl_ca=/path/to/ca.pem",
        )


def _word(text: str) -> str:
    """Return a text for a message if it can be no secret: a mistyped URL may have a password anywhere."""
    return text if text.isidentifier() and len(text) <= 40 else "..."

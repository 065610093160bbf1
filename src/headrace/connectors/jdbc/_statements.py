"""SQL with `?` for values, as JDBC has it, in the spelling of the driver at hand; and upserts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from headrace.errors import JobDefinitionError, UnsupportedFeatureError, shorten

#: What a `?` is not a placeholder in: texts, names, comments, PostgreSQL's dollar quotes. `??` is a `?`.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|\?\?|\?""", re.DOTALL
)
#: MySQL's texts may have a quote after a backslash.
_MYSQL_TOKEN = re.compile(
    r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\?""", re.DOTALL
)


@dataclass(frozen=True)
class JdbcStatement:
    """A statement, cut at its placeholders: one piece more than there are values."""

    pieces: tuple[str, ...]

    @classmethod
    def parse(cls, sql: str, dialect: str) -> JdbcStatement:
        """Find the placeholders.

        Raises:
            JobDefinitionError: There are none.
        """
        pieces = [""]
        end = 0
        for token in (_MYSQL_TOKEN if dialect in {"mysql", "mariadb"} else _TOKEN).finditer(sql):
            text = token.group()
            pieces[-1] += sql[end : token.start()]
            end = token.end()
            if text == "?":
                pieces.append("")
            else:
                pieces[-1] += "?" if text == "??" else text
        pieces[-1] += sql[end:]
        if len(pieces) == 1:
            raise JobDefinitionError(
                f"JdbcSink: the statement has no placeholders: {shorten(sql)}",
                hint="write a ? for each field, for example INSERT INTO words VALUES (?, ?)",
            )
        return cls(tuple(pieces))

    @property
    def arity(self) -> int:
        """How many values a row must have."""
        return len(self.pieces) - 1

    def render(self, paramstyle: str) -> str:
        """Return the statement for a driver of this style (PEP 249)."""
        if paramstyle == "qmark":
            return "?".join(self.pieces)
        if paramstyle in {"format", "pyformat"}:
            return "%s".join(piece.replace("%", "%%") for piece in self.pieces)
        if paramstyle == "numeric":
            rest = (f":{number}{piece}" for number, piece in enumerate(self.pieces[1:], start=1))
            return self.pieces[0] + "".join(rest)
        raise UnsupportedFeatureError.not_yet(f"JdbcSink with a driver of the parameter style {paramstyle!r}")


def _quoted(dialect: str, name: str) -> str:
    quote = "`" if dialect in {"mysql", "mariadb"} else '"'
    return quote + name.replace(quote, quote * 2) + quote


def _table_name(dialect: str, table: str) -> str:
    return ".".join(_quoted(dialect, part) for part in table.split("."))


def insert_sql(dialect: str, table: str, columns: Sequence[str]) -> str:
    """Return a statement that inserts a row."""
    names = ", ".join(_quoted(dialect, each) for each in columns)
    values = ", ".join("?" * len(columns))
    return f"INSERT INTO {_table_name(dialect, table)} ({names}) VALUES ({values})"  # noqa: S608 - quoted


def delete_sql(dialect: str, table: str, keys: Sequence[str]) -> str:
    """Return a statement that deletes the row of a key."""
    condition = " AND ".join(f"{_quoted(dialect, each)} = ?" for each in keys)
    return f"DELETE FROM {_table_name(dialect, table)} WHERE {condition}"  # noqa: S608 - names are quoted


def upsert_sql(dialect: str, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    """Return a statement that inserts a row, or replaces the one that has its key.

    Raises:
        JobDefinitionError: A key is not a column, or there is none.
        UnsupportedFeatureError: How this database spells it is not known.
    """
    unknown = [key for key in keys if key not in columns]
    if not keys or unknown:
        raise JobDefinitionError(
            f"JdbcSink.upsert_sink: key columns must be among the columns {', '.join(columns)}; got "
            f"{', '.join(unknown) or 'none'}"
        )
    column = partial(_quoted, dialect)
    insert = insert_sql(dialect, table, columns)
    others = [each for each in columns if each not in keys]
    if dialect in {"postgresql", "sqlite"}:
        conflict = f" ON CONFLICT ({', '.join(map(column, keys))}) DO "
        changes = ", ".join(f"{column(each)} = excluded.{column(each)}" for each in others)
        return insert + conflict + (f"UPDATE SET {changes}" if others else "NOTHING")
    if dialect in {"mysql", "mariadb"}:
        changed = others or list(keys[:1])
        changes = ", ".join(f"{column(each)} = VALUES({column(each)})" for each in changed)
        return f"{insert} ON DUPLICATE KEY UPDATE {changes}"
    raise UnsupportedFeatureError.not_yet(
        f"JdbcSink.upsert_sink for {dialect}", "write the statement yourself and pass it to JdbcSink.sink"
    )

"""Names of tables as programs pass them, and the statements that calls are translated to."""

from __future__ import annotations

from headrace.errors import SqlValidationError
from headrace.table.schema import Schema
from headrace.table.table_descriptor import TableDescriptor
from headrace.types.logical import quote_name, quote_text

__all__ = ["create_sql", "parts_of", "path_sql"]


def parts_of(path: str) -> list[str]:
    """Take a path apart at its dots, but for those in quotes.

    >>> parts_of("a.`b.c`")
    ['a', 'b.c']
    """
    parts, quoted = [""], False
    for each in path:
        if each == "`":
            quoted = not quoted
        elif each == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += each
    return parts


def path_sql(path: str) -> str:
    """Write a path as statements have it."""
    return ".".join(map(quote_name, parts_of(path)))


def create_sql(path: str, descriptor: TableDescriptor, is_temporary: bool, if_not_exists: bool) -> str:
    """Write the CREATE TABLE statement for a descriptor.

    Raises:
        SqlValidationError: If it has no schema.
    """
    temporary = "TEMPORARY " if is_temporary else ""
    exists = "IF NOT EXISTS " if if_not_exists else ""
    schema = descriptor.get_schema()
    if not isinstance(schema, Schema):
        raise SqlValidationError(f"table {path!r} has no schema", hint="TableDescriptor ... .schema(schema)")
    comment = f" COMMENT {quote_text(descriptor.comment)}" if descriptor.comment else ""
    keys = ", ".join(map(quote_name, descriptor.partition_keys))
    partitioned = f" PARTITIONED BY ({keys})" if keys else ""
    given = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in descriptor.options.items())
    options = f" WITH ({given})" if given else ""
    return f"CREATE {temporary}TABLE {exists}{path_sql(path)} {schema.sql()}{comment}{partitioned}{options}"

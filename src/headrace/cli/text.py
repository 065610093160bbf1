"""How commands show what they have found: for people, and for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click


def print_json(value: object) -> None:
    """Print a value as indented JSON, for scripts."""
    click.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, folded: Sequence[str] = ()) -> None:
    """Print for people; where it does not go to a terminal, nothing is cut.

    Args:
        columns: Their names.
        rows: Their cells.
        folded: Columns that are folded where the terminal is narrow. Ids and paths stay in one piece, to be copied.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    console, endless = Console(), Console(width=10_000)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, *cells in zip(columns, *rows, strict=True):
        least = None if column in folded else max(map(cell_len, (column, *cells)))
        table.add_column(column, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*(cell.replace("[", "\\[") for cell in row))
    if console.is_terminal:
        console.width = max(console.width, endless.measure(table).minimum)
        console.print(table, soft_wrap=True)
    else:
        endless.print(table)


def time_text(timestamp_ms: int) -> str:
    """Show a time.

    Example:
        >>> time_text(1_700_000_000_123), time_text(-1)
        ('2023-11-14 22:13:20', '-')
    """
    if timestamp_ms <= 0:
        return "-"
    return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def duration_text(duration_ms: int) -> str:
    """Show how long something took.

    Example:
        >>> duration_text(61), duration_text(75_000)
        ('61 ms', '0:01:15')
    """
    return f"{duration_ms} ms" if duration_ms < 1000 else str(timedelta(seconds=duration_ms // 1000))


def size_text(size: float) -> str:
    """Show a number of bytes.

    Example:
        >>> size_text(512), size_text(6260)
        ('512 B', '6.1 KiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"

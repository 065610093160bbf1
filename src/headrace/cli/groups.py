"""Groups of commands that also work like one command: `headrace savepoint JOB` is `headrace savepoint trigger JOB`."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["DefaultGroup"]


class DefaultGroup(click.Group):
    """A group with a default subcommand, for words that are not the name of another one.

    Args:
        default: The name of that subcommand.
    """

    def __init__(self, *args: Any, default: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default in front of arguments that do not begin with a subcommand or ask for help."""
        help_names = self.get_help_option_names(ctx)
        if args and args[0] not in self.commands and args[0] not in help_names:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

"""The common rule of all commands: a value is given once."""

from __future__ import annotations

from typing import NoReturn

import click


class Command(click.Command):
    """A command that refuses an option with a value that is given twice, unless it may be repeated, and two options for one value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Count the options before their values are read."""
        if not ctx.resilient_parsing:
            given = self.make_parser(ctx).parse_args([*args])[2]
            for option in given:
                if isinstance(option, click.Option) and not (option.is_flag or option.multiple or option.count) and given.count(option) > 1:
                    refuse_twice(option.opts[0], ctx)
            for option in given:
                if others := [other.opts[0] for other in given if other.name == option.name and other is not option]:
                    raise click.UsageError(f"{option.opts[0]} and {others[0]} say the same thing; give one of them", ctx)
        return super().parse_args(ctx, args)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


def refuse_twice(option: str, context: click.Context) -> NoReturn:
    """Report an option that is given twice.

    Raises:
        UsageError: always.
    """
    raise click.UsageError(f"{option} is given twice; give it once", context)

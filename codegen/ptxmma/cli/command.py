"""The commands of the verbs: a value is given once, and axes of operands are options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from ptxmma.cli.options import SectionOption, catalog_of

#: The messages that click writes, which say what is wrong and not what is right.
_OF_CLICK = (click.MissingParameter, click.NoSuchOption, click.BadOptionUsage)
_EXAMPLE = re.compile(r"^ *Examples?:\n *(ptxmma .*)$", re.M)


class Command(click.Command):
    """A command that refuses an option with a value that is given twice, unless it may be repeated, and two options for one value.

    Click's messages get an example of the command.
    """

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        """Parse the arguments; the parameters are click's."""
        try:
            return super().make_context(*arguments, **named)
        except _OF_CLICK as error:
            example = _EXAMPLE.search(self.help or "")
            raise click.UsageError(f"{error.format_message()}" + (f"\nExample: {example[1]}" if example else ""), error.ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (row := parameter.get_help_record(ctx)):
                title = parameter.section if isinstance(parameter, SectionOption) else "Options"
                sections.setdefault(title, []).append(row)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)

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


#: The text that follows each unknown option; None without a value.
Given = dict[str, str | None]


class NamedNumbers(Command):
    """A command that also takes ``--NAME N`` for any name; they come as its parameter ``numbers``, which :func:`numbers_of` reads.

    ``axes`` are the usual names, with what ``--help`` says of them.
    """

    def __init__(self, *arguments: Any, axes: Mapping[str, str], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.axes = axes

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, and then the usual names."""
        super().format_options(ctx, formatter)
        with formatter.section("Options that depend on the operand"):
            formatter.write_dl([(" ".join(f"--{name}" for name in names.split()), text) for names, text in self.axes.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Collect the unknown options with their values."""
        known = {spelling for parameter in self.get_params(ctx) for spelling in (*parameter.opts, *parameter.secondary_opts)}
        numbers: Given = {}
        rest: list[str] = []
        while args:
            word = args.pop(0)
            name, equals, value = word.partition("=")
            if word == "--":
                rest += [word, *args]
                break
            if not name.startswith("--") or name in known:
                rest.append(word)
                continue
            if name[2:] in numbers and not ctx.resilient_parsing:
                refuse_twice(name, ctx)
            if equals:
                numbers[name[2:]] = value
            else:
                numbers[name[2:]] = args.pop(0) if args and not args[0].startswith("--") else None
        parsed = super().parse_args(ctx, rest)
        ctx.params["numbers"] = numbers
        return parsed

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The options of the command and every axis of the database."""
        items = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            layouts = catalog_of(ctx.params.get("database")).database.layouts
            names = sorted({f"--{axis.replace('_', '-')}" for layout in layouts for axis in layout.axes})
            items += [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return items


class Question(NamedTuple):
    """The options that choose a part of an operand, and the form of the answer; ``numbers`` has the axes."""

    lane: int | None
    register: int | None
    element: int | None
    bit: int | None
    by_lane: bool
    transpose: bool
    bits: bool
    whole: bool
    numbers: Given
    form: str

    def given(self, *names: str) -> list[str]:
        """The options among some that are given, as the user writes them."""
        return [f"--{'all' if name == 'whole' else name.replace('_', '-')}" for name in names if getattr(self, name) not in (None, False)]


def numbers_of(
    given: Given, legal: Mapping[str, Sequence[int]], subject: str, beyond: Mapping[str, Callable[[int], str]] | None = None
) -> dict[str, int]:
    """The numbers by name, checked against the legal values of each; ``subject`` is what has these names.

    ``beyond`` says of some what an illegal number means.

    Raises:
        UsageError: an unknown name, something that is not a number, or an illegal value.
    """
    numbers = {}
    for name, text in given.items():
        values = legal.get(name.replace("-", "_"))
        if values is None:
            raise click.UsageError(f"{subject} has no --{name}{_close(name)}; its axes: {_listed(legal)}")
        try:
            number = int(text or "", 16 if (text or "").lower().startswith("0x") else 10)
        except ValueError:
            raise click.UsageError(f"--{name} takes a number, {_span(values)}{'' if text is None else f', not {text!r}'}") from None
        if number not in values:
            explained = (beyond or {}).get(name.replace("-", "_"))
            more = explained(number) if explained else ""
            wrong = "outside" if ".." in _span(values) else "not legal; allowed:"
            raise click.UsageError(f"--{name} {number} is {wrong} {_span(values)}{more}")
        numbers[name.replace("-", "_")] = number
    return numbers


def _close(name: str) -> str:
    """An option of the command that the user may have meant."""
    import difflib  # only when there is something to explain

    options = [spelling for parameter in click.get_current_context().command.params for spelling in parameter.opts]
    close = difflib.get_close_matches(f"--{name}", options, 1, 0.8)
    return f" (is {close[0]} meant?)" if close else ""


def _listed(legal: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"--{name.replace('_', '-')} {_span(values)}" for name, values in legal.items())


def _span(values: Sequence[int]) -> str:
    if list(values) == list(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    return " or ".join(map(str, values))


def within(option: str, value: int, limit: int) -> None:
    """Report the value of an option outside 0..limit-1."""
    if not 0 <= value < limit:
        raise click.UsageError(f"--{option} {value} is outside 0..{limit - 1}")

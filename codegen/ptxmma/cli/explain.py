"""``ptxmma explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from ptxmma.arguments import one_of
from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, completed, database_option, json_option, usage_errors
from ptxmma.cli.render import blocks, emit, heading, wrapped


def _codes(context: click.Context) -> list[str]:
    from ptxmma.check.rules import RULES

    return [*RULES, *(message.code for message in catalog_of(context.params.get("database")).database.spec.messages)]


@click.command("explain", cls=Command)
@click.argument("code", metavar="CODE", shell_complete=completed(_codes))
@json_option
@database_option
def command(code: str, as_json: bool, database: str | None) -> None:
    """Explain a message of ptxas, or a rule of ptxmma check: the cause and the remedy.

    \b
    Examples:
      ptxmma explain C7510
      ptxmma explain missing-fence
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.check.rules import RULES

    messages = {message.code: message for message in catalog_of(database).database.spec.messages}
    if message := messages.get(code.upper()):
        rules = [f"{rule}: {RULES[rule].what}" for rule in message.rules if rule in RULES]
        _show(
            {"code": message.code, "text": message.text, "error": message.error, "cause": message.cause, "remedy": message.remedy},
            {"cause": [message.cause], "remedy": [message.remedy], "ptxmma check finds the cause by": rules},
            as_json=as_json,
        )
    elif rule := RULES.get(code.lower()):
        _show(
            {"code": code.lower(), "text": rule.what, "cause": rule.why, "remedy": rule.fix, "bad": rule.bad, "good": rule.good},
            {"why": [rule.why], "what to do": [rule.fix], "wrong": rule.bad.splitlines(), "right": rule.good.splitlines()},
            as_json=as_json,
        )
    else:
        with usage_errors():
            one_of("code", code, [*messages, *RULES])


def _show(facts: Mapping[str, object], titled: Mapping[str, Sequence[str]], *, as_json: bool) -> None:
    """The facts as JSON, or the code with its text and the titled lines."""
    if as_json:
        emit({name: value for name, value in facts.items() if value != ""})
        return
    click.echo(heading(str(facts["code"])))
    click.echo(wrapped(str(facts["text"])))
    blocks(titled)

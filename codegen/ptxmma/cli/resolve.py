"""``ptxmma resolve``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, find, instruction_argument, json_option
from ptxmma.cli.render import emit

if TYPE_CHECKING:
    from ptxmma.cli.answers import Resolved


@click.command("resolve", cls=Command)
@instruction_argument
@json_option
def command(spelling: str, as_json: bool, database: str | None) -> None:
    """Print the spelling of the instruction that words mean.

    Words are modifiers, shapes, types, names of formats, targets, lines of PTX, functions of the headers, atoms of CuTe, machine
    instructions and LLVM's intrinsics.  Standard error has the preferences that decided, and what else the words may mean.

    \b
    Examples:
      ptxmma resolve wgmma n128 bf16
      ptxmma resolve HMMA.16816.F32
    """  # noqa: D301  # click's mark for lines that stay as they are
    instruction = find(spelling, database)
    if not as_json:
        click.echo(instruction.canonical)
        return
    from ptxmma.catalog.lookup import resolve

    found = resolve(catalog_of(database), spelling)
    answer: Resolved = {
        "instruction": instruction.canonical,
        "product": dict(found.arguments({})),
        "reasons": list(found.reasons),
        "others": [each.canonical for each in found.others],
    }
    emit(answer)

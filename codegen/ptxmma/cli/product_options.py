"""Options that say what an opcode does not state: the shape and the types of a product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.options import known_names

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction

_KEY = "ptxmma.product"
_SIZES = {"m": "rows of D, in a pair of CTAs those of both", "n": "columns of D", "k": "depth"}
_TYPES = {"dtype": "type of D", "atype": "type of A", "btype": "type of B", "stype": "type of scale factors"}
_VERSION = {"sparsity_version": "version of sparsity: v0, or v1 on sm_107a"}


def product_options(command: click.decorators.FC) -> click.decorators.FC:
    """``--m``, ``--n``, ``--k``, the types ``--dtype`` to ``--stype``, and ``--sparsity-version``: what :func:`resolved` reads."""
    typed: Any = {"metavar": "TYPE", "shell_complete": known_names("element")}
    version: Any = {"metavar": "VERSION", "shell_complete": known_names("sparsity")}
    for name, text in reversed({**_SIZES, **_TYPES, **_VERSION}.items()):
        kind = {"type": int} if name in _SIZES else typed if name in _TYPES else version
        description = f"Of tcgen05.mma, whose opcode does not state it: {text}."
        command = click.option(f"--{name.replace('_', '-')}", expose_value=False, callback=_keep, help=description, **kind)(command)
    return command


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        context.meta.setdefault(_KEY, {})[parameter.name] = value


def resolved(instruction: Instruction) -> Instruction:
    """The instruction with what the options say; exits with 2 where no rule allows it."""
    from ptxmma.catalog.products.product_rules import IllegalProductError

    arguments = click.get_current_context().meta.get(_KEY)
    try:
        return instruction.resolved(**arguments) if arguments else instruction
    except IllegalProductError as error:
        raise click.UsageError(str(error)) from None


def resolved_as(instruction: Instruction, text: str | None) -> Instruction:
    """Return the instruction of ``--as`` with what ``--as-product`` says, ``"m=128,n=64"``; the rest is as the options say of the source.

    Exits with 2 where the text names nothing of a product, or no rule allows it.
    """
    from ptxmma.catalog.products import resolution
    from ptxmma.catalog.products.product_rules import IllegalProductError

    named = {**_SIZES, **_TYPES, **_VERSION}
    said: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, _, value = part.partition("=")
        key = name.strip().replace("-", "_")
        if key not in named or (key in _SIZES and not value.strip().isdecimal()):
            raise click.UsageError(f"--as-product {part}: write NAME=VALUE, separated by commas; the names are {', '.join(named)}")
        said[key] = int(value) if key in _SIZES else value.strip()
    known: dict[str, Any] = {}
    if instruction.operation == resolution.OPERATION and not instruction.shape_sizes:
        given = click.get_current_context().meta.get(_KEY, {})
        known = {name: given[name] for name in resolution.unstated(instruction.database.spec, instruction.variant) if name in given}
    arguments = {**known, **said}
    try:
        return instruction.resolved(**arguments) if arguments else instruction
    except IllegalProductError as error:
        raise click.UsageError(str(error)) from None


def refuse_product(subject: str) -> None:
    """Exit with 2 where the options are for one instruction and ``subject`` is several."""
    given = click.get_current_context().meta.get(_KEY)
    if given:
        options = ", ".join(f"--{name}" for name in given)
        raise click.UsageError(f"{options} {'is' if len(given) == 1 else 'are'} for one instruction: leave out {options}, or {subject}")


def require_product(instruction: Instruction, subject: str = "") -> None:
    """Exit with 2 for an opcode that does not state its shape, where an answer about ``subject`` depends on it."""
    from ptxmma.catalog.products import resolution

    if instruction.operation == resolution.OPERATION and not instruction.shape_sizes:
        missing = resolution.unstated(instruction.database.spec, instruction.variant)
        options = ", ".join(f"--{name}" for name in missing)
        about = subject or instruction.canonical
        raise click.UsageError(f"{about}: the opcode does not state {', '.join(missing)}; give {options}")

"""Options that verbs about shared memory share: the matrix and its layout; and the command that shows a matrix there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.options import catalog_of, completed, known_names, matrix_families, swizzles

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxmma.catalog.instructions import Instruction


def integer(value: object) -> int:
    """The type of options that take an integer, in hexadecimal with ``0x``."""
    try:
        return int(str(value), 0)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an integer; hexadecimal starts with 0x") from None


def numbers(value: object) -> tuple[int, ...]:
    """The type of options that take a number for each dimension: ``64x128`` or ``64,128``."""
    try:
        return tuple(int(part) for part in re.split("[x,]", str(value)))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of integers; write 64x128 or 64,128, the innermost dimension first") from None


_HELP = {
    "type": "The element type, as in PTX: bf16.",
    "major": "Which dimension is contiguous: k, or mn for the rows of A and the columns of B.",
    "swizzle": "none, 32, 64 or 128 bytes; for tcgen05 also 128B_ATOM_32B.",
    "rows": "Rows of A, or columns of B.",
    "cols": "Depth, along k; of a sparse A the stored one.",
    "depth": "Depth of a product, K of its shape: one descriptor for each.",
    "address": "Shared address of the first byte, before the swizzle.",
    "lbo": "Leading dimension byte offset, in bytes.",
    "sbo": "Stride dimension byte offset, in bytes.",
    "base-offset": "Base offset of the swizzle's pattern.",
}


def tile_option(name: str, **more: Any) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """One of the options in :data:`_HELP`; ``more`` goes to click."""
    kinds: dict[str, Any] = {"type": str, "major": click.Choice(["k", "mn"], case_sensitive=False), "swizzle": str}
    argument = {"type": "element"}.get(name, name.replace("-", "_"))
    if name == "type":
        more |= {"metavar": "NAME", "shell_complete": known_names("element")}
    if name == "swizzle":
        more |= {"metavar": "BYTES", "shell_complete": completed(swizzles)}
    return click.option(f"--{name}", argument, type=kinds.get(name, integer), help=_HELP[name], show_default="default" in more, **more)


#: The family whose instructions read the matrix.
family_option = click.option(
    "--family",
    metavar="NAME",
    shell_complete=completed(matrix_families),
    help="The instructions that read the matrix: wgmma, tcgen05; by default the database's first.",
)


def family_of(given: str | None, database: str | None) -> str:
    """The family of matrix descriptors that ``--family`` names; the database's first without it."""
    from ptxmma.catalog.descriptors.shared_formats import matrix_format

    try:
        return matrix_format(catalog_of(database).database.spec, given or "").family
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--family") from None


#: The option for padded narrow elements.
padded_option = click.option(
    "--padded", is_flag=True, help="16 elements of 4 or 6 bits in each 16 bytes, as kind::f8f6f4 and kind::mxf8f6f4 read them."
)


def in_options(message: str) -> str:
    """An error of the library about values, with the names of options in place of the names of parameters."""
    names = {
        "start": "address",
        "start_address": "address",
        "leading_byte_offset": "lbo",
        "stride_byte_offset": "sbo",
        "x": "rows",
        "k": "cols",
        "k_extent": "depth",
    }

    def option(name: re.Match[str]) -> str:
        known = names.get(name[1], name[1].replace("_", "-"))
        return f"--{known} " if known in _HELP else name[0]

    return re.sub(r"\b([a-z_]+) = ", option, message.partition("; store_tiles")[0]).replace("padded=True", "--padded")


def elsewhere(instruction: Instruction, matrix: str) -> str:
    """The command that shows a matrix in shared memory; empty if the instruction does not read it through a descriptor."""
    from ptxmma.catalog.descriptors.shared_formats import matrix_format
    from ptxmma.matrices.product_operands import described

    each = described(instruction).get(matrix)
    if each is None:
        return ""
    spec, own = instruction.database.spec, matrix_format(instruction.database.spec, instruction.family).family
    family = "" if own == matrix_format(spec).family else f"--family {own} "
    size = f"--rows {each.lines} --cols {each.depth}"
    return f"`ptxmma smem {family}--type {each.element.name} {'--padded ' * each.padded}--major k --swizzle none {size}`"

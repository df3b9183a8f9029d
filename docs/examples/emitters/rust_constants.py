"""Rust constants: a file for each family, with the spelling, the targets and the registers of each instruction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.templating import banner

FOLDERS = ("rust/src",)
STRUCT = """\
pub struct Instruction {
    pub ptx: &'static str,
    /// The targets that accept it, each with its first PTX ISA version.
    pub targets: &'static [(&'static str, &'static str)],
    /// The registers of a thread for each operand.
    pub registers: &'static [(&'static str, u32)],
}
"""


def constant(instruction: Instruction) -> str:
    """``pub const MMA_M16N8K16_F32_F16_F16_F32: Instruction = ...``."""
    targets = ", ".join(f'("{target}", "{version}")' for target, version in instruction.accepted_by().items())
    operands = [operand for form in instruction.forms[:1] for operand in form.operands]  # a fence has none
    registers = ", ".join(f'("{operand.name}", {operand.registers})' for operand in operands)
    fields = f'ptx: "{instruction.canonical}", targets: &[{targets}], registers: &[{registers}]'
    return f"pub const {instruction.identifier.upper()}: Instruction = Instruction {{ {fields} }};\n"


def emit(catalog: Catalog) -> Iterator[Output]:
    """A module for each family, and ``lib.rs`` with all of them."""
    head, modules = banner("//", catalog, ["spec/"]), []
    for family, instructions in groupby(sorted(catalog.all(), key=lambda each: each.family), lambda each: each.family):
        modules.append(family.replace(".", "_"))
        yield Output(f"rust/src/{modules[-1]}.rs", f"{head}use crate::Instruction;\n\n" + "".join(map(constant, instructions)))
    yield Output("rust/src/lib.rs", head + "".join(f"pub mod {module};\n" for module in modules) + STRUCT)

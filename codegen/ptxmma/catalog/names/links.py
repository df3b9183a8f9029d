"""Addresses inside of the site: the explorer, and the page of an instruction in the reference."""

from __future__ import annotations

from urllib.parse import quote

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.roles import matrices, multiplicands

#: The name of its file.
EXPLORER = "explorer.html"

#: The characters that a browser leaves as they are in the end of an address.
_PLAIN = ":,/"


def explorer(**state: str) -> str:
    """The end of the explorer's address for what it shows: ``"#i=mma.sync…&at=a:9,3"``.

    Args:
        state: ``i`` the canonical spelling of the instruction, ``v`` the view (``"memory"``, ``"tensor"``, ``"sparsity"``, ``"copy"``),
            ``at`` an element (``"a:9,3"``) or a thread (``"lane:5"``), ``image`` what lies in shared memory (``"bf16,K,128B,64,64"``),
            ``operand`` and ``product`` what lies in tensor memory (``"d-tmem"``, ``"m:128,n:256"``), ``load`` what loads it.
    """
    return "#" + "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in state.items())


def first_matrix(instruction: Instruction) -> str:
    """The operand whose type names the page of an instruction: the first that it multiplies, or the first that it moves; ``""`` without."""
    entry = instruction.variant.instruction
    multiplied = multiplicands(entry) if instruction.operation == "multiply" else ()
    return next(iter((*multiplied, *matrices(entry))), "")


def page(instruction: Instruction) -> str:
    """The address of an instruction below the reference, ``"mma/m16n8k16-bf16"``: its page, or a file that leads there.

    Instructions without a shape go by their names: ``"wgmma/wait_group"``; file names have no colons.
    """
    variant = instruction.variant
    if variant.shape:
        return f"{instruction.family}/{variant.shape_label}-{instruction.matrix_types[first_matrix(instruction)]}"
    name = variant.instruction.name
    return f"{instruction.family}/{name.removeprefix(f'{instruction.family}.').replace('::', '_')}"

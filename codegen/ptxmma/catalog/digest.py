"""Digests of what the database says of an instruction, by which evidence knows whether it still covers it.

Each digest is made of a plain text: PTX, numbers and bit maps, never names of our own structures.  So words for readers, citations and
the way in which the spec says a fact leave it as it is, and a fact that a witness relied on changes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.model import Database, Layout
from ptxmma.model.bitmap import BitMap

#: Digits of a digest.
_DIGITS = 12
#: Immediates that are listed one by one; a longer list is a range.
_FEW = 64


def asked(instruction: Instruction, targets: Collection[str]) -> str:
    """What an assembler is asked about an instruction: its operands, and the first version of each of the targets that accepts it.

    Args:
        instruction: in any database.
        targets: those that assemblers were asked about; another one leaves the digest as it is.
    """
    accepted = instruction.accepted_by()
    forms = [f"{form.syntax}: {' '.join(map(_text, form.operands))}" for form in instruction.forms]
    return _digest([instruction.canonical, *forms, *(f"{target} {accepted[target]}" for target in sorted(targets) if target in accepted)])


def _text(operand: Operand) -> str:
    """What stands for an operand in a line: ``4f32``, ``b32``, or the first immediate where it takes no register."""
    if not operand.takes_register:
        return str(operand.immediates[0]) if operand.immediates else ""
    return f"{operand.registers if operand.elements else ''}{operand.register_types[0]}"


def computed(instruction: Instruction) -> str:
    """What a chip computes and another project defines: each operand's registers, constants, element type and place of every bit.

    Of a sparse instruction its legal metadata fields belong to it, of one that reads shared memory the descriptor's bits, the
    swizzles and the formulas of the canonical layouts.
    """
    return _digest(_computed(instruction))


def bit_map(layout: BitMap) -> str:
    """A bit map as text, its inputs and outputs by their position: ``0: 1.1 1.2 0.0 …; 1: 1.0 …``."""
    place = {name: number for number, name in enumerate(layout.outputs)}
    return "; ".join(
        f"{number}: {' '.join(f'{place[axis]}.{bit}' for axis, bit in layout.bits[name])}" for number, name in enumerate(layout.inputs)
    )


def _computed(instruction: Instruction) -> Iterator[str]:
    database = instruction.database
    yield instruction.canonical
    for form in instruction.forms:
        yield form.syntax
        for operand in form.operands:
            yield _operand(operand)
            if operand.layout is not None:
                yield _layout(database, operand.layout)
    if instruction.sparse:
        yield f"{instruction.metadata.selectors} {' '.join(instruction.metadata.legal)} {_layout(database, instruction.metadata.layout)}"
    if any(operand.kind == "descriptor" for form in instruction.forms for operand in form.operands):
        memory = database.spec.shared_memory
        types = {
            instruction.matrix_types[operand.of] for form in instruction.forms for operand in form.operands if operand.kind == "descriptor"
        }
        readable = [entry.majorness for entry in memory.majorness if types.issubset(entry.elements)] if memory else []
        yield f"{' '.join(readable)} {_shared_memory(database)}"


def _operand(operand: Operand) -> str:
    registers = f"{operand.registers} {'/'.join(operand.register_types)}" if operand.takes_register else ""
    elements = f"{operand.elements} {operand.element_type}" if operand.elements else ""
    memory = f"; {operand.alignment} {operand.row_bytes} {operand.unit}" if operand.alignment or operand.unit else ""
    return f"{operand.name}: {registers}; {_immediates(operand)}; {elements}{memory}"


def _immediates(operand: Operand) -> str:
    values = operand.immediates or ()
    return " ".join(map(str, values)) if len(values) <= _FEW else f"{values[0]} to {values[-1]}"


def _layout(database: Database, layout: Layout) -> str:
    """The digest of a layout's map; many instructions share one."""
    known: dict[str, str] = database.memo.setdefault("layout digests", {})
    if layout.name not in known:
        known[layout.name] = _digest([bit_map(layout.map)])
    return known[layout.name]


def _shared_memory(database: Database) -> str:
    """The digest of what is known of operands in shared memory."""
    if "shared memory digest" not in database.memo:
        memory = database.spec.shared_memory
        assert memory is not None
        fields = [f"{field.name} {field.low} {field.width} {field.shift}" for field in memory.descriptor]
        modes = [f"{mode.name} {mode.encoding} {mode.bytes} {mode.pattern}" for mode in memory.swizzles]
        offsets = [f"{entry.majorness} {'/'.join(entry.swizzles)} {entry.offset}" for entry in memory.layouts]
        database.memo["shared memory digest"] = _digest([*fields, *modes, *offsets, memory.swizzle_formula, memory.base_offset])
    found: str = database.memo["shared memory digest"]
    return found


def _digest(texts: list[str] | Iterator[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:_DIGITS]

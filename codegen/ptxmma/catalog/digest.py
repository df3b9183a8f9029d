"""Digests of the facts about an instruction.  Evidence stores them, and is outdated where they have changed.

A digest hashes plain text: PTX, numbers, bit maps, and the spec's names of operands, fields and axes.  It changes with every fact that a
witness relied on, and where one of those names changes; not with titles, notes, citations or the names of layouts.  Fragments count by
their bit maps, however a formula writes them.  The formulas of shared memory count as they are written, layouts of tensor memory
by their digits.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import cast

from ptxmma.catalog.descriptors.shared_formats import matrix_format, read_by, swizzle_encoding
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.model import Database, DescriptorFormat, FieldCase, Layout, TensorLayout, Version
from ptxmma.model.bitmap import BitMap

#: Digits of a digest.
_DIGITS = 12
#: Immediates that are listed one by one; a longer list is a range.
_FEW = 64


def asked(instruction: Instruction, targets: Collection[str]) -> str:
    """The digest of what an assembler can check: the operands, and the first version of each target that accepts the instruction.

    Args:
        instruction: an instruction of any database.
        targets: the targets that the assemblers were run for; other targets do not change the digest.
    """
    accepted = instruction.accepted_by()
    forms = _of_forms(instruction, _asked_of)
    extras = [f"{form.syntax} {_of(instruction.accepted_by(form=form), targets)}" for form in instruction.forms if form.requires]
    for form in instruction.forms:
        for name, rule in form.of_values:
            with_rule = form.given({name: rule.values[0]})
            extras.append(f"{name} {rule.values} {_of(instruction.accepted_by(form=with_rule), targets)}")
    extras += [f"{each.canonical} {_of(each.accepted_by(), targets)}" for each in instruction.hinted()]
    return _digest([instruction.canonical, *forms, *_of(accepted, targets), *extras])


def _of_forms(instruction: Instruction, texts: Callable[[Instruction], Iterator[str]]) -> list[str]:
    """Texts about the forms of an instruction, which many instructions share."""
    known: dict[object, list[str]] = instruction.database.memo.setdefault("operand texts", {})
    key = texts, id(instruction.forms)
    if key not in known:
        known[key] = [*texts(instruction)]
    return known[key]


def _asked_of(instruction: Instruction) -> Iterator[str]:
    yield from (f"{form.syntax}: {' '.join(map(_text, form.operands))}" for form in instruction.forms)


def _of(accepted: Mapping[str, Version], targets: Collection[str]) -> list[str]:
    """Some of the targets that accept an instruction, with the first version of each."""
    return _versions(tuple(accepted.items()), frozenset(targets))


@functools.lru_cache(maxsize=1 << 10)  # far more than the different answers of a spec
def _versions(accepted: tuple[tuple[str, Version], ...], targets: frozenset[str]) -> list[str]:
    return [f"{target} {version}" for target, version in sorted(accepted) if target in targets]


def _text(operand: Operand) -> str:
    """The text of an operand: ``4f32``, ``b32``, or the first immediate where it takes no register."""
    if not operand.takes_register:
        return str(operand.immediates[0]) if operand.immediates else ""
    return f"{operand.registers if operand.elements or operand.listed else ''}{operand.register_types[0]}"


def computed(instruction: Instruction) -> str:
    """The digest of what a chip or another project can check: each operand's registers, constants, element type and place of every bit.

    It includes the legal metadata fields of a sparse instruction.  For an instruction that reads shared memory it includes the
    descriptor's bits, the swizzles and the formulas of the canonical layouts.
    """
    return _digest(_computed(instruction))


def tensor_layout(layout: TensorLayout) -> str:
    """The digest of where an operand lies in tensor memory: its digits, sizes and selections, and the instructions that they are for."""
    texts = [f"{name} = {text}" for name, text in layout.axes.items()]
    texts += [f"{term.coordinate} + {term.weight} * ({term.axis} + {term.added}) // {term.step} % {term.size}" for term in layout.terms]
    selections = [f"{entry.name} {entry.values} {sorted(map(str, entry.when))}" for entry in layout.selections]
    return _digest([layout.operand, layout.matrix, str(layout.of), layout.unit, *texts, *selections])


def register_layout(database: Database, layout: Layout) -> str:
    """The digest of where each bit of a layout of registers lies."""
    digests: dict[str, str] = database.memo.setdefault("layout digests", {})
    if layout.name not in digests:
        digests[layout.name] = _digest([bit_map(layout.map)])
    return digests[layout.name]


def descriptor_format(format: DescriptorFormat) -> str:
    """The digest of where the fields of a descriptor are and what they may hold."""
    texts = []
    for field in format.fields:
        numbers = (field.low, field.width, field.upper, field.shift, field.less, field.fixed)
        cases = [_case(case) for case in field.cases]
        texts.append(f"{field.name} {numbers} {cases}")
    return _digest([f"{format.bits} {format.spare} {format.kinds}", *texts])


def _case(case: FieldCase) -> str:
    bound = f" below {case.below}" if case.below else ""
    return f"{sorted(map(str, case.when))} {sorted(case.values.items())}{bound} {sorted(case.targets)}"


def bit_map(layout: BitMap) -> str:
    """A bit map as text, its inputs and outputs by their position: ``0: 1.1 1.2 0.0 …; 1: 1.0 …``."""
    place = {name: number for number, name in enumerate(layout.outputs)}
    return "; ".join(
        f"{number}: {' '.join(f'{place[axis]}.{bit}' for axis, bit in layout.bits[name])}" for number, name in enumerate(layout.inputs)
    )


def _computed(instruction: Instruction) -> Iterator[str]:
    database = instruction.database
    yield instruction.canonical
    yield from _of_forms(instruction, _computed_of)
    if instruction.variant.instruction.metadata:
        own = instruction.metadata
        yield f"{own.selectors} {' '.join(own.legal)} {register_layout(database, own.layout)}"
    if any(operand.kind == "descriptor" for operand in instruction.operands):
        memory = database.spec.shared_memory
        types = {instruction.matrix_types[operand.of] for operand in instruction.operands if operand.kind == "descriptor"}
        family = instruction.variant.instruction.family
        entries = read_by(database.spec, memory, family).majorness if memory else ()
        readable = [entry.majorness for entry in entries if types.issubset(entry.elements)]
        yield f"{' '.join(readable)} {_shared_memory(database, family)}"


def _computed_of(instruction: Instruction) -> Iterator[str]:
    for form in instruction.forms:
        yield form.syntax
        for operand in form.operands:
            yield _operand(operand)
            if operand.layout is not None:
                yield register_layout(instruction.database, operand.layout)


def _operand(operand: Operand) -> str:
    registers = f"{operand.registers} {'/'.join(operand.register_types)}" if operand.takes_register else ""
    elements = f"{operand.elements} {operand.element_type}" if operand.elements else ""
    memory = f"; {operand.alignment} {operand.row_bytes} {operand.unit}" if operand.alignment or operand.unit else ""
    return f"{operand.name}: {registers}; {_immediates(operand)}; {elements}{memory}"


def _immediates(operand: Operand) -> str:
    values = operand.immediates or ()
    return " ".join(map(str, values)) if len(values) <= _FEW else f"{values[0]} to {values[-1]}"


def _shared_memory(database: Database, family: str) -> str:
    """The digest of the facts about the operands of a family in shared memory."""
    key = ("shared memory digest", family)
    if key not in database.memo:
        spec = database.spec
        assert spec.shared_memory is not None
        memory, encoded = read_by(spec, spec.shared_memory, family), swizzle_encoding(spec, family)
        fields = [f"{field.name} {field.low} {field.width} {field.shift}" for field in matrix_format(spec, family).fields]
        modes = [f"{mode.name} {encoded[mode.name]} {mode.bytes} {mode.pattern}" for mode in memory.swizzles]
        offsets = [f"{entry.majorness} {'/'.join(entry.swizzles)} {entry.element_offset}" for entry in memory.layouts]
        database.memo[key] = _digest([*fields, *modes, *offsets, memory.swizzle_formula, memory.base_offset])
    return cast(str, database.memo[key])


def _digest(texts: list[str] | Iterator[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:_DIGITS]

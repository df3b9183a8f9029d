"""Groups of instructions that share a page: one family, one shape, of products one element width, and the loads and stores for them."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ptxmma.catalog.instructions import Catalog, Instruction, Missing
from ptxmma.catalog.names import links
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit.docs import rest
from ptxmma.model import InstructionSet


@dataclass(frozen=True)
class FormGroup:
    """The instructions of a page, in the order of the spec; those that give it its name come first."""

    own: tuple[Instruction, ...]
    others: tuple[Instruction, ...]  # the instructions that move these ones' operands
    aliases: tuple[str, ...]  # other addresses of the page: the addresses of its instructions with other types

    @property
    def members(self) -> tuple[Instruction, ...]:
        """All of them."""
        return self.own + self.others

    @property
    def family(self) -> str:
        """Their family."""
        return self.own[0].family

    @functools.cached_property
    def path(self) -> str:
        """The address of the page below the reference: ``"mma/m16n8k16-f16"``."""
        return links.page(self.own[0])

    @property
    def shape(self) -> str:
        """``"m64nNk16"``; without a shape the name of the instruction."""
        return self.own[0].variant.shape_label or self.own[0].variant.instruction.name

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        """The types of the matrix that gives the page its name."""
        names = ((instruction, links.first_matrix(instruction)) for instruction in self.own)
        return tuple(dict.fromkeys(instruction.matrix_types[name] for instruction, name in names if name))

    @functools.cached_property
    def bits(self) -> int:
        """The width of their elements in bits; 0 without elements."""
        return _bits(self.own[0])

    @property
    def title(self) -> str:
        """``"mma m16n8k16: f16, bf16"``."""
        own = self.own[0].variant
        return f"{self.family} {self.shape}: {', '.join(self.types)}" if own.shape else own.instruction.name

    @property
    def label(self) -> str:
        """The target of references to the page."""
        return page_label(self.path)

    def entries(self) -> dict[str, tuple[InstructionSet, list[Instruction]]]:
        """Its PTX instructions by name, each with its variants."""
        made: dict[str, tuple[InstructionSet, list[Instruction]]] = {}
        for instruction in self.members:
            entry = instruction.variant.instruction
            made.setdefault(entry.name, (entry, []))[1].append(instruction)
        return made


def alone(group: FormGroup, every: Iterable[FormGroup]) -> bool:
    """Return whether a page has its family for itself: then it is the page of the family, too."""
    return all(other is group or other.family != group.family for other in every)


def page_label(path: str) -> str:
    """The target of references to a page, by any of its addresses."""
    return rest.label("form", *path.split("/"))


def groups(catalog: Catalog) -> list[FormGroup]:
    """The pages of all instructions, in the order of the spec."""
    keyed: dict[tuple[Hashable, ...], list[Instruction]] = {}
    movers: list[Instruction] = []
    multiplied = {entry.family for entry in catalog.database.spec.instructions if entry.operation == "multiply"}
    for instruction in catalog.all():
        if instruction.operation == "multiply" or instruction.family not in multiplied or not instruction.variant.shape:
            keyed.setdefault(_key(instruction), []).append(instruction)
        else:
            movers.append(instruction)
    served: dict[tuple[Hashable, ...], list[Instruction]] = {}
    for instruction in movers:
        pages = _served(instruction, keyed)
        for page in pages:
            served.setdefault(page, []).append(instruction)
        if not pages:
            keyed.setdefault(_key(instruction), []).append(instruction)
    taken = {links.page(own[0]) for own in keyed.values()}
    made = []
    for key, own in keyed.items():
        others = served.get(key, [])
        aliases = dict.fromkeys(links.page(instruction) for instruction in (*own, *others))
        made.append(FormGroup(tuple(own), tuple(others), tuple(alias for alias in aliases if alias not in taken)))
        taken.update(aliases)
    return made


def _key(instruction: Instruction) -> tuple[Hashable, ...]:
    """Products differ by the width of their elements; a load or a store says the same of every width."""
    name = "" if instruction.variant.shape else instruction.variant.instruction.name
    bits = _bits(instruction) if instruction.operation == "multiply" else 0
    return instruction.family, instruction.variant.shape_label, bits, name


def _bits(instruction: Instruction) -> int:
    """The width of the elements of the matrix that names the page."""
    name = links.first_matrix(instruction)
    if not name:
        return 0
    try:
        return instruction.operand(name).bits
    except Missing:  # it lies in shared memory
        elements = instruction.database.spec.types.elements
        return next(element.bits for element in elements if element.name == instruction.matrix_types[name])


def _served(mover: Instruction, pages: dict[tuple[Hashable, ...], list[Instruction]]) -> list[tuple[Hashable, ...]]:
    """The pages whose instructions compute with what an instruction moves: with its layout and, where one does, its type."""
    moved = [(operand.layout.name, operand.element_type) for operand in _fragments([mover]) if operand.layout]
    alike: list[tuple[Hashable, ...]] = []
    same: list[tuple[Hashable, ...]] = []
    for key, own in pages.items():
        if key[:2] != (mover.family, mover.variant.shape_label):
            continue
        used = {(operand.layout.name, operand.element_type) for operand in _fragments(own) if operand.layout}
        if used.intersection(moved):
            same.append(key)
        if {name for name, _ in used}.intersection(name for name, _ in moved):
            alike.append(key)
    return same or alike


def _fragments(instructions: Iterable[Instruction]) -> list[Operand]:
    return [operand for instruction in instructions for operand in instruction.operands if operand.elements]

"""The operands of a product by what they do: multiplicands, addend and result.

>>> import ptxmma
>>> operands = product_operands(ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"))
>>> operands.a.name, operands.b.name, operands.c.name, operands.d.name
('a', 'b', 'd', 'd')
>>> operands.b.element.name, operands.b.lines, operands.b.depth
('bf16', 16, 16)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, Missing, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.products import resolution
from ptxmma.catalog.products.resolution import Product
from ptxmma.catalog.roles import ROLES, multiplicands
from ptxmma.model import ElementType


class Part(NamedTuple):
    """The part of an operand in a product.

    Attributes:
        kind: ``"multiplicand"``, ``"addend"`` or ``"result"`` for a matrix, wherever it lies; else the kind of the operand.
        of: the multiplicand that it is or belongs to, ``"a"`` or ``"b"``; ``""`` for neither.
    """

    kind: str
    of: str = ""


A, B, ADDEND = Part("multiplicand", "a"), Part("multiplicand", "b"), Part("addend")
METADATA, SELECTOR, ADDS = Part("metadata", "a"), Part("selector", "a"), Part("predicate")
#: The part of each parameter of the emulator, where operands are registers and descriptors.
IN_REGISTERS: dict[str, Part] = {
    "a": A,
    "b": B,
    "c": ADDEND,
    "d": Part("result"),
    "metadata": METADATA,
    "selector": SELECTOR,
    "scale_d": ADDS,
    "scale_a_data": Part("scale-data", "a"),
    "scale_b_data": Part("scale-data", "b"),
    "byte_id_a": Part("byte-id", "a"),
    "byte_id_b": Part("byte-id", "b"),
    "thread_id_a": Part("thread-id", "a"),
    "thread_id_b": Part("thread-id", "b"),
    "imm_scale_a": Part("negation", "a"),
    "imm_scale_b": Part("negation", "b"),
    "imm_trans_a": Part("majorness", "a"),
    "imm_trans_b": Part("majorness", "b"),
}
#: The same where callers give matrices in place of the operands.
AS_MATRICES: dict[str, Part] = {
    "a": A,
    "b": B,
    "metadata": METADATA,
    "scale_a": Part("scale-data", "a"),
    "scale_b": Part("scale-data", "b"),
    "d_tmem": Part("tensor-accumulator"),
    "enable_input_d": ADDS,
    "scale_input_d": Part("immediate"),
    "disable_output_lane": Part("lane-mask"),
    "zero_column_mask_desc": Part("column-mask"),
}
#: The places from which an instruction may read A, and the kinds of the operands that do.
PLACES = {"registers": {"fragment"}, "descriptor": {"descriptor", "shared-descriptor"}, "tensor": {"tensor-matrix"}}
#: The kinds of operands that lie in tensor memory, and are to a product what another kind is in registers.
_ALIKE: dict[str, str] = {"tensor-metadata": "metadata", "tensor-scales": "scale-data"}


def scales_of(matrix: Part) -> Part:
    """The scale factors of A or B."""
    return Part("scale-data", matrix.of)


class Multiplicand(NamedTuple):
    """A matrix that is multiplied, in registers or in shared memory."""

    name: str  # the instruction's name of it, which its descriptor is of: "a"
    element: ElementType
    lines: int  # rows of A, columns of B
    depth: int  # stored elements along K: of a sparse matrix fewer than K
    described: bool  # whether it may be in shared memory
    padded: bool = False  # whether its elements lie in wider containers


class ProductOperands(NamedTuple):
    """D = A times B plus C."""

    a: Multiplicand
    b: Multiplicand
    c: Operand  # the addend; D itself where the instruction adds to what D holds
    d: Operand  # the result

    def letter(self, name: str) -> str:
        """``"a"`` or ``"b"`` of a multiplicand by its name."""
        return "a" if name == self.a.name else "b"

    def part(self, operand: Operand) -> Part:
        """The part of an operand of the instruction."""
        if operand.kind == "accumulator":
            return Part("result") if operand.access == "write" else ADDEND
        if ROLES[operand.kind].multiplied or operand.kind in ("shared-descriptor", "tensor-matrix"):
            return A if self.letter(operand.of or operand.name) == A.of else B
        return Part(_ALIKE.get(operand.kind, operand.kind), self.letter(operand.of) if operand.of else "")

    def multiplicand(self, part: Part) -> Multiplicand:
        """A or B, which the part is or belongs to."""
        return self.a if part.of == A.of else self.b

    @property
    def addend_type(self) -> ElementType:
        """The type of C."""
        assert self.c.element is not None
        return self.c.element

    @property
    def result_type(self) -> ElementType:
        """The type of D."""
        assert self.d.element is not None
        return self.d.element


def place_of_a(instruction: Instruction, form: str | None = None) -> str:
    """The place from which an instruction reads A: ``form``, or the first one that it has.

    Args:
        instruction: the instruction that multiplies.
        form: a key of :data:`PLACES`.

    Raises:
        Missing: the instruction does not read A from there.
    """
    read = {operand.kind for operand in instruction.operands if product_operands(instruction).part(operand) == A}
    known = [name for name, kinds in PLACES.items() if read & kinds]
    if form in (None, *known):
        return form or known[0]
    has = f"it has {' and '.join(known)}" if len(known) > 1 else "its operands come in one way only"
    raise Missing(f"{instruction.canonical} has no form {form!r}: {has}")


def forms_with(instruction: Instruction, form: str | None = None) -> list[OperandForm]:
    """The operand lists that read A from a place, as :func:`place_of_a` chooses it."""
    kinds = PLACES[place_of_a(instruction, form)]
    return [
        each
        for each in instruction.forms
        if any(product_operands(instruction).part(operand) == A and operand.kind in kinds for operand in each.operands)
    ]


@functools.lru_cache(maxsize=64)  # one product asks for them several times
def product_operands(instruction: Instruction) -> ProductOperands:
    """The operands of an instruction that multiplies: A before B, as in its operand list.

    Raises:
        Missing: the instruction does not multiply.
        ValueError: the opcode alone does not state the shape.
    """
    operands = instruction.operands
    if summed := next((operand for operand in operands if operand.kind == "tensor-accumulator"), None):
        return ProductOperands(*_beside_tensor_memory(instruction, summed), summed, summed)
    accumulators = [operand for operand in operands if operand.kind == "accumulator"]
    if not accumulators:
        raise Missing(f"{instruction.canonical} does not multiply")
    a, b = multiplicands(instruction.variant.instruction)
    m, n, _ = (instruction.extents[extent] for extent in "mnk")
    return ProductOperands(
        a=_multiplicand(instruction, a, m),
        b=_multiplicand(instruction, b, n),
        c=next(operand for operand in accumulators if operand.access != "write"),
        d=next(operand for operand in accumulators if operand.access != "read"),
    )


def scale_blocks(instruction: Instruction, matrix: str) -> tuple[ElementType, int]:
    """The type of the scale factors of A or B, wherever they lie, and the blocks in which K of one instruction is cut."""
    spec, variant = instruction.database.spec, instruction.variant
    if matrix in ("a", "b") and isinstance(variant, Product) and variant.choice.block:
        return layouts.element_type(spec, str(variant.facts["stype"])), resolution.numbers(spec, variant, matrix)["blocks"]
    factors = instruction.scales(matrix)
    return factors.element, factors.blocks


def arguments(instruction: Instruction, parameters: Mapping[str, Part]) -> dict[str, str]:
    """The emulator's parameters by the manual's names of the operands, with ``_`` for ``-``: ``{"e": "metadata"}``.

    Args:
        instruction: the instruction that multiplies.
        parameters: :data:`IN_REGISTERS` or :data:`AS_MATRICES`.
    """
    operands, names = product_operands(instruction), {part: name for name, part in parameters.items()}
    read = [operand for operand in instruction.operands if operand.access != "write"]
    spelled = {operand.name.replace("-", "_"): operand for operand in read}
    return {name: names.get(operands.part(operand), name) for name, operand in spelled.items()}


def check_given(instruction: Instruction, forms: Sequence[OperandForm], parameters: Mapping[str, Part], **given: Any) -> None:
    """Check that a caller gives what some operand lists of an instruction have.

    Args:
        instruction: the instruction that multiplies.
        forms: the operand lists.
        parameters: :data:`IN_REGISTERS` or :data:`AS_MATRICES`.
        given: values by their parameters; None for what is left out.

    Raises:
        ValueError: a value is missing, or the instruction takes none.
    """
    operands = product_operands(instruction)
    present = {operands.part(operand) for form in forms for operand in form.operands}
    for name, value in given.items():
        has = parameters[name] in present
        if (value is not None) != has:
            raise ValueError(f"{instruction.canonical} {'needs' if has else 'takes no'} {name}; its operands are {forms[-1].syntax}")


def described(instruction: Instruction) -> dict[str, Multiplicand]:
    """The multiplicands that an instruction can read from shared memory, ``"a"`` and ``"b"``.

    Of a product that spans two thread blocks they are the halves that lie in the shared memory of one: M / 2 rows of A, N / 2 columns of B.
    """
    kinds = {operand.kind for operand in instruction.operands}
    if "m" not in instruction.extents or kinds.isdisjoint(("descriptor", "shared-descriptor")):
        return {}
    product, blocks = product_operands(instruction), instruction.extents.get("ctas", 1)
    matrices = {"a": product.a, "b": product.b}
    return {letter: each._replace(lines=each.lines // blocks) for letter, each in matrices.items() if each.described}


def _beside_tensor_memory(instruction: Instruction, summed: Operand) -> tuple[Multiplicand, Multiplicand]:
    """A and B of a product that is added up in tensor memory."""
    summed.placed()
    sizes, spec = instruction.extents, instruction.database.spec
    pattern = layouts.granularity(spec, instruction.variant)
    packed = sizes["k"] * pattern.kept // pattern.chunk if pattern else sizes["k"]
    types = {name: layouts.element_type(spec, type) for name, type in instruction.matrix_types.items()}
    kinds = {(operand.kind, operand.of) for operand in instruction.operands}
    # A matrix that is stored as indices of a table is not there.
    inside = {of for kind, of in kinds if kind == "shared-descriptor" and ("lookup-table", of) not in kinds}
    a, b = (
        Multiplicand(
            name, element, lines, depth, name in inside, layouts.container(spec, element.name, instruction.variant.facts) is not None
        )
        for name, element, lines, depth in (("a", types["a"], sizes["m"], packed), ("b", types["b"], sizes["n"], sizes["k"]))
    )
    return a, b


def _multiplicand(instruction: Instruction, name: str, lines: int) -> Multiplicand:
    kinds, depth = instruction.variant.instruction.operand_kinds, instruction.extents["k"]
    carriers = [entry for other, entry in kinds.items() if other == name or (entry.kind == "descriptor" and entry.of == name)]
    if any(entry.sparse for entry in carriers):
        pattern = instruction.metadata.granularity
        depth = depth * pattern.kept // pattern.chunk
    element = layouts.element_type(instruction.database.spec, instruction.matrix_types[name])
    return Multiplicand(name, element, lines, depth, any(entry.kind == "descriptor" for entry in carriers))

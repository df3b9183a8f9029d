"""Products of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import multiplicands
from ptxmma.matrices.operations.operation import Operation, lacks_operands
from ptxmma.matrices.places import TensorPlace, element_text
from ptxmma.matrices.product_operands import (
    AS_MATRICES,
    IN_REGISTERS,
    Multiplicand,
    arguments,
    described,
    forms_with,
    product_operands,
)
from ptxmma.matrices.products.terms import Choices, RegisterInputs, TensorInputs, Trace, element_bits, table, terms
from ptxmma.model import InstructionSet

#: The sign of a product, and of the operations on bits in its place.
_SIGNS = {"": "*", "and": "&", "xor": "^"}


class Multiply(Operation, name="multiply"):
    """Multiplies matrices in registers or shared memory, and adds another in registers."""

    verb = "multiplies"
    options: ClassVar[tuple[str, ...]] = Choices._fields

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """Two multiplicands, an addend and a result, and the sizes m, n and k."""
        if len(names := multiplicands(entry)) != 2:
            has = ", ".join(names) or "none"
            yield f"an instruction that {self.verb} has two multiplicands, of the kinds fragment or descriptor; it has {has}"
        access = sorted(operand.access for operand in entry.operand_kinds.values() if operand.kind == "accumulator")
        if access not in (["read", "write"], ["read-write"]):
            yield f"an instruction that {self.verb} has an accumulator to read and one to write, or one with access: read-write"
        if missing := [extent for extent in "mnk" if extent not in entry.extent_names]:
            yield f"an instruction that {self.verb} has the sizes m, n and k; extents lacks {', '.join(missing)}"

    def statement(self, instruction: Instruction) -> str:
        """A sum over K; of a sparse A over what is stored."""
        operands = product_operands(instruction)
        result, addend = (element_text(operand.of or operand.name, operands.d.axes) for operand in (operands.d, operands.c))
        return self._sum(instruction, result, addend, operands.a.name, operands.b.name)

    def _sum(self, instruction: Instruction, result: str, addend: str, a: str, b: str) -> str:
        """The sum for one element of the result; a predicate may leave the addend out."""
        bitwise = next((statement.bitwise for statement in instruction.semantics() if statement.bitwise), "")
        index = "j" if instruction.sparse else "k"
        product = f"{a}[row][{index}] {_SIGNS[bitwise]} {b}[k][col]"
        product = (f"popc({product})" if bitwise else product) + "".join(f" * {scale}" for scale in self._scales(instruction))
        if enable := next((operand.name for operand in instruction.operands if operand.kind == "predicate"), ""):
            addend = f"({enable} ? {addend} : 0)"
        picked = ", where the metadata says the k of each stored j" if instruction.sparse else ""
        return f"{result} = {addend} + sum over {index} of {product}{picked}"

    def _scales(self, instruction: Instruction) -> list[str]:
        """The factors of products in words: the operands with scale factors."""
        return list(dict.fromkeys(operand.name for operand in instruction.operands if operand.kind == "scale-data"))

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The operands by what they do: ``{"e": "metadata", "f": "selector", …}``."""
        return arguments(instruction, IN_REGISTERS)

    def traced(self, instruction: Instruction) -> Operand:
        """D."""
        return product_operands(instruction).d

    def described(self, instruction: Instruction, form: str | None = None) -> dict[str, Multiplicand]:
        """B, and A in the form that reads it so, as far as the instruction reads them through descriptors."""
        if not (known := described(instruction)):
            return {}
        product, forms = product_operands(instruction), forms_with(instruction, form)
        kinds = ("descriptor", "shared-descriptor")
        read = {product.part(operand).of for each in forms for operand in each.operands if operand.kind in kinds}
        return {letter: each for letter, each in known.items() if letter in read}

    def trace(self, instruction: Instruction, *coordinates: int, **options: Any) -> Trace:
        """Every register, every byte of an image, and every bit of metadata that feeds one element of D."""
        chosen, axes = _choices(options)
        product = product_operands(instruction)
        apart = {axis: number for axis, number in axes.items() if axis not in product.d.axes}
        inputs = RegisterInputs(instruction, chosen, apart)
        row, col = product.d.coords(*product.d.locate(*coordinates, **axes))
        d = table(instruction, product.d, apart).locate(row, col)
        c = table(instruction, product.c, apart).locate(row, col) if product.c is not product.d else None
        return Trace(row, col, d, c, terms(instruction, inputs, row, col), apart)


class TensorMultiply(Multiply, name="tensor-multiply"):
    """Multiplies matrices of a shape that only its instruction descriptor says, and adds the product to tensor memory."""

    verb = "multiplies into tensor memory"
    needs = (("tensor-accumulator", "read"), ("instruction-descriptor", "read"))
    options = (*Multiply.options, "through", "base")

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """A sum in tensor memory, a descriptor, A and B, and metadata of a sparse A."""
        yield from Operation.lacks(self, entry)
        matrices = [operand for operand in entry.operand_kinds.values() if operand.kind in ("tensor-matrix", "shared-descriptor")]
        if missing := [side for side in "ab" if side not in {operand.of for operand in matrices}]:
            needs = "A and B, of the kinds tensor-matrix or shared-descriptor with of: a and of: b"
            yield f"an instruction that {self.verb} has {needs}; one operand list lacks {' and '.join(missing)}"
        if any(operand.sparse for operand in matrices):
            yield from lacks_operands(entry, "multiplies a sparse A into tensor memory", "tensor-metadata", "read")

    def statement(self, instruction: Instruction) -> str:
        """A sum over K; the opcode alone states no shape."""
        if instruction.shape_sizes:
            return super().statement(instruction)
        return f"{self._sum(instruction, 'd[row][col]', 'd[row][col]', 'a', 'b')}; the instruction descriptor states M, N and the types"

    def _scales(self, instruction: Instruction) -> list[str]:
        scaled = any(operand.kind == "tensor-scales" for operand in instruction.operands)
        return ["the scale factors of their blocks"] if scaled else []

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The operands by what they do: ``{"disable_output_lane": "disable_output_lane", …}``."""
        return arguments(instruction, AS_MATRICES)

    def trace(
        self,
        instruction: Instruction,
        *coordinates: int,
        through: Instruction | None = None,
        base: int = 0,
        **options: Any,
    ) -> Trace:
        """Every cell, every byte of an image, and every bit of metadata that feeds one element of D."""
        chosen, axes = _choices(options)
        result = product_operands(instruction).d
        d = result.locate(*coordinates, **axes)
        row, col = result.coords(d.lane, d.column, d.bit, d.cta)
        inputs = TensorInputs(instruction, chosen)
        fragment = None if through is None else result.through(through)
        first = result.placed().start(base)
        return Trace(
            row,
            col,
            TensorPlace(first.lane + d.lane, first.column + d.column, 0, d.bit, element_bits(result), d.cta),
            None,
            terms(instruction, inputs, row, col),
            {},
            None if fragment is None else fragment.locate(row, col, base=base),
            tuple(inputs.unknown()),
        )


def _choices(options: dict[str, Any]) -> tuple[Choices, dict[str, Any]]:
    """The choices among the options of a trace, as far as they are given, and the rest."""
    given = {name: value for name, value in options.items() if value is not None}
    chosen = Choices(**{name: given[name] for name in Choices._fields if name in given})
    return chosen, {name: value for name, value in options.items() if name not in Choices._fields}

"""Products that are added up in tensor memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand, TensorOperand
from ptxmma.matrices.operations.operation import MemoryPlace, Operation, TensorPlace, lacks_operands, operand_of
from ptxmma.matrices.operations.summed_terms import Picking, Source, Trace, in_image, terms
from ptxmma.matrices.products.operands import AS_MATRICES, Multiplicand, arguments, described, product_operands, refuse_shift
from ptxmma.matrices.shared.canonical import Geometry
from ptxmma.model import InstructionSet

#: The places of A: in shared memory, or in tensor memory.
FORMS = {"descriptor": "shared-descriptor", "tensor": "tensor-matrix"}


class TensorMultiply(Operation):
    """Multiplies matrices of a shape that only its instruction descriptor says, and adds the product to tensor memory."""

    options = ("form", "selector", "scale_ids", "images", "through", "base")

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """A sum in tensor memory and a descriptor."""
        yield from lacks_operands(entry, "multiplies into tensor memory", "tensor-accumulator", "read")
        yield from lacks_operands(entry, "multiplies into tensor memory", "instruction-descriptor", "read")

    def statement(self, instruction: Instruction) -> str:
        """A sum over K, where the shape is known."""
        if not instruction.shape_sizes:
            return "multiplies matrices into tensor memory; its instruction descriptor says their shape"
        scaled = instruction.variant.facts.get("stype")
        index = "j" if instruction.sparse else "k"
        product = f"a[row][{index}] * b[k][col]" + (" * the scale factors of their blocks" if scaled else "")
        picked = ", where the metadata says the k of each stored j" if instruction.sparse else ""
        return f"d[row][col] = d[row][col] + sum over {index} of {product}{picked}"

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The operands by what they do: ``{"zero_column_mask_desc": "zero_column_mask_desc", …}``."""
        return arguments(instruction, AS_MATRICES)

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on matrices."""
        from ptxmma.matrices.products import in_tensor_memory

        return in_tensor_memory.multiply

    def traced(self, instruction: Instruction) -> Operand:
        """D.

        Raises:
            ValueError: the opcode alone does not state the shape.
        """
        result = _tensor(operand_of(instruction, "tensor-accumulator"))
        result.placed()
        return result

    def described(self, instruction: Instruction, form: str | None = None) -> dict[str, Multiplicand]:
        """B, and A in the form that reads it so."""
        within = chosen_form(instruction, form)
        return {letter: each for letter, each in described(instruction).items() if letter != "a" or within == "descriptor"}

    def trace(
        self,
        instruction: Instruction,
        *coordinates: int,
        form: str | None = None,
        selector: int | None = None,
        scale_ids: Mapping[str, int] | None = None,
        images: Mapping[str, Geometry] | None = None,
        through: Instruction | None = None,
        base: int = 0,
        **axes: Any,
    ) -> Trace:
        """Every cell, every byte of an image, and every bit of metadata that feeds one element of D."""
        refuse_shift(instruction)
        result = _tensor(self.traced(instruction))
        d = result.placed().locate(*coordinates, **axes)
        row, col = result.placed().coords(d.lane, d.column, d.bit, d.cta)
        product = product_operands(instruction)
        operands = _Inputs.of(instruction, form, scale_ids or {}, images or {})
        depth, ctas = instruction.extents["k"], instruction.extents.get("ctas", 1)

        def shared(matrix: Multiplicand, line: int, along: int) -> MemoryPlace | None:
            if (image := operands.images.get(matrix.name)) is None:
                return None
            half = matrix.lines // ctas
            return in_image(image, line % half, along, line // half)

        def scale(matrix: str, k: int, **line: int) -> TensorPlace | None:
            if (factors := operands.scales.get(matrix)) is None:
                return None
            return factors.cell(**line, block=k * factors.operand.sizes.get("block", 1) // depth)

        def a(column: int, k: int) -> Source:
            place = shared(product.a, row, column) if operands.a is None else operands.a.cell(row=row, col=column)
            return Source(row, column, place, scale(product.a.name, k, row=row))

        def b(k: int, fields: tuple[str, ...]) -> Source:
            return Source(k, col, shared(product.b, col, k), scale(product.b.name, k, col=col), fields)

        fragment = None if through is None else result.through(through)
        first = result.placed().start(base)
        return Trace(
            row,
            col,
            TensorPlace(first.lane + d.lane, first.column + d.column, 0, d.bit, _width(result), d.cta),
            None,
            terms(depth, a, b, _picking(instruction, product.a.depth, row, selector)),
            {},
            None if fragment is None else fragment.locate(row, col, base=base),
            tuple(operands.unknown()),
        )


class _Cells(NamedTuple):
    """An operand in tensor memory with what the instruction descriptor selects of it."""

    operand: TensorOperand
    selected: dict[str, int]

    def cell(self, low: int = 0, width: int = 0, **at: Any) -> TensorPlace | None:
        """Where something of it lies, with the copies; None where no source says it.  By default all bits of an element."""
        placed = self.operand.tensor
        if placed is None:
            return None
        apart = placed.layout.apart
        copies: list[dict[str, Any]] = [
            dict(zip(apart, copy, strict=True)) for copy in itertools.product(*(range(placed.sizes[axis]) for axis in apart))
        ]
        every = [placed.locate(**at, **self.selected, **copy) for copy in copies]  # type: ignore[arg-type]  # no selection is called check
        width = width or _width(self.operand)
        first, *others = [TensorPlace(place.lane, place.column, 0, place.bit + low, width, place.cta) for place in every]
        return first._replace(copies=tuple(others))


class _Inputs(NamedTuple):
    """Where A, B and the scale factors of a product are."""

    a: _Cells | None  # None: in shared memory
    scales: dict[str, _Cells]  # by the matrix that they scale
    images: Mapping[str, Geometry]
    metadata: TensorOperand | None
    tables: tuple[Operand, ...]  # whose indices are in shared memory in place of a matrix

    @classmethod
    def of(cls, instruction: Instruction, form: str | None, ids: Mapping[str, int], images: Mapping[str, Geometry]) -> _Inputs:
        """The inputs that the options choose.

        Raises:
            Missing: the instruction reads A from another place, or has no such scale factors.
            ValueError: an illegal id.
        """
        chosen = FORMS[chosen_form(instruction, form)]
        operands: dict[tuple[str, str], Operand] = {
            (operand.kind, operand.of): operand for form in instruction.forms for operand in form.operands
        }
        scales = {of: _tensor(operand) for (kind, of), operand in operands.items() if kind == "tensor-scales"}
        if unknown := ids.keys() - {f"scale-id-{matrix}" for matrix in scales}:
            has = f"it has {', '.join(f'scale-id-{matrix}' for matrix in scales)}" if scales else "it scales no blocks"
            raise Missing(f"{instruction.canonical} has no {', '.join(sorted(unknown))}: {has}")
        for matrix, operand in scales.items():
            legal = operand.tensor.selections["scale_id"] if operand.tensor else ()
            if (given := ids.get(name := f"scale-id-{matrix}")) is not None and legal and given not in legal:
                raise ValueError(f"{name} = {given} is not legal: {', '.join(map(str, legal))}")
        if chosen == "tensor-matrix" and "a" in images:
            raise Missing(f"{instruction.canonical} reads a from tensor memory here: it has no image in shared memory")
        selected = {matrix: {"scale_id": ids[f"scale-id-{matrix}"]} if f"scale-id-{matrix}" in ids else {} for matrix in scales}
        return cls(
            _Cells(_tensor(operands[chosen, "a"]), {}) if chosen == "tensor-matrix" else None,
            {matrix: _Cells(operand, selected[matrix]) for matrix, operand in scales.items()},
            images,
            next((_tensor(operand) for (kind, _), operand in operands.items() if kind == "tensor-metadata"), None),
            tuple(operand for (kind, _), operand in operands.items() if kind == "lookup-table"),
        )

    def unknown(self) -> Iterator[str]:
        """Why no source says where some of them lie."""
        cells = [*([self.a] if self.a else []), *self.scales.values()]
        for operand in [*(each.operand for each in cells), *([self.metadata] if self.metadata else [])]:
            if operand.tensor is None:
                yield operand.why
        for table in self.tables:
            yield f"{table.of.upper()} is stored as indices of the table at {table.name}, and no source says where they lie"


def chosen_form(instruction: Instruction, form: str | None = None) -> str:
    """Where a product reads A from, a key of :data:`FORMS`: where ``form`` says, or the first place that the instruction has.

    Raises:
        Missing: it does not read A from there.
    """
    kinds = {operand.kind for each in instruction.forms for operand in each.operands if operand.of == "a"}
    known = [name for name, kind in FORMS.items() if kind in kinds]
    if form in (None, *known):
        return form or known[0]
    raise Missing(f"{instruction.canonical} has no form {form!r}: it has {' and '.join(known)}")


def _picking(instruction: Instruction, stored: int, row: int, selector: int | None) -> Picking | None:
    """How metadata picks the rows of B for a row of A; None of a dense A."""
    pattern = layouts.granularity(instruction.database.spec, instruction.variant)
    if pattern is None:
        if selector is not None:
            raise Missing(f"{instruction.canonical} is not sparse: it has no selector")
        return None
    metadata = _tensor(operand_of(instruction, "tensor-metadata"))
    legal = metadata.tensor.selections if metadata.tensor else {}
    if selector is not None and metadata.tensor and "selector" not in legal:
        raise Missing(f"{instruction.canonical} has no selector: its metadata takes all of its columns")
    cells = _Cells(metadata, {} if selector is None else {"selector": selector})

    def place(packed: int) -> TensorPlace | None:
        low = pattern.index_bits * pattern.index_of(packed)
        return cells.cell(low, pattern.index_bits, row=row, chunk=packed // pattern.kept)

    return Picking(stored, lambda packed: pattern.columns(packed, pattern.legal), place)


def _tensor(operand: Operand) -> TensorOperand:
    assert isinstance(operand, TensorOperand)
    return operand


def _width(operand: TensorOperand) -> int:
    """Bits of an element; of scale factors those of their byte."""
    placed = operand.placed()
    return operand.element.bits if operand.element is not None and operand.kind != "tensor-scales" else placed.unit

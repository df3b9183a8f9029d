"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Instruction, Missing, OperandForm
from ptxmma.catalog.operands import Operand, multiplicands
from ptxmma.matrices.arrangements import Arrangement, Place, arrangement
from ptxmma.matrices.operations.operation import MemoryPlace, Operation, element_text
from ptxmma.matrices.operations.summed_terms import Picking, Source, Trace, in_image, terms
from ptxmma.matrices.products.operands import IN_REGISTERS, Multiplicand, arguments, described, product_operands
from ptxmma.matrices.shared.canonical import Geometry
from ptxmma.model import InstructionSet

#: The sign of a product, and of the operations on bits in its place.
_SIGNS = {"": "*", "and": "&", "xor": "^"}


class Multiply(Operation):
    """Multiplies matrices and adds another."""

    options = ("form", "selector", "scale_ids", "images")

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """Two multiplicands, an addend and a result, and the sizes m, n and k."""
        if len(names := multiplicands(entry)) != 2:
            has = ", ".join(names) or "none"
            yield f"an instruction that multiplies has two multiplicands, of the kinds fragment or descriptor; it has {has}"
        access = sorted(operand.access for operand in entry.operand_kinds.values() if operand.kind == "accumulator")
        if access not in (["read", "write"], ["read-write"]):
            yield "an instruction that multiplies has an accumulator to read and one to write, or one with access: read-write"
        if missing := [extent for extent in "mnk" if extent not in entry.extent_names]:
            yield f"an instruction that multiplies has the sizes m, n and k; extents lacks {', '.join(missing)}"

    def statement(self, instruction: Instruction) -> str:
        """A sum over K; of a sparse A over what is stored."""
        operands = product_operands(instruction)
        bitwise = next((statement.bitwise for statement in instruction.semantics() if statement.bitwise), "")
        times = _SIGNS[bitwise]
        index = "j" if instruction.sparse else "k"
        a, b = f"{operands.a.name}[row][{index}]", f"{operands.b.name}[k][col]"
        product = f"popc({a} {times} {b})" if bitwise else f"{a} {times} {b}"
        product += "".join(f" * {name}" for name in _scale_names(instruction))
        addend, result = (element_text(operand.name, operands.d.axes) for operand in (operands.c, operands.d))
        picked = ", where the metadata says the k of each stored j" if instruction.sparse else ""
        return f"{result} = {addend} + sum over {index} of {product}{picked}"

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The operands by what they do: ``{"e": "metadata", "f": "selector", …}``."""
        return arguments(instruction, IN_REGISTERS)

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        from ptxmma.matrices.products import in_registers

        return in_registers.multiply

    def traced(self, instruction: Instruction) -> Operand:
        """D."""
        return product_operands(instruction).d

    def described(self, instruction: Instruction, form: str | None = None) -> dict[str, Multiplicand]:
        """B of ``wgmma``, and A in the form that reads it so."""
        chosen = {operand.of for operand in operand_form(instruction, form).operands if operand.kind == "descriptor"}
        return {letter: each for letter, each in described(instruction).items() if each.name in chosen}

    def trace(
        self,
        instruction: Instruction,
        *coordinates: int,
        form: str | None = None,
        selector: int | None = None,
        scale_ids: dict[str, int] | None = None,
        images: dict[str, Geometry] | None = None,
        **axes: Any,
    ) -> Trace:
        """Every register, and every bit of metadata, that feeds one element of D."""
        if selector is not None and not instruction.sparse:
            raise Missing(f"{instruction.canonical} is not sparse: it has no selector")
        present = {operand.name for operand in operand_form(instruction, form).operands if operand.kind == "fragment"}
        operands = product_operands(instruction)
        lane, element = operands.d.locate(*coordinates, **axes)
        apart = {axis: number for axis, number in axes.items() if axis not in operands.d.axes}
        tables = {name: _table(instruction, name, apart) for name in (operands.a.name, operands.b.name) if name in present}
        scales = _scales(instruction, form, scale_ids or {})
        for name in images or {}:
            if name in tables or name not in (operands.a.name, operands.b.name):
                raise Missing(f"{instruction.canonical} reads {name} from registers: it has no image in shared memory")
        row, col = operands.d.coords(lane, element)
        depth = instruction.extents["k"]

        def scale(matrix: Multiplicand, k: int) -> Place | None:
            table = scales.get(matrix.name)
            if table is None:
                return None
            if matrix is operands.a:
                return table.locate(row, k * table.cols // depth)
            return table.locate(k * table.rows // depth, col)

        def place(matrix: Multiplicand, row: int, col: int) -> Place | MemoryPlace | None:
            if table := tables.get(matrix.name):
                return table.locate(row, col)
            image = (images or {}).get(matrix.name)
            return None if image is None else in_image(image, *((row, col) if matrix is operands.a else (col, row)))

        def a(column: int, k: int) -> Source:
            return Source(row, column, place(operands.a, row, column), scale(operands.a, k))

        def b(k: int, fields: tuple[str, ...]) -> Source:
            return Source(k, col, place(operands.b, k, col), scale(operands.b, k), fields)

        d = _table(instruction, operands.d.name, apart).locate(row, col)
        c = _table(instruction, operands.c.name, apart).locate(row, col) if operands.c is not operands.d else None
        picking = _picking(instruction, operands.a, row, selector or 0) if instruction.sparse else None
        return Trace(row, col, d, c, terms(depth, a, b, picking), apart)


def _picking(instruction: Instruction, a: Multiplicand, row: int, selector: int) -> Picking:
    """How metadata picks the rows of B for a row of A."""
    metadata, chosen = instruction.metadata, arrangement(instruction, "metadata", selector=selector).fixed["selector"]

    def place(packed: int) -> Place:
        holder, low, width = metadata.index(row, packed, chosen)
        return Place(holder, low // metadata.width, 0, low, width)

    return Picking(a.depth, metadata.columns, place)


def operand_form(instruction: Instruction, name: str | None = None) -> OperandForm:
    """The operand list of that name, or the first one.

    Raises:
        Missing: the instruction has no such list.
    """
    for form in instruction.forms:
        if name in (None, form.name):
            return form
    known = [form.name for form in instruction.forms if form.name]
    has = f"it has {' and '.join(known)}" if known else "its operands come in one way only"
    raise Missing(f"{instruction.canonical} has no form {name!r}: {has}")


def _table(instruction: Instruction, name: str, apart: dict[str, int]) -> Arrangement:
    """The table of a matrix, for one of several products where it has them."""
    table = arrangement(instruction, name)
    return table._replace(fixed=table.fixed | {axis: number for axis, number in apart.items() if axis in table.fixed})


def _scale_names(instruction: Instruction) -> list[str]:
    """The operands with scale factors."""
    return list(dict.fromkeys(operand.name for form in instruction.forms for operand in form.operands if operand.kind == "scale-data"))


def _scales(instruction: Instruction, form: str | None, ids: dict[str, int]) -> dict[str, Arrangement]:
    """The tables of the scale factors by the name of the matrix, with the ids that are given."""
    present = operand_form(instruction, form).operands
    known = {operand.name: operand for operand in present if operand.kind in ("byte-id", "thread-id")}
    for name in ids:
        if name not in known:
            raise Missing(f"{instruction.canonical} has no {name}{': it has ' + ', '.join(known) if known else ''}")
    tables = {}
    for operand in present:
        if operand.kind == "scale-data":
            chosen = {known[name].kind.replace("-", "_"): value for name, value in ids.items() if known[name].of == operand.of}
            tables[operand.of] = arrangement(instruction, operand.name, **chosen)
    return tables

"""The terms of one element of D, and the places of everything that feeds them: in registers, in shared memory and in tensor memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.tensor_fragment import RegisterPlace
from ptxmma.matrices.arrangements import Arrangement, Place, arrangement
from ptxmma.matrices.places import MemoryPlace, Spot, TensorPlace
from ptxmma.matrices.product_operands import METADATA, A, B, Part, forms_with, product_operands, scales_of
from ptxmma.matrices.shared.canonical import Geometry
from ptxmma.matrices.shared.copied_tile import CopiedTile
from ptxmma.model import Granularity


class Choices(NamedTuple):
    """The choices of a trace.

    Attributes:
        form: the place from which the instruction reads A.
        selector: the sparsity selector; the first by default.
        scale_ids: numbers by which the instruction selects scale factors, by their names; the first legal ones by default.
        images: matrices in shared memory, by their names; a tile says where in a tensor its elements come from.
    """

    form: str | None = None
    selector: int | None = None
    scale_ids: Mapping[str, int] = MappingProxyType({})
    images: Mapping[str, Geometry | CopiedTile] = MappingProxyType({})


class Inputs:
    """The places of what feeds a product; a subclass has them in its own space.

    Attributes:
        instruction: the product.
        product: its operands by what they do.
        operands: the operands of the operand lists that read A from the chosen place, by part.
    """

    def __init__(self, instruction: Instruction, chosen: Choices) -> None:
        """Choose the place of A, and the images of the matrices in shared memory."""
        self.instruction = instruction
        self.product = product_operands(instruction)
        self.operands = {self.product.part(operand): operand for each in forms_with(instruction, chosen.form) for operand in each.operands}
        self._images = chosen.images

    @property
    def pattern(self) -> Granularity | None:
        """The pattern of a sparse A."""
        return layouts.granularity(self.instruction.database.spec, self.instruction.variant)

    def element(self, part: Part, row: int, col: int) -> Spot:
        """The place of an element of A or B, as it is stored."""
        matrix = self.product.multiplicand(part)
        if (image := self._images.get(matrix.name)) is None:
            return None
        line, along = (row, col) if part == A else (col, row)
        cta, own = divmod(line, matrix.lines // self.instruction.extents.get("ctas", 1))
        layout = image.layout if isinstance(image, CopiedTile) else image
        place = MemoryPlace(None, int(layout.address(own, along)), int(layout.bit(own, along)), layout.element.bits, cta)
        return place._replace(origin=image.origin(line, along)) if isinstance(image, CopiedTile) else place

    def scale(self, part: Part, line: int, k: int) -> Spot:
        """The place of the scale factor of row ``line`` of A or column ``line`` of B, for row ``k`` of B; None where there is none."""
        raise NotImplementedError

    def index(self, row: int, col: int) -> Spot:
        """The place of the index of element ``row``, ``col`` of a sparse A as it is stored."""
        raise NotImplementedError

    def unknown(self) -> Iterator[str]:
        """Yield why no source says where some of the inputs lie."""
        yield from ()


class RegisterInputs(Inputs):
    """The inputs of a product in registers, B and A also in shared memory."""

    def __init__(self, instruction: Instruction, chosen: Choices, apart: Mapping[str, int]) -> None:
        """Choose the constants, and one of several products at once.

        Raises:
            Missing: the instruction lacks what an option chooses.
            ValueError: a constant that is not legal.
        """
        super().__init__(instruction, chosen)
        if chosen.selector is not None and not instruction.sparse:
            raise Missing(f"{instruction.canonical} is not sparse: it has no selector")
        held = [operand for operand in self.operands.values() if operand.kind == "fragment"]
        self._tables = {self.product.part(operand): table(instruction, operand, apart) for operand in held}
        self._scales = _scale_tables(instruction, self.operands, chosen.scale_ids)
        self._selector = arrangement(instruction, "metadata", selector=chosen.selector or 0).fixed["selector"] if instruction.sparse else 0
        described = {self.product.multiplicand(part).name for part, operand in self.operands.items() if operand.kind == "descriptor"}
        for name in chosen.images:
            if name not in described:
                raise Missing(f"{instruction.canonical} reads {name} from registers: it has no image in shared memory")

    def element(self, part: Part, row: int, col: int) -> Spot:
        """The register, or the bytes of an image."""
        held = self._tables.get(part)
        return super().element(part, row, col) if held is None else held.locate(row, col)

    def scale(self, part: Part, line: int, k: int) -> Place | None:
        """The byte of a register."""
        factors, depth = self._scales.get(part), self.instruction.extents["k"]
        if factors is None:
            return None
        return factors.locate(line, k * factors.cols // depth) if part == A else factors.locate(k * factors.rows // depth, line)

    def index(self, row: int, col: int) -> Place:
        """The bits of a register."""
        lane, low, width = self.instruction.metadata.index(row, col, self._selector)
        return Place(lane, low // self.instruction.metadata.width, 0, low, width)


def table(instruction: Instruction, operand: Operand, apart: Mapping[str, int]) -> Arrangement:
    """The table of a matrix in registers, for one of several products where it has them."""
    whole = arrangement(instruction, operand.name)
    return whole._replace(fixed=whole.fixed | {axis: number for axis, number in apart.items() if axis in whole.fixed})


def _scale_tables(instruction: Instruction, operands: Mapping[Part, Operand], ids: Mapping[str, int]) -> dict[Part, Arrangement]:
    """The tables of the scale factors of A and B, with the ids that are given."""
    known = {operand.name: operand for operand in operands.values() if operand.kind in ("byte-id", "thread-id")}
    for name in ids:
        if name not in known:
            raise Missing(f"{instruction.canonical} has no {name}{': it has ' + ', '.join(known) if known else ''}")
    tables = {}
    for part, operand in operands.items():
        if operand.kind == "scale-data":
            chosen = {known[name].kind.replace("-", "_"): value for name, value in ids.items() if known[name].of == operand.of}
            tables[Part("multiplicand", part.of)] = arrangement(instruction, operand.name, **chosen)
    return tables


class TensorInputs(Inputs):
    """The inputs of a product that is added up in tensor memory."""

    def __init__(self, instruction: Instruction, chosen: Choices) -> None:
        """Choose what the instruction descriptor selects.

        Raises:
            Missing: the instruction lacks what an option chooses.
            ValueError: an id that is not legal.
        """
        super().__init__(instruction, chosen)
        self._a = self.operands[A] if self.operands[A].memory is not None else None
        if self._a is not None and self.product.a.name in chosen.images:
            raise Missing(f"{instruction.canonical} reads {self.product.a.name} from tensor memory here: it has no image in shared memory")
        self._scale_ids = self._checked_ids(chosen.scale_ids)
        self._selected = self._checked_selector(chosen.selector)

    def element(self, part: Part, row: int, col: int) -> Spot:
        """The cell, or the bytes of an image."""
        if part == A and self._a is not None:
            return _cell(self._a, {}, row=row, col=col)
        return super().element(part, row, col)

    def scale(self, part: Part, line: int, k: int) -> TensorPlace | None:
        """The byte of a cell, and the cells with its copies."""
        operand = self.operands.get(scales_of(part))
        if operand is None:
            return None
        axis = "row" if part == A else "col"
        block = k * operand.sizes.get("block", 1) // self.instruction.extents["k"]
        return _cell(operand, self._scale_ids[part], **{axis: line, "block": block})

    def index(self, row: int, col: int) -> TensorPlace | None:
        """The bits of a cell."""
        assert self.pattern is not None
        low = self.pattern.index_bits * self.pattern.index_of(col)
        at = {"row": row, "chunk": col // self.pattern.kept}
        return _cell(self.operands[METADATA], self._selected, low, self.pattern.index_bits, **at)

    def unknown(self) -> Iterator[str]:
        """Yield why no source says where an operand lies."""
        yield from (operand.why for operand in self.operands.values() if operand.why)
        for operand in self.operands.values():
            if operand.kind == "lookup-table":
                yield f"{operand.of.upper()} is stored as indices of the table at {operand.name}, and no source says where they lie"

    def _checked_ids(self, given: Mapping[str, int]) -> dict[Part, dict[str, int]]:
        """The scale ID of each of A and B, where one is given."""
        scaled = {part: operand for part, operand in self.operands.items() if operand.kind == "tensor-scales"}
        names = {f"scale-id-{operand.of}": part for part, operand in scaled.items()}
        if unknown := given.keys() - names.keys():
            has = f"it has {', '.join(names)}" if names else "it scales no blocks"
            raise Missing(f"{self.instruction.canonical} has no {', '.join(sorted(unknown))}: {has}")
        chosen: dict[Part, dict[str, int]] = {}
        for name, part in names.items():
            legal = scaled[part].selections.get("scale_id", ())
            if name in given and legal and given[name] not in legal:
                raise ValueError(f"{name} = {given[name]} is not legal: {', '.join(map(str, legal))}")
            chosen[Part("multiplicand", part.of)] = {"scale_id": given[name]} if name in given else {}
        return chosen

    def _checked_selector(self, selector: int | None) -> dict[str, int]:
        """The selector, where one is given."""
        if selector is None:
            return {}
        if self.pattern is None:
            raise Missing(f"{self.instruction.canonical} is not sparse: it has no selector")
        metadata = self.operands[METADATA]
        if metadata.tensor is not None and "selector" not in metadata.selections:
            raise Missing(f"{self.instruction.canonical} has no selector: its metadata takes all of its columns")
        return {"selector": selector}


def _cell(operand: Operand, selected: Mapping[str, int], low: int = 0, width: int = 0, **at: int) -> TensorPlace | None:
    """The place of something in tensor memory, with its copies; None where no source says it.  By default all bits of an element."""
    if operand.tensor is None:
        return None
    bits = width or element_bits(operand)
    every = [TensorPlace(place.lane, place.column, 0, place.bit + low, bits, place.cta) for place in operand.places(**at, **selected)]
    return every[0]._replace(copies=tuple(every[1:]))


def element_bits(operand: Operand) -> int:
    """Bits of an element in tensor memory; a scale factor takes the bits of its byte."""
    return operand.element.bits if operand.element is not None and operand.kind != "tensor-scales" else operand.placed().unit


class Source(NamedTuple):
    """An element of A or B that a term may multiply."""

    row: int
    col: int
    place: Spot  # its place; in shared memory from the start of the image that is given, None without one
    scale: Spot  # its scale factor, where there is one
    fields: tuple[str, ...] = ()  # sparse: the values of the metadata's field that pick it; empty where nothing is picked


class Term(NamedTuple):
    """One product of the sum: an element of A times an element of B."""

    a: Source
    pick: Spot  # sparse: the bits of the index that picks the row of B
    b: tuple[Source, ...]  # dense: one; sparse: every row of B that the index may pick


class Trace(NamedTuple):
    """The inputs of ``D[row][col]``; D is the sum of the terms and of C."""

    row: int
    col: int
    d: Place | TensorPlace
    c: Place | None  # None: the instruction adds to D and has no C
    terms: tuple[Term, ...]
    apart: dict[str, int]  # the number of this product, of several at once: {"computation": 2}; empty where there is one
    register: RegisterPlace | None = None  # for D in tensor memory: the register that a given load puts it into
    unknown: tuple[str, ...] = ()  # reasons why places are None that no source says


def terms(instruction: Instruction, inputs: Inputs, row: int, col: int) -> tuple[Term, ...]:
    """The terms of an element of D: one for each row of B, or for each stored element of a row of a sparse A."""

    def a(column: int, k: int) -> Source:
        return Source(row, column, inputs.element(A, row, column), inputs.scale(A, row, k))

    def b(k: int, fields: tuple[str, ...] = ()) -> Source:
        return Source(k, col, inputs.element(B, k, col), inputs.scale(B, col, k), fields)

    pattern = layouts.granularity(instruction.database.spec, instruction.variant)
    if pattern is None:
        return tuple(Term(a(k, k), None, (b(k),)) for k in range(instruction.extents["k"]))
    legal, every = pattern.admitted(instruction.variant.facts), []
    for stored in range(inputs.product.a.depth):
        columns = pattern.columns(stored, legal)
        picked = tuple(b(k, fields) for k, fields in columns.items())
        every.append(Term(a(stored, min(columns)), inputs.index(row, stored), picked))
    return tuple(every)

"""The kinds of operand that instructions are composed of, and what each kind knows of itself.

The set is closed: a family made of these kinds is data alone.  Each kind is one function in :data:`KINDS`; it completes an
:class:`Operand` from the spec's entry and the variant.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ptxmma.catalog import layouts
from ptxmma.catalog.variants import SHAPE, Variant
from ptxmma.model import Database, ElementType, Granularity, Layout, OperandKind, RegisterType, Spec, formula, matches

if TYPE_CHECKING:
    from ptxmma.arrays.tiling import Tiling


class Operand(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One operand of one instruction.

    Attributes:
        name: the manual's name, e.g. ``"a"`` or ``"imm-scale-a"``.
        kind: a key of :data:`KINDS`.
        title: what it is, in words.
        access: ``"read"``, ``"write"`` or ``"read-write"``.
        element_type: type of its elements, e.g. ``"e4m3"``; None for operands without elements.
        element: the spec's entry of that type.
        bits: width of an element's container in bits; 0 without elements.
        shift: lowest bit of the element in its container.
        rows, cols: the matrix whose elements it holds (a sparse A is packed: K/2 columns); 0 without elements.
        computations: independent products that the instruction computes: 4 for ``m8n8k4`` with f16, else 1.
        elements: elements that each thread holds; 0 without elements.
        registers: registers of each thread; 0 for an operand that is always an immediate.
        register_types: PTX register types that assemblers take, the usual one first.
        c_type: C type of a register in the CUDA wrappers, e.g. ``"uint32_t"``; ``""`` for an operand that is always an immediate.
        constraint: inline-asm constraint: ``"r"``, ``"f"``, ``"l"``, ``"d"``, ``"h"`` or ``"n"`` (immediate only).
        immediates: the legal immediate values, a range where they are many; None where no immediate is admitted.
        takes_register: whether a register may stand there.
        default: the value that wrappers assume for an immediate; None where it must be given.
        uniform: ``"warp"`` or ``"warpgroup"`` where all its threads must pass one value.
        layout: the layout of its elements, where it has one.
        sparsity: for a sparse A, the pattern of its zeros.
        source: section of the PTX ISA.
    """

    name: str
    kind: str
    title: str
    access: str
    source: str
    element_type: str | None = None
    element: ElementType | None = None
    bits: int = 0
    shift: int = 0
    rows: int = 0
    cols: int = 0
    computations: int = 1
    elements: int = 0
    registers: int = 0
    register_types: tuple[str, ...] = ()
    c_type: str = ""
    constraint: str = ""
    immediates: Sequence[int] | None = None
    takes_register: bool = True
    default: int | None = None
    uniform: str = ""
    layout: Layout | None = None
    sparsity: Granularity | None = None

    def __repr__(self) -> str:
        held = f"{self.elements} x {self.element_type}" if self.elements else self.kind
        carried = f" in {self.registers} x {self.register_types[0]}" if self.registers else ""
        return f"<Operand {self.name}: {held}{carried}>"

    @property
    def elements_per_register(self) -> int:
        """Elements in one register, e.g. 2 for f16 in b32."""
        return self.elements // self.registers

    def coords(self, lane: Any, i: Any) -> tuple[Any, Any]:
        """``(row, col)`` of element ``i`` of thread ``lane``; integers or arrays.

        ``lane`` runs over 0..31, for warpgroup instructions over 0..127; ``i`` over 0..elements-1.  For a sparse A, ``col`` is
        the column in the packed matrix.  Arrays (whatever has a shape) are not checked; their integers need 16 bits or more.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: the operand has no layout, or a scalar is out of range.
        """
        place = self._map(lane=lane, i=i)
        return place["row"], place["col"]

    def computation(self, lane: Any, i: Any) -> Any:
        """Which of the instruction's independent products the element belongs to; 0 except for ``m8n8k4`` with f16."""
        return self._map(lane=lane, i=i).get("computation", 0)

    def locate(self, row: Any, col: Any, computation: Any = 0) -> tuple[Any, Any]:
        """``(lane, i)`` of the element at ``row``, ``col``: the inverse of :meth:`coords`.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: the operand has no layout, or a scalar lies outside the matrix.
        """
        layout = self.fragment()
        place = {"row": in_range("row", row, self.rows), "col": in_range("col", col, self.cols)}
        if "computation" in layout.map.outputs:
            place["computation"] = in_range("computation", computation, 1 << layout.map.outputs["computation"])
        found = layout.map.inverse().apply(place)
        return found["lane"], found["i"]

    def chunk(self, lane: Any, i: Any) -> Any:
        """Sparse A: the first column, in the full matrix, of the chunk that the element comes from."""
        pattern = self._pattern()
        return self.coords(lane, i)[1] // pattern.kept * pattern.chunk

    def window(self, lane: Any, i: Any) -> tuple[Any, Any]:
        """Sparse A: first and last column, in the full matrix, that the element's register covers (PTX ISA's firstcol, lastcol)."""
        pattern = self._pattern()
        width = self.elements_per_register
        ratio = pattern.chunk // pattern.kept
        first = self.coords(lane, i)[1] // width * width * ratio
        return first, first + width * ratio - 1

    def pack(self, matrix: Any) -> Any:
        """One tile of a matrix to the registers of all threads; batches of tiles stand in front.

        ``matrix`` has shape (..., rows, cols), for ``m8n8k4`` with f16 (..., 4, rows, cols), and the dtype of the element type, or
        holds its bits as unsigned integers; narrow types have one element in each byte.  A torch tensor gives a tensor.  The
        result is (..., threads, registers) in the type that the CUDA wrappers have for a register; element ``i`` of thread ``lane``
        is that of :meth:`coords`.  Padding bits of containers are 0.

        Raises:
            ValueError: another shape or dtype, a code that the type does not have, or an operand without elements.
        """
        from ptxmma.arrays import fragments

        return fragments.pack(self, matrix)

    def unpack(self, registers: Any) -> Any:
        """What the registers of all threads hold, as a matrix: the inverse of :meth:`pack`.

        ``registers`` has shape (..., threads, registers) and any dtype of a register's size, whose bits are read; padding bits of
        containers are ignored.  The result is (..., rows, cols) in the dtype of the element type.  A torch tensor gives a tensor; where
        torch has no usable dtype, as for 4-bit and 6-bit types, it is one of ``uint8`` codes, which :meth:`pack` takes back.

        Raises:
            ValueError: another shape, a dtype of another size, or an operand without elements.
        """
        from ptxmma.arrays import fragments

        return fragments.unpack(self, registers)

    def pack_tiles(self, matrix: Any, *, pad: bool = False) -> Any:
        """A whole matrix to the registers of each of its tiles: (..., R, C) to (..., R/rows, C/cols, threads, registers).

        Args:
            matrix: as :meth:`pack` takes it, R and C multiples of ``rows`` and ``cols``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: as :meth:`pack`, or sizes that are no multiples without ``pad``.
        """
        from ptxmma.arrays import fragments

        return fragments.pack_tiles(self, matrix, pad=pad)

    def unpack_tiles(self, registers: Any, shape: Sequence[int] | None = None) -> Any:
        """A whole matrix from the registers of its tiles: the inverse of :meth:`pack_tiles`.

        Args:
            registers: (..., R/rows, C/cols, threads, registers), as :meth:`unpack` reads them.
            shape: the matrix's own, where it was padded: all of it, or (R, C).

        Raises:
            ValueError: as :meth:`unpack`, or a shape that needs another number of tiles.
        """
        from ptxmma.arrays import fragments

        return fragments.unpack_tiles(self, registers, shape)

    def to_cute(self) -> str:
        """CuTe's ``shape:stride`` text of its layout with its own columns, see :func:`ptxmma.matrices.interop.to_cute`.

        Raises:
            ValueError: the operand has no layout.
        """
        return self._own_layout().to_cute(self.cols or None)

    def to_triton(self) -> dict[str, list[list[int]]]:
        """Triton's linear-layout bases of its layout with its own columns, see :func:`ptxmma.matrices.interop.to_triton`.

        Raises:
            ValueError: the operand has no layout, or a number of columns that is no power of two.
        """
        return self._own_layout().to_triton(self.cols or None)

    def _own_layout(self) -> Layout:
        if self.layout is None:
            raise ValueError(f"operand {self.name!r} has no layout")
        return self.layout

    @functools.cached_property
    def tiling(self) -> Tiling:
        """The order of its elements in the registers; worked out once."""
        from ptxmma.arrays import fragments

        return fragments.tiling(self)

    def fragment(self) -> Layout:
        """The layout of its elements.

        Raises:
            ValueError: it has none.
        """
        if self.layout is None or self.layout.kind != "fragment":
            raise ValueError(f"operand {self.name!r} holds no elements of a matrix")
        return self.layout

    def _pattern(self) -> Granularity:
        if self.sparsity is None:
            raise ValueError(f"operand {self.name!r} is not sparse")
        return self.sparsity

    def _map(self, *, lane: Any, i: Any) -> dict[str, Any]:
        layout = self.fragment()
        return layout.map.apply({"lane": in_range("lane", lane, layout.threads), "i": in_range("i", i, self.elements)})


def in_range(name: str, value: Any, limit: int) -> Any:
    """A scalar, checked, as ``int``; arrays are taken as they are, since a check would cost more than the answer.

    Raises:
        TypeError: neither an integer nor an array.
        ValueError: a scalar outside 0..limit-1.
    """
    if type(value) is not int:
        if getattr(value, "shape", ()) != ():
            return value
        value = integer(name, value, "an integer or an array of integers")
    if not 0 <= value < limit:
        raise ValueError(f"{name} = {value} is out of range: 0..{limit - 1}")
    return value


def integer(name: str, value: Any, wanted: str = "one integer") -> int:
    """Any kind of integer (a NumPy scalar too) as ``int``; ``TypeError`` for all else."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}") from None


Known = dict[str, Any]


def describe(database: Database, variant: Variant, name: str) -> Operand:
    """Operand ``name`` of a variant; variants that agree in all that an operand can depend on share one object."""
    instruction, facts = variant.instruction, variant.facts
    place = (instruction.name, name, variant.ranges_over_n)
    decisive = database.memo.get(place)
    if decisive is None:
        decisive = database.memo[place] = _decisive(database.spec, name, instruction.operand_kinds[name], variant.ranges_over_n)
    key = (place, *[facts.get(fact) for fact in decisive])
    found: Operand | None = database.memo.get(key)
    if found is None:
        entry = instruction.operand_kinds[name]
        known: Known = {"access": entry.access, "default": entry.default, "uniform": entry.uniform}
        known |= KINDS[entry.kind](database, variant, name, entry)
        found = Operand(name=name, kind=entry.kind, title=entry.title, source=entry.source, **known)
        database.memo[key] = found
    return found


def _decisive(spec: Spec, name: str, entry: OperandKind, ranges_over_n: bool) -> list[str]:
    """The facts of a variant that an operand can depend on: those that conditions test, and those that the kinds read."""
    fragments = [part for part in spec.fragments if entry.type and name in part.operands]
    conditions = [
        *(container.when for container in spec.types.containers),
        *(carrier.when for carrier in spec.types.carriers),
        *(pattern.of for pattern in spec.granularities),
        *(metadata.of for metadata in spec.metadata),
        *(scale.of for scale in spec.scales),
        *(fragment.of for fragment in fragments),
    ]
    found = {fact for condition in conditions for case in condition for fact in case}
    sizes = {size for part in fragments for text in (part.rows, part.cols) for size in formula.names(formula.parse(text))}
    found |= sizes | {"m", "k", "atype", "stype", "scale_vec", entry.type}
    found -= {SHAPE}  # m, n and k tell it
    return sorted(found if ranges_over_n else found | {"n"})


def register_type(spec: Spec, name: str) -> RegisterType:
    """The spec's entry of a register type."""
    return next(entry for entry in spec.types.registers if entry.name == name)


def _carried(spec: Spec, variant: Variant, name: str, element: str = "") -> Known:
    """The register types that carry an operand."""
    facts = dict(variant.facts) | {"operand": name}
    for entry in spec.types.carriers:
        fits = name in entry.operands and (element in entry.elements if element else not entry.elements)
        if fits and matches(entry.when, facts):
            usual = register_type(spec, entry.registers[0])
            return {"register_types": entry.registers, "c_type": usual.c_type, "constraint": usual.constraint, "registers": 1}
    raise LookupError(f"types.carriers has no entry for operand {name!r}" + (f" with {element} elements" if element else ""))


def _fragment(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """Elements of a matrix, spread over the threads' registers."""
    spec = database.spec
    element = str(variant.facts[entry.type])
    known = _carried(spec, variant, name, element)
    held = layouts.container(spec, element, variant.facts)
    known |= {"element_type": element, "element": layouts.element_type(spec, element)}
    known |= {"bits": layouts.container_bits(spec, element, variant.facts), "shift": held.shift if held else 0}
    plan = layouts.fragment_plan(spec, variant, name, element)
    if plan is None:
        raise LookupError(f"no fragment of the spec covers operand {name!r} of {variant.canonical}")
    fragment = spec.fragments[plan.entry]
    facts = dict(plan.facts) | {"n": variant.facts["n"]}
    rows, cols = layouts.size(fragment.rows, facts), layouts.size(fragment.cols, facts)
    elements = rows * cols * fragment.computations // plan.threads
    usual = register_type(spec, known["register_types"][0])
    known |= {
        "rows": rows,
        "cols": cols,
        "computations": fragment.computations,
        "elements": elements,
        "registers": elements * known["bits"] // usual.bits,
    }
    known["layout"] = database.layout[plan.name]
    if variant.instruction.sparse and name == "a":
        known["sparsity"] = layouts.granularity(spec, variant)
    return known


def _register(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """One register without elements: a descriptor, a predicate."""
    known = _carried(database.spec, variant, name)
    return known | {"immediates": entry.values if entry.immediate else None, "takes_register": entry.register}


def _metadata(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """The indices of the elements that a sparse A keeps."""
    plan = layouts.metadata_plan(database.spec, variant, name)
    if plan is None:
        raise LookupError(f"no metadata layout of the spec covers {variant.canonical}")
    return _register(database, variant, name, entry) | {"layout": database.layout[plan.name]}


def _scale_data(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """Four scale factors, of which the scale ids choose some."""
    plan = layouts.scale_plan(database.spec, variant, entry.of)
    if plan is None:
        raise LookupError(f"no scale layout of the spec covers {variant.canonical}")
    element = layouts.element_type(database.spec, str(variant.facts["stype"]))
    known: Known = {"layout": database.layout[plan.name], "element_type": element.name, "element": element, "bits": element.bits}
    return _register(database, variant, name, entry) | known


def _scale_id(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """Which byte (``byte-id``) or which threads of each quad (``thread-id``) hold the scale factors."""
    scale = layouts.scale_entry(database.spec, variant, entry.of)
    ids = () if scale is None else scale.byte_ids if name.startswith("byte") else scale.thread_ids
    return _register(database, variant, name, entry) | {"immediates": ids}


def _immediate(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """A constant of the instruction."""
    values = entry.values or range(entry.limit + 1)
    return {"immediates": values, "takes_register": False, "constraint": "n"}


def _selector(database: Database, variant: Variant, name: str, entry: OperandKind) -> Known:
    """Which threads of each quad hold the metadata; its range follows from the metadata's layout."""
    metadata = layouts.metadata_entry(database.spec, variant)
    count = metadata.selectors if metadata is not None else 1
    return {"immediates": tuple(range(count)), "takes_register": False, "constraint": "n"}


KINDS: dict[str, Callable[[Database, Variant, str, OperandKind], Known]] = {
    "fragment": _fragment,
    "accumulator": _fragment,
    "descriptor": _register,
    "predicate": _register,
    "metadata": _metadata,
    "selector": _selector,
    "immediate": _immediate,
    "scale-data": _scale_data,
    "scale-id": _scale_id,
}

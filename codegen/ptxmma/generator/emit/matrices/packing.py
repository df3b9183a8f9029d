"""Elements and metadata between matrices in memory and registers: for each layout what one thread moves, from its bit map."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands import metadata as metadata_of
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.matrices.sparse_matrices import memory_bits
from ptxmma.model import COPY, Layout
from ptxmma.model.bitmap import BitMap


class Element(NamedTuple):
    """The bits of an element in memory and in a register.

    Attributes:
        name: ``"b16"``, or ``"e2m1_b8"`` where the two differ.
        memory: bits between elements in memory, packed below 8.
        spacing: bits between elements in a register.
        shift: the lowest bit of the element within these.
        register: bits of a register.
    """

    name: str
    memory: int
    spacing: int
    shift: int
    register: int

    @property
    def word(self) -> str:
        """The C type of a register's bits."""
        return f"uint{self.register}_t"

    @property
    def unit(self) -> str:
        """The C type of the smallest piece of memory that holds an element."""
        return f"uint{max(self.memory, 8)}_t"

    @property
    def elements(self) -> int:
        """Elements in a register."""
        return self.register // self.spacing


class Fragment(NamedTuple):
    """The functions of one layout for one way in which its elements lie.

    Attributes:
        stem: ``"ptxmma_mma_m16n8k16_a_b16"``, with the element's type where its memory differs from its container.
        text: the data that it moves, in words.
        element: the bits of its elements.
        threads: the number of threads that hold the fragment.
        strides: the strides of the matrix, by dimension: ``("row_stride", "col_stride")``.
        first: place of the thread's first element.
        step: the step from an element to the next in a register.
        places: the place of each register's first element; empty where their number depends on n.
        registers: the registers of a thread: a number, or an expression over n.
        place: the place of register r, where their number depends on n.
        rows, cols: the rows and columns of a tile; the columns where n says nothing else.
        n_step, n_last: n is a multiple of the one and at most the other.
        legal_n: bit b: n may be ``(b + 1) * n_step``; empty where every multiple is.
    """

    stem: str
    text: str
    element: Element
    threads: int
    strides: tuple[str, ...]
    first: str
    step: str
    places: list[str]
    registers: str
    place: str
    rows: int
    cols: int
    n_step: int
    n_last: int
    legal_n: str

    @property
    def follows_n(self) -> bool:
        """True if the number of registers depends on n."""
        return not self.places


class Metadata(NamedTuple):
    """The functions of one metadata layout.

    Attributes:
        stem, text, rows, chunks, selectors, threads: the stem, text and sizes of the layout.
        first: byte of the metadata from which the thread's bytes are counted.
        bytes: ``(place, shift)`` of each byte of the thread's register.
        selector: the selectors for which the thread holds metadata.
        padding: the register's value for chunks of zeros.
        layout: the layout.
    """

    stem: str
    text: str
    rows: int
    chunks: int
    selectors: int
    threads: int
    first: str
    bytes: list[tuple[str, int]]
    selector: str
    padding: str
    layout: Layout

    @property
    def run(self) -> int:
        """Neighbouring chunks of a row that lie in neighbouring fields."""
        targets = self.layout.map.bits["chunk"]
        return 1 << next((bit for bit, target in enumerate(targets) if target != ("bit", bit)), len(targets))


def element(operand: Operand) -> Element:
    """The bits of an operand's elements."""
    assert operand.element is not None
    memory, spacing = memory_bits(operand.element), operand.bits
    plain = memory == spacing and (operand.shift == 0)
    name = f"b{spacing}" if plain else f"{c_text.identifier(operand.element.name)}_b{spacing}"
    return Element(name, memory, spacing, operand.shift, spacing * operand.elements // operand.registers)


def fragments(operands: Iterable[Operand], widths: Mapping[str, Collection[int]]) -> list[Fragment]:
    """The fragments of some operands, each once; ``widths`` has for each layout the n of its instructions."""
    made: dict[str, Fragment] = {}
    for operand in operands:
        layout, one = operand.layout, element(operand)
        assert layout is not None
        stem = f"ptxmma_{c_text.identifier(layout.name)}"
        if one.name != f"b{one.spacing}":
            stem = f"{stem}_{c_text.identifier(str(operand.element_type))}"
        if stem not in made:
            made[stem] = _fragment(stem, layout, operand, one, widths[layout.name])
    return list(made.values())


def _fragment(stem: str, layout: Layout, operand: Operand, packed: Element, widths: Collection[int]) -> Fragment:
    dimensions = [*(axis for axis in layout.apart if axis != COPY), *layout.coordinates]
    slot = packed.elements.bit_length() - 1
    registers = operand.registers
    follows_n = bool(layout.growing)
    places = []
    if not follows_n:
        for register in range(registers):
            place = layout.map.apply({"lane": 0, "i": register * packed.elements})
            places.append(_sum("first", [_times(str(place[name]), name) for name in dimensions if place[name]]))
    cols, top = 1 << layout.map.outputs["col"], layout.map.runs("col")[-1]
    if follows_n and (top.name != "i" or layout.growing != ("col",)):
        raise ValueError(f"{layout.name}: the registers of the last columns are not the last registers")
    width = f"{packed.spacing} bit{'s' if packed.spacing > 1 else ''}"
    text = f"{' and '.join(name.upper() for name in layout.operands)} of {layout.shape}, {width} each"
    if packed.memory != packed.spacing:
        text += f", {operand.element_type} of {packed.memory} bits in memory"
    return Fragment(
        stem=stem,
        text=text,
        element=packed,
        threads=layout.threads,
        strides=tuple(f"{name}_stride" for name in dimensions),
        first=_sum("", [_times(part, name) for name in dimensions if (part := _bits(layout.map, name, "lane"))]) or "0",
        step=_step(layout, slot),
        places=places,
        registers=_ratio(registers, cols) if follows_n else str(registers),
        place=_sum("first", [_times(part, name) for name in dimensions if (part := _bits(layout.map, name, "i", "r", slot))]),
        rows=operand.rows,
        cols=operand.cols,
        n_step=1 << top.target,
        n_last=cols,
        legal_n=_legal_n(layout, widths, 1 << top.target, cols) if follows_n else "",
    )


def _legal_n(layout: Layout, widths: Collection[int], step: int, last: int) -> str:
    """The multiples of the step that are an n, as bits; empty where all of them are.

    Raises:
        ValueError: more multiples than a word has bits.
    """
    if set(widths) == set(range(step, last + 1, step)):
        return ""
    if last // step > 64:
        raise ValueError(f"{layout.name}: n has more than 64 values")
    return f"UINT64_C({sum(1 << n // step - 1 for n in widths):#x})"


def _ratio(registers: int, n: int) -> str:
    """Registers as an expression over n, of which ``n`` is the largest value."""
    return f"n * {registers // n}" if registers > n else f"n / {n // registers}" if registers < n else "n"


def _bits(bit_map: BitMap, output: str, name: str, shown: str = "", dropped: int = 0) -> str:
    """The bits of an output that come from one input, whose low bits may be left out; empty without any."""
    shown, width = shown or name, bit_map.inputs[name] - dropped
    terms = []
    for run in reversed(bit_map.runs(output)):
        cut = max(dropped - run.source, 0) if run.name == name else run.width
        if cut < run.width:
            source, count, target = run.source + cut - dropped, run.width - cut, run.target + cut
            term = f"{shown} >> {source}" if source else shown
            if source + count < width:
                term = f"({term}) & {(1 << count) - 1}" if source else f"{term} & {(1 << count) - 1}"
            if target:
                term = f"({term}) << {target}" if " " in term else f"{term} << {target}"
            terms.append(term)
    return terms[0] if len(terms) == 1 else " | ".join(f"({term})" if " " in term else term for term in terms)


def _times(place: str, dimension: str) -> str:
    """A place along a dimension as a number of elements."""
    factor = f"({place})" if " " in place else place
    return f"{dimension}_stride" if place == "1" else f"{factor} * {dimension}_stride"


def _sum(first: str, terms: list[str]) -> str:
    return " + ".join([first, *terms] if first else terms)


def _step(layout: Layout, slot: int) -> str:
    """The distance of neighbours in a register: its elements lie in one line of the matrix."""
    targets = layout.map.bits["i"][:slot]
    if not targets:
        return "0"
    name, low = targets[0]
    if list(targets) != [(name, low + bit) for bit in range(slot)]:
        raise ValueError(f"{layout.name}: the elements of a register do not lie in one line of the matrix")
    return _times(str(1 << low), name)


def metadata(fields: metadata_of.Metadata) -> Metadata:
    """The functions of the layout of some metadata.

    Raises:
        ValueError: fields that do not lie by whole bytes as row-major metadata does.
    """
    layout = fields.layout
    back = layout.map.inverse()
    together = 8 // fields.width
    if fields.width != 4 or layout.map.bits["chunk"][0] != ("bit", 0) or any(run.name != "lane" for run in back.runs("selector")):
        raise ValueError(f"{layout.name}: its registers do not hold the bytes of row-major metadata")
    places = []
    for number in range(4):
        place = back.apply({"lane": 0, "bit": together * number})
        terms = [_metadata_times(str(place["row"]))] if place["row"] else []
        terms += [str(place["chunk"] // together)] if place["chunk"] else []
        places.append((" + ".join(terms) or "0", 8 * number))
    rows, chunks = _bits(back, "row", "lane"), _bits(_dropped(back), "chunk", "lane")
    terms = [_metadata_times(rows)] if rows else []
    terms += [f"({chunks})"] if chunks else []
    return Metadata(
        stem=f"ptxmma_{c_text.identifier(layout.name)}",
        text=f"{layout.shape}, {layout.bits}-bit elements",
        rows=fields.rows,
        chunks=fields.chunks,
        selectors=fields.selectors,
        threads=layout.threads,
        first=" + ".join(terms) or "0",
        bytes=places,
        selector=_bits(back, "selector", "lane") or "0",
        padding=f"{sum(int(fields.padding, 2) << fields.width * field for field in range(1 << back.inputs['bit'])):#x}",
        layout=layout,
    )


def _metadata_times(rows: str) -> str:
    return "row_bytes" if rows == "1" else f"{f'({rows})' if ' ' in rows else rows} * row_bytes"


def _dropped(back: BitMap) -> BitMap:
    """The map with bytes of two chunks in the place of chunks: the lowest bit of both chunk and bit is left out."""
    outputs = back.outputs | {"chunk": back.outputs["chunk"] - 1}
    inputs = back.inputs | {"bit": back.inputs["bit"] - 1}
    bits = {
        name: tuple((output, bit - 1 if output == "chunk" else bit) for output, bit in targets if (output, bit) != ("chunk", 0))
        for name, targets in back.bits.items()
    }
    return BitMap(inputs, outputs, bits)

"""The functions of layouts as data: each language prints them in its own syntax.

The thread that holds each place, forward and inverse, and the columns of the full matrix of a sparse one.  The expressions come from
:mod:`ptxmma.catalog.layouts.expressions`: they work on C's unsigned integers, on Python's and on JavaScript's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.layouts.expressions import gather
from ptxmma.model import Layout
from ptxmma.model.bitmap import BitMap


class Sparsity(NamedTuple):
    """The packing of a sparse operand of a layout."""

    name: str  # the name of the pattern: "2:4"
    chunk: int
    kept: int
    per_register: int


class IndexFunction(NamedTuple):
    """One function of integers.

    Attributes:
        name: ``"mma_m16n8k16_a_b16_inverse"``.
        parameters: their names, in order.
        optional: the parameters that are 0 where they are left out.
        title: the first sentence of its documentation.
        notes: further lines: what the layout is of, and the ranges of arguments and results.
        source: section of the manual.
        results: the results by name: expressions over parameters and variables.
        steps: variables with their expressions, in order.
    """

    name: str
    parameters: tuple[str, ...]
    optional: tuple[str, ...]
    title: str
    notes: tuple[str, ...]
    source: str
    results: dict[str, str]
    steps: tuple[tuple[str, str], ...] = ()

    def written(self, write: Callable[[str], str]) -> IndexFunction:
        """Return a function whose results are formulas of the spec in the language of ``write``; several results are steps."""
        texts = {name: write(text) for name, text in self.results.items()}
        if len(texts) == 1:
            return self._replace(results=texts)
        return self._replace(results={name: name for name in texts}, steps=tuple(texts.items()))


#: The data of a thread, by the kind of layout, and its place.
_HOLDINGS = {
    "fragment": "element ``i`` of thread ``lane``",
    "metadata": "the field of a chunk",
    "scale": "a scale factor",
    "address": "the address of a {last}",
}


def functions(catalog: Catalog) -> Iterator[tuple[Layout, list[IndexFunction]]]:
    """The functions of every layout."""
    used = _sparsities(catalog)
    for layout in catalog.database.layouts:
        entry = catalog.database.spec.register_layouts[layout.entry]
        yield layout, list(of_layout(layout, used.get(layout.name, []), entry.source, entry.observed))


def _sparsities(catalog: Catalog) -> dict[str, list[Sparsity]]:
    """The patterns of zeros that each layout of sparse operands is used with."""
    by_layout: dict[str, dict[Sparsity, None]] = {}
    for instruction in catalog.all():
        for form in instruction.forms if instruction.sparse else ():
            for operand in form.operands:
                if operand.layout is not None and operand.sparsity is not None:
                    pattern = operand.sparsity
                    entry = Sparsity(pattern.name, pattern.chunk, pattern.kept, operand.elements_per_register)
                    by_layout.setdefault(operand.layout.name, {})[entry] = None
    return {name: list(entries) for name, entries in by_layout.items()}


def of_layout(layout: Layout, sparsities: list[Sparsity], source: str, observed: str = "") -> Iterator[IndexFunction]:
    """The function of a layout in the direction of its formula, its inverse, and for a sparse matrix the columns of the full one."""
    name = layout.name
    to_axes = layout.map.outputs.keys() == layout.axes.keys()
    # The thread comes first, and what programs seldom choose last.
    inputs = ("lane", "i") if to_axes else tuple(layout.axes)
    outputs = tuple(layout.map.outputs)
    remarks = [f"Observed on {observed}: the manual leaves this layout open."] if observed else []
    remarks += [f"That is the largest size, {layout.axes[axis]}; a smaller one has the first of these." for axis in layout.growing]
    forward, backward = _ranges(layout.map.inputs, inputs, layout.zeros), _ranges(layout.map.outputs, outputs, layout.zeros)
    defaults = () if to_axes else layout.apart
    title = f"{', '.join(layout.map.outputs).capitalize()} of {_HOLDINGS[layout.kind].format(last=layout.coordinates[-1])}."
    notes = (f"{described(layout, packed=bool(sparsities))}.", f"{forward} -> {backward}.", *remarks)
    yield _mapping(name, layout.map, inputs, outputs, (title, notes, source), layout.zeros, defaults)
    about = (f"The inverse of ``{name}``.", (f"{backward} -> {forward}.", *remarks), source)
    yield _mapping(f"{name}_inverse", layout.map.inverse(), outputs, inputs, about, layout.zeros)
    for sparsity in sparsities:
        suffix = f"_{sparsity.name.replace(':', '_')}" if len(sparsities) > 1 else ""
        ratio = sparsity.chunk // sparsity.kept
        first = gather(layout.map, "col", zeros={"col": _log2(ratio)}, drop=_log2(sparsity.kept))
        title = f"First column, in the full matrix, of the chunk that element ``i`` of ``{name}`` comes from."
        notes = (f"{forward} -> 0..{(layout.cols - sparsity.kept) * ratio} in steps of {sparsity.chunk}.",)
        yield IndexFunction(f"{name}_chunk{suffix}", ("lane", "i"), (), title, notes, source, {"first": first})
        width = sparsity.per_register * ratio
        first = gather(layout.map, "col", zeros={"col": _log2(ratio)}, drop=_log2(sparsity.per_register))
        title = f"First and last column, in the full matrix, that the register of element ``i`` of ``{name}`` covers."
        results = {"first": "first", "last": f"first + {width - 1}"}
        notes = (f"{forward} -> {width} columns.",)
        yield IndexFunction(f"{name}_window{suffix}", ("lane", "i"), (), title, notes, source, results, (("first", first),))


def described(layout: Layout, *, packed: bool) -> str:
    """The subject of a layout: the matrix, the shape, the width of its elements, the sizes of its axes."""
    what = {
        "metadata": "Metadata",
        "scale": f"Scale factors of {'A' if 'row' in layout.axes else 'B'}",
        "address": "Addresses",
    }.get(layout.kind, " and ".join(name.upper() if len(name) == 1 else name for name in layout.operands))
    width = f", {layout.bits}-bit elements" if layout.bits else ""
    of = f"{layout.family} {layout.shape}".rstrip()
    sizes = " x ".join(f"{layout.axes[axis]} {axis}s" for axis in layout.coordinates)
    return f"{what} of {of}{width}, {sizes}{', packed' if packed else ''}"


def _ranges(widths: Mapping[str, int], names: Iterable[str], zeros: Mapping[str, int]) -> str:
    """The values that inputs or outputs take: ``lane 0..31, bit 0..28 in steps of 4``."""
    parts = []
    for name in names:
        low = zeros.get(name, 0)
        last = ((1 << widths[name]) - 1) << low
        values = f"0..{last}" if last else "0"
        parts.append(f"{name} {values}" + (f" in steps of {1 << low}" if last and low else ""))
    return ", ".join(parts)


def _mapping(
    name: str,
    bit_map: BitMap,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    about: tuple[str, tuple[str, ...], str],
    zeros: Mapping[str, int],
    optional: tuple[str, ...] = (),
) -> IndexFunction:
    """The function of a bit map.  A result that is always 0 still has the type of the arguments."""
    steps = [(field, gather(bit_map, field, zeros=zeros) if bit_map.outputs[field] else f"{inputs[0]} & 0") for field in outputs]
    return IndexFunction(name, inputs, optional, *about, {field: field for field in outputs}, tuple(steps))


def _log2(number: int) -> int:
    """The exponent of a power of two."""
    if number < 1 or number & (number - 1):
        raise ValueError(f"{number} is not a power of two")
    return number.bit_length() - 1

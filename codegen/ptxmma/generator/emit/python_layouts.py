"""Python functions: which thread holds what, forward and inverse, a module per family; and shared memory.

The functions are expressions over ``>> << & | ^`` and arithmetic, which integers, NumPy arrays and torch tensors share.  They
have no annotations: no built-in type says "an integer or an array of them, and the same comes back", and they import nothing.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog.expressions import gather
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.formula_text import to_python
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import DescriptorField, Layout, SharedMemory, Spec
from ptxmma.model.bitmap import BitMap

_PACKAGE = "generated/python/ptxmma_layouts"
_LONGEST_LINE = 140


class Function(NamedTuple):
    """One function: its parameters as the signature has them, the lines of its docstring and of its body."""

    name: str
    parameters: str
    doc: list[str]
    body: list[str]


def emit(catalog: Catalog) -> Iterator[Output]:
    """The package: a module for each family that has layouts, and one for shared memory."""
    spec = catalog.database.spec
    families: dict[str, list[Layout]] = {}
    for layout in catalog.database.layouts:
        families.setdefault(layout.family, []).append(layout)
    used = _sparsities(catalog)
    modules: dict[str, tuple[str, dict[str, dict[str, int]], list[Function]]] = {}
    for family, layouts in families.items():
        functions = [function for layout in layouts for function in _layout(spec, layout, used.get(layout.name, []))]
        modules[_identifier(family)] = (f"Layouts of {_plain(family)}: which thread holds which element.", {}, functions)
    memory = spec.shared_memory
    if memory is not None:
        title = "Matrices in shared memory: swizzles, canonical layouts and the matrix descriptor."
        tables = {
            "SWIZZLE_SPAN": {mode.name: mode.bytes for mode in memory.swizzles},
            "SWIZZLE_PATTERN": {mode.name: mode.pattern for mode in memory.swizzles},
            "SWIZZLE_ENCODING": {mode.name: mode.encoding for mode in memory.swizzles},
        }
        modules["shared_memory"] = (title, tables, list(_shared_memory(memory)))
    shared = {"banner": banner("#", catalog, ["spec/"]), "document": _plain(spec.document)}
    for name, (title, tables, functions) in modules.items():
        text = render("python/module.py.jinja", title=title, tables=tables, functions=functions, **shared)
        yield Output(f"{_PACKAGE}/{name}.py", text)
    titles = {name: title for name, (title, _, _) in modules.items()}
    yield Output(f"{_PACKAGE}/__init__.py", render("python/package.py.jinja", version=spec.version, modules=titles, **shared))
    yield Output(f"{_PACKAGE}/py.typed", "")


def _identifier(name: str) -> str:
    """A name of the spec as a Python identifier."""
    result = re.sub(r"\W", "_", name)
    return f"{result}_" if keyword.iskeyword(result) else result


def _plain(text: str) -> str:
    """Text of the spec as it may stand in a docstring."""
    return text.replace("\\", "/").replace('"', "'")


def _doc(title: str, lines: Iterable[str], source: str) -> list[str]:
    return [title, "", *lines, f"Source: {_plain(source)}."]


def _log2(number: int) -> int:
    """The exponent of a power of two; anything else is no bit map."""
    if number < 1 or number & (number - 1):
        raise ValueError(f"{number} is not a power of two")
    return number.bit_length() - 1


# --- layouts ----------------------------------------------------------------------------------------------------------------


class _Sparsity(NamedTuple):
    """How a sparse operand of a layout is packed."""

    name: str  # of the pattern: "2:4"
    chunk: int
    kept: int
    per_register: int


def _sparsities(catalog: Catalog) -> dict[str, list[_Sparsity]]:
    """For each layout of sparse operands, the patterns of zeros that it is used with."""
    found: dict[str, dict[_Sparsity, None]] = {}
    for instruction in catalog.all():
        for form in instruction.forms if instruction.sparse else ():
            for operand in form.operands:
                if operand.layout is not None and operand.sparsity is not None:
                    pattern = operand.sparsity
                    entry = _Sparsity(pattern.name, pattern.chunk, pattern.kept, operand.elements_per_register)
                    found.setdefault(operand.layout.name, {})[entry] = None
    return {name: list(entries) for name, entries in found.items()}


#: What a thread holds, by the kind of layout, and where it lies.
_HOLDINGS = {
    "fragment": "element ``i`` of thread ``lane``",
    "metadata": "the field of a chunk",
    "scale": "a scale factor",
    "address": "the address of a {last}",
}


def _layout(spec: Spec, layout: Layout, sparsities: list[_Sparsity]) -> Iterator[Function]:
    """The function of a layout the way of its formula, its inverse, and of a sparse matrix the columns of the full one."""
    name, entry = _identifier(layout.name), spec.register_layouts[layout.entry]
    to_axes = layout.map.outputs.keys() == layout.axes.keys()
    # The thread comes first, and what programs seldom choose last.
    inputs = ("lane", "i") if to_axes else tuple(layout.axes)
    outputs = tuple(layout.map.outputs)
    widest = [f"That is the largest size, {layout.axes[axis]}; a smaller one has the first of these." for axis in layout.growing]
    forward, backward = _ranges(layout.map.inputs, inputs, layout.zeros), _ranges(layout.map.outputs, outputs, layout.zeros)
    defaults = () if to_axes else layout.apart
    title = f"{', '.join(layout.map.outputs).capitalize()} of {_HOLDINGS[layout.kind].format(last=layout.coordinates[-1])}."
    doc = _doc(title, [f"{_described(layout, sparsities)}.", f"{forward} -> {backward}.", *widest], entry.source)
    yield _mapping(name, layout.map, inputs, outputs, doc, layout.zeros, defaults)
    doc = _doc(f"The inverse of ``{name}``.", [f"{backward} -> {forward}.", *widest], entry.source)
    yield _mapping(f"{name}_inverse", layout.map.inverse(), outputs, inputs, doc, layout.zeros)
    for sparsity in sparsities:
        suffix = f"_{_identifier(sparsity.name)}" if len(sparsities) > 1 else ""
        ratio = sparsity.chunk // sparsity.kept
        first = gather(layout.map, "col", zeros={"col": _log2(ratio)}, drop=_log2(sparsity.kept))
        title = f"First column, in the full matrix, of the chunk that element ``i`` of ``{name}`` comes from."
        lines = [f"{forward} -> 0..{(layout.cols - sparsity.kept) * ratio} in steps of {sparsity.chunk}."]
        yield Function(f"{name}_chunk{suffix}", "lane, i", _doc(title, lines, entry.source), [f"return {first}"])
        width = sparsity.per_register * ratio
        first = gather(layout.map, "col", zeros={"col": _log2(ratio)}, drop=_log2(sparsity.per_register))
        title = f"First and last column, in the full matrix, that the register of element ``i`` of ``{name}`` covers."
        body = [f"first = {first}", f"return first, first + {width - 1}"]
        yield Function(f"{name}_window{suffix}", "lane, i", _doc(title, [f"{forward} -> {width} columns."], entry.source), body)


def _described(layout: Layout, sparsities: list[_Sparsity]) -> str:
    """What a layout is of: the matrix, the shape, the width of its elements, the sizes of its axes."""
    what = {
        "metadata": "Metadata",
        "scale": f"Scale factors of {'A' if 'row' in layout.axes else 'B'}",
        "address": "Addresses",
    }.get(layout.kind, " and ".join(name.upper() if len(name) == 1 else name for name in layout.operands))
    width = f", {layout.bits}-bit elements" if layout.bits else ""
    of = _plain(f"{layout.family} {layout.shape}".rstrip())
    sizes = " x ".join(f"{layout.axes[axis]} {axis}s" for axis in layout.coordinates)
    return f"{what} of {of}{width}, {sizes}{', packed' if sparsities else ''}"


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
    inputs: Iterable[str],
    outputs: Iterable[str],
    doc: list[str],
    zeros: Mapping[str, int],
    defaults: Iterable[str] = (),
) -> Function:
    """The function of a bit map.  A result that is always 0 still has the type of the arguments."""
    parameters = [f"{field}=0" if field in defaults else field for field in inputs]
    body = [f"{field} = {gather(bit_map, field, zeros=zeros) if bit_map.outputs[field] else f'{parameters[0]} & 0'}" for field in outputs]
    body.append(f"return {', '.join(outputs)}")
    return Function(name, ", ".join(parameters), doc, body)


# --- shared memory ----------------------------------------------------------------------------------------------------------


def _shared_memory(memory: SharedMemory) -> Iterator[Function]:
    title = "Where the swizzle moves a byte of shared memory; done twice, it moves it back."
    lines = ["``address`` is absolute; ``span`` is the swizzle's, see SWIZZLE_SPAN; ``base_offset`` is the descriptor's field."]
    body = [f"return {to_python(memory.swizzle_formula)}"]
    yield Function("swizzle", "address, span, base_offset=0", _doc(title, lines, memory.source), body)
    title = "The descriptor's base offset for a swizzle pattern that starts at the absolute address ``start``."
    lines = ["``pattern`` is the number of bytes after which the swizzle repeats, see SWIZZLE_PATTERN."]
    yield Function("base_offset", "start, pattern", _doc(title, lines, memory.source), [f"return {to_python(memory.base_offset)}"])
    spans = {mode.name: mode for mode in memory.swizzles}
    for layout in memory.layouts:
        for mode in layout.swizzles:
            span = spans[mode].bytes
            stem = f"{layout.majorness}_major_{_identifier(mode)}".lower()
            title = f"Offset in bytes of element (``x``, ``k``), before the swizzle: {layout.majorness}-major, swizzle {_plain(mode)}."
            lines = [
                f"``x`` counts along m or n; ``bits`` is the width of an element. Canonical layout: {_plain(layout.cute)}.",
                f"``lbo``: {_plain(layout.lbo)}.",
                f"``sbo``: {_plain(layout.sbo)}.",
            ]
            body = [f"return {to_python(layout.offset, {'span': str(span)})}"]
            yield Function(f"offset_{stem}", "x, k, bits, lbo, sbo", _doc(title, lines, layout.source), body)
            title = f"Absolute address of the first byte of element (``x``, ``k``): {layout.majorness}-major, swizzle {_plain(mode)}."
            lines = [f"``start`` is the absolute address of the matrix; the rest as for ``offset_{stem}`` and ``swizzle``."]
            body = [f"return swizzle(start + offset_{stem}(x, k, bits, lbo, sbo), {span}, base_offset)"]
            yield Function(f"address_{stem}", "start, x, k, bits, lbo, sbo, base_offset=0", _doc(title, lines, layout.source), body)
    yield from _descriptor(memory.descriptor)


def _descriptor(fields: tuple[DescriptorField, ...]) -> Iterator[Function]:
    names = [_identifier(field.name) for field in fields]
    source = ", ".join(dict.fromkeys(field.source for field in fields))
    lines, terms = [], []
    for name, field in zip(names, fields, strict=True):
        unit = f", in {_plain(field.unit)}" if field.unit else ""
        lines.append(f"``{name}``: {_plain(field.title)}{unit}.")
        value = f"({name} >> {field.shift})" if field.shift else name
        value = f"({value} & 0x{(1 << field.width) - 1:X})"
        terms.append(f"({value} << {field.low})" if field.low else value)
    body = [f"return {' | '.join(terms)}"]
    if len(body[0]) + 4 > _LONGEST_LINE:
        body = ["return (", *(f"    {'| ' if index else ''}{term}" for index, term in enumerate(terms)), ")"]
    yield Function("encode_descriptor", ", ".join(names), _doc("The 64-bit matrix descriptor of its fields.", lines, source), body)
    body = []
    for name, field in zip(names, fields, strict=True):
        value = f"(descriptor >> {field.low})" if field.low else "descriptor"
        value = f"{value} & 0x{(1 << field.width) - 1:X}"
        body.append(f"{name} = ({value}) << {field.shift}" if field.shift else f"{name} = {value}")
    body.append(f"return {', '.join(names)}")
    title = "The fields of a 64-bit matrix descriptor: the inverse of ``encode_descriptor``."
    yield Function("decode_descriptor", "descriptor", _doc(title, [f"-> {', '.join(names)}."], source), body)

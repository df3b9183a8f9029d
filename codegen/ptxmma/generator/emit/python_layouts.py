"""Python functions: which thread holds what, forward and inverse, a module per family; and shared memory.

The functions are expressions over ``>> << & | ^`` and arithmetic, which integers, NumPy arrays and torch tensors share.  They
have no annotations: no built-in type says "an integer or an array of them, and the same comes back", and they import nothing.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog.expressions import gather
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.expressions import to_python
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import DescriptorField, Layout, SharedMemory, Spec, formula
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
        functions = [function for layout in layouts for function in _KINDS[layout.kind](spec, layout, used.get(layout.name, []))]
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


def _fragment(spec: Spec, layout: Layout, sparsities: list[_Sparsity]) -> Iterator[Function]:
    name = _identifier(layout.name)
    entry = spec.fragments[layout.entry]
    what = " and ".join(operand.upper() for operand in layout.operands)
    packed = ", packed" if sparsities else ""
    title = f"{what} of {_plain(layout.family)} {layout.shape}, {layout.bits}-bit elements, {layout.rows} x {layout.cols}{packed}"
    inputs, outputs = {key: layout.map.inputs[key] for key in ("lane", "i")}, layout.map.outputs
    widest = []
    if "N" in layout.shape and "n" in formula.names(formula.parse(entry.cols)):
        widest = [f"That is the widest n, {layout.cols}; a smaller n has the first of these elements."]
    forward = [f"{_ranges(inputs)} -> {_ranges(outputs)}.", *widest]
    backward = [f"{_ranges(outputs)} -> {_ranges(inputs)}.", *widest]
    yield _mapping(name, layout.map, inputs, outputs, _doc(f"Place of element ``i`` of thread ``lane``: {title}.", forward, entry.source))
    title = f"Thread and element of a place: the inverse of ``{name}``."
    yield _mapping(f"{name}_inverse", layout.map.inverse(), outputs, inputs, _doc(title, backward, entry.source))
    for sparsity in sparsities:
        suffix = f"_{_identifier(sparsity.name)}" if len(sparsities) > 1 else ""
        ratio = sparsity.chunk // sparsity.kept
        first = gather(layout.map, "col", zeros={"col": _log2(ratio)}, drop=_log2(sparsity.kept))
        title = f"First column, in the full matrix, of the chunk that element ``i`` of ``{name}`` comes from."
        lines = [f"{_ranges(inputs)} -> 0..{(layout.cols - sparsity.kept) * ratio} in steps of {sparsity.chunk}."]
        yield Function(f"{name}_chunk{suffix}", "lane, i", _doc(title, lines, entry.source), [f"return {first}"])
        width = sparsity.per_register * ratio
        first = gather(layout.map, "col", zeros={"col": _log2(ratio)}, drop=_log2(sparsity.per_register))
        title = f"First and last column, in the full matrix, that the register of element ``i`` of ``{name}`` covers."
        body = [f"first = {first}", f"return first, first + {width - 1}"]
        yield Function(f"{name}_window{suffix}", "lane, i", _doc(title, [f"{_ranges(inputs)} -> {width} columns."], entry.source), body)


def _metadata(spec: Spec, layout: Layout, _: list[_Sparsity]) -> Iterator[Function]:
    name = _identifier(layout.name)
    source = spec.metadata[layout.entry].source
    inputs = {key: layout.map.inputs[key] for key in ("row", "chunk", "selector")}
    outputs = {"lane": layout.map.outputs["lane"], "field": layout.map.outputs["field"]}
    zeros, names = {"field": _log2(layout.field_bits)}, {"field": "bit"}
    title = (
        f"Thread and lowest bit of the {layout.field_bits}-bit field of a chunk: metadata of {_plain(layout.family)} {layout.shape}, "
        f"{layout.bits}-bit elements, {layout.rows} rows of {layout.cols} chunks."
    )
    forward, backward = _ranges(inputs), _ranges(outputs, zeros, names)
    doc = _doc(title, [f"{forward} -> {backward}."], source)
    yield _mapping(name, layout.map, inputs, outputs, doc, zeros, names, defaults={"selector"})
    doc = _doc(f"Row, chunk and selector of a field: the inverse of ``{name}``.", [f"{backward} -> {forward}."], source)
    yield _mapping(f"{name}_inverse", layout.map.inverse(), outputs, inputs, doc, zeros, names)


def _scale(spec: Spec, layout: Layout, _: list[_Sparsity]) -> Iterator[Function]:
    name = _identifier(layout.name)
    entry = spec.scales[layout.entry]
    inputs = {key: layout.map.inputs[key] for key in ("row", "block", "byte_id", "thread_id")}
    outputs = {"lane": layout.map.outputs["lane"], "byte": layout.map.outputs["byte"]}
    zeros = {key: _log2(ids[1]) for key, ids in (("byte_id", entry.byte_ids), ("thread_id", entry.thread_ids)) if len(ids) > 1}
    names = {"row": "col"} if entry.operand == "b" else {}
    title = (
        f"Thread and byte of a scale factor of {entry.operand.upper()}: {_plain(layout.family)} {layout.shape}, "
        f"{layout.rows} {names.get('row', 'row')}s; blocks along k: {layout.cols}."
    )
    forward, backward = _ranges(inputs, zeros, names), _ranges(outputs)
    doc = _doc(title, [f"{forward} -> {backward}."], entry.source)
    yield _mapping(name, layout.map, inputs, outputs, doc, zeros, names, defaults={"byte_id", "thread_id"})
    title = f"What a byte of a thread scales, and the ids that choose it: the inverse of ``{name}``."
    doc = _doc(title, [f"{backward} -> {forward}."], entry.source)
    yield _mapping(f"{name}_inverse", layout.map.inverse(), outputs, inputs, doc, zeros, names)


_KINDS: dict[str, Callable[[Spec, Layout, list[_Sparsity]], Iterator[Function]]] = {
    "fragment": _fragment,
    "metadata": _metadata,
    "scale": _scale,
}


def _ranges(fields: Mapping[str, int], zeros: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None) -> str:
    """The values that fields take: ``lane 0..31, bit 0..28 in steps of 4``."""
    parts = []
    for field, width in fields.items():
        low = (zeros or {}).get(field, 0)
        last = ((1 << width) - 1) << low
        values = f"0..{last}" if last else "0"
        parts.append(f"{(names or {}).get(field, field)} {values}" + (f" in steps of {1 << low}" if last and low else ""))
    return ", ".join(parts)


def _mapping(
    name: str,
    bit_map: BitMap,
    inputs: Iterable[str],
    outputs: Iterable[str],
    doc: list[str],
    zeros: Mapping[str, int] | None = None,
    names: Mapping[str, str] | None = None,
    defaults: Iterable[str] = (),
) -> Function:
    """The function of a bit map.  A result that is always 0 still has the type of the arguments."""
    called = {field: (names or {}).get(field, field) for field in (*inputs, *outputs)}
    parameters = [called[field] + ("=0" if field in defaults else "") for field in inputs]
    body = []
    for field in outputs:
        value = gather(bit_map, field, names, zeros=zeros)
        body.append(f"{called[field]} = {value if bit_map.outputs[field] else f'{parameters[0]} & 0'}")
    body.append(f"return {', '.join(called[field] for field in outputs)}")
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

"""The layouts of one family as C: for each a comment with its formula, its sizes as macros, and its functions."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.expressions import gather
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.expressions import to_c
from ptxmma.model import Cases, Granularity, Layout, formula, matches
from ptxmma.model.bitmap import BitMap

#: A mask of legal field values is one 32-bit word.
_WIDEST_FIELD = 5
_WARP = layouts.THREADS["warp"]
#: Kinds of layouts in the order in which a header shows them.
_ORDER = ("fragment", "metadata", "scale")
_WORD = re.compile(r"\w+")


class Function(NamedTuple):
    """One C function whose parameters and result are all ``uint32_t``."""

    brief: str
    name: str
    parameters: tuple[str, ...]
    expression: str

    @property
    def signature(self) -> str:
        """Name and parameters, on two lines where one is too short."""
        start, inner = f"PTXMMA_FN uint32_t {self.name}(", ", ".join(f"uint32_t {name}" for name in self.parameters)
        return f"{start}{inner})" if len(start) + len(inner) + 3 <= c_text.WIDTH else f"{start}\n    {inner})"

    @property
    def unused(self) -> list[str]:
        """The parameters that the expression does not read."""
        read = set(_WORD.findall(self.expression))
        return [name for name in self.parameters if name not in read]


class Macro(NamedTuple):
    """One macro, ``NAME`` or ``NAME(n)``."""

    name: str
    value: str


class Block(NamedTuple):
    """What a header has of one layout."""

    comment: list[str]
    macros: list[Macro]
    functions: list[Function]


class Section(NamedTuple):
    """The layouts of one shape."""

    title: str
    blocks: list[Block]


class Pattern(NamedTuple):
    """A pattern of sparsity: its legal fields in words and, for each element type, as masks in which bit v stands for value v."""

    comment: list[str]
    macros: list[Macro]


class _Use(NamedTuple):
    """An operand that has a layout, and an instruction that has the operand."""

    instruction: Instruction
    operand: Operand


class Family:
    """Everything that the layouts of one family are used for, gathered from its instructions."""

    def __init__(self, catalog: Catalog, name: str) -> None:
        self.name = name
        self._spec = catalog.database.spec
        self._uses: dict[str, list[_Use]] = {}
        #: Whether some of its variants demand ascending indices, where others do not.
        self._ordered = False
        seen: set[int] = set()
        for instruction in catalog.all():
            variant = instruction.variant
            if instruction.family == name:
                self._ordered |= any(
                    entry.ordered_when and matches(entry.ordered_when, variant.facts) for entry in self._spec.granularities
                )
            # Values of n share their layouts; the largest stands for all.
            if instruction.family != name or (variant.shape and variant.facts["n"] != max(variant.shape.each_n())):
                continue
            for form in instruction.forms:
                for operand in form.operands:
                    if operand.layout is not None and id(operand) not in seen:
                        seen.add(id(operand))
                        self._uses.setdefault(operand.layout.name, []).append(_Use(instruction, operand))
        self._layouts = sorted((catalog.database.layout[used] for used in self._uses), key=_place)
        self.warp = _WARP
        #: Threads that execute one instruction together, at most; 0 for a family without layouts.
        self.threads = max((layout.threads for layout in self._layouts), default=0)
        self.kinds = frozenset(layout.kind for layout in self._layouts)
        self.computations = any("computation" in layout.map.outputs for layout in self._layouts)

    def sections(self) -> list[Section]:
        """Its layouts by shape."""
        blocks = {"fragment": self._fragment, "metadata": self._metadata, "scale": self._scale}
        sections: dict[str, Section] = {}
        for layout in self._layouts:
            section = sections.setdefault(layout.shape, Section(c_text.comment(layout.shape), []))
            section.blocks.append(blocks[layout.kind](layout))
        return list(sections.values())

    def patterns(self) -> list[Pattern]:
        """The patterns of sparsity, one for each entry of the spec that an operand follows."""
        operands = [use.operand for uses in self._uses.values() for use in uses if use.operand.sparsity is not None]
        types = [dict.fromkeys(str(one.element_type) for one in operands if one.sparsity == entry) for entry in self._spec.granularities]
        return [self._pattern(entry, list(names)) for entry, names in zip(self._spec.granularities, types, strict=True) if names]

    def _pattern(self, entry: Granularity, types: list[str]) -> Pattern:
        macros = []
        if entry.index_bits * entry.indices <= _WIDEST_FIELD:
            for name in types:
                stem = f"PTXMMA_{c_text.macro(self.name)}_{c_text.macro(entry.name)}_{c_text.macro(name)}"
                macros.append(Macro(f"{stem}_LEGAL", _mask(entry.legal)))
                if self._ordered:
                    macros.append(Macro(f"{stem}_LEGAL_ORDERED", _mask(entry.ordered or entry.legal)))
        values = f"Legal fields: {' '.join(entry.legal)}."
        if entry.ordered and self._ordered:
            values += f" With ordered metadata: {' '.join(entry.ordered)}."
        comment = [
            *c_text.paragraph(f"{entry.name} sparsity of {', '.join(types)}. {entry.text}"),
            *c_text.paragraph(values),
            *c_text.paragraph(f"Source: {entry.source}."),
        ]
        return Pattern(comment, macros)

    # --- fragments ----------------------------------------------------------------------------------------------------------

    def _fragment(self, layout: Layout) -> Block:
        entry = self._spec.fragments[layout.entry]
        use = self._uses[layout.name][0]
        operand = use.operand
        stem, inputs = _stem(layout), ("lane", "i")
        back = layout.map.inverse()
        place = tuple(layout.map.outputs)
        functions = [
            _function(layout, "row", "Row of element i of thread lane.", inputs, layout.map),
            _function(layout, "col", "Column of element i of thread lane.", inputs, layout.map),
        ]
        if "computation" in place:
            functions.append(_function(layout, "computation", "Computation of element i of thread lane.", inputs, layout.map))
        functions += [
            _function(layout, "lane", "Thread that holds the element.", place, back),
            _function(layout, "element", "Number of the element in its thread.", place, back, output="i"),
        ]
        pattern = operand.sparsity
        if pattern is not None:
            width = operand.elements_per_register
            ratio = pattern.chunk // pattern.kept
            col = f"{stem}_col(lane, i)"
            chunk, first = _rounded(col, pattern.kept, pattern.chunk), _rounded(col, width, width * ratio)
            last = f"{stem}_window_first(lane, i) + {width * ratio - 1}"
            functions += [
                Function("First column of its chunk in the full matrix.", f"{stem}_chunk", inputs, chunk),
                Function("First column of its register's window in the full matrix.", f"{stem}_window_first", inputs, first),
                Function("Last column of its register's window in the full matrix.", f"{stem}_window_last", inputs, last),
            ]
        what = " and ".join(_title(name) for name in layout.operands) + (f" ({entry.label})" if entry.label else "")
        packed = ", packed" if pattern is not None else ""
        products = f" of each of {entry.computations} computations" if entry.computations > 1 else ""
        cols = "n" if _follows_n(layout, entry.cols) else layout.cols
        rows = "n" if _follows_n(layout, entry.rows) else layout.rows
        text = f"{what} of {layout.shape}{packed}, {layout.bits}-bit elements ({self._types(layout)}): "
        text += f"{rows} rows, {cols} columns{products}."
        comment = [*c_text.paragraph(text), *_formula(entry.let, {name: getattr(entry, name) for name in place}, use, layout)]
        return Block([*comment, *c_text.paragraph(f"Source: {entry.source}.")], self._fragment_sizes(layout, use), functions)

    def _fragment_sizes(self, layout: Layout, use: _Use) -> list[Macro]:
        """Rows, columns, elements and registers; macros of n where they depend on it."""
        entry, operand = self._spec.fragments[layout.entry], use.operand
        stem = c_text.macro(_stem(layout))
        sizes = {"ROWS": str(operand.rows), "COLS": str(operand.cols)}
        for name, text in (("ROWS", entry.rows), ("COLS", entry.cols)):
            if _follows_n(layout, text):
                plan = layouts.fragment_plan(self._spec, use.instruction.variant, operand.name, str(operand.element_type))
                assert plan is not None  # its layout stands before us
                value = to_c(text, {fact: str(value) for fact, value in plan.facts.items()} | {"n": "(n)"})
                sizes[name] = f"({value})" if " " in value else value
        if not any("(n)" in value for value in sizes.values()):
            sizes |= {"ELEMENTS": str(operand.elements), "REGISTERS": str(operand.registers)}
        else:
            products = f"{entry.computations} * " if entry.computations > 1 else ""
            sizes["ELEMENTS"] = f"({products}{sizes['ROWS']} * {sizes['COLS']} / {layout.threads})"
            each = operand.elements_per_register
            sizes["REGISTERS"] = f"({stem}_ELEMENTS(n) / {each})" if each > 1 else f"{stem}_ELEMENTS(n)"
        if entry.computations > 1:
            sizes["COMPUTATIONS"] = str(entry.computations)
        return [Macro(f"{stem}_{name}{'(n)' if '(n)' in value else ''}", value) for name, value in sizes.items()]

    # --- metadata -----------------------------------------------------------------------------------------------------------

    def _metadata(self, layout: Layout) -> Block:
        entry = self._spec.metadata[layout.entry]
        use = self._uses[layout.name][0]
        pattern = layouts.granularity(self._spec, use.instruction.variant)
        assert pattern is not None  # or there would be no metadata
        stem, width = _stem(layout), pattern.index_bits * pattern.indices
        zeros, names = {"field": (width - 1).bit_length()}, {"field": "bit"}
        back, held = layout.map.inverse(), ("lane", "bit")
        place = tuple(layout.map.inputs)
        reads = {run.name for run in layout.map.runs("field")}
        where = tuple(name for name in place if name != "selector" or name in reads)
        mask = f"{(1 << width) - 1:#x}u"
        functions = [
            _function(layout, "lane", "Thread whose register describes chunk of row.", place, layout.map),
            _function(layout, "bit", "Lowest bit of the field for chunk of row.", where, layout.map, output="field", zeros=zeros),
            _function(layout, "row", "Row that the field at bit of thread lane describes.", held, back, names=names, zeros=zeros),
            _function(layout, "chunk", "Chunk that the field at bit of thread lane describes.", held, back, names=names, zeros=zeros),
            _function(layout, "selector", "Selector for which it describes them.", held, back, names=names, zeros=zeros),
            Function(
                "The word with field at bit.",
                f"{stem}_insert",
                ("word", "bit", "field"),
                f"(word & ~({mask} << bit)) | ((field & {mask}) << bit)",
            ),
            Function("The field at bit of the word.", f"{stem}_extract", ("word", "bit"), f"(word >> bit) & {mask}"),
        ]
        upper = c_text.macro(stem)
        sizes = {
            "ROWS": layout.rows,
            "CHUNKS": layout.cols,
            "SELECTORS": entry.selectors,
            "FIELD_BITS": width,
            "CHUNK": pattern.chunk,
            "KEPT": pattern.kept,
        }
        types = dict.fromkeys(str(one.instruction.variant.facts["atype"]) for one in self._uses[layout.name])
        text = (
            f"Metadata of {layout.shape}, {layout.bits}-bit elements ({', '.join(types)}): {layout.rows} rows of {layout.cols} chunks. "
            f"A field of {width} bits for each chunk says which elements of it are kept: {pattern.kept} of {pattern.chunk}. "
            f"Who holds it: {entry.contributors}."
        )
        comment = [*c_text.paragraph(text), *_formula(entry.let, {"lane": entry.lane, "bit": entry.bit}, use, layout)]
        macros = [Macro(f"{upper}_{name}", str(value)) for name, value in sizes.items()]
        return Block([*comment, *c_text.paragraph(f"Source: {entry.source}.")], macros, functions)

    # --- block scaling ------------------------------------------------------------------------------------------------------

    def _scale(self, layout: Layout) -> Block:
        entry = self._spec.scales[layout.entry]
        use = self._uses[layout.name][0]
        upper, line = c_text.macro(_stem(layout)), "row" if entry.operand == "a" else "col"
        names = {"row": line}
        zeros = {"byte_id": _step(entry.byte_ids), "thread_id": _step(entry.thread_ids)}
        back, held = layout.map.inverse(), ("lane", "byte")
        functions = []
        for output, cases, brief in (
            ("lane", entry.lane, "Thread whose register holds the scale factor."),
            ("byte", entry.byte, "Byte of that register."),
        ):
            reads = _reads(entry.let, cases)
            inputs = tuple(names.get(name, name) for name in layout.map.inputs if name in reads)
            functions.append(_function(layout, output, brief, inputs, layout.map, names=names, zeros=zeros))
        for output, name, brief in (
            ("row", line, "Row of A" if line == "row" else "Column of B"),
            ("block", "block", "Block along K"),
            ("byte_id", "byte_id", "Byte id"),
            ("thread_id", "thread_id", "Thread id"),
        ):
            text = f"{brief} of the scale factor in byte of thread lane."
            functions.append(_function(layout, name, text, held, back, output=output, zeros=zeros))
        text = (
            f"Scale factors of {_title(entry.operand)} of {layout.shape} ({self._types(layout)}): "
            f"{entry.blocks} along K for each of {layout.rows} {'rows' if line == 'row' else 'columns'}. "
            f"Byte ids: {_list(entry.byte_ids)}; thread ids: {_list(entry.thread_ids)}."
        )
        lines = _formula(entry.let, {"lane": entry.lane, "byte": entry.byte}, use, layout)
        comment = [*c_text.paragraph(text), *(re.sub(r"\brow\b", line, one) for one in lines)]
        macros = [Macro(f"{upper}_{line.upper()}S", str(layout.rows)), Macro(f"{upper}_BLOCKS", str(entry.blocks))]
        return Block([*comment, *c_text.paragraph(f"Source: {entry.source}.")], macros, functions)

    def _types(self, layout: Layout) -> str:
        """The element types that use a layout."""
        return ", ".join(dict.fromkeys(str(use.operand.element_type) for use in self._uses[layout.name]))


def _rounded(value: str, unit: int, times: int) -> str:
    """Which unit a value lies in, times something."""
    return f"{value} * {times}" if unit == 1 else f"{value} / {unit} * {times}"


def _place(layout: Layout) -> tuple[object, ...]:
    """Sort key: by shape, then as one reads an instruction."""
    numbers = tuple(map(int, re.findall(r"\d+", layout.shape)))
    return (len(numbers), numbers, layout.shape, _ORDER.index(layout.kind), layout.operands, layout.bits, layout.name)


def _stem(layout: Layout) -> str:
    return f"ptxmma_{c_text.identifier(layout.name)}"


def _title(operand: str) -> str:
    """The manual's capital for a matrix: ``A`` for ``a``."""
    return operand.upper() if len(operand) == 1 else operand


def _function(
    layout: Layout,
    name: str,
    brief: str,
    inputs: Iterable[str],
    bit_map: BitMap,
    *,
    output: str = "",
    names: Mapping[str, str] | None = None,
    zeros: Mapping[str, int] | None = None,
) -> Function:
    expression = gather(bit_map, output or name, names, zeros)
    return Function(brief, f"{_stem(layout)}_{name}", tuple(inputs), expression)


def _follows_n(layout: Layout, text: str) -> bool:
    """Whether a size of a layout that serves many values of n depends on n."""
    return not re.search(r"n\d", layout.shape) and "n" in _names(text)


def _step(ids: tuple[int, ...]) -> int:
    """Zero bits below ids that are 0, step, 2*step …, the only ones that the map's numbering of them reproduces."""
    step = ids[1] if len(ids) > 1 else 1
    if step & (step - 1) or ids != tuple(range(0, step * len(ids), step)):
        raise ValueError(f"scale ids {_list(ids)}: C functions exist for 0, s, 2*s … only, where s is a power of two")
    return step.bit_length() - 1


def _list(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _mask(values: Iterable[str]) -> str:
    return f"{sum(1 << number for number in {int(value, 2) for value in values}):#06x}u"


@functools.cache
def _names(text: str) -> frozenset[str]:
    """The variables of one formula."""
    return frozenset(formula.names(formula.parse(text)))


def _reads(let: Mapping[str, str], cases: Cases) -> set[str]:
    """The variables that guarded cases depend on, also by way of their helpers."""
    found = {name for case in cases for text in (case.value, case.when) if text for name in _names(text)}
    for name, text in reversed(list(let.items())):
        if name in found:
            found |= _names(text)
    return found


def _formula(let: Mapping[str, str], results: Mapping[str, Cases], use: _Use, layout: Layout) -> list[str]:
    """The spec's formula as lines of a comment, with the values of what it takes from the instruction."""
    reads = set().union(*(_reads(let, cases) for cases in results.values()))
    facts = {"bits": layout.bits} | {name: use.instruction.variant.facts.get(name) for name in ("m", "n", "k")}
    given = [f"{name} = {value}" for name, value in facts.items() if name in reads]
    if layout.threads > _WARP and reads & {"lane", "warp"} and "lane" not in results:
        given.append(f"warp = lane // {_WARP}, lane = lane % {_WARP}")
    helpers = [*given, *(f"{name} = {text}" for name, text in let.items() if name in reads)]
    lines = c_text.listing(helpers)
    for name, cases in results.items():
        parts = [case.value + (f" if {case.when}" if case.when else "") for case in cases]
        lines += c_text.listing([f"{name} = {'; '.join(parts)}"])
    return [" *", *lines, " *"]

"""The layouts of one family as C: for each a comment with its formula, its sizes as macros, and its functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ptxmma import formula, layouts
from ptxmma.bitmap import BitMap
from ptxmma.generator.emit import c_text, expressions
from ptxmma.instructions import Catalog, Instruction
from ptxmma.model import Cases, Granularity, Layout
from ptxmma.operands import Operand

_MASK_BITS = 32
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
    """A pattern of sparsity with the element types that are stored by it; masks have bit v set where field value v is legal."""

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
        seen: set[int] = set()
        for instruction in catalog.all():
            variant = instruction.variant
            # Values of n share their layouts; the largest stands for all.
            if instruction.family != name or (variant.shape and variant.facts["n"] != max(variant.shape.each_n())):
                continue
            for form in instruction.forms:
                for operand in form.operands:
                    if operand.layout is not None and id(operand) not in seen:
                        seen.add(id(operand))
                        self._uses.setdefault(operand.layout.name, []).append(_Use(instruction, operand))
        self._layouts = sorted((catalog.database.layout[used] for used in self._uses), key=_place)
        #: Threads that execute one instruction together, at most.
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
        types: dict[Granularity, dict[str, None]] = {}
        for uses in self._uses.values():
            for use in uses:
                if use.operand.sparsity is not None:
                    types.setdefault(use.operand.sparsity, {})[str(use.operand.element_type)] = None
        return [self._pattern(entry, list(types[entry])) for entry in self._spec.granularities if entry in types]

    def _pattern(self, entry: Granularity, types: list[str]) -> Pattern:
        macros = []
        for name in types:
            stem = f"PTXMMA_{c_text.macro(self.name)}_{c_text.macro(entry.name)}_{c_text.macro(name)}"
            macros.append(Macro(f"{stem}_LEGAL", _mask(entry.legal)))
            macros.append(Macro(f"{stem}_LEGAL_ORDERED", _mask(entry.ordered or entry.legal)))
        values = f"Legal fields: {' '.join(entry.legal)}."
        if entry.ordered:
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
            functions += [
                Function(
                    "First column, in the full matrix, of the chunk that the element comes from.",
                    f"{stem}_chunk",
                    inputs,
                    f"{col} / {pattern.kept} * {pattern.chunk}",
                ),
                Function(
                    "First column, in the full matrix, that the element's register covers.",
                    f"{stem}_window_first",
                    inputs,
                    f"{col} / {width} * {width * ratio}",
                ),
                Function(
                    "Last column, in the full matrix, that the element's register covers.",
                    f"{stem}_window_last",
                    inputs,
                    f"{stem}_window_first(lane, i) + {width * ratio - 1}",
                ),
            ]
        what = " and ".join(_title(name) for name in layout.operands)
        packed = ", packed" if pattern is not None else ""
        products = f" of each of {entry.computations} computations" if entry.computations > 1 else ""
        cols = "n" if _follows_n(layout, entry.cols) else layout.cols
        rows = "n" if _follows_n(layout, entry.rows) else layout.rows
        text = f"{what}{packed}, {layout.bits}-bit elements ({self._types(layout)}): {rows} rows, {cols} columns{products}."
        comment = [*c_text.paragraph(text), *_formula(entry.let, {name: getattr(entry, name) for name in place}, use, layout)]
        return Block([*comment, *c_text.paragraph(f"Source: {entry.source}.")], self._fragment_sizes(layout, use), functions)

    def _fragment_sizes(self, layout: Layout, use: _Use) -> list[Macro]:
        """Rows, columns, elements and registers; functions of n where one layout serves every n."""
        entry, operand = self._spec.fragments[layout.entry], use.operand
        stem = c_text.macro(_stem(layout))
        if not _follows_n(layout, entry.rows) and not _follows_n(layout, entry.cols):
            sizes = {"ROWS": operand.rows, "COLS": operand.cols, "ELEMENTS": operand.elements, "REGISTERS": operand.registers}
            macros = [Macro(f"{stem}_{name}", str(value)) for name, value in sizes.items()]
        else:
            plan = layouts.fragment_plan(self._spec, use.instruction.variant, operand.name, str(operand.element_type))
            assert plan is not None  # its layout stands before us
            names = {name: str(value) for name, value in plan.facts.items()} | {"n": "(n)"}
            rows, cols = (f"({expressions.to_c(text, names)})".replace("((n))", "(n)") for text in (entry.rows, entry.cols))
            count = f"{rows} * {cols} / {layout.threads}"
            if entry.computations > 1:
                count = f"{entry.computations} * {count}"
            macros = [
                Macro(f"{stem}_ROWS(n)", rows),
                Macro(f"{stem}_COLS(n)", cols),
                Macro(f"{stem}_ELEMENTS(n)", f"({count})"),
                Macro(f"{stem}_REGISTERS(n)", f"({stem}_ELEMENTS(n) / {operand.elements_per_register})"),
            ]
        if entry.computations > 1:
            macros.append(Macro(f"{stem}_COMPUTATIONS", str(entry.computations)))
        return macros

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
            _function(layout, "bit", "Lowest bit of the field that describes chunk of row.", where, layout.map, output="field", zeros=zeros),
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
            f"Metadata of A with {layout.bits}-bit elements ({', '.join(types)}): {layout.rows} rows of {layout.cols} chunks; "
            f"a field of {width} bits says which {pattern.kept} of the {pattern.chunk} elements of its chunk are kept. "
            f"It stands in {entry.contributors}."
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
            f"Scale factors of {_title(entry.operand)} ({self._types(layout)}): {entry.blocks} along K for each of {layout.rows} {line}s. "
            f"Byte ids: {_list(entry.byte_ids)}; thread ids: {_list(entry.thread_ids)}."
        )
        comment = [*c_text.paragraph(text), *_formula(entry.let, {"lane": entry.lane, "byte": entry.byte}, use, layout)]
        macros = [Macro(f"{upper}_{line.upper()}S", str(layout.rows)), Macro(f"{upper}_BLOCKS", str(entry.blocks))]
        return Block([*comment, *c_text.paragraph(f"Source: {entry.source}.")], macros, functions)

    def _types(self, layout: Layout) -> str:
        """The element types that use a layout."""
        return ", ".join(dict.fromkeys(str(use.operand.element_type) for use in self._uses[layout.name]))


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
    expression = expressions.gather(bit_map, output or name, names, zeros)
    return Function(brief, f"{_stem(layout)}_{name}", tuple(inputs), expression)


def _follows_n(layout: Layout, text: str) -> bool:
    """Whether a size of a layout that serves many values of n depends on n."""
    return not re.search(r"n\d", layout.shape) and "n" in formula.names(formula.parse(text))


def _step(ids: tuple[int, ...]) -> int:
    """Zero bits below ids that are 0, step, 2*step …, the only ones that the map's numbering of them reproduces."""
    step = ids[1] if len(ids) > 1 else 1
    if step & (step - 1) or ids != tuple(range(0, step * len(ids), step)):
        raise ValueError(f"scale ids {_list(ids)}: C functions exist for 0, s, 2*s … only, where s is a power of two")
    return step.bit_length() - 1


def _list(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _mask(values: Iterable[str]) -> str:
    numbers = [int(value, 2) for value in values]
    if max(numbers) >= _MASK_BITS:
        raise ValueError(f"a field value of {max(numbers):#b} does not fit the mask of legal fields: {_MASK_BITS} values are the most")
    return f"{sum(1 << number for number in set(numbers)):#x}u"


def _reads(let: Mapping[str, str], cases: Cases) -> set[str]:
    """The variables that a formula depends on, also by way of its helpers."""
    found = set()
    for case in cases:
        found |= set(formula.names(formula.parse(case.value)))
        found |= set(formula.names(formula.parse(case.when))) if case.when else set()
    for name, text in reversed(let.items()):
        if name in found:
            found |= set(formula.names(formula.parse(text)))
    return found


def _formula(let: Mapping[str, str], results: Mapping[str, Cases], use: _Use, layout: Layout) -> list[str]:
    """The spec's formula as lines of a comment, with the values of what it takes from the instruction."""
    reads = set().union(*(_reads(let, cases) for cases in results.values()))
    facts = {"bits": layout.bits} | {name: use.instruction.variant.facts.get(name) for name in ("m", "n", "k")}
    given = [f"{name} = {value}" for name, value in facts.items() if name in reads]
    if layout.threads > _WARP and reads & {"lane", "warp"} and "lane" not in results:
        given.append(f"warp = thread // {_WARP}, lane = thread % {_WARP}")
    helpers = [*given, *(f"{name} = {text}" for name, text in let.items() if name in reads)]
    lines = [", ".join(helpers)] if helpers else []
    for name, cases in results.items():
        lines.append(f"{name} = " + "; ".join(case.value + (f" if {case.when}" if case.when else "") for case in cases))
    return [" *", *(text for line in lines for text in c_text.paragraph(line, " *     ")), " *"]

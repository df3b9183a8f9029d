"""The C functions and macros of a layout: its formula, the inverse, what goes with its kind, its sizes; and the words for them.

A layout in tensor memory has a function for each of its results.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.layouts.expressions import gather
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text, tensor_functions
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.model import Cases, Granularity, Layout, RegisterLayout, Space, Spec, formula
from ptxmma.model.bitmap import BitMap

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
        start, inner = f"PTXMMA_CONSTEXPR_FN uint32_t {self.name}(", ", ".join(f"uint32_t {name}" for name in self.parameters)
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


def stem(layout: Layout) -> str:
    """The start of the names of a layout's functions; in capitals the start of its macros' names."""
    return f"ptxmma_{c_text.identifier(layout.name)}"


# --- words ------------------------------------------------------------------------------------------------------------------


#: Kinds of layouts in the order in which a header shows them, each with what a thread holds, where, and in one word.
_HOLDINGS = {
    "fragment": ("element i of thread lane", "element"),
    "metadata": ("the field at bit of thread lane", "field"),
    "scale": ("the scale factor in byte of thread lane", "scale factor"),
    "address": ("the address of thread lane", "address"),
}
#: The kinds of layouts in that order.
KINDS = tuple(_HOLDINGS)
_AXES = {"col": "column", "byte_id": "byte id", "thread_id": "thread id"}
_PARTS = {
    "i": "Number of the {} in its thread.",
    "bit": "Lowest bit of the {} in the thread's register.",
    "byte": "Byte of the thread's register with the {}.",
}


def axis(name: str) -> str:
    """The word for an axis: ``"column"`` for ``"col"``."""
    return _AXES.get(name, name)


def plural(name: str) -> str:
    """The plural of an axis or its word: ``"indices"`` for ``"index"``."""
    stem, end = {"x": (name[:-1], "ces"), "y": (name[:-1], "ies"), "s": (name, "es")}.get(name[-1:], (name, "s"))
    return stem + end


def title(operand: str) -> str:
    """The manual's capital for a matrix: ``"A"`` for ``"a"``."""
    return operand.upper() if len(operand) == 1 else operand


def result(layout: Layout, name: str) -> str:
    """A sentence for a function that computes an axis of a layout, the thread, or a part of its registers."""
    subject, thing = _HOLDINGS[layout.kind]
    if name in layout.axes:
        return f"{axis(name).capitalize()} of {subject}."
    if name == "lane":
        if layout.kind == "address":
            return f"Thread that gives the address of the {axis(layout.coordinates[-1])}."
        return f"Thread that holds the {thing}."
    return _PARTS[name].format(thing)


class LayoutUse(NamedTuple):
    """An operand that has a layout, and an instruction that has the operand."""

    instruction: Instruction
    operand: Operand

    def pattern(self, spec: Spec) -> Granularity:
        """The pattern of sparsity of an instruction that has metadata."""
        pattern = layouts.granularity(spec, self.instruction.variant)
        assert pattern is not None  # or there would be no metadata
        return pattern


# --- functions --------------------------------------------------------------------------------------------------------------


def functions(layout: Layout, entry: RegisterLayout, operand: Operand) -> Iterator[Function]:
    """The functions of a layout, made by ``entry`` for ``operand``."""
    yield from _forward(layout, entry)
    yield from _backward(layout)
    if layout.kind == "fragment":
        yield from _window(layout, operand)
    elif layout.kind == "metadata":
        yield from _access(layout)


def reads(let: Mapping[str, str], cases: Cases) -> set[str]:
    """The variables that guarded cases depend on, also by way of their helpers."""
    variables = {name for case in cases for text in (case.value, case.when) if text for name in _names(text)}
    for name, text in reversed(list(let.items())):
        if name in variables:
            variables |= _names(text)
    return variables


@functools.cache
def _names(text: str) -> frozenset[str]:
    """The variables of one formula."""
    return frozenset(formula.names(formula.parse(text)))


def _forward(layout: Layout, entry: RegisterLayout) -> Iterator[Function]:
    """The functions of the formula itself: axes from thread and element, or thread and bits from the axes."""
    for output in layout.map.outputs:
        if output in layout.axes:
            yield _function(layout, output, layout.map.inputs, layout.map)
        else:
            variables = reads(entry.let, entry.at[output])
            always = {"scale": (), "metadata": layout.axes if output == "lane" else layout.coordinates}.get(layout.kind, layout.axes)
            inputs = (axis for axis in layout.map.inputs if axis in always or axis in variables)
            yield _function(layout, output, inputs, layout.map)


def _backward(layout: Layout) -> Iterator[Function]:
    """The inverse."""
    back = layout.map.inverse()
    for output in back.outputs if "i" not in back.outputs else ("lane", "i"):
        inputs = ("lane", *(name for name in back.inputs if name != "lane")) if "lane" in back.inputs else tuple(back.inputs)
        yield _function(layout, output, inputs, back)


def _window(layout: Layout, operand: Operand) -> Iterator[Function]:
    """Sparse A: the columns of the full matrix from which an element, or the elements of its register, come."""
    pattern = operand.sparsity
    if pattern is None:
        return
    name, inputs, width = stem(layout), ("lane", "i"), operand.elements_per_register
    col = f"{name}_col(lane, i)"
    chunk, first = _rounded(col, pattern.kept, pattern.chunk), _rounded(col, width, width * pattern.ratio)
    last = f"{name}_window_first(lane, i) + {width * pattern.ratio - 1}"
    yield Function("First column of its chunk in the full matrix.", f"{name}_chunk", inputs, chunk)
    yield Function("First column of its register's window in the full matrix.", f"{name}_window_first", inputs, first)
    yield Function("Last column of its register's window in the full matrix.", f"{name}_window_last", inputs, last)


def _access(layout: Layout) -> Iterator[Function]:
    """Fields put into words and taken out of them."""
    name, mask = stem(layout), f"{(1 << layout.steps['bit']) - 1:#x}u"
    insert = f"(word & ~({mask} << bit)) | ((field & {mask}) << bit)"
    yield Function("The word with field at bit.", f"{name}_insert", ("word", "bit", "field"), insert)
    yield Function("The field at bit of the word.", f"{name}_extract", ("word", "bit"), f"(word >> bit) & {mask}")


def _rounded(value: str, unit: int, times: int) -> str:
    """The C expression of the number of the unit that contains a value, multiplied by ``times``."""
    return f"{value} * {times}" if unit == 1 else f"{value} / {unit} * {times}"


def _function(layout: Layout, output: str, inputs: Iterable[str], bit_map: BitMap) -> Function:
    """The function of one output of a map."""
    expression = gather(bit_map, output, zeros=layout.zeros)
    ordered = tuple(inputs)
    if ordered[:1] == ("i",):  # the thread first
        ordered = ("lane", "i")
    return Function(result(layout, output), f"{stem(layout)}_{'element' if output == 'i' else output}", ordered, expression)


# --- macros -----------------------------------------------------------------------------------------------------------------


def macros(layout: Layout, use: LayoutUse, spec: Spec) -> list[Macro]:
    """The sizes of a layout, as one operand has them."""
    if layout.kind == "fragment":
        return _fragment_sizes(layout, use, spec)
    shown = layout.axes if layout.kind != "scale" else layout.coordinates
    sizes = {plural(axis): layout.axes[axis] for axis in shown}
    if layout.kind == "metadata":
        pattern = use.pattern(spec)
        sizes |= {"field_bits": pattern.width, "chunk": pattern.chunk, "kept": pattern.kept}
    if layout.kind == "address":
        sizes |= {"row_bytes": use.operand.row_bytes, "alignment": use.operand.alignment}
    return [Macro(f"{c_text.macro(stem(layout))}_{name.upper()}", str(size)) for name, size in sizes.items()]


def _fragment_sizes(layout: Layout, use: LayoutUse, spec: Spec) -> list[Macro]:
    """Rows, columns, elements and registers; macros of the extent that ranges where they depend on it."""
    operand, variant = use.operand, use.instruction.variant
    prefix = c_text.macro(stem(layout))
    own, texts = {}, spec.register_layouts[layout.entry].axes
    variables = variant.extents | layouts.variables(spec, variant, operand.name)
    for axis, size in operand.sizes.items():
        if axis in layout.growing:
            names = {name: str(value) for name, value in variables.items()} | {name: f"({name})" for name in variant.ranging}
            value = to_c(texts[axis], names)
            own[axis] = f"({value})" if " " in value else value
        else:
            own[axis] = str(size)
    sizes = {plural(axis): value for axis, value in own.items() if axis not in layout.apart}
    if not layout.growing:
        sizes |= {"elements": str(operand.elements), "registers": str(operand.registers)}
    else:
        sizes["elements"] = f"({' * '.join(own.values())} / {layout.threads})"
        each = operand.elements_per_register
        given = f"({next(iter(variant.ranging))})"
        sizes["registers"] = f"({prefix}_ELEMENTS{given} / {each})" if each > 1 else f"{prefix}_ELEMENTS{given}"
    sizes |= {plural(axis): value for axis, value in own.items() if axis in layout.apart}
    parameters = [f"({name})" for name in variant.ranging]
    return [Macro(f"{prefix}_{name.upper()}" + "".join(one for one in parameters if one in value), value) for name, value in sizes.items()]


# --- tensor memory ---------------------------------------------------------------------------------------------------------


class TensorGroup(NamedTuple):
    """The C functions of one mapping in tensor memory, with their title, notes and source."""

    title: str
    notes: tuple[str, ...]
    source: str
    functions: list[Function]


def tensor_groups(memory: Space) -> list[TensorGroup]:
    """The functions of the header of tensor memory."""
    return [_tensor_group(memory, function) for function in tensor_functions.functions(memory)]


def _tensor_group(memory: Space, function: IndexFunction) -> TensorGroup:
    """``ptxmma_tensor_layout_b_lane`` and so on: a function with several results is several, and the way back has their names."""
    stem = f"ptxmma_{memory.name}_{function.name.removesuffix('_inverse')}"
    several = len(function.results) > 1
    made = [
        Function(function.title, f"{stem}_{name}" if several else stem, function.parameters, to_c(text))
        for name, text in function.results.items()
    ]
    return TensorGroup(function.title.replace("``", "`"), tuple(note.replace("``", "`") for note in function.notes), function.source, made)

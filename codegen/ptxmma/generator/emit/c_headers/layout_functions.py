"""The C functions of a layout: its formula, the inverse, and what goes with its kind."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

from ptxmma.catalog.expressions import gather
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit.c_headers.declarations import Function, stem
from ptxmma.generator.emit.c_headers.layout_words import result
from ptxmma.model import Cases, Layout, RegisterLayout, formula
from ptxmma.model.bitmap import BitMap


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

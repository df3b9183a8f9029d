"""The C header of block scaling: numbers to narrow elements with scale factors and back, and scale factors in registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import ElementType, Layout, Spec


class _Number(NamedTuple):
    """A type with the constants of its code."""

    name: str
    entry: ElementType
    largest: int  # bits of the largest finite number
    value: str  # the largest finite number in C
    emax: int
    every: int  # bits of exponent and mantissa
    sign: int  # the sign's bit; 0: none


class _Register(NamedTuple):
    """The layout of scale factors in registers."""

    stem: str
    line: str  # "row" or "col"
    layout: Layout
    byte_ids: str
    thread_ids: str
    legal: str  # condition in C


def emit(catalog: Catalog) -> Iterator[Output]:
    """``block_scaling.h``, where the spec has block-scaled formats."""
    spec = catalog.database.spec
    if not spec.block_formats:
        return
    elements = {entry.element: _number(spec, entry.element) for entry in spec.block_formats}
    scales = {entry.scale: _number(spec, entry.scale) for entry in spec.block_formats}
    registers = [_register(layout) for layout in catalog.database.layouts if layout.kind == "scale"]
    text = render(
        "c/block_scaling.h.jinja",
        c=c_text,
        spec=spec,
        elements=elements.values(),
        scales=scales.values(),
        pairs=[(elements[element], scales[scale]) for element, scale in dict.fromkeys((e.element, e.scale) for e in spec.block_formats)],
        families=dict.fromkeys(c_text.identifier(register.layout.family) for register in registers),
        registers=registers,
    )
    yield Output("generated/include/ptxmma/block_scaling.h", banner("//", catalog, ["spec/block_scaling.yaml", "spec/types.yaml"]) + text)


def _number(spec: Spec, name: str) -> _Number:
    entry = layouts.element_type(spec, name)
    width = entry.exponent + entry.mantissa
    return _Number(
        c_text.identifier(name),
        entry,
        entry.largest_code,
        f"{entry.largest!r}f",
        entry.emax,
        (1 << width) - 1,
        1 << width if entry.sign else 0,
    )


def _register(layout: Layout) -> _Register:
    line, *_ = layout.axes
    byte_ids, thread_ids = (
        [number * layout.steps.get(axis, 1) for number in range(layout.axes[axis])] for axis in ("byte_id", "thread_id")
    )
    return _Register(
        f"ptxmma_{c_text.identifier(layout.name)}",
        line,
        layout,
        ", ".join(map(str, byte_ids)),
        ", ".join(map(str, thread_ids)),
        f"{_any('byte_id', byte_ids)} && {_any('thread_id', thread_ids)}",
    )


def _any(name: str, values: Iterable[int]) -> str:
    return f"({' || '.join(f'{name} == {value}' for value in values)})"

"""Addresses: their bytes are numbers that memory can have, and something says where each row begins."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.roles import ROLES
from ptxmma.catalog.variants import Variant, representatives
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext
from ptxmma.model import operand_names
from ptxmma.model.formula import FormulaError

_BYTE = 8


def problems(context: RuleContext) -> Iterator[Problem]:
    """Addresses whose rows have no place or no length, and numbers of bytes that memory cannot have; each once for its operand."""
    for index, entry in enumerate(context.spec.instructions):
        seen: set[object] = set()
        for number, form in enumerate(entry.forms):
            names = dict.fromkeys(name for text in entry.operands.get(form.operands, ()) for name in operand_names(text))
            addresses = [name for name in names if ROLES[entry.operand_kinds[name].kind].layout_kind == "address"]
            strides = {entry.operand_kinds[name].of for name in names if entry.operand_kinds[name].kind == "stride"}
            for variant in representatives(entry, number) if addresses else ():
                for name in addresses:
                    if (key := context.keys.shared(variant, name)) not in seen:
                        seen.add(key)
                        place = ("instructions", index, "operand_kinds", name)
                        yield from _address(context, variant, name, place, strided=entry.operand_kinds[name].of in strides)


def _address(context: RuleContext, variant: Variant, name: str, place: Place, *, strided: bool) -> Iterator[Problem]:
    """The address of a whole matrix goes with a stride, the address of a row with the bytes of the row."""
    spec, entry = context.spec, variant.instruction.operand_kinds[name]
    rows, matrix = context.keys.plan(variant, name), context.keys.plan(variant, entry.of)
    if matrix is None:
        yield from context.once(context.at(*place, "of"), f"{name!r} is the address of {entry.of!r}, which has no layout")
        return
    numbers = layouts.variables(spec, variant, name) | {"thread_bytes": layouts.thread_bytes(matrix)}
    alignment = yield from _positive(context, variant, entry.alignment, numbers, (*place, "alignment"))
    if alignment and alignment & (alignment - 1):
        message = f"the alignment of {variant.canonical} is {alignment} bytes; it must be a power of two"
        yield from context.once(context.at(*place, "alignment"), message)
    if rows is None and not strided:
        message = f"no entry of register_layouts covers {name!r} of {variant.canonical}; add one, or an operand of the kind stride"
        yield from context.once(context.at(*place), message)
    elif rows is not None and not entry.row_bytes:
        message = f"{name!r} is the address of a row of {entry.of!r}: say row_bytes: the bytes of the row that begins there"
        yield from context.once(context.at(*place), message)
    elif rows is not None:
        row = yield from _positive(context, variant, entry.row_bytes, numbers, (*place, "row_bytes"))
        elements = _places(context, variant, entry.of, matrix) // _places(context, variant, name, rows)
        bits = yield from _positive(context, variant, entry.memory_bits or "bits", numbers, (*place, "memory_bits"))
        needed = -(-elements * bits // _BYTE)
        if 0 < row < needed:
            message = f"a row of {variant.canonical} has {row} bytes here; its {elements} elements fill {needed}"
            yield from context.once(context.at(*place, "row_bytes"), message)


def _places(context: RuleContext, variant: Variant, name: str, plan: Plan) -> int:
    """The places of a layout, for the numbers of this variant where an extent ranges."""
    axes = context.spec.register_layouts[plan.entry].axes
    return math.prod(layouts.sizes(axes, layouts.variables(context.spec, variant, name)).values())


def _positive(context: RuleContext, variant: Variant, text: str, numbers: Mapping[str, int], place: Place) -> Generator[Problem, None, int]:
    """The value of a formula for a number of bytes or bits; 0 after a problem with it."""
    position = context.at(*place)
    try:
        value = layouts.size(text, numbers)
    except FormulaError as error:
        yield from context.once(position._replace(column=position.column + error.column), f"{variant.canonical}: {error}")
        return 0
    if value < 1:
        yield from context.once(position, f"{place[-1]} is {value} for {variant.canonical}; it must be at least 1")
    return max(value, 0)

"""Accumulators of products from tensor memory to registers, in C++: the loads and where elements of D arrive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import front_name, header, identifier
from ptxmma.catalog.names.product_family import ProductFamily
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text
from ptxmma.model import Space, Spec

_LOAD = "tensor-load"
#: The axes of what the loads that serve read: lanes and columns of the memory.
_AXES = ("row", "col")
#: The parameter of the template for how often a load is repeated.
_TIMES = "times"


def values(catalog: Catalog, memory: Space, families: Sequence[ProductFamily]) -> dict[str, Any] | None:
    """The values for the template of accumulators of families whose D lies in a memory; None where no loads of it serve."""
    spec = catalog.database.spec
    every = catalog.all(lambda entry: entry.operation == _LOAD)
    loads = [load for load in every if spec.tensor_memory_of(load.variant.facts) is memory and _serves(load)]
    ways = [(half, packed) for half in (False, True) for packed in (False, True)]
    chosen = [way for half, packed in ways if (way := _load(memory, families, loads, half=half, packed=packed))]
    if len(chosen) < len(ways):
        return None
    return {
        "memory": memory,
        "products": [family.header for family in families],
        "loads_header": header(loads[0]),
        "front": front_name(loads[0].variant)[0],
        "wait": _wait(spec, loads[0]),
        "registers": _registers(spec, families, memory),
        "loads": chosen,
        "threads": memory.most("lane"),
        "lanes": memory.partition["lane"],
        "half": memory.partition["lane"] // 2,
        "cell": memory.cell,
    }


def _serves(load: Instruction) -> bool:
    """Return whether a load reads lanes and columns, and is the widest of loads that repeat one of their sizes by powers of two."""
    layout, ranging = _read(load).layout, list(load.variant.ranging.values())
    if layout is None or tuple(layout.axes) != _AXES or load.extents != load.variant.largest:
        return False
    return len(ranging) == 1 and ranging[0] == [1 << power for power in range(len(ranging[0]))]


def _read(load: Instruction) -> Operand:
    """The registers that a load writes."""
    return load.forms[0].operands[0]


def _wait(spec: Spec, load: Instruction) -> str:
    """The function that waits for loads; empty where they are complete when they are executed."""
    steps = (step for protocol in spec.protocols if load.family in protocol.families for step in protocol.steps)
    names = {step.instruction for step in steps if step.role == "wait-loads"}
    return next((identifier(entry.stem) for entry in spec.instructions if entry.name in names), "")


def _registers(spec: Spec, families: Sequence[ProductFamily], memory: Space) -> dict[str, str]:
    """The C++ type of a register of D, by its element type; narrow elements share one."""
    names = dict.fromkeys(name for family in families for row in family.rules.types for name in row.dtype)
    elements = {element.name: element for element in spec.types.elements}
    word = next(entry.c_type for entry in spec.types.registers if entry.bits == memory.cell)
    return {identifier(name): elements[name].c_type if elements[name].bits == memory.cell else word for name in names}


def _load(
    memory: Space, families: Sequence[ProductFamily], loads: Sequence[Instruction], *, half: bool, packed: bool
) -> dict[str, Any] | None:
    """The widest load of all lanes of a warp, or half of them, packed or not, that D of every N is a multiple of."""
    spans = [span for family in families for row in family.rules.shapes for span in row.n]
    step = math.gcd(*(number for span in spans for number in (span.first, span.step)))
    lanes = memory.partition["lane"] // (2 if half else 1)
    fitting = [
        entry for entry in loads if _axis(entry, "row") == lanes and (_bits(entry) < memory.cell) == packed and step % _columns(entry) == 0
    ]
    if not fitting:
        return None
    widest = max(fitting, key=lambda entry: (_columns(entry), _times(entry)))
    _, (element, *_) = front_name(widest.variant)
    r = _read(widest)
    assert r.layout is not None
    return {
        "half": "true" if half else "false",
        "packed": "true" if packed else "false",
        "layout": c_text.identifier(r.layout.name),
        "columns": _columns(widest),
        "registers": r.registers // _times(widest),
        "most": _times(widest),
        "shape": [_TIMES if name in widest.variant.ranging else size for name, size in widest.variant.sizes.items()],
        "type": element,
    }


def _times(entry: Instruction) -> int:
    """The number of times that the load repeats the smallest one."""
    return next(entry.extents[name] for name in entry.variant.ranging)


def _columns(entry: Instruction) -> int:
    """The columns of tensor memory that the load reads where it does so once."""
    return _axis(entry, "col") // _times(entry)


def _axis(entry: Instruction, axis: str) -> int:
    layout = _read(entry).layout
    return layout.axes[axis] if layout else 0


def _bits(entry: Instruction) -> int:
    layout = _read(entry).layout
    return layout.bits if layout else 0

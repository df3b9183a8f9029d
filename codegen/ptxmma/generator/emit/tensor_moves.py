"""Accumulators of ``tcgen05.mma`` from tensor memory to registers, in C++: the loads and where elements of D arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ptxmma.catalog import resolution
from ptxmma.catalog.cplusplus import front_name, identifier
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import Spec, TensorMemory, TensorProducts

_SOURCES = ("spec/tensor_memory.yaml", "spec/tensor_products.yaml", "spec/instructions")
_PATH = "generated/include/ptxmma/cuda/tensor_moves.cuh"
_LOAD = "tensor-load"


def emit(catalog: Catalog) -> Iterator[Output]:
    """``cuda/tensor_moves.cuh``, where the spec has products in a tensor memory, and loads of it."""
    spec = catalog.database.spec
    product = next(catalog.all(lambda instruction: instruction.operation == resolution.OPERATION), None)
    memory = spec.tensor_memory_of(product.variant.facts) if product else None
    loads = [entry for entry in catalog.all(lambda each: each.operation == _LOAD) if spec.tensor_memory_of(entry.variant.facts) is memory]
    if spec.tensor_products is None or memory is None or not loads:
        return
    values = {
        "registers": _registers(spec, spec.tensor_products, memory),
        "loads": [
            _load(memory, spec.tensor_products, loads, half=half, packed=packed) for half in (False, True) for packed in (False, True)
        ],
        "threads": memory.lanes,
        "lanes": memory.partition,
        "half": memory.partition // 2,
        "cell": memory.cell,
    }
    yield Output(_PATH, render("cuda/tensor_moves.cuh.jinja", banner=banner("//", catalog, _SOURCES), **values))


def _registers(spec: Spec, products: TensorProducts, memory: TensorMemory) -> dict[str, str]:
    """The C++ type of a register of D, by its element type; narrow elements share one."""
    names = dict.fromkeys(name for row in products.types for name in row.dtype)
    elements = {element.name: element for element in spec.types.elements}
    word = next(entry.c_type for entry in spec.types.registers if entry.bits == memory.cell)
    return {identifier(name): elements[name].c_type if elements[name].bits == memory.cell else word for name in names}


def _load(memory: TensorMemory, products: TensorProducts, loads: Sequence[Instruction], *, half: bool, packed: bool) -> dict[str, Any]:
    """The widest load of all lanes of a warp, or half of them, packed or not, that D of every N is a multiple of."""
    step = math.gcd(*(number for row in products.shapes for span in row.n for number in (span.first, span.step)))
    lanes = memory.partition // (2 if half else 1)
    fitting = [
        entry
        for entry in loads
        if entry.extents["lanes"] == lanes and (_element_bits(entry) < memory.cell) == packed and step % _columns(entry) == 0
    ]
    widest = max(fitting, key=lambda entry: (entry.extents["span"], entry.extents["n"]))
    _, (element, *_) = front_name(widest.variant)
    r = widest.forms[0].operands[0]
    assert r.layout is not None
    return {
        "half": "true" if half else "false",
        "packed": "true" if packed else "false",
        "layout": c_text.identifier(r.layout.name),
        "columns": _columns(widest),
        "registers": r.registers // widest.extents["n"],
        "most": widest.extents["n"],
        "shape": (lanes, widest.extents["span"]),
        "type": element,
    }


def _columns(entry: Instruction) -> int:
    """The columns of tensor memory that the load reads where it does so once."""
    return entry.extents["span"] // _element_bits(entry)


def _element_bits(entry: Instruction) -> int:
    layout = entry.forms[0].operands[0].layout
    return layout.bits if layout else 0

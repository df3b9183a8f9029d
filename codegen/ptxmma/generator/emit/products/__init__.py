"""Products whose shapes and types an instruction descriptor says: a C header of their rules, and C++ types with their calls.

The families of instruction descriptors are the spec's; each has headers of its own, and what they share is in ``cuda/tensor_products.cuh``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names.cplusplus import identifier
from ptxmma.catalog.names.product_family import ProductFamily, families, type_of_product
from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.generator.emit.products import calls, header, moves, tiles
from ptxmma.generator.emit.products.facts import coordinates, known_facts
from ptxmma.generator.emit.templating import banner, render
from ptxmma.generator.emit.tensor_functions import module
from ptxmma.model import Space

_FOLDER = "generated/include/ptxmma"
_RULES = ("spec/tensor_products.yaml", "spec/tensor_memory.yaml", "spec/descriptors.yaml")
_CALLS = ("spec/instructions", "spec/tensor_products.yaml", "spec/descriptors.yaml")
_MOVES = ("spec/tensor_memory.yaml", "spec/tensor_products.yaml", "spec/instructions")


def emit(catalog: Catalog) -> Iterator[Output]:
    """``*_products.h``, ``cuda/*_product.cuh``, ``cuda/*_options.cuh`` and ``cuda/*_moves.cuh`` of each family and each memory of D."""
    every = [family for family in families(catalog) if family.callable and family.layouts]
    options = {family.stem: calls.Options(catalog.database.spec, family, known_facts(family)) for family in every}
    if every:
        yield _file(catalog, "cuda/tensor_products.cuh", "cuda/tensor_products.cuh", _CALLS, **_shared(catalog, [*options.values()]))
    for family in every:
        yield from _family(catalog, family, options[family.stem])
    for memory in catalog.database.spec.tensor_memories:
        own = [family for family in every if family.memory is memory and "bit" not in coordinates(family)]  # a cell has one element of D
        if own and (values := moves.values(catalog, memory, own)):
            yield _file(catalog, f"cuda/{memory.name}_moves.cuh", "cuda/tensor_moves.cuh", _MOVES, **values)


def _family(catalog: Catalog, family: ProductFamily, options: calls.Options) -> Iterator[Output]:
    """The headers of a family."""
    spec, facts = catalog.database.spec, known_facts(family)
    assert family.memory is not None
    values: dict[str, Any] = {
        "c": c_text,
        "spec": spec,
        "family": family,
        "f": family.stem,
        "F": c_text.macro(family.stem),
        "tag": identifier,
        "hints": _hinted(catalog),
        "example": type_of_product(family.callable[0]),
        "memory": family.memory,
        "memory_header": f"{module(family.memory)}.h",
        "scale_columns": _scale_columns(family.memory),
        **header.values(spec, family, facts),
        **tiles.values(spec, family, facts),
    }
    headers = {opcode.variant.instruction.name: family.calls_header(opcode) for opcode in family.callable}
    values |= {"calls_header": headers, "first": next(iter(headers))}
    yield _file(catalog, f"{family.stem}_products.h", "c/products.h", _RULES, **values)
    yield _file(catalog, family.header, "cuda/product.cuh", _RULES, **values)
    yield _file(catalog, f"cuda/{family.stem}_options.cuh", "cuda/product_options.cuh", _CALLS, **values, options=options.values())
    for name, path in headers.items():
        yield _file(catalog, path, "cuda/product_calls.cuh", _CALLS, **values, call=calls.values(family, name, facts))


def _scale_columns(memory: Space) -> dict[str, str]:
    """For A and B, the columns that the scale factors in one cell of every line take, in C: the weight of the blocks beyond a cell.

    Empty where the factors of a product have one cell each: then no step of K begins in another column.
    """
    scales = [(layout.matrix, term) for layout in memory.layouts if layout.operand == "tensor-scales" for term in layout.terms]
    # The first layout of a matrix is the usual one; products in C have no other.
    columns = {matrix: to_c(term.weight) for matrix, term in reversed(scales) if term.coordinate == "column" and term.added}
    return columns if columns.keys() == {"a", "b"} else {}


def _shared(catalog: Catalog, options: Sequence[calls.Options]) -> dict[str, Any]:
    """The values for what all families share: the tags of options, which are in ``config.cuh`` if other instructions have them, too."""
    spec = catalog.database.spec
    operands = (kind for entry in spec.instructions for kind in entry.operand_kinds.values())
    known = {f"negate_{identifier(operand.of)}" for operand in operands if operand.kind == "negation"}
    flags = {name: title for each in options for name, title in each.flags.items()}
    return {
        "flags": {name: title for name, title in flags.items() if name not in known},
        "elsewhere": [name for name in flags if name in known],
        "numbers": {name: title for each in options for name, title in each.numbers.items()},
        "tiles": spec.shared_memory is not None,
        "padded_maps": tiles.padded_maps(spec),
        "hints": _hinted(catalog),
    }


def _hinted(catalog: Catalog) -> bool:
    """Return whether there are hints: ``cuda/hints.cuh``."""
    return any(entry.hints for entry in catalog.database.spec.instructions)


def _file(catalog: Catalog, path: str, template: str, sources: Sequence[str], **values: Any) -> Output:
    return Output(f"{_FOLDER}/{path}", banner("//", catalog, sources) + render(f"{template}.jinja", **values))

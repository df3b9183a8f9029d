"""C and CUDA headers that move matrices: sparse compression, and elements and metadata into registers and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.metadata import Metadata
from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.matrices import packing, sparse_matrices
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import Spec

_FOLDER = "generated/include/ptxmma"
#: Bytes that a thread loads at once.
_VECTOR = 16


def emit(catalog: Catalog) -> Iterator[Output]:
    """``status.h``, ``sparse.h``, ``cuda/sparse.cuh``, ``pack.h``, and for each family its ``_pack.h``."""
    spec = catalog.database.spec

    def file(path: str, template: str, source: str, **values: Any) -> Output:
        top = banner("//", catalog, [source])
        text = render(f"{template}.jinja", spec=spec, c=c_text, **values)
        return Output(f"{_FOLDER}/{path}", top + text)

    yield file("status.h", "c/status.h", "spec/spec.yaml")
    operands = _operands(catalog)
    described = catalog.all(lambda entry: bool(entry.metadata))
    metadata = {instruction.metadata.layout.name: instruction.metadata for instruction in described}
    pairs = {(id(one.sparsity), one.element_type): (one.sparsity, one.element) for one in operands if one.sparsity and one.element}
    kinds = sparse_matrices.kinds(spec, pairs.values())
    if kinds:
        chunk_sizes = sorted({kind.chunk_bytes for kind in kinds})
        yield file(
            "sparse.h",
            "c/sparse.h",
            "spec/sparsity.yaml",
            kinds=kinds,
            most_units=max(int(kind.constants["units"]) for kind in kinds),
            chunk_sizes=chunk_sizes,
            sizes=sorted({*chunk_sizes, *(kind.value_bytes for kind in kinds)}),
        )
        yield file("cuda/sparse.cuh", "cuda/sparse.cuh", "spec/sparsity.yaml", **_cuda(operands, kinds, metadata))

    elements = sorted({packing.element(operand) for operand in operands if _is_fragment(operand)})
    memory, words = sorted({one.memory for one in elements}), sorted({one.register for one in elements} | {32})
    yield file("pack.h", "c/pack.h", "spec/types.yaml", elements=elements, memory=memory, words=words)
    widths = _widths(catalog)
    for name, own in _families(operands, spec).items():
        fragments = packing.fragments(own, widths)
        yield file(
            _header(name),
            "c/family_pack.h",
            "spec/layouts",
            family=name,
            stem=c_text.identifier(name),
            fragments=fragments,
            metadata=[packing.metadata(one) for one in metadata.values() if one.layout.family == name],
            follows_n=any(fragment.follows_n for fragment in fragments),
        )


def family_headers(catalog: Catalog) -> list[str]:
    """The headers with the matrices of a family: ``"mma_pack.h"``."""
    return [_header(name) for name in _families(_operands(catalog), catalog.database.spec)]


def _header(family: str) -> str:
    return f"{c_text.identifier(family)}_pack.h"


def _families(operands: Iterable[Operand], spec: Spec) -> dict[str, list[Operand]]:
    """The fragments of each family that multiplies; loads and stores move matrices themselves."""
    families: dict[str, list[Operand]] = {entry.family: [] for entry in spec.instructions if entry.operation == "multiply"}
    for operand in filter(_is_fragment, operands):
        if operand.layout is not None and operand.layout.family in families:
            families[operand.layout.family].append(operand)
    return {name: own for name, own in families.items() if own}


def _cuda(operands: list[Operand], kinds: list[sparse_matrices.Kind], metadata: dict[str, Metadata]) -> dict[str, Any]:
    """The values for ``cuda/sparse.cuh``: the kinds with the width of their elements in registers, and the metadata layouts."""
    widths = {(one.sparsity.name, one.element_type): one.bits for one in operands if one.sparsity}
    shown = [
        {
            "name": c_text.identifier(made.layout.name),
            "bits": made.layout.bits,
            "rows": made.rows,
            "chunks": made.chunks,
            "chunk_elements": pattern.chunk,
            "selectors": made.selectors,
            "threads": made.threads,
            "run": made.run,
            "padding": made.padding,
        }
        for made, pattern in ((packing.metadata(one), one.granularity) for one in metadata.values())
    ]
    described = [
        kind._asdict() | {"struct": f"kind_{kind.name.removeprefix('ptxmma_sparse_')}", "register_bits": widths[kind.pattern, kind.element]}
        for kind in kinds
    ]
    first = shown[0]
    alike = [kind["struct"] for kind in described if (kind["register_bits"], kind["chunk"]) == (first["bits"], first["chunk_elements"])]
    return {
        "kinds": described,
        "layouts": shown,
        "families": [c_text.identifier(name) for name in dict.fromkeys(one.layout.family for one in metadata.values())],
        "example_kind": alike[0],
        "vector": _VECTOR,
    }


def _is_fragment(operand: Operand) -> bool:
    return operand.layout is not None and operand.layout.kind == "fragment"


def _widths(catalog: Catalog) -> dict[str, set[int]]:
    """The n of the instructions that have a layout which grows with n, by the layout."""
    widths: dict[str, set[int]] = {}
    for instruction in catalog.all():
        for operand in instruction.operands:
            if operand.layout is not None:
                widths.setdefault(operand.layout.name, set()).update(instruction.extents[name] for name in instruction.variant.ranging)
    return widths


def _operands(catalog: Catalog) -> list[Operand]:
    """Every operand that an instruction has, each once; where an extent ranges, with its largest number."""
    operands: dict[int, Operand] = {}
    for instruction in catalog.all():
        variant = instruction.variant
        if variant.extents == variant.largest:
            operands.update((id(operand), operand) for operand in instruction.operands)
    return list(operands.values())

"""Compares tensor memory with CuTe, TVM, Triton and JAX.

That is: where operands lie in tensor memory, which cells the registers of loads and stores hold, and the sizes of products.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import (
    cute_loads,
    cute_tensor,
    headers,
    mosaic,
    mosaic_tensor,
    probe,
    product_shapes,
    register_loads,
    sources,
    tensor_cases,
    triton_compiler,
    triton_tensor,
    tvm_tensor,
)
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.recorded_tensor import Tensor
from ptxmma_proof.peers.register_loads import Loaded
from ptxmma_proof.peers.sources import Source
from ptxmma_proof.peers.tensor_cases import Verdict


def run(catalog: Catalog, given: Mapping[str, Source], date: str, nvcc: str = "nvcc") -> Findings:
    """Compare a catalog with CuTe's headers, with a checkout of TVM, and with the installed Triton and JAX.

    Raises:
        MissingPeerError: CUTLASS's headers, the compiler, Triton or JAX are not there.
        OSError: a checkout lacks a file.
        CompilerError: the compiler refuses the headers.
    """
    cutlass, tvm, triton, jax = headers.find(given), sources.checkout(given, "TVM"), triton_compiler.find(), mosaic.find()
    spec = catalog.database.spec
    memory = spec.tensor_memory_of({"name": "tcgen05.mma"})
    assert memory is not None
    assert spec.tensor_products is not None
    cases = [*cute_tensor.read(cutlass, nvcc), *tvm_tensor.read(tvm.folder), *triton_tensor.read(), *mosaic_tensor.read(catalog)]
    loaded = register_loads.compare(catalog, [*cute_loads.read(cutlass, nvcc), *triton_tensor.loads(), *triton_tensor.reductions()])
    allowed = [*product_shapes.cute(cutlass), *product_shapes.tvm(tvm.folder)]
    verdicts = tensor_cases.compare(memory, cases)
    totals = {
        "layouts": len({each.layout for each in verdicts if not each.wrong}),
        "definitions": len(verdicts),
        "places": sum(each.of for each in verdicts),
        "loads": len(loaded),
        "registers": sum(each.of for each in loaded),
        "shapes": len(allowed),
    }
    peers = [*(each.case.peer for each in verdicts), *(each.load.peer for each in loaded), *(each.peer for each in allowed)]
    sizes = [product_shapes.compare(spec.tensor_products, one) for one in allowed]
    differences = [*_places(verdicts), *_registers(loaded), *product_shapes.differences(sizes)]
    tools = (cutlass.tool(date), probe.tool(nvcc, date), triton.tool(date), jax.tool(date), tvm.tool(date))
    agreed = Tensor.agreeing(verdicts, loaded, sizes)
    return Findings(tools, Counter(peers), differences, [*_laid(catalog, verdicts, loaded)], totals, agreed)


def _places(verdicts: Sequence[Verdict]) -> Iterator[Difference]:
    for each in verdicts:
        if each.wrong:
            yield Difference(each.case.peer, each.case.subject, each.case.kind, each.theirs, each.ours, each.wrong, each.of)


def _registers(loaded: Sequence[Loaded]) -> Iterator[Difference]:
    for each in loaded:
        if each.wrong:
            yield Difference(each.load.peer, each.load.subject, register_loads.OPERAND, each.theirs, each.ours, each.wrong, each.of)


def _laid(catalog: Catalog, verdicts: Sequence[Verdict], loaded: Sequence[Loaded]) -> Iterator[witnesses.Laid]:
    """The peers that lay out each layout of tensor memory, and of the registers of loads and stores."""
    facts = {layout.name: digest.tensor_layout(layout) for layout in catalog.database.spec.tensor_layouts}
    facts |= {each.layout.name: digest.register_layout(catalog.database, each.layout) for each in loaded}
    agree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    differ: dict[str, list[str]] = defaultdict(list)
    definitions = [(each.layout, each.case.peer, each.case.subject, each.wrong) for each in verdicts]
    definitions += [(each.layout.name, each.load.peer, each.load.subject, each.wrong) for each in loaded]
    for layout, peer, subject, wrong in definitions:
        if wrong:
            differ[layout].append(subject)
        else:
            agree[layout][peer].append(subject)
    for layout, digested in facts.items():
        if agree[layout] or differ[layout]:
            by_peer = {peer: tuple(subjects) for peer, subjects in agree[layout].items()}
            yield witnesses.Laid(layout=layout, facts=digested, agree=by_peer, differ=tuple(differ[layout]))

"""Compares tensor memory with CuTe, TVM, Triton and JAX, and records what came of it.

That is: where operands lie in tensor memory, which cells the registers of loads and stores hold, and the sizes of products.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import peers
from ptxmma_proof.peers import (
    compared,
    cute_loads,
    cute_tensor,
    explanations,
    installed,
    mosaic_tensor,
    product_shapes,
    register_loads,
    tensor_cases,
    triton_tensor,
    tvm_tensor,
)
from ptxmma_proof.peers.explanations import Explained
from ptxmma_proof.peers.product_shapes import Sizes
from ptxmma_proof.peers.register_loads import Loaded
from ptxmma_proof.peers.tensor_cases import Verdict

#: The files of TVM that are executed.
_TVM_FILES = (tvm_tensor.LAYOUTS, tvm_tensor.SCALES, tvm_tensor.COPIES, product_shapes.SHAPES)
#: The operand of a difference about sizes.
_SIZES = "sizes"


class Outcome(NamedTuple):
    """The outcome of a comparison."""

    catalog: Catalog
    verdicts: list[Verdict]
    loaded: list[Loaded]
    shapes: int
    differences: list[Explained]
    tools: tuple[Tool, ...]
    date: str

    @property
    def agrees(self) -> bool:
        """True if every difference is explained."""
        return not explanations.unexplained(self.differences)

    def words(self) -> Iterator[str]:
        """The comparison in words."""
        yield from explanations.words(self.differences)
        totals = ", ".join(f"{count:,} {name}" for name, count in self._totals().items())
        yield f"{totals}; {explanations.unexplained(self.differences)} unexplained"

    def _totals(self) -> dict[str, int]:
        return {
            "layouts": len({each.layout for each in self.verdicts if not each.wrong}),
            "definitions": len(self.verdicts),
            "places": sum(each.of for each in self.verdicts),
            "loads": len(self.loaded),
            "registers": sum(each.of for each in self.loaded),
            "shapes": self.shapes,
            "differences": len(self.differences),
        }

    @property
    def record(self) -> list[Line]:
        """The comparison as lines of ``spec/evidence/tensor_memory.jsonl``."""
        run = witnesses.Run(date=self.date, spec=self.catalog.database.spec.version, tools=self.tools, totals=self._totals())
        return [run, *self._laid(), *explanations.lines(self.differences)]

    def _laid(self) -> Iterator[witnesses.Laid]:
        """The peers that lay out each layout of tensor memory, and of the registers of loads and stores."""
        facts = {layout.name: digest.tensor_layout(layout) for layout in self.catalog.database.spec.tensor_layouts}
        facts |= {each.layout.name: digest.register_layout(self.catalog.database, each.layout) for each in self.loaded}
        agree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        differ: dict[str, list[str]] = defaultdict(list)
        definitions = [(each.layout, each.case.peer, each.case.subject, each.wrong) for each in self.verdicts]
        definitions += [(each.layout.name, each.load.peer, each.load.subject, each.wrong) for each in self.loaded]
        for layout, peer, subject, wrong in definitions:
            if wrong:
                differ[layout].append(subject)
            else:
                agree[layout][peer].append(subject)
        for layout, digested in facts.items():
            if agree[layout] or differ[layout]:
                by_peer = {peer: tuple(subjects) for peer, subjects in agree[layout].items()}
                yield witnesses.Laid(layout=layout, facts=digested, agree=by_peer, differ=tuple(differ[layout]))


def run(catalog: Catalog, date: str, checkout: Path, nvcc: str = "nvcc") -> Outcome:
    """Compare a catalog with CuTe's headers, with a checkout of TVM, and with the installed Triton and JAX.

    Raises:
        MissingPeerError: CUTLASS's headers, the compiler, TVM's files, Triton or JAX are not there.
        CompilerError: the compiler refuses the headers.
    """
    here = installed.find()
    spec = catalog.database.spec
    memory = spec.tensor_memory_of({"name": "tcgen05.mma"})
    assert memory is not None
    assert spec.tensor_products is not None
    try:
        cases = [*cute_tensor.read(here.cutlass, nvcc), *tvm_tensor.read(checkout), *triton_tensor.read(), *mosaic_tensor.read(catalog)]
        loaded = register_loads.compare(
            catalog, [*cute_loads.read(here.cutlass, nvcc), *triton_tensor.loads(), *triton_tensor.reductions()]
        )
        allowed = [*product_shapes.cute(here.cutlass), *product_shapes.tvm(checkout)]
    except OSError as error:
        raise peers.MissingPeerError(str(error)) from None
    verdicts = tensor_cases.compare(memory, cases)
    differences = [
        compared.Difference(each.case.peer, each.case.subject, each.case.kind, each.theirs, each.ours, each.wrong, each.of)
        for each in verdicts
        if each.wrong
    ] + [
        compared.Difference(each.load.peer, each.load.subject, register_loads.OPERAND, each.theirs, each.ours, each.wrong, each.of)
        for each in loaded
        if each.wrong
    ]
    for one in allowed:
        difference = product_shapes.compare(spec.tensor_products, one)
        wrong = len(difference.only_theirs) + len(difference.only_ours)
        if wrong:
            said = _listed(difference.only_theirs), _listed(difference.only_ours)
            of = len(one.sizes | difference.only_ours)
            differences.append(compared.Difference(one.peer, one.subject, _SIZES, *said, wrong, of))
    tools = (*here.tools(nvcc, date), _tvm(checkout, date))
    return Outcome(catalog, verdicts, loaded, len(allowed), explanations.explain(differences), tools, date)


def _listed(sizes: Sizes) -> str:
    """Sizes in words: ``M = 128 with N = 8, 24, 40, … (16)``; ``none`` without any."""
    by_m: dict[int, list[int]] = defaultdict(list)
    for m, n in sorted(sizes):
        by_m[m].append(n)
    few = 3
    texts = []
    for m, columns in by_m.items():
        shown = ", ".join(map(str, columns[:few])) + (f", … ({len(columns)} of them)" if len(columns) > few else "")
        texts.append(f"M = {m} with N = {shown}")
    return "alone allows " + " and ".join(texts) if texts else "allows no more"


def _tvm(checkout: Path, date: str) -> Tool:
    total = hashlib.sha256(b"".join((checkout / file).read_bytes() for file in _TVM_FILES)).hexdigest()
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout
    return Tool(kind="peer", name="TVM", version=commit.strip(), sha256=total, date=date)

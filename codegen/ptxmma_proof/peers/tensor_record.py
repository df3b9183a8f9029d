"""Compares the layouts of tensor memory, and the sizes of products, with CuTe and TVM, and records what came of it."""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog import digest, witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.witnesses import Line, Tool
from ptxmma_proof import peers
from ptxmma_proof.peers import compared, cute_tensor, headers, probe, product_shapes, tensor_cases, tvm_tensor
from ptxmma_proof.peers.product_shapes import Sizes
from ptxmma_proof.peers.tensor_cases import Verdict

#: The files of TVM that are executed.
_TVM_FILES = (tvm_tensor.LAYOUTS, tvm_tensor.SCALES, product_shapes.SHAPES)
#: The operand of a difference about sizes.
_SIZES = "sizes"


class Outcome(NamedTuple):
    """The outcome of a comparison."""

    catalog: Catalog
    verdicts: list[Verdict]
    shapes: int
    differences: list[compared.Difference]
    why: list[str]  # of each difference; "" without an explanation
    tools: tuple[Tool, ...]
    date: str

    @property
    def agrees(self) -> bool:
        """Whether every difference is explained."""
        return all(self.why)

    def words(self) -> Iterator[str]:
        """The comparison in words."""
        for entry, reason in zip(self.differences, self.why, strict=True):
            yield f"{entry.peer}, {entry.subject}, {entry.operand}: {entry.theirs}; {entry.ours} ({entry.places} of {entry.of})"
            yield f"    explained: {reason}" if reason else "    NOT EXPLAINED"
        totals = self._totals()
        yield f"{', '.join(f'{count:,} {name}' for name, count in totals.items())}; {self.why.count('')} unexplained"

    def _totals(self) -> dict[str, int]:
        return {
            "layouts": len({each.layout for each in self.verdicts if not each.wrong}),
            "definitions": len(self.verdicts),
            "places": sum(each.of for each in self.verdicts),
            "shapes": self.shapes,
            "differences": len(self.differences),
        }

    @property
    def record(self) -> list[Line]:
        """The comparison as lines of ``spec/evidence/tensor_memory.jsonl``."""
        agree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        differ: dict[str, list[str]] = defaultdict(list)
        for each in self.verdicts:
            if each.wrong:
                differ[each.layout].append(each.case.subject)
            else:
                agree[each.layout][each.case.peer].append(each.case.subject)
        memory = self.catalog.database.spec.tensor_memory
        assert memory is not None
        lines: list[Line] = [
            witnesses.Run(date=self.date, spec=self.catalog.database.spec.version, tools=self.tools, totals=self._totals())
        ]
        for layout in memory.layouts:
            if agree[layout.name] or differ[layout.name]:
                by_peer = {peer: tuple(subjects) for peer, subjects in agree[layout.name].items()}
                facts = digest.tensor_layout(layout)
                lines.append(witnesses.Laid(layout=layout.name, facts=facts, agree=by_peer, differ=tuple(differ[layout.name])))
        groups: dict[tuple[str, str, str, str, str], list[str]] = {}
        for entry, why in zip(self.differences, self.why, strict=True):
            groups.setdefault((entry.peer, entry.operand, entry.theirs, entry.ours, why), []).append(entry.subject)
        for (peer, operand, theirs, ours, why), subjects in groups.items():
            named = tuple(f"{peer}: {subject}" for subject in subjects)
            lines.append(witnesses.Difference(subjects=named, operand=operand, theirs=theirs, ours=ours, why=why))
        return lines


def run(catalog: Catalog, date: str, checkout: Path, nvcc: str = "nvcc") -> Outcome:
    """Compare a catalog with CuTe's headers and with a checkout of TVM.

    Raises:
        MissingPeerError: CUTLASS's headers, the compiler or TVM's files are not there.
        CompilerError: the compiler refuses the headers.
    """
    cutlass = headers.installed()
    if cutlass is None:
        raise peers.MissingPeerError(f"CUTLASS's headers are not installed: pip install --no-deps {headers.PACKAGE}")
    spec = catalog.database.spec
    assert spec.tensor_memory is not None
    assert spec.tensor_products is not None
    try:
        cases = [*cute_tensor.read(cutlass, nvcc), *tvm_tensor.read(checkout)]
        allowed = [*product_shapes.cute(cutlass), *product_shapes.tvm(checkout)]
    except OSError as error:
        raise peers.MissingPeerError(str(error)) from None
    verdicts = tensor_cases.compare(spec.tensor_memory, cases)
    differences = [
        compared.Difference(each.case.peer, each.case.subject, each.case.kind, each.theirs, each.ours, each.wrong, each.of)
        for each in verdicts
        if each.wrong
    ]
    for one in allowed:
        difference = product_shapes.compare(spec.tensor_products, one)
        wrong = len(difference.only_theirs) + len(difference.only_ours)
        if wrong:
            said = _listed(difference.only_theirs), _listed(difference.only_ours)
            of = len(one.sizes | difference.only_ours)
            differences.append(compared.Difference(one.peer, one.subject, _SIZES, *said, wrong, of))
    written = peers.explanations()
    why = [next((one.why for one in written if one.speaks_of(entry)), "") for entry in differences]
    return Outcome(catalog, verdicts, len(allowed), differences, why, _tools(cutlass, checkout, nvcc, date), date)


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


def _tools(cutlass: headers.Cutlass, checkout: Path, nvcc: str, date: str) -> tuple[Tool, ...]:
    total = hashlib.sha256(b"".join((checkout / file).read_bytes() for file in _TVM_FILES)).hexdigest()
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout
    return (
        Tool(kind="peer", name=headers.PACKAGE, version=cutlass.version, sha256=cutlass.digest(), date=date),
        Tool(kind="compiler", name=f"compiler for {headers.PACKAGE}", version=probe.version(nvcc), date=date),
        Tool(kind="peer", name="TVM", version=commit.strip(), sha256=total, date=date),
    )

"""Compares descriptors with CuTe, Triton and JAX, and records what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import peers
from ptxmma_proof.peers import cute_descriptors, installed, mosaic_descriptors, triton_descriptors
from ptxmma_proof.peers.descriptor_words import Words


class Outcome(NamedTuple):
    """The outcome of a comparison."""

    catalog: Catalog
    answers: list[Words]
    tools: tuple[Tool, ...]
    date: str

    @property
    def agrees(self) -> bool:
        """True if all peers say the same everywhere."""
        return not any(each.differing for each in self.answers)

    def words(self) -> Iterator[str]:
        """The comparison in words."""
        for each in self.answers:
            theirs, ours, question = next(iter(each.differing), (0, 0, ""))
            said = f"; {len(each.differing)} differ: {question} is {theirs:#x}, ours {ours:#x}" if each.differing else ""
            yield f"{each.peer}, {each.format}: {each.subject}, {len(each.said):,} compared{said}"

    @property
    def record(self) -> list[Line]:
        """The comparison as lines of ``spec/evidence/descriptors.jsonl``."""
        agree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        differ: dict[str, list[str]] = defaultdict(list)
        for each in self.answers:
            (differ[each.format] if each.differing else agree[each.format][each.peer]).append(each.subject)
        spec = self.catalog.database.spec
        totals = {"definitions": len(self.answers), "compared": sum(len(each.said) for each in self.answers)}
        totals["differences"] = sum(len(each.differing) for each in self.answers)
        lines: list[Line] = [witnesses.Run(date=self.date, spec=spec.version, tools=self.tools, totals=totals)]
        for format in spec.descriptors:
            if agree[format.name] or differ[format.name]:
                theirs = {peer: tuple(subjects) for peer, subjects in agree[format.name].items()}
                facts = digest.descriptor_format(format)
                lines.append(witnesses.Laid(layout=format.name, facts=facts, agree=theirs, differ=tuple(differ[format.name])))
        return lines


def run(catalog: Catalog, date: str, nvcc: str = "nvcc") -> Outcome:
    """Compare the descriptors of a catalog with CuTe's headers, and with the installed Triton and JAX.

    Raises:
        MissingPeerError: CUTLASS's headers, the compiler, Triton or JAX are not there.
        CompilerError: the compiler refuses the headers.
    """
    here = installed.find()
    try:
        answers = cute_descriptors.compare(catalog, here.cutlass, nvcc)
    except FileNotFoundError as error:
        raise peers.MissingPeerError(str(error)) from None
    answers += [*triton_descriptors.compare(catalog), *mosaic_descriptors.compare(catalog)]
    return Outcome(catalog, answers, here.tools(nvcc, date), date)

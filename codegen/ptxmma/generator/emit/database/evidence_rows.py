"""The tables of the evidence for instructions, layouts and errata, from its summary."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.database.sql_tables import Table, table

VariantId = Annotated[int, Meta(extra={"key": True, "references": "variants"})]


class Witness(msgspec.Struct):
    """The programs, chips and projects that were asked."""

    name: Annotated[str, Meta(description="'CUDA 13.5', 'NVIDIA H200', 'nvidia-cutlass'", extra={"key": True})]
    kind: Annotated[str, Meta(description="'assembler', 'chip', 'peer' or 'compiler'")]
    version: str
    sha256: Annotated[str, Meta(description="of the assembler's program or the peer's headers")]
    date: Annotated[str, Meta(description="of the run")]


class AssemblerAnswer(msgspec.Struct):
    """Variants about which all assemblers agree share an answer."""

    id: Annotated[int, Meta(extra={"key": True})]
    cuda: Annotated[str, Meta(description="release", extra={"key": True})]
    target: Annotated[str, Meta(description="accepted there, in every operand form", extra={"key": True})]


class Evidence(msgspec.Struct):
    """The answers of assemblers about each variant."""

    variant: VariantId
    assembled: Annotated[int | None, Meta(description="id of assembler_answers; NULL: no assembler was asked")]
    stale: Annotated[str, Meta(description="witnesses since whose answer a fact has changed: 'assembler silicon'")]


class Execution(msgspec.Struct):
    """The executions of each variant on chips."""

    variant: VariantId
    chip: Annotated[str, Meta(extra={"key": True, "references": "witnesses"})]
    launches: int
    wrong: Annotated[int, Meta(description="launches with a wrong element")]
    machine: Annotated[str, Meta(description="matrix instructions of the chip: '2 HMMA.16816.F32'; 'none': ordinary code")]
    native: Annotated[bool | None, Meta(description="whether it is one matrix instruction of the chip; NULL without matrices")]


class PeerAtom(msgspec.Struct):
    """Definitions of other projects."""

    variant: VariantId
    atom: Annotated[str, Meta(description="CuTe's name", extra={"key": True})]
    agrees: Annotated[bool, Meta(description="whether all its layouts are ours")]


class LlvmIntrinsic(msgspec.Struct):
    """LLVM's intrinsics of each variant, and what its optimiser may assume of them."""

    variant: VariantId
    intrinsic: Annotated[str, Meta(description="'llvm.nvvm.mma.m16n8k8.row.col.tf32'", extra={"key": True})]
    convergent: Annotated[bool, Meta(description="whether it stays in its control flow, since threads execute it together")]
    memory: Annotated[str, Meta(description="LLVM's attribute: 'none', 'argmem: readwrite'; empty for any memory")]
    immediate_arguments: Annotated[str, Meta(description="arguments that must be constants, from 0: '7 8'")]


class LayoutLaunch(msgspec.Struct):
    """The number of comparisons of each layout with a chip."""

    layout: Annotated[str, Meta(extra={"key": True, "references": "layouts"})]
    launches: Annotated[int, Meta(description="on chips")]


class Sighting(msgspec.Struct):
    """The questions to tools about errata, and their answers."""

    erratum: Annotated[str, Meta(extra={"key": True, "references": "errata"})]
    position: Annotated[int, Meta(extra={"key": True})]
    tool: Annotated[str, Meta(description="'ptxas 12.0 to 13.5': every pinned release in between that knows the target; 'H200'")]
    target: str
    ptx: Annotated[str, Meta(description="version of the module; empty for the newest of each release")]
    compiled_for: Annotated[str, Meta(description="the assembler's target where it is not the module's")]
    asked: Annotated[str, Meta(description="an instruction without the names of its registers; empty for a module without instructions")]
    example: Annotated[str, Meta(description="digest of an example of the manual")]
    answer: Annotated[str, Meta(description="'accepted', or the exact message")]
    database: Annotated[str, Meta(description="'accepts' or 'refuses'; empty where it is not about a single instruction")]


def tables(catalog: Catalog) -> Iterator[Table]:
    """Every table of the evidence; variants have their numbers in the order of the catalog."""
    known = evidence.of(catalog.database)
    with_evidence = [
        (number, known.instructions[instruction.canonical])
        for number, instruction in enumerate(catalog.all(), 1)
        if instruction.canonical in known.instructions
    ]
    yield table(Witness, (Witness(tool.name, tool.kind, tool.version, tool.sha256, tool.date) for tool in known.tools))
    answers = [(number, cuda, targets) for number, answer in enumerate(known.answers) for cuda, targets in answer.items()]
    yield table(AssemblerAnswer, (AssemblerAnswer(number, cuda, target) for number, cuda, targets in answers for target in targets))
    yield table(Evidence, (Evidence(variant, row.assembled, " ".join(row.stale)) for variant, row in with_evidence), name="evidence")
    yield table(
        Execution,
        (
            Execution(variant, ran.chip, ran.launches, ran.wrong, " or ".join(ran.machine), ran.native)
            for variant, row in with_evidence
            for ran in row.executed
        ),
    )
    atoms = [
        (variant, atom, agrees)
        for variant, row in with_evidence
        for agrees, atoms in ((True, row.peers), (False, row.differing))
        for atom in atoms
    ]
    yield table(PeerAtom, (PeerAtom(*atom) for atom in atoms))
    intrinsics: dict[str, list[tuple[str, bool, str, str]]] = defaultdict(list)
    for each in known.intrinsics:
        for canonical in each.instructions:
            intrinsics[canonical].append((each.name, each.convergent, each.memory, " ".join(map(str, each.immediates))))
    numbered = [(number, intrinsics[instruction.canonical]) for number, instruction in enumerate(catalog.all(), 1)]
    yield table(LlvmIntrinsic, (LlvmIntrinsic(variant, *row) for variant, rows in numbered for row in rows))
    launches = ((layout.name, known.layouts.get(layout.name)) for layout in catalog.database.layouts)
    yield table(LayoutLaunch, (LayoutLaunch(name, count) for name, count in launches if count is not None))
    yield table(Sighting, _sightings(known))


def _sightings(known: evidence.Summary) -> Iterator[Sighting]:
    """A row for each target."""
    positions: dict[str, itertools.count[int]] = defaultdict(itertools.count)
    for line in known.sightings:
        rest = (line.ptx, line.compiled_for, line.asked, line.example, line.answer, line.database)
        for target in line.targets:
            yield Sighting(line.erratum, next(positions[line.erratum]), line.tool, target, *rest)

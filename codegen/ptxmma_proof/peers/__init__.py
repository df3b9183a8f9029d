"""Holding the database against what other projects say of the same instructions: CUTLASS's CuTe, and PyTorch.

:func:`run` compares everything and makes a report.  It needs the package ``nvidia-cutlass`` and NVIDIA's compiler; PyTorch and the
assemblers where they are there.  :func:`recorded` and :func:`contradictions` compare a catalog with a report's own record of the
peers, which needs none of them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np

from ptxmma.catalog.instructions import Catalog, Instruction, UnknownInstruction
from ptxmma.evidence import facts
from ptxmma.evidence.peers import UNBOUND, AtomRecord, Difference, Headers, Report, SharedRecord, Unknown, load, schema
from ptxmma.evidence.reports import text
from ptxmma.matrices.interop import from_cute
from ptxmma_proof.peers import assembly, assertions, comparison, headers, probe, pytorch
from ptxmma_proof.peers.binding import bind
from ptxmma_proof.peers.comparison import contradictions, recorded, role
from ptxmma_proof.peers.headers import Atom, Cutlass
from ptxmma_proof.peers.places import evaluated
from ptxmma_proof.peers.probe import Probe, SharedRead

__all__ = ["MissingPeerError", "Report", "contradictions", "load", "recorded", "run", "schema", "text"]

#: The architectures whose instructions CuTe could have: what is older, it has in part.
_ARCHITECTURES = range(75, 121)
#: Atoms for which another run of the compiler pays: it reads all headers first.
_WORTH_A_COMPILER = 500


class MissingPeerError(RuntimeError):
    """CUTLASS's headers or the compiler that reads them are not there; the message says what to install."""


def run(
    catalog: Catalog,
    date: str,
    *,
    assemblers: Mapping[str, Path] | None = None,
    choose: Callable[[Atom], bool] = lambda _: True,
    types: Sequence[str] = probe.TYPES,
    nvcc: str = "nvcc",
) -> Report:
    """Compare the catalog with the installed peers.

    Args:
        catalog: ours.
        date: when it is run, as it shall stand in the report.
        assemblers: ``ptxas`` by CUDA release, oldest first, to ask about the atoms' texts; None: nobody is asked.
        choose: which of CuTe's atoms are compared; all of them, unless told otherwise.
        types: of the elements of operands in shared memory, as CuTe calls them.
        nvcc: NVIDIA's compiler.

    Raises:
        MissingPeerError: CUTLASS's headers or the compiler are not installed.
        CompilerError: the compiler refuses the headers.
    """
    cutlass = headers.installed()
    if cutlass is None:
        raise MissingPeerError(f"CUTLASS's headers are not installed: pip install --no-deps {headers.PACKAGE}")
    atoms = [atom for atom in headers.atoms(cutlass) if choose(atom)]
    unknown = [entry for atom in atoms for entry in _unknown(catalog, atom)]
    strange = {entry.atom for entry in unknown}
    known = [atom for atom in atoms if atom.name not in strange]
    try:
        found = probe.read(cutlass, (atom for atom in known if atom.has_layouts), types, nvcc)
    except FileNotFoundError as error:
        raise MissingPeerError(str(error)) from None
    texts = _texts(found)
    records, bindings = _records(catalog, known, found)
    shared = [_shared_record(operand) for operand in found.shared]
    counted = comparison.compare(texts, records, shared, found.fields, catalog)
    torch = pytorch.compare(catalog)
    differences = [*bindings, *counted.differences, *(torch[1] if torch else [])]
    agreeing = sum(conversion.agrees for conversion in torch[0].conversions) if torch else 0
    report = Report(
        date=date,
        spec=catalog.database.spec.version,
        facts=facts.shared_memory(catalog.database),
        cutlass=Headers(package=headers.PACKAGE, version=cutlass.version, sha256=cutlass.digest(), compiler=found.compiler),
        places=counted.places,
        passes=counted.passes + agreeing,
        shapes=counted.shapes,
        failures=len(differences),
        layouts=tuple(texts),
        descriptor_fields=found.fields,
        atoms=tuple(records),
        shared=tuple(shared),
        assembled=tuple(assembly.assemble(catalog, known, assemblers) if assemblers else []),
        differences=tuple(differences),
        unknown=tuple(unknown),
        lacking=_lacking(catalog, {statement.mnemonic for atom in known for statement in atom.statements}),
        pytorch=torch[0] if torch else None,
        asserted=0,
    )
    return msgspec.structs.replace(report, asserted=prove(catalog, report, known, cutlass, nvcc))


def prove(catalog: Catalog, report: Report, atoms: Sequence[Atom], cutlass: Cutlass, nvcc: str = "nvcc") -> int:
    """Compile a ``static_assert`` for each operand in registers; several compilers work side by side.

    Args:
        catalog: ours.
        report: what the text asserts: that layouts are equal, or differ where it says so.
        atoms: those to assert.
        cutlass: the headers.
        nvcc: NVIDIA's compiler.

    Returns:
        How many assertions hold.

    Raises:
        CompilerError: one does not; the message names the atom and the operand.
    """
    parts = max(1, min(os.cpu_count() or 1, len(atoms) // _WORTH_A_COMPILER))
    # Atoms with one accumulator stay together: its layout, the largest, is then evaluated once.
    accumulators = {record.atom: next(iter(record.layouts.values())) for record in report.atoms}
    sources = [
        assertions.source(catalog, report, (atom for atom in atoms if accumulators.get(atom.name, 0) % parts == part))
        for part in range(parts)
    ]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(parts) as pool:
        folders = [Path(scratch) / str(part) for part in range(parts)]
        for folder in folders:
            folder.mkdir()
        list(pool.map(lambda text, folder: probe.compile_source(cutlass, text, folder, nvcc), sources, folders))
    return sum(text.count("\nstatic_assert(") for text in sources)


def _unknown(catalog: Catalog, atom: Atom) -> list[Unknown]:
    """The instructions of an atom that we do not have."""
    families = {entry.syntax.split(".")[0] for entry in catalog.database.spec.instructions}
    found = []
    for mnemonic in dict.fromkeys(statement.mnemonic for statement in atom.statements):
        try:
            catalog.find(mnemonic)
        except UnknownInstruction:
            found.append(Unknown(atom=atom.name, instruction=mnemonic, ours=mnemonic.split(".")[0] in families))
    return found


def _texts(found: Probe) -> list[str]:
    """CuTe's layouts in our notation; each text that can be read says what CuTe's own functions return."""
    texts = []
    for number, printed in enumerate(found.texts):
        try:
            layout = from_cute(printed)
        except ValueError:  # no function: it stays as it is
            texts.append(printed)
            continue
        if number in found.values:
            ours = layout(np.arange(layout.size)) if layout.rank == 1 or number in found.threads else evaluated(layout).reshape(-1)
            if not np.array_equal(ours, found.values[number]):
                raise AssertionError(f"{printed}: read back, it is another function than CuTe's")
        texts.append(str(layout))
    return texts


def _records(catalog: Catalog, atoms: list[Atom], found: Probe) -> tuple[list[AtomRecord], list[Difference]]:
    """The record of each atom with layouts, and where its statement's operands are not ours."""
    records, differences = [], []
    for atom in atoms:
        statement = atom.statements[0]
        instruction = catalog.find(statement.mnemonic)
        binding = bind(statement, instruction)
        faults = [f"{len(statement.places)} operands and registers in all"] if binding is None else binding.faults
        for fault in faults if len(atom.statements) == 1 or binding is None else ():
            differences.append(_unbound(atom, instruction, fault))
        if binding is None or atom.type not in found.atoms:
            continue
        read = found.atoms[atom.type]
        roles = {operand.name: role(instruction, operand) for operand in binding.form.operands}
        described = {operand.name for operand in binding.form.operands if operand.kind == "descriptor"}
        numbers = {name: read.roles[letter] for name, letter in roles.items() if letter in read.roles}
        records.append(
            AtomRecord(
                atom=atom.name,
                file=Path(atom.file).name,
                instruction=instruction.canonical,
                form=binding.form.name,
                layouts={name: number for name, number in numbers.items() if name not in described},
                shapes={name: number for name, number in numbers.items() if name in described},
                threads=read.roles["T"],
                vector=read.vector,
                facts=facts.operands(instruction, binding.form),
            )
        )
    return records, differences


def _unbound(atom: Atom, instruction: Instruction, fault: str) -> Difference:
    operand, _, said = fault.rpartition(": ")
    return Difference(
        peer="CuTe", subject=atom.name, operand=operand, instruction=instruction.canonical, theirs=said, ours=UNBOUND, places=1, of=1
    )


def _shared_record(operand: SharedRead) -> SharedRecord:
    """The record of an operand in shared memory; its texts say what CuTe's own function returns."""
    record = SharedRecord(
        atom=operand.name,
        majorness=operand.majorness,
        bits=operand.bits,
        rows=operand.x,
        depth=operand.k,
        layout=operand.text,
        image=operand.image,
        descriptor=operand.descriptor,
    )
    if comparison.image(record).reshape(-1).tolist() != list(operand.offsets):
        raise AssertionError(f"{operand.text} over {operand.image}: read back, it is another function than CuTe's")
    return record


def _lacking(catalog: Catalog, had: set[str]) -> dict[str, tuple[int, ...]]:
    """Our documented instructions of these architectures that no atom is, with the letter N where n varies, and their n."""
    own = {catalog.find(mnemonic).canonical for mnemonic in had}
    found: dict[str, list[int]] = {}
    for instruction in catalog.all():
        if instruction.shape and instruction.documented and instruction.canonical not in own and _in_reach(instruction):
            m, n, k = instruction.shape
            varies = instruction.variant.ranges_over_n
            name = instruction.canonical.replace(f"m{m}n{n}k{k}", f"m{m}nNk{k}") if varies else instruction.canonical
            found.setdefault(name, []).append(n)
    return {name: tuple(each) for name, each in found.items()}


def _in_reach(instruction: Instruction) -> bool:
    numbers = (re.search(r"\d+", target) for target in instruction.accepted_by())
    return any(int(number[0]) in _ARCHITECTURES for number in numbers if number)

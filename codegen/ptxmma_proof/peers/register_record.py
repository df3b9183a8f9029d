"""Compares the layouts of registers and of shared memory with CUTLASS's CuTe, and compression with PyTorch where it is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog, Instruction, UnknownInstruction
from ptxmma.catalog.layouts.interop import from_cute
from ptxmma_proof.peers import compared, headers, probe, pytorch, tinygrad_fragments
from ptxmma_proof.peers.binding import bind
from ptxmma_proof.peers.compared import Difference, role
from ptxmma_proof.peers.element_places import evaluated
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.headers import Atom
from ptxmma_proof.peers.probe import Probe
from ptxmma_proof.peers.recorded import AtomRecord, Peer, SharedRecord
from ptxmma_proof.peers.sources import Source

#: Our side of a difference if no operand form fits an atom's statement.
UNBOUND = "see the form"
#: The architectures that CuTe covers; of older ones it has a part.
_ARCHITECTURES = range(75, 121)
#: The N in the record, for instructions with many.
_RECORDED_N = (8, 24, 256)


def run(
    catalog: Catalog,
    given: Mapping[str, Source],
    date: str,
    *,
    choose: Callable[[Atom], bool] = lambda _: True,
    types: Sequence[str] = probe.TYPES,
    nvcc: str = "nvcc",
) -> Findings:
    """Compare the catalog with CuTe and PyTorch, and with tinygrad where a checkout of it is given.

    Args:
        catalog: ours.
        given: checkouts.
        date: the date of the run, for the record.
        choose: the choice of CuTe's atoms that are compared; all of them unless given.
        types: the types of the elements of operands in shared memory, as CuTe calls them.
        nvcc: NVIDIA's compiler.

    Raises:
        MissingPeerError: CUTLASS's headers or the compiler are not there.
        CompilerError: the compiler refuses the headers.
    """
    cutlass = headers.find(given)
    atoms = [atom for atom in headers.atoms(cutlass) if choose(atom)]
    unknown = _unknown(catalog, atoms)
    strange = {name for names in unknown.values() for name in names}
    known = [atom for atom in atoms if atom.name not in strange]
    read = probe.read(cutlass, (atom for atom in known if atom.has_layouts and _in_registers(catalog, atom)), types, nvcc)
    records, bindings = _records(catalog, known, read)
    peer = Peer(tuple(records), tuple(_shared(read)), read.fields)
    counted = compared.compare(peer, catalog)
    torch, tinygrad = pytorch.compare(catalog), given.get(tinygrad_fragments.NAME)
    fragments = list(tinygrad_fragments.read(tinygrad.folder)) if tinygrad else []
    differences = [*bindings, *counted.differences, *_lacked(catalog, unknown), *(torch.differences if torch else [])]
    differences += tinygrad_fragments.compare(catalog, fragments)
    conversions = torch.conversions if torch else []
    totals = {
        "atoms": len(peer.atoms),
        "places": counted.places,
        "passes": counted.passes,
        "shapes": counted.shapes,
        "failures": len(differences),
        "shared": len(peer.shared),
        "lacking": _lacking(catalog, {atom.instruction for atom in peer.atoms}),
        "conversions": len(conversions),
        "conversions_agree": sum(each.agrees for each in conversions),
    }
    tools = [cutlass.tool(date), probe.tool(nvcc, date)]
    if torch is not None:
        tools.append(Tool(kind="peer", name="PyTorch", version=torch.version, date=date))
    rows = {headers.NAME: len(known) + len(peer.shared)} | ({"PyTorch": len(conversions)} if torch else {})
    if tinygrad:
        tools.append(tinygrad.tool(date))
        rows[tinygrad.name] = len(fragments)
    lines: list[Line] = [
        *_compared(catalog, peer, differences),
        *(witnesses.Unknown(instruction=name, atoms=tuple(atoms)) for name, atoms in unknown.items()),
    ]
    return Findings(tuple(tools), rows, differences, lines, totals, _agreed(catalog, peer, differences))


def _lacked(catalog: Catalog, unknown: Mapping[str, Sequence[str]]) -> Iterator[Difference]:
    """The instructions of our families that CuTe has and we lack."""
    families = {entry.syntax.split(".")[0] for entry in catalog.database.spec.instructions}
    for name, atoms in unknown.items():
        if name.split(".")[0] in families:
            yield Difference(headers.NAME, name, "form", f"has it as {', '.join(atoms)}", "no such instruction", 1, 1)


def _compared(catalog: Catalog, peer: Peer, differences: Iterable[Difference]) -> Iterator[witnesses.Compared]:
    """The atoms that agree and differ on each instruction."""
    differing: dict[str, set[str]] = {}
    for entry in differences:
        differing.setdefault(entry.subject, set()).add(entry.operand)
    grouped: dict[tuple[str, str], list[AtomRecord]] = {}
    for atom in peer.atoms:
        grouped.setdefault((atom.instruction, atom.form), []).append(atom)
    for (name, form), atoms in grouped.items():
        agree: dict[str, list[str]] = {}
        for atom in atoms:
            if operands := " ".join(operand for operand in atom.layouts if operand not in differing.get(atom.atom, ())):
                agree.setdefault(operands, []).append(atom.atom)
        yield witnesses.Compared(
            instruction=name,
            form=form,
            facts=digest.computed(catalog.find(name)),
            agree={operands: tuple(names) for operands, names in agree.items()},
            differ={atom.atom: " ".join(sorted(differing[atom.atom])) for atom in atoms if atom.atom in differing},
        )


def _agreed(catalog: Catalog, peer: Peer, differences: Iterable[Difference]) -> Peer:
    """The layouts on which the peer and we agree, for some N; see :mod:`ptxmma_proof.peers.recorded`."""
    differing = {(entry.subject, entry.operand) for entry in differences}
    atoms = []
    for atom in peer.atoms:
        instruction = catalog.find(atom.instruction)
        layouts = {name: text for name, text in atom.layouts.items() if (atom.atom, name) not in differing}
        if layouts and (not instruction.variant.ranging or instruction.variant.facts["n"] in _RECORDED_N):
            atoms.append(msgspec.structs.replace(atom, layouts=layouts, shapes={}))
    subjects = {subject for subject, _ in differing}
    shared = tuple(each for each in peer.shared if compared.subject(each) not in subjects)
    return Peer(tuple(atoms), shared, peer.fields)


def _in_registers(catalog: Catalog, atom: Atom) -> bool:
    """Return whether the instruction of an atom has operands in registers: layouts in tensor memory are compared apart."""
    forms = catalog.find(atom.statements[0].mnemonic).forms
    return any(operand.layout is not None for form in forms for operand in form.operands)


def _unknown(catalog: Catalog, atoms: Iterable[Atom]) -> dict[str, list[str]]:
    """The instructions of atoms that we do not have."""
    atoms_of: dict[str, list[str]] = {}
    for atom in atoms:
        for mnemonic in dict.fromkeys(statement.mnemonic for statement in atom.statements):
            try:
                catalog.find(mnemonic)
            except UnknownInstruction:
                atoms_of.setdefault(mnemonic, []).append(atom.name)
    return atoms_of


def _texts(read: Probe) -> list[str]:
    """CuTe's layouts in our notation, each compared with CuTe's own function."""
    texts = []
    for number, printed in enumerate(read.texts):
        try:
            layout = from_cute(printed)
        except ValueError:  # no function: it stays as it is
            texts.append(printed)
            continue
        if number in read.values:
            ours = layout(np.arange(layout.size)) if layout.rank == 1 or number in read.threads else evaluated(layout).reshape(-1)
            if not np.array_equal(ours, read.values[number]):
                raise AssertionError(f"{printed}: read back, it is another function than CuTe's")
        texts.append(str(layout))
    return texts


def _records(catalog: Catalog, atoms: list[Atom], probed: Probe) -> tuple[list[AtomRecord], list[Difference]]:
    """The record of each atom with layouts, and the operands of its statement that differ from ours."""
    texts = _texts(probed)
    records, differences = [], []
    for atom in atoms:
        statement = atom.statements[0]
        instruction = catalog.find(statement.mnemonic)
        binding = bind(statement, instruction)
        faults = [f"{len(statement.places)} operands and registers in all"] if binding is None else binding.faults
        for fault in faults if len(atom.statements) == 1 or binding is None else ():
            operand, _, said = fault.rpartition(": ")
            differences.append(Difference("CuTe", atom.name, operand, said, UNBOUND, 1, 1))
        if binding is None or atom.type not in probed.atoms:
            continue
        read = probed.atoms[atom.type]
        roles = {operand.name: role(instruction, operand) for operand in binding.form.operands}
        described = {operand.name for operand in binding.form.operands if operand.kind == "descriptor"}
        layouts = {name: texts[read.roles[letter]] for name, letter in roles.items() if letter in read.roles}
        records.append(
            AtomRecord(
                atom=atom.name,
                instruction=instruction.canonical,
                form=binding.form.name,
                layouts={name: text for name, text in layouts.items() if name not in described},
                shapes={name: text for name, text in layouts.items() if name in described},
                threads=texts[read.roles["T"]],
                vector=read.vector,
            )
        )
    return records, differences


def _shared(read: Probe) -> Iterator[SharedRecord]:
    """The operands in shared memory, each compared with CuTe's own function."""
    for record, offsets in read.shared:
        if compared.image(record).reshape(-1).tolist() != offsets:
            raise AssertionError(f"{record.layout} over {record.image}: read back, it is another function than CuTe's")
        yield record


def _lacking(catalog: Catalog, had: set[str]) -> int:
    """The number of our documented instructions of these architectures that CuTe lacks."""
    return sum(one.operation == "multiply" and one.documented and one.canonical not in had and _in_reach(one) for one in catalog.all())


def _in_reach(instruction: Instruction) -> bool:
    numbers = (re.search(r"\d+", target) for target in instruction.accepted_by())
    return any(int(number[0]) in _ARCHITECTURES for number in numbers if number)

"""CuTe's names of the instructions that move data or multiply into tensor memory; other atoms come with their layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import headers
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.sources import Source

_COPIES = "cute/arch/copy_sm*.hpp"
#: Of these instructions :mod:`ptxmma_proof.peers.register_record` compares the layouts, and names the atoms.
_COMPARED = "multiply"


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Read the names in CUTLASS's headers.

    Raises:
        MissingPeerError: CUTLASS's headers are not there.
    """
    cutlass = headers.find(given)
    named: dict[str, dict[str, None]] = {}
    for mnemonic, atom in _pairs(cutlass):
        instruction = catalog.meaning(mnemonic)
        if instruction is not None and instruction.operation != _COMPARED:
            named.setdefault(instruction.canonical, {})[atom] = None
    totals = {"atoms": sum(map(len, named.values())), "instructions": len(named)}
    lines = [witnesses.Named(instruction=name, atoms=tuple(sorted(atoms))) for name, atoms in sorted(named.items())]
    return Findings((cutlass.tool(date),), {}, [], [*lines], totals)


def _pairs(cutlass: Source) -> Iterator[tuple[str, str]]:
    """The spelling of each instruction with the atom that has it, without the arguments of templates."""
    for atom in headers.atoms(cutlass):
        yield from ((statement.mnemonic, atom.name.partition("<")[0]) for statement in atom.statements)
    for path in sorted(cutlass.folder.glob(_COPIES)):
        for name, statements in headers.statements(cutlass, path.relative_to(cutlass.folder).as_posix()).items():
            yield from ((statement.mnemonic, name) for statement in statements)

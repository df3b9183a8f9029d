"""CuTe's names of the instructions that move data or multiply into tensor memory; other atoms come with their layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import peers
from ptxmma_proof.peers import headers
from ptxmma_proof.peers.headers import Cutlass

_COPIES = "cute/arch/copy_sm*.hpp"
#: Of these instructions :mod:`ptxmma_proof.peers` compares the layouts, and names the atoms.
_COMPARED = "multiply"


class Outcome(NamedTuple):
    """The names of atoms by instruction, and who was asked."""

    catalog: Catalog
    atoms: dict[str, list[str]]
    tools: tuple[Tool, ...]
    date: str

    @property
    def agrees(self) -> bool:
        """Names contradict nothing."""
        return True

    def words(self) -> Iterator[str]:
        """The numbers of names and instructions."""
        yield f"{sum(map(len, self.atoms.values()))} names of {len(self.atoms)} instructions"

    @property
    def record(self) -> list[Line]:
        """The names as lines of ``spec/evidence/atoms.jsonl``."""
        totals = {"atoms": sum(map(len, self.atoms.values())), "instructions": len(self.atoms)}
        run = witnesses.Run(date=self.date, spec=self.catalog.database.spec.version, tools=self.tools, totals=totals)
        return [run, *(witnesses.Named(instruction=name, atoms=tuple(atoms)) for name, atoms in self.atoms.items())]


def run(catalog: Catalog, date: str) -> Outcome:
    """Read the names in the installed headers.

    Raises:
        MissingPeerError: CUTLASS's headers are not installed.
    """
    cutlass = headers.installed()
    if cutlass is None:
        raise peers.MissingPeerError(f"CUTLASS's headers are not installed: pip install --no-deps {headers.PACKAGE}")
    named: dict[str, dict[str, None]] = {}
    for mnemonic, atom in _pairs(cutlass):
        instruction = catalog.meaning(mnemonic)
        if instruction is not None and instruction.operation != _COMPARED:
            named.setdefault(instruction.canonical, {})[atom] = None
    tool = Tool(kind="peer", name=headers.PACKAGE, version=cutlass.version, sha256=cutlass.digest(), date=date)
    return Outcome(catalog, {name: sorted(atoms) for name, atoms in sorted(named.items())}, (tool,), date)


def _pairs(cutlass: Cutlass) -> Iterator[tuple[str, str]]:
    """The spelling of each instruction with the atom that has it, without the arguments of templates."""
    for atom in headers.atoms(cutlass):
        yield from ((statement.mnemonic, atom.name.partition("<")[0]) for statement in atom.statements)
    for path in sorted(cutlass.include.glob(_COPIES)):
        for name, statements in headers.statements(cutlass, path.relative_to(cutlass.include).as_posix()).items():
            yield from ((statement.mnemonic, name) for statement in statements)

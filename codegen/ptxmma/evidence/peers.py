"""What a comparison with the peers found, as data: ``spec/evidence/peers.json``.

Its schema is ``spec/schema/evidence_peers.schema.json``.  It holds every layout of the peers as text, so that any spec can be
compared with them again without compiling: :func:`ptxmma_proof.peers.comparison.recorded`.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ptxmma.evidence import reports
from ptxmma.evidence.reports import Count, Entry, Positive, Sha256

PATH = reports.FOLDER / "peers.json"
#: Beside it: why some differ.
EXPLAINED = "peers_explained.json"
#: What we say where the statement of an atom is in no operand form.
UNBOUND = "see the form"


class Headers(Entry, frozen=True, kw_only=True):
    """CUTLASS's headers, and the compiler that read them."""

    package: str
    version: str
    sha256: Sha256  # over the names and contents of CuTe's headers
    compiler: str


class AtomRecord(Entry, frozen=True, kw_only=True):
    """An atom of CuTe that is one of our instructions.

    ``layouts`` has, for each operand in registers by our name, the number of CuTe's layout in the report's list; ``threads`` that of the
    layout of thread numbers.  ``shapes`` has the same for operands in shared memory: there CuTe's layout gives every thread the whole
    matrix, so that it tells the shape of the operand and nothing of where its elements stand (:class:`SharedRecord` does).
    """

    atom: str  # the C++ type
    file: str
    instruction: str  # our canonical spelling
    form: str  # of operands: "registers", "descriptor" or ""
    layouts: dict[str, Count]
    shapes: dict[str, Count] = msgspec.field(default_factory=dict)
    threads: Count
    vector: Count = 0  # columns that share a scale factor; 0 without scale factors
    facts: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]  # digest of what we say of these operands


class SharedRecord(Entry, frozen=True, kw_only=True):
    """An operand in shared memory as CuTe lays it out, and the descriptor that CuTe makes for it."""

    atom: str  # "SW128"
    majorness: str
    bits: int
    rows: int
    depth: int
    layout: str  # of the shared-memory atom, with its swizzle
    image: str  # of the operand, before the swizzle
    descriptor: int


class Difference(Entry, frozen=True, kw_only=True):
    """Where a peer and we differ: what each says of the first of ``places`` places that differ, out of ``of``."""

    peer: Literal["CuTe", "PyTorch"]
    subject: str  # an atom, a layout in shared memory, a field
    operand: str
    instruction: str = ""
    theirs: str
    ours: str
    places: Positive
    of: Positive


class Explanation(Entry, frozen=True, kw_only=True):
    """Why a peer differs, written by a person: ``subject`` and ``operand`` are patterns, as of file names."""

    peer: Literal["CuTe", "PyTorch"]
    subject: str
    operand: str
    theirs: str = "*"  # a pattern of what the peer says
    why: str

    def speaks_of(self, found: Difference) -> bool:
        """Whether it explains a difference."""
        pairs = ((found.subject, self.subject), (found.operand, self.operand), (found.theirs, self.theirs))
        return found.peer == self.peer and all(fnmatch.fnmatchcase(said, pattern) for said, pattern in pairs)


class Unknown(Entry, frozen=True, kw_only=True):
    """An atom of CuTe whose instruction we do not have; ``ours`` tells whether its family is one of ours."""

    atom: str
    instruction: str
    ours: bool


class Assembled(Entry, frozen=True, kw_only=True):
    """What an assembler says of the assembly statements of the atoms."""

    cuda: str
    target: str
    accepted: Count
    refused: dict[str, str]  # atom: what it says


class Conversion(Entry, frozen=True, kw_only=True):
    """PyTorch's compression of one type against ours."""

    dtype: str
    pattern: str  # "2:4"
    chunks: Positive
    agrees: bool


class PyTorch(Entry, frozen=True, kw_only=True):
    """PyTorch's conversions of structured sparsity."""

    version: str
    facts: Sha256  # digest of what we say of sparsity
    conversions: tuple[Conversion, ...]
    refused: dict[str, str]  # types that only we compress: what PyTorch says


class Report(reports.Report, frozen=True, kw_only=True):
    """All that a comparison found."""

    facts: Sha256  # digest of what we say of matrices in shared memory; every atom has one of its operands
    cutlass: Headers
    places: Count  # pairs of a thread and a value that were compared, of all operands of all atoms
    passes: Count  # operands in registers, layouts in shared memory, fields of the descriptor and types that agree
    shapes: Count  # operands in shared memory of which the shape, and nothing else, could be compared, and agrees
    failures: Count
    asserted: Count  # assertions over all threads and values of an operand that compiled against the headers
    layouts: tuple[str, ...]
    descriptor_fields: dict[str, int]  # bits of each field of CuTe's descriptor
    atoms: tuple[AtomRecord, ...]
    shared: tuple[SharedRecord, ...]
    assembled: tuple[Assembled, ...]
    differences: tuple[Difference, ...]
    unknown: tuple[Unknown, ...]  # what CuTe has and we lack
    lacking: dict[str, tuple[int, ...]]  # instructions that CuTe lacks, with the letter N where n varies, and their n
    pytorch: PyTorch | None


def load(path: Path = PATH) -> Report:
    """Read a report.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no report of this version of ptxmma; the message names the path.
    """
    return reports.load(path, Report)


def explanations(path: Path) -> list[Explanation]:
    """Read what a person wrote; nothing where there is no such file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no list of explanations; the message names the path and the place in it.
    """
    try:
        return reports.written(path, Explanation, '{"peer": name, "subject": pattern, "operand": pattern, "why": text}')
    except FileNotFoundError:
        return []


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return reports.schema(Report, "What other projects say of the same instructions")

"""The files of ``spec/evidence/``: what assemblers, chips and other projects said, one line of JSON for each answer.

Each file belongs to one witness.  Its first line is the :class:`Run`; the lines about instructions follow, sorted by their spelling, so
that a change of one fact changes the lines of the instructions that it touches.  The proof writes these files, the product reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
#: See :mod:`ptxmma.catalog.digest`.
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
#: The witnesses with lines about instructions.
ASSEMBLER, SILICON, PEERS = "assembler", "silicon", "peers"
#: The witness with lines about layouts of tensor memory.
TENSOR_MEMORY = "tensor_memory"
DESCRIPTORS = "descriptors"
#: The witness for the sizes and types of products.
PRODUCTS = "products"
#: The witness for tensor maps and the images of their copies.
BOXES = "boxes"
#: The witness with lines about the forms that projects list otherwise.
FORMS = "forms"
#: The witness with lines about instructions that projects spell otherwise.
SPELLINGS = "spellings"
#: The witness with lines about the PTX that functions of other projects have in common with ours.
WRAPPERS = "wrappers"
#: The witness with lines about what CuTe calls instructions.
ATOMS = "atoms"
#: The witness with lines about the intrinsics of LLVM.
INTRINSICS = "intrinsics"
#: The witness with lines about errata.
ERRATA = "errata"
#: All of them; the others have totals only.
NAMES = (
    ASSEMBLER, SILICON, PEERS, TENSOR_MEMORY, DESCRIPTORS, PRODUCTS, BOXES, FORMS, SPELLINGS, WRAPPERS, ATOMS, INTRINSICS, ERRATA,
    "reference", "corpus", "mutation",
)  # fmt: skip


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A program, a chip or a project that was asked.

    Attributes:
        kind: ``"assembler"``, ``"chip"``, ``"peer"``, or ``"compiler"`` for what made the kernels of a chip or read a peer's headers.
        name: ``"CUDA 13.5"``, ``"NVIDIA H200"``, ``"nvidia-cutlass"``.
        version: build of the assembler or compiler, version of the driver or the package.
        sha256: the digest of the assembler's binary, which a compiler has too, or of the peer's headers.
        date: the day of the run.
    """

    kind: str
    name: str
    version: str = ""
    sha256: str = ""
    date: str


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, tag_field="record", tag=str.lower):
    """A line of a file."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The results for the instructions of one family.

    Attributes:
        date: when they were asked about.
        totals: its totals, as a :class:`Run` has them.
    """

    date: str
    totals: dict[str, Count]


class Tally(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The definitions of one peer that were compared with the database.

    Attributes:
        compared: all of them.
        differing: the number of those that differ.
        settled: the number of differing ones on which the verdict is not open.
    """

    compared: Count
    differing: Count
    settled: Count


class Run(Record, frozen=True, kw_only=True):
    """The first line: who was asked, and what came of it in total.

    Attributes:
        date: the day of the run: ``"2026-11-21"``.
        spec: version of the spec.
        tools: all that took part; of assemblers the oldest first.
        targets: that were asked about.
        totals: numbers for the pages, by name: ``{"answers": 4567890}``.
        families: the numbers of each family that can be asked about alone; the totals are their sums.
        peers: the tally of each other project that was compared.
    """

    date: str
    spec: str
    tools: tuple[Tool, ...]
    targets: tuple[str, ...] = ()
    totals: dict[str, Count]
    families: dict[str, Part] = msgspec.field(default_factory=dict)
    peers: dict[str, Tally] = msgspec.field(default_factory=dict)


class Answer(Record, frozen=True, kw_only=True):
    """An answer that assemblers gave for many instructions.

    Attributes:
        name: its name in the lines of the instructions.
        accepted: target -> the first version of PTX ISA that is accepted and the CUDA releases that do: ``"7.0 in 11.7 to 13.5"``;
            several with a semicolon between them where releases differ.
    """

    name: str
    accepted: dict[str, str]


class Assembled(Record, frozen=True, kw_only=True):
    """An instruction that assemblers were asked about, in every form of its operands; ``answer`` is the name of an :class:`Answer`."""

    instruction: str
    facts: Digest  # ptxmma.catalog.digest.asked, with the targets of the run
    answer: str


class Executed(Record, frozen=True, kw_only=True):
    """An instruction that a chip ran.

    Attributes:
        instruction: canonical spelling.
        facts: :func:`ptxmma.catalog.digest.computed`.
        launches: with random whole numbers, against NumPy's product, by the name of the operand form.
        wrong: launches in which an element of D was wrong.
        machine: the tensor-core instructions that the assembler made of it; more than one for kernels that differ; none for a fence or a
            wait, which runs beside the products of others.
    """

    instruction: str
    facts: Digest
    launches: dict[str, Positive]
    wrong: Count = 0
    machine: tuple[str, ...] = ()


class Memory(Record, frozen=True, kw_only=True):
    """Operands that a chip read from shared memory."""

    operand: str
    majorness: str
    swizzle: str
    types: tuple[str, ...]
    launches: Positive
    base_offsets: tuple[int, ...]  # that occurred


class Observation(Record, frozen=True, kw_only=True):
    """The chip's answer to a question that the manual leaves open; never a rule."""

    question: str
    tried: str
    seen: str
    instructions: tuple[str, ...]


class Compared(Record, frozen=True, kw_only=True):
    """An instruction that another project defines, with one form of its operands.

    Attributes:
        instruction: canonical spelling.
        form: name of the operand form.
        facts: :func:`ptxmma.catalog.digest.computed`.
        agree: our names of operands, with blanks between them -> the definitions that lay all of them out in the same way.
        differ: definitions that lay some operands out in another way -> these operands.
    """

    instruction: str
    form: str = ""
    facts: Digest
    agree: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    differ: dict[str, str] = msgspec.field(default_factory=dict)


class Laid(Record, frozen=True, kw_only=True):
    """A layout of tensor memory, or the format of a descriptor, that other projects define.

    Attributes:
        layout: its name.
        facts: :func:`ptxmma.catalog.digest.tensor_layout` or :func:`ptxmma.catalog.digest.descriptor_format`.
        agree: the peer -> its definitions that lay everything out in the same way.
        differ: definitions of peers that do not.
        fields: the peers whose definitions show a field of a descriptor in the same bits, by its name.
    """

    layout: str
    facts: Digest
    agree: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    differ: tuple[str, ...] = ()
    fields: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A report of a fault, for the maintainers of the project that has it.

    Attributes:
        title: the fault in one line.
        input: the minimal input that shows it.
        expected: the right result, and what comes instead.
        source: the section of the manual, the assembler or the chip that says so.
    """

    title: str
    input: str
    expected: str
    source: str


class Difference(Record, frozen=True, kw_only=True):
    """A difference between a peer and the database, with the verdict on it.

    Attributes:
        peer: the project.
        subjects: its definitions, forms or fields that differ in the same way.
        operand: the operand or the fact that differs: ``"b"``, ``"targets"``, ``"sizes"``.
        theirs: the peer's answer, for layouts at the first place that differs.
        ours: the database's answer.
        right: who is right: ``"both"`` where the peer leaves out or forbids what it need not have, ``"open"`` where no source and no chip
            says, and empty before there is a verdict.
        why: the reason of the verdict.
        answers: the answers of assemblers; these sightings are about no erratum.
        report: for a fault of the peer.
    """

    peer: str
    subjects: tuple[str, ...]
    operand: str
    theirs: str
    ours: str
    right: Literal["", "ours", "theirs", "both", "open"] = ""
    why: str = ""
    answers: tuple[Sighting, ...] = ()
    report: Report | None = None


class Unknown(Record, frozen=True, kw_only=True):
    """An instruction that another project defines and the database lacks."""

    instruction: str
    atoms: tuple[str, ...]


class Sighting(Record, frozen=True, kw_only=True):
    """The question to a tool about an erratum, and its answer.

    Where an assembler and the database differ on a string one change away from an instruction, the erratum explains the same change of
    other instructions of the family, on these targets, with this answer.

    Attributes:
        erratum: its id; empty where the question is about a difference to another project.
        tool: ``"ptxas 12.0 to 13.5"``: every pinned release in between that knows the target; ``"H200"``.
        targets: the targets of the module, each with this answer: ``("sm_90a",)``.
        ptx: the version of the module; empty for the newest version that each release supports.
        compiled_for: the assembler's target where it is not the module's.
        asked: an instruction without the names of its registers: ``"mma.sync… 4f32 4b32 2b32 4f32"``, lists by their length and type; PTX
            as it stands where it ends in a semicolon; empty for a module without instructions.
        example: the digest of an example of the manual, which was asked instead.
        answer: ``"accepted"``, or the exact message.
        database: the verdict of the database on the instruction; empty where the question is not about a single instruction.
    """

    erratum: str
    tool: str
    targets: Annotated[tuple[str, ...], Meta(min_length=1)]
    ptx: str = ""
    compiled_for: str = ""
    asked: str = ""
    example: Annotated[str, Meta(pattern="^([0-9a-f]{16})?$")] = ""
    answer: str
    database: Literal["", "accepts", "refuses"] = ""


class Named(Record, frozen=True, kw_only=True):
    """An instruction and what another project calls it."""

    instruction: str
    atoms: tuple[str, ...]


class Wrapped(Record, frozen=True, kw_only=True):
    """A function of another project, and the PTX in it that a function of ours has, too.

    Attributes:
        function: ``"mbarrier_inval"``.
        texts: the instructions that it executes, with the constraint of each operand in its place: ``"mbarrier.inval.shared.b64 [r]"``.
    """

    function: str
    texts: Annotated[tuple[str, ...], Meta(min_length=1)]


class Intrinsic(Record, frozen=True, kw_only=True):
    """An intrinsic of LLVM.

    Attributes:
        name: ``"llvm.nvvm.mma.m16n8k8.row.col.tf32"``.
        instructions: the instructions that LLVM makes of it, of which its immediate arguments choose one.
        convergent: LLVM must not move it into other control flow, since threads execute it together.
        memory: LLVM's attribute, ``"argmem: readwrite"``; empty for any memory.
        immediates: the arguments that must be constants, from 0.
    """

    name: str
    instructions: Annotated[tuple[str, ...], Meta(min_length=1)]
    convergent: bool = False
    memory: str = ""
    immediates: tuple[int, ...] = ()


Line = (
    Run
    | Answer
    | Assembled
    | Executed
    | Memory
    | Observation
    | Compared
    | Laid
    | Difference
    | Unknown
    | Named
    | Wrapped
    | Intrinsic
    | Sighting
)
_Kind = TypeVar("_Kind", bound=Record)
_DECODER = msgspec.json.Decoder(Line)


class Witness:
    """The lines of one file.

    Attributes:
        path: the file's path.
        run: None if the file is missing or unreadable.
        fault: why it cannot be read; ``""`` if it can.
    """

    def __init__(self, path: Path) -> None:
        """Read a file; one that is missing or broken has no lines."""
        self.path, self.fault, self._lines = path, "", list[Line]()
        try:
            self._lines = read(path)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            self.fault = str(error)
        first = self._lines[0] if self._lines else None
        self.run = first if isinstance(first, Run) else None
        if self._lines and self.run is None:
            self.fault, self._lines = f"{path}:1: the first line must be the run", []

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """The lines of a kind."""
        return [line for line in self._lines if isinstance(line, kind)]


def read(path: Path) -> list[Line]:
    """The lines of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is not one of these; the message names it.
    """
    lines = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            lines.append(_DECODER.decode(text))
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
    return lines


def write(path: Path, lines: Iterable[Line]) -> None:
    """Write a file: the run, and then the rest, sorted.

    Raises:
        OSError: it cannot be written.
    """
    path.write_bytes(b"".join(_encoded(lines)))


def _encoded(lines: Iterable[Line]) -> Iterator[bytes]:
    rank: dict[type[Any], int] = {kind: number for number, kind in enumerate((Run, Answer, Memory, Observation, Difference, Unknown))}
    for line in sorted(
        lines, key=lambda line: (rank.get(type(line), len(rank)), getattr(line, "instruction", "") or getattr(line, "layout", ""))
    ):
        yield msgspec.json.encode(line) + b"\n"


#: Parts of one project; their definitions have the same authors.
_AUTHORS = dict.fromkeys(("CuTe", "CuTe DSL", "CuTe 4.8"), "CUTLASS")
#: The beginning of a source that is a section of the manual.
_SECTION = re.compile(r"(PTX ISA )?\d")


def only(source: str, peers: Iterable[str]) -> str:
    """Return the only origin of a fact, or nothing where there are several.

    Args:
        source: the source that the spec gives; sections of the manual come first.
        peers: the projects whose definitions agree.
    """
    named = ["the manual"] if _SECTION.match(source) else [source.partition(",")[0]]
    found = {_AUTHORS.get(name, name) for name in (*named, *peers)}
    return found.pop() if len(found) == 1 else ""

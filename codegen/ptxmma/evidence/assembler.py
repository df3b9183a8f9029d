"""What the assemblers said: ``spec/evidence/assembler.json``.

Its schema is ``spec/schema/evidence_assembler.schema.json``.  A line is an instruction with its operands, without the names of its
registers: ``4f32`` is a list of four, ``b32`` is one (:func:`ptxmma.ptx.lines.compact`).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from ptxmma.evidence import reports
from ptxmma.evidence.reports import Count, Entry, Sha256

PATH = reports.FOLDER / "assembler.json"
#: A CUDA release, or a PTX ISA version: "13.5".
Version = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")]
Target = Annotated[str, Meta(pattern="^sm_[0-9]+[a-z]?$")]
#: The first version that takes something; several, with blanks between them, where one after it does not.
Since = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+( [0-9]+\.[0-9]+)*$")]
Lines = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]


class Asked(Entry, frozen=True, kw_only=True):
    """An assembler, and the targets that it was asked about."""

    cuda: Version  # the release that it comes with: "13.5"
    build: str  # its own version: "13.5.37"
    ptx: Version  # the newest version that it speaks
    sha256: Sha256  # of the program
    targets: dict[Target, Since]  # for which it takes modules, since which version


class Alike(Entry, frozen=True, kw_only=True):
    """Lines of instructions of which everybody said the same.

    ``accepted`` has CUDA release -> target -> the first version that accepts.  What is not there is refused.
    """

    accepted: dict[Version, dict[Target, Since]]
    lines: Lines


class Difference(Entry, frozen=True, kw_only=True):
    """Lines of which an assembler says something else than the database; without lines: about the target itself."""

    cuda: Version
    target: Target
    assembler: str  # "accepted from 8.0 on"
    database: str
    said: str  # why the assembler refuses the first of the lines in its newest version
    lines: tuple[str, ...]


class Bits(Entry, frozen=True, kw_only=True):
    """What one assembler said of all neighbours of a family on a target, in its newest version: see :func:`packed`."""

    target: Target
    cuda: Version
    accepted: str
    disputed: Count  # lines of which the database says something else: as many stand in the report's disagreements


class Space(Entry, frozen=True, kw_only=True):
    """The neighbours of a family's instructions, and what was said of them; :mod:`ptxmma_proof.negative` makes them again."""

    family: str
    lines: Count
    sha256: Sha256  # of the sorted lines
    answers: tuple[Bits, ...]


class Disagreement(Entry, frozen=True, kw_only=True):
    """Neighbours of which an assembler says something else than the database, and the erratum that tells of it; ``""`` for none."""

    erratum: str
    cuda: Version
    version: Version
    targets: tuple[Target, ...]
    answer: str  # "accepted", or why it is refused
    lines: Lines


class Assembler(reports.Report, frozen=True, kw_only=True):
    """All that assemblers were asked.

    Attributes:
        assemblers: oldest first.
        versions: each assembler was asked about instructions in those of them that it speaks.
        facts: family -> digest of its lines and of what the database says of each: :func:`ptxmma.evidence.facts.accepted`.
        asked: CUDA release -> answers about instructions.
        answers: about instructions.
        differences: where these are not what the database says.
        negative: what lies one change away from the instructions, by family.
        errata: digest of what the errata explain: :func:`ptxmma.evidence.facts.explaining`.
        disagreements: where the answers about that are not what the database says.
    """

    assemblers: tuple[Asked, ...]
    versions: tuple[Version, ...]
    facts: dict[str, Sha256]
    asked: dict[Version, Count]
    answers: tuple[Alike, ...]
    differences: tuple[Difference, ...]
    negative: tuple[Space, ...]
    errata: Sha256
    disagreements: tuple[Disagreement, ...]


def packed(accepted: Iterable[bool]) -> str:
    """One bit for each line in their order, the first in the lowest bit of the first byte: deflated (zlib), in base64."""
    digits = "".join("1" if taken else "0" for taken in accepted)
    data = int(digits[::-1] or "0", 2).to_bytes((len(digits) + 7) // 8, "little")
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpacked(text: str, count: int) -> list[bool]:
    """What :func:`packed` made ``text`` of.

    Raises:
        ValueError: the text does not hold ``count`` bits.
    """
    try:
        data = zlib.decompress(base64.b64decode(text, validate=True))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"no packed bits: {error}") from None
    if len(data) != (count + 7) // 8:
        raise ValueError(f"{len(data)} bytes do not hold {count} bits")
    return [bool(data[number >> 3] >> (number & 7) & 1) for number in range(count)]


def load(path: Path = PATH) -> Assembler:
    """Read a report.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such report; the message names the path and the place in it.
    """
    return reports.load(path, Assembler)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return reports.schema(Assembler, "What the assemblers said")

"""Where the manual contradicts itself, an assembler or a chip."""

from __future__ import annotations

from ptxmma.model.conditions import Entry


class Sighting(Entry, frozen=True, kw_only=True):
    """What a tool was asked, and its answer.

    An instruction is written without the names of its registers: ``"mma.sync… 4f32 4b32 2b32 4f32"``, lists by their length and type.
    What ends in a semicolon is PTX as it stands; nothing at all is a module without instructions.
    """

    tool: str  # "ptxas 12.0 to 13.5": every pinned release in between that knows the target and the version; "H200"
    target: str  # "sm_90a"
    ptx: str = ""  # version of the module; the newest that each release speaks where there is none
    compiled_for: str = ""  # another target than that of the module
    asked: str = ""
    example: str = ""  # instead: digest of an example of the reference, see spec/evidence/examples.json
    answer: str  # "accepted", or the exact message
    database: str = ""  # "accepts" or "refuses"; empty where it is not about a single instruction


class Erratum(Entry, frozen=True, kw_only=True):
    """A place where the manual contradicts itself, the assembler or the chip."""

    id: str  # "f64-k16-a-col"
    section: str
    says: str
    holds: str
    known: str  # how that is known
    family: str = ""
    seen: tuple[Sighting, ...] = ()
    textual: bool = False  # the manual against itself, or against arithmetic: no tool takes part

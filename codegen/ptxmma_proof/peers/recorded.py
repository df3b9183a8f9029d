"""The peers' own layouts as text: any spec can be compared with them without the headers or a compiler.

``ptxmma_proof/recorded/`` has those on which the peer and we agreed, for some of wgmma's N.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

FOLDER = Path(__file__).parent.parent / "recorded"
_ATOMS, _SHARED, _FIELDS = "atoms.jsonl", "shared_memory.jsonl", "descriptor.json"


class AtomRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """An atom of CuTe that is one of our instructions.

    Attributes:
        atom: the C++ type; ``""`` in a file, where atoms with the same layouts share a line.
        instruction: our canonical spelling.
        form: name of the operand form.
        layouts: CuTe's layout of each operand in registers, by our name of the operand.
        shapes: the same of operands in shared memory.  There CuTe's layout gives every thread the whole matrix, and so only has the
            shape of the operand; :class:`SharedRecord` has the places of its elements.
        threads: the layout of thread numbers.
        vector: columns that share a scale factor; 0 without scale factors.
    """

    atom: str = ""
    instruction: str
    form: str = ""
    layouts: dict[str, str]
    shapes: dict[str, str] = msgspec.field(default_factory=dict)
    threads: str
    vector: int = 0


class SharedRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An operand in shared memory as CuTe lays it out, and the descriptor that CuTe makes for it."""

    atom: str  # "SW128"
    majorness: str
    bits: int
    rows: int
    depth: int
    layout: str  # the layout of the shared-memory atom, with its swizzle
    image: str  # the image of the operand, before the swizzle
    descriptor: int


class Peer(NamedTuple):
    """CuTe's atoms, operands in shared memory, and the bits of each field of its descriptor."""

    atoms: tuple[AtomRecord, ...]
    shared: tuple[SharedRecord, ...]
    fields: dict[str, int]

    def write(self, folder: Path) -> None:
        """Write the files of a folder.

        Raises:
            OSError: one cannot be written.
        """
        unnamed = {_key(record): record for record in (msgspec.structs.replace(each, atom="") for each in self.atoms)}
        (folder / _ATOMS).write_bytes(_lines(unnamed[key] for key in sorted(unnamed)))
        (folder / _SHARED).write_bytes(_lines(self.shared))
        (folder / _FIELDS).write_bytes(msgspec.json.encode(self.fields) + b"\n")


def read(folder: Path = FOLDER) -> Peer:
    """Read the files of a folder.

    Raises:
        OSError: a file cannot be read.
        ValueError: a line is not such a record.
    """
    atoms = msgspec.json.Decoder(AtomRecord).decode_lines((folder / _ATOMS).read_bytes())
    shared = msgspec.json.Decoder(SharedRecord).decode_lines((folder / _SHARED).read_bytes())
    return Peer(tuple(atoms), tuple(shared), msgspec.json.decode((folder / _FIELDS).read_bytes(), type=dict[str, int]))


def _key(record: AtomRecord) -> bytes:
    return msgspec.json.encode((record.instruction, record))


def _lines(records: Iterable[AtomRecord | SharedRecord]) -> bytes:
    return msgspec.json.Encoder().encode_lines(list(records))

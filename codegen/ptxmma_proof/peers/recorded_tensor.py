"""Answers of peers about tensor memory as text: any spec can be compared with them without the peers.

``ptxmma_proof/recorded/tensor_memory.jsonl`` has the answers on which a peer and we agree: places of operands and of the registers of
loads and stores, as digests, and the sizes of products.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import tensor_places
from ptxmma.model.digits import NotDigitsError
from ptxmma_proof.peers import product_shapes, register_loads, tensor_cases
from ptxmma_proof.peers.product_shapes import Allowed
from ptxmma_proof.peers.recorded import FOLDER
from ptxmma_proof.peers.register_loads import Load, Loaded
from ptxmma_proof.peers.tensor_cases import Axis, Case, Values, Verdict

_FILE = "tensor_memory.jsonl"
_DIGITS = 12


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, tag_field="record"):
    """An answer of a peer."""

    peer: str


class Operand(_Record, frozen=True, kw_only=True, tag="operand"):
    """The places of an operand, as in :class:`Case`."""

    kind: str
    matrix: str
    facts: dict[str, str | int]
    numbers: dict[str, int]
    axes: tuple[Axis, ...]
    selected: dict[str, int] = {}
    count: int
    places: str  # their digest


class Registers(_Record, frozen=True, kw_only=True, tag="registers"):
    """The places of the registers of a load or store, as in :class:`Load`."""

    opcode: str
    split: int = 0
    places: str


class Sizes(_Record, frozen=True, kw_only=True, tag="sizes"):
    """The sizes of products, as in :class:`Allowed`: for each M every N."""

    facts: dict[str, str | int]
    sizes: dict[str, tuple[int, ...]]
    exact: bool = False  # it allows no others


Record = Operand | Registers | Sizes


class Tensor(NamedTuple):
    """The answers of peers about tensor memory."""

    records: tuple[Record, ...]

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Tensor:
        """Read the file of a folder.

        Raises:
            OSError: it cannot be read.
            ValueError: a line is not such a record.
        """
        return cls(tuple(msgspec.json.Decoder(Record).decode_lines((folder / _FILE).read_bytes())))

    @classmethod
    def agreeing(cls, verdicts: Iterable[Verdict], loaded: Iterable[Loaded], allowed: Iterable[product_shapes.Difference]) -> Tensor:
        """Return the answers that the database gives, too, and the sizes of each peer that allows no others."""
        found: list[Record] = [_operand(each.case) for each in verdicts if not each.wrong]
        found += [_registers(each.load) for each in loaded if not each.wrong]
        return cls((*found, *(_sizes(each.allowed, exact=not each.only_ours) for each in allowed if not each.only_theirs)))

    def write(self, folder: Path) -> None:
        """Write the file of a folder, the same answer of two peers once.

        Raises:
            OSError: it cannot be written.
        """
        encoder = msgspec.json.Encoder(order="sorted")
        once = {encoder.encode(msgspec.structs.replace(each, peer="")): each for each in reversed(self.records)}
        (folder / _FILE).write_bytes(encoder.encode_lines([once[key] for key in sorted(once)]))

    def contradictions(self, catalog: Catalog) -> Iterator[str]:
        """Yield the answers that a catalog contradicts, in words.

        Raises:
            UnknownInstruction: it lacks an instruction of a peer.
        """
        for each in self.records:
            try:
                agrees = _agrees(catalog, each)
            except NotDigitsError:  # two elements in one place, which no peer has
                agrees = False
            if not agrees:
                yield f"{each.peer}: {msgspec.json.encode(each).decode()}"


def _agrees(catalog: Catalog, record: Record) -> bool:
    spec = catalog.database.spec
    if isinstance(record, Registers):
        return _digest(register_loads.ours(catalog, record.opcode, record.split)[1]) == record.places
    if isinstance(record, Sizes):
        theirs = product_shapes.recorded(record.sizes)
        ours = product_shapes.sizes(spec.tensor_products, record.facts) if spec.tensor_products else frozenset()
        return ours == theirs if record.exact else theirs <= ours
    memory = spec.tensor_memory_of({"name": "tcgen05.mma"})
    named = record.kind, record.matrix, record.facts, record.numbers, record.axes, record.selected
    case = Case(record.peer, "", *named, np.empty(record.count, np.int64))
    placed = tensor_places.of(memory, case.kind, case.matrix, {**case.facts, **case.numbers}, case.numbers) if memory else None
    if memory is None or placed is None:
        return False
    found = [tensor_cases.ours(memory, placed, case, cta) for cta in range(case.numbers["ctas"])]
    return all(not elsewhere.any() and _digest(here) == record.places for _, here, elsewhere in found)


def _operand(case: Case) -> Operand:
    return Operand(
        peer=case.peer, kind=case.kind, matrix=case.matrix, facts=dict(case.facts), numbers=dict(case.numbers), axes=case.axes,
        selected=dict(case.selected), count=case.places.size, places=_digest(case.places),
    )  # fmt: skip


def _registers(load: Load) -> Registers:
    return Registers(peer=load.peer, opcode=load.opcode, split=load.split, places=_digest(load.places))


def _sizes(allowed: Allowed, *, exact: bool) -> Sizes:
    return Sizes(peer=allowed.peer, facts=dict(allowed.facts), sizes=allowed.by_m, exact=exact)


def _digest(places: Values) -> str:
    """The digest of places and of their shape."""
    return hashlib.sha256(f"{places.shape}".encode() + np.ascontiguousarray(places, "<i8").tobytes()).hexdigest()[:_DIGITS]

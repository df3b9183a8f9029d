"""Compares the peers' recorded layouts with the layouts of any spec, in milliseconds."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.layouts.interop import CuteLayout, from_cute
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.shared_memory import Descriptor, operand_addresses
from ptxmma_proof.peers import element_places as places
from ptxmma_proof.peers.element_places import OtherSizeError, Values
from ptxmma_proof.peers.recorded import AtomRecord, Peer, SharedRecord

#: CuTe's letter for the layout of each operand.
_MATRICES = {"a": "A", "b": "B", "c": "C", "d": "C"}
_BYTE = 8


class Difference(NamedTuple):
    """The difference between a peer and us: both sides of the first of ``places`` differing places, out of ``of``."""

    peer: str  # "CuTe" or "PyTorch"
    subject: str  # an atom, a layout in shared memory, a field
    operand: str
    theirs: str
    ours: str
    places: int
    of: int


class Counted(NamedTuple):
    """The outcome: differences, operands that agree, all their places, and operands of which only the shape could be compared."""

    differences: list[Difference]
    passes: int
    places: int
    shapes: int


def role(instruction: Instruction, operand: Operand) -> str | None:
    """The letter of CuTe's layout of an operand, ``"A"`` for ``ALayout``, or None."""
    if operand.kind == "metadata":
        return "E"
    if operand.kind == "scale-data":
        return f"SF{instruction.variant.instruction.operand_kinds[operand.name].of.upper()}"
    if operand.kind == "descriptor" or operand.elements:
        return _MATRICES.get(operand.name.removesuffix("-desc"))
    return None


def compare(peer: Peer, catalog: Catalog) -> Counted:
    """Compare CuTe's layouts with a catalog."""
    comparer = _Comparer(catalog)
    for atom in peer.atoms:
        comparer.atom(atom)
    memory = catalog.database.spec.shared_memory
    if memory is not None:
        comparer.fields(peer.fields)
        for operand in peer.shared:
            comparer.shared(operand)
    return Counted(comparer.differences, comparer.passes, comparer.places, comparer.shapes)


def subject(operand: SharedRecord) -> str:
    """The name of an operand in shared memory in differences."""
    return f"GMMA::Layout_{operand.majorness}_{operand.atom}_Atom, {operand.bits} bits, {operand.rows} x {operand.depth}"


def image(operand: SharedRecord) -> Values:
    """The bytes at which CuTe lays the elements of an operand in shared memory, (rows, depth)."""
    plain = from_cute(operand.image)
    swizzle = from_cute(operand.layout).swizzle
    offsets = plain(np.arange(operand.rows)[:, np.newaxis], np.arange(operand.depth))
    return np.asarray((swizzle(offsets) if swizzle else offsets) * operand.bits // _BYTE)


def addresses(operand: SharedRecord, catalog: Catalog) -> Values:
    """The places where our library finds the same elements through CuTe's descriptor."""
    database = catalog.database
    element = next(entry for entry in database.spec.types.elements if entry.bits == operand.bits)
    descriptor = Descriptor.decode(operand.descriptor, database=database)
    return operand_addresses(descriptor, operand.rows, operand.depth, element, operand.majorness, database=database)


class _Comparer:
    """Compares operand by operand, and what many atoms share only once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.instructions = {instruction.canonical: instruction for instruction in catalog.all()}
        self.values: dict[str, Values] = {}
        self.known: dict[Any, tuple[str, str, int, int]] = {}
        self.differences: list[Difference] = []
        self.passes = self.places = self.shapes = 0

    def atom(self, atom: AtomRecord) -> None:
        """All operands of an atom."""
        try:
            instruction = self.instructions[atom.instruction]
            form = next(form for form in instruction.forms if form.name == atom.form)
            operands = [(form.operand(name), text) for name, text in (atom.layouts | atom.shapes).items()]
        except (StopIteration, KeyError):
            ours = f"no such instruction, or other operands than {', '.join(atom.layouts | atom.shapes)}"
            self._note(atom.atom or atom.instruction, "", (atom.instruction, ours, 1, 1))
            return
        for operand, text in operands:
            key = (text, atom.threads, atom.vector, operand.name, *self._decisive(instruction, operand))
            if key not in self.known:
                self.known[key] = self._operand(instruction, operand, atom, text)
            self._note(atom.atom or atom.instruction, operand.name, self.known[key], shape_only=operand.kind == "descriptor")

    def _decisive(self, instruction: Instruction, operand: Operand) -> tuple[object, ...]:
        """All that the places of an operand depend on."""
        named = operand.layout.name if operand.layout else ""
        return named, operand.rows, operand.cols, operand.elements, instruction.sparse, instruction.shape

    def _operand(self, instruction: Instruction, operand: Operand, atom: AtomRecord, text: str) -> tuple[str, str, int, int]:
        """Both sides of the first place that differs, the number that differ, and the number of all."""
        layout = _readable(text)
        if layout is None:
            return f"no function: {text}", "a layout", 1, 1
        if operand.kind == "descriptor":
            return _shape(instruction, operand, layout)
        if text not in self.values:
            self.values[text] = places.evaluated(layout)
        theirs = self.values[text]
        threads = from_cute(atom.threads)
        try:
            products = list(ours(instruction, operand, threads(np.arange(threads.size)), theirs.shape[1], atom.vector))
        except OtherSizeError as error:
            return f"{error}".partition("; ")[0], f"{error}".partition("; ")[2], theirs.size, theirs.size
        for own in products:
            if own.shape != theirs.shape:
                return f"{theirs.shape[0]} threads", f"{own.shape[0]} threads", theirs.size, theirs.size
            wrong = np.argwhere(own != theirs)
            if len(wrong):
                thread, value = map(int, wrong[0])
                rows = _rows(instruction, operand)
                at = f"thread {thread}, value {value}: "
                return (
                    at + _place(int(theirs[thread, value]), rows),
                    at + _place(int(own[thread, value]), rows),
                    len(wrong),
                    theirs.size,
                )
        return "", "", 0, theirs.size * len(products)

    def shared(self, operand: SharedRecord) -> None:
        """An operand in shared memory, through CuTe's descriptor."""
        theirs, own = image(operand), addresses(operand, self.catalog)
        wrong = np.argwhere(theirs != own)
        said = ("", "", 0, own.size)
        if len(wrong):
            x, k = map(int, wrong[0])
            at = f"element ({x}, {k}): byte "
            said = f"{at}{int(theirs[x, k])}", f"{at}{int(own[x, k])} with its descriptor {operand.descriptor:#x}", len(wrong), own.size
        self._note(subject(operand), f"{operand.majorness}-major operand", said)

    def fields(self, fields: dict[str, int]) -> None:
        """The fields of a descriptor: the same bits."""
        own = {(1 << field.width) - 1 << field.low: field.name for field in matrix_format(self.catalog.database.spec, "wgmma").fields}
        for name, bits in fields.items():
            said = (
                ("", "", 0, 1)
                if bits in own
                else (f"bits {bits:#x}", f"{', '.join(f'{name} {mask:#x}' for mask, name in own.items())}", 1, 1)
            )
            self._note("GmmaDescriptor", name, said)

    def _note(self, name: str, operand: str, said: tuple[str, str, int, int], *, shape_only: bool = False) -> None:
        theirs, ours, wrong, total = said
        if shape_only:
            self.shapes += not wrong
        else:
            self.places += total
            self.passes += not wrong
        if not wrong:
            return
        self.differences.append(Difference("CuTe", name, operand, theirs, ours, wrong, total))


def ours(instruction: Instruction, operand: Operand, threads: Values, values: int, vector: int) -> Iterator[Values]:
    """Our places of an operand in the registers of the peer's threads; once for each independent product of the instruction.

    Raises:
        OtherSizeError: the peer has another number of threads or values.
    """
    assert instruction.shape
    if operand.kind == "metadata":
        yield places.metadata(instruction, values)
    elif operand.kind == "scale-data":
        yield places.scales(instruction, instruction.variant.instruction.operand_kinds[operand.name].of, values, vector)
    else:
        sparse = instruction.sparse and operand.name == "a"
        yield from places.fragment(operand, threads, values, instruction.shape[2] if sparse else 0)


def _rows(instruction: Instruction, operand: Operand) -> int:
    """Rows of the matrix as CuTe counts them."""
    assert instruction.shape
    m, n, _ = instruction.shape
    of_b = operand.name == "b" or (operand.kind == "scale-data" and instruction.variant.instruction.operand_kinds[operand.name].of == "b")
    return n if of_b else m


def _place(index: int, rows: int) -> str:
    return f"({index % rows}, {index // rows})" if index >= 0 else "another product or register"


def _shape(instruction: Instruction, operand: Operand, layout: CuteLayout) -> tuple[str, str, int, int]:
    """The shape of an operand in shared memory: its layout gives every thread the whole matrix."""
    assert instruction.shape
    m, n, k = instruction.shape
    rows = m if operand.name.startswith("a") else n
    own = CuteLayout((instruction.database.spec.scopes[instruction.variant.instruction.scope], (rows, k)), (0, (1, rows)))
    return ("", "", 0, 1) if layout == own else (str(layout), str(own), 1, 1)


@functools.cache
def _readable(text: str) -> CuteLayout | None:
    """A layout, or None if its strides do not fit its shape."""
    try:
        return from_cute(text)
    except ValueError:
        return None

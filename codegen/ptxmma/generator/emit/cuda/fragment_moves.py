"""The data of the header that moves fragments: loads and stores of matrices that move one register of a thread for each matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text


class Narrow(NamedTuple):
    """Loads or stores that transpose matrices of elements of which four share a register.

    Attributes:
        functions: the functions by the number of registers.
        layout: the layout of the most matrices in registers; addresses: the layout of their addresses.
        unit: bits of an element; rows: of a matrix in memory.
    """

    functions: Mapping[int, str]
    layout: str
    addresses: str
    unit: int
    rows: int


class Matrices(NamedTuple):
    """The loads, or the stores.

    Attributes:
        header: ``"ldmatrix"``.
        functions: the functions by whether the matrices are transposed, then by the number of registers.
        plain: the layout of the most matrices in registers; transposed: the same, transposed; addresses: the layout of their addresses.
        unit: bits that move together.
        rows: the rows of a matrix; row_bits: the bits of one.
        narrow: the loads or stores that transpose matrices of narrower elements.
    """

    header: str
    functions: Mapping[bool, Mapping[int, str]]
    plain: str
    transposed: str
    addresses: str
    unit: int
    rows: int
    row_bits: int
    narrow: Narrow | None


class Access(NamedTuple):
    """A load or store of shared memory, from and to words of 32 bits; less than a word lies in the word's low bytes.

    Attributes:
        bytes, words: the amount that it moves.
        type: ``".v2.b32"``.
        stored, loaded: its list of registers in PTX.
        inputs, outputs: the operands of the asm statement.
    """

    bytes: int
    words: int
    type: str
    stored: str
    loaded: str
    inputs: str
    outputs: str


def access(size: int) -> Access:
    """The access to so many bytes: a power of two up to 16."""
    words = max(size // 4, 1)

    def listed(first: int) -> str:
        names = ", ".join(f"%{first + word}" for word in range(words))
        return f"{{{names}}}" if words > 1 else names

    return Access(
        bytes=size,
        words=words,
        type=(f".v{words}" if words > 1 else "") + f".b{8 * min(size, 4)}",
        stored=listed(1),
        loaded=listed(0),
        inputs=", ".join(f'"r"(words[{word}])' for word in range(words)),
        outputs=", ".join(f'"=r"(words[{word}])' for word in range(words)),
    )


def of(catalog: Catalog, operation: str) -> Matrices | None:
    """The instructions of an operation, ``"load"`` or ``"store"``, that give a row's address in 32 bits; None where there are none."""
    functions: dict[bool, dict[int, str]] = {False: {}, True: {}}
    largest: dict[bool, tuple[Operand, Operand]] = {}
    header = ""
    for instruction in catalog.all(lambda entry: entry.operation == operation):
        pair = _moved(instruction)
        if pair is not None:
            fragment, address = pair
            assert fragment.layout is not None
            first, _ = fragment.layout.map.bits["i"][0]
            transposed = first in address.axes  # neighbours in a register lie in different rows
            functions[transposed].setdefault(fragment.registers, instruction.identifier)
            if transposed not in largest or largest[transposed][0].registers < fragment.registers:
                largest[transposed], header = pair, instruction.family
    if not all(functions.values()):
        return None
    (plain, address), (turned, _) = largest[False], largest[True]
    assert plain.layout is not None
    assert turned.layout is not None
    assert address.layout is not None
    return Matrices(
        header=c_text.identifier(header),
        functions=functions,
        plain=c_text.identifier(plain.layout.name),
        transposed=c_text.identifier(turned.layout.name),
        addresses=c_text.identifier(address.layout.name),
        unit=plain.bits,
        rows=plain.rows,
        row_bits=8 * address.row_bytes,
        narrow=_narrow(catalog, operation),
    )


def _narrow(catalog: Catalog, operation: str) -> Narrow | None:
    """The loads or stores that transpose matrices of narrow elements; None where there are none."""
    stored = {element.name for element in catalog.database.spec.types.elements if element.c_type}  # as memory has them, without padding
    functions: dict[int, str] = {}
    largest: tuple[Operand, Operand] | None = None
    for instruction in catalog.all(lambda entry: entry.operation == operation):
        pair = _operands(instruction)
        if pair is None or pair[0].elements_per_register != 4 or not _whole(*pair) or pair[0].element_type not in stored:
            continue
        functions.setdefault(pair[0].registers, instruction.identifier)
        if largest is None or largest[0].registers < pair[0].registers:
            largest = pair
    if largest is None:
        return None
    fragment, address = largest
    assert fragment.layout is not None
    assert address.layout is not None
    first, _ = fragment.layout.map.bits["i"][0]
    if first not in address.axes:
        return None
    return Narrow(
        functions=functions,
        layout=c_text.identifier(fragment.layout.name),
        addresses=c_text.identifier(address.layout.name),
        unit=fragment.bits,
        rows=fragment.rows,
    )


def values(catalog: Catalog) -> dict[str, Any] | None:
    """The values that the template reads; None where a spec does not have both loads and stores."""
    loads, stores = of(catalog, "load"), of(catalog, "store")
    if loads is None or stores is None:
        return None
    accesses = [access(size) for size in (1, 2, 4, 8, 16)]
    return {"loads": loads, "stores": stores, "warp": catalog.database.spec.lanes, "accesses": accesses}


def _moved(instruction: Instruction) -> tuple[Operand, Operand] | None:
    """The fragment and the address of a load or store in which each matrix is one register of each thread."""
    pair = _operands(instruction)
    if pair is None:
        return None
    one_each = pair[0].registers == pair[0].sizes.get("matrix", 1)
    return pair if one_each and _whole(*pair) and pair[0].elements_per_register == 2 else None


def _operands(instruction: Instruction) -> tuple[Operand, Operand] | None:
    """The fragment and the address, where it has both and the address takes 32 bits."""
    operands = {operand.kind: operand for operand in instruction.operands}
    fragment, address = operands.get("fragment"), operands.get("address")
    if fragment is None or address is None or address.layout is None or address.constraint == "l":
        return None
    return fragment, address


def _whole(fragment: Operand, address: Operand) -> bool:
    """Return whether the rows at the addresses are the fragment's, bit for bit."""
    return fragment.cols * fragment.bits == 8 * address.row_bytes

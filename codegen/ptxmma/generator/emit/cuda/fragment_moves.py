"""What the header that moves fragments reads: the loads and stores of matrices that move one register of a thread for each matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text


class Matrices(NamedTuple):
    """The loads, or the stores.

    Attributes:
        header: ``"ldmatrix"``.
        functions: by whether the matrices are transposed, then by the number of registers.
        plain: layout of the most matrices in registers; transposed: the same, transposed; addresses: that of their addresses.
        unit: bits that move together.
        rows: of a matrix; row_bits: the bits of one.
    """

    header: str
    functions: Mapping[bool, Mapping[int, str]]
    plain: str
    transposed: str
    addresses: str
    unit: int
    rows: int
    row_bits: int


class Access(NamedTuple):
    """A load or store of shared memory, from and to words of 32 bits; fewer bytes than a word's lie in its low ones.

    Attributes:
        bytes, words: what it moves.
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
    """That of so many bytes: a power of two up to 16."""
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
    )


def values(catalog: Catalog) -> dict[str, Any] | None:
    """What the template reads; None where a spec has not both loads and stores."""
    loads, stores = of(catalog, "load"), of(catalog, "store")
    if loads is None or stores is None:
        return None
    accesses = [access(size) for size in (1, 2, 4, 8, 16)]
    return {"loads": loads, "stores": stores, "warp": catalog.database.spec.scopes["warp"], "accesses": accesses}


def _moved(instruction: Instruction) -> tuple[Operand, Operand] | None:
    """The fragment and the address of a load or store in which each matrix is one register of each thread."""
    operands = {operand.kind: operand for form in instruction.forms for operand in form.operands}
    fragment, address = operands.get("fragment"), operands.get("address")
    if fragment is None or address is None or address.layout is None or address.constraint == "l":
        return None
    one_each = fragment.registers * fragment.elements_per_register * fragment.bits == 32 * fragment.sizes.get("matrix", 1)
    whole_rows = fragment.cols * fragment.bits == 8 * address.row_bytes and fragment.elements_per_register == 2
    return (fragment, address) if one_each and whole_rows else None

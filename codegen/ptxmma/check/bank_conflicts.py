"""Accesses to shared memory that take a warp longer than they must, where the addresses can be traced to the index of the thread.

What is unknown does not matter if it is the same in all lanes: a pattern of addresses costs the same wherever it begins.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.matrices.shared.accesses import wavefronts
from ptxmma.model import formula
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.lane_values import WARP
from ptxmma.ptx.statements import Token
from ptxmma.ptx.writes import predicate_before

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.model import SharedMemory, Swizzle
    from ptxmma.ptx.lane_values import LaneValues
    from ptxmma.ptx.statements import Function

_ROWS = ".reg .b32 %a<6>;\nmov.u32 %a0, %tid.x;\nshl.b32 %a1, %a0, 7;\nmov.u32 %a2, tile;"
_SWIZZLED = "and.b32 %a3, %a0, 7;\nshl.b32 %a4, %a3, 4;\nxor.b32 %a1, %a1, %a4;"
_READ = f"add.u32 %a5, %a2, %a1;\n{examples.LOAD.replace('[tile]', '[%a5]')}"

RULES: Mapping[str, Rule] = {
    "bank-conflict": Rule(
        "Lanes that shared memory serves together ask for words of different banks, or for the same words.",
        "A bank serves one word at a time: an access takes as many wavefronts as one bank has different words to serve. A warp is served "
        "at once, half of it for 8 bytes in each lane, a quarter for 16, and 8 rows of a matrix. Addresses are followed from %tid.x and "
        "constants; what is unknown, but the same in all lanes, does not matter. All lanes are counted, or those for which the "
        "instruction's predicate holds. Accesses of one pattern have one note. It is looked for only if notes are asked for.",
        "Store with a swizzle, which moves the 16-byte units of each row, or append 16 bytes to each row.",
        f"{_ROWS}\n{_READ}",
        f"{_ROWS}\n{_SWIZZLED}\n{_READ}",
    ),
}

#: An access to shared memory: its opcode, and its operands.
_ACCESS = re.compile(
    rb"(?P<opcode>(?:ld|st)(?<![\w$%.]..)(?:matrix\b[\w.:]*"
    rb"|(?:\.\w+)*?\.shared(?:::cta)?(?:\.v(?P<count>[24]))?\.[busf](?P<bits>\d+)))\s+(?P<operands>[^;]*);"
)
_ADDRESS = re.compile(rb"\[\s*([\w$%]+)")
#: Addresses have 32 bits and wrap round; an access reaches less than half of that far.
_HALF = 1 << 31
#: The addresses of the lanes that take part, after the first one's; None for the others.
_Addresses = tuple[int | None, ...]


class _Access(NamedTuple):
    """An access of a warp.

    Attributes:
        token: its opcode.
        width: bytes that each lane accesses.
        addresses: the addresses.
        cost: the wavefronts that it takes.
    """

    token: Token
    width: int
    addresses: _Addresses
    cost: int


class BankConflicts:
    """Judges accesses to shared memory by a database; of one without shared memory, it passes all."""

    def __init__(self, catalog: Catalog) -> None:
        self._memory = catalog.database.spec.shared_memory

    def of_function(self, function: Function) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on accesses that take longer than they must, each with its opcode: one for all of the same pattern."""
        memory = self._memory
        if memory is None or b"%tid.x" not in function.text:
            return
        alike: dict[tuple[bytes, _Addresses], list[_Access]] = {}
        for access in _accesses(function, memory):
            alike.setdefault((access.token.text, access.addresses), []).append(access)
        for first, *others in alike.values():
            parts = _parts(first, memory)
            if first.cost > len(parts):
                message = f"a warp takes {first.cost} wavefronts for it, not {len(parts)}: {_reason(first, parts, memory)}"
                message += f"; {len(others)} more of this pattern" if others else ""
                yield Remark(first.token, "note", "bank-conflict", message), first.token.text


def _accesses(function: Function, memory: SharedMemory) -> Iterator[_Access]:
    """The accesses of a function whose addresses are known, each by the warp that it costs least."""
    values, banks = function.lanes, memory.banks
    known: dict[tuple[bytes, bytes, int, int], tuple[int, _Addresses] | None] = {}  # many accesses differ in a constant
    for match in _ACCESS.finditer(function.text):
        address, lanes = _ADDRESS.search(match["operands"]), WARP
        value = values.of(address[1]) if address else None
        if address is None or value is None or value.uneven:
            continue
        if match["bits"]:
            width = max(int(match["bits"]) // 8, 1) * int(match["count"] or 1)
        else:  # each lane gives the address of a row, and a register of all lanes holds a word of every bank
            width = memory.alignment
            lanes = len(words_of(_ADDRESS.sub(b"", match["operands"]))) * banks.count * banks.bytes // width
        key = address[1], predicate_before(function.text, match.start()), width, lanes
        if key not in known:
            takes = _taking_part(values, key[1], len(value.numbers))
            numbers = [number if taken else None for number, taken in zip(value.numbers, takes, strict=True)]
            warps = {_relative(numbers[first : first + lanes]): None for first in range(0, len(numbers), WARP)}  # most are alike
            costs = [(wavefronts(warp, width, banks), warp) for warp in warps if any(each is not None for each in warp)]
            known[key] = min(costs, key=lambda each: each[0], default=None)
        if (cheapest := known[key]) is not None:
            cost, warp = cheapest
            yield _Access(Token(match["opcode"], match.start("opcode")), width, warp, cost)


def _taking_part(values: LaneValues, predicate: bytes, threads: int) -> list[bool]:
    """For each thread, true if it executes an instruction, as far as its predicate is known."""
    value = values.of(predicate.lstrip(b"!")) if predicate else None
    if value is None or not value.exact:
        return [True] * threads
    return [bool(number) != predicate.startswith(b"!") for number in value.numbers]


def _relative(numbers: Sequence[int | None]) -> _Addresses:
    """The addresses of a warp after its first one."""
    start = next((number for number in numbers if number is not None), 0)
    return tuple([None if number is None else (number - start + _HALF) % (2 * _HALF) - _HALF for number in numbers])


def _parts(access: _Access, memory: SharedMemory) -> list[_Addresses]:
    """The groups of addresses that the banks can serve together, each in one wavefront."""
    together = memory.banks.count * memory.banks.bytes // max(access.width, memory.banks.bytes)
    parts = [access.addresses[first : first + together] for first in range(0, len(access.addresses), together)]
    return [part for part in parts if any(each is not None for each in part)]


def _reason(access: _Access, parts: Sequence[_Addresses], memory: SharedMemory) -> str:
    """Two lanes that are in each other's way, and the swizzle with which the access takes the fewest wavefronts."""
    banks, addresses = memory.banks, access.addresses
    part = max(parts, key=lambda each: wavefronts(each, access.width, banks))
    words = [(addresses.index(address), address // banks.bytes) for address in part if address is not None]
    one, other = next(
        pair for pair in itertools.combinations(words, 2) if pair[0][1] != pair[1][1] and (pair[0][1] - pair[1][1]) % banks.count == 0
    )
    reason = f"lanes {one[0]} and {other[0]} ask one bank for words that are {abs(one[1] - other[1]) * banks.bytes} bytes apart"
    costs = {swizzle.title: wavefronts(_swizzled(addresses, swizzle, memory), access.width, banks) for swizzle in memory.swizzles}
    best = min(costs, key=costs.__getitem__)
    return f"{reason}; with the {best} it takes {costs[best]}" if costs[best] < access.cost else reason


def _swizzled(addresses: _Addresses, swizzle: Swizzle, memory: SharedMemory) -> _Addresses:
    """The addresses if the bytes of a pattern that begins at 0 were swizzled."""
    moved = formula.parse(swizzle.formula or memory.swizzle_formula)
    known: dict[str, formula.Value] = {"address": [each or 0 for each in addresses], "base_offset": 0, "span": swizzle.bytes}
    places = formula.evaluate(moved, known)
    assert isinstance(places, list)  # as the addresses are
    return tuple([None if each is None else place for each, place in zip(addresses, places, strict=True)])

"""Columns of tensor memory that a kernel allocates and frees, and accesses that leave them, as far as numbers and addresses are known.

Known are addresses that are constants, and those that add constants to the address that the allocation left in shared memory.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog.requirements import targets_of
from ptxmma.check import rule_examples as examples
from ptxmma.check.operand_faults import constants
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.check.kernels import Kernel
    from ptxmma.model import Space, Step
    from ptxmma.ptx.known_bits import KnownBits
    from ptxmma.ptx.statements import Statement

_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;\nld.shared.b32 %r0, [slot];"
_LOAD = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2, %r3, %r4}, [%r0+{}];\ntcgen05.wait::ld.sync.aligned;"
_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;"

RULES: Mapping[str, Rule] = {
    "tensor-memory-bounds": Rule(
        "Loads, stores, copies and products stay in the columns that the kernel has allocated, and in the lanes that there are.",
        "Other columns belong to other thread blocks of the multiprocessor, or to none. Assemblers look at no address.",
        "Allocate the columns that the message names, or begin the access earlier.",
        examples.tensor_kernel(_ALLOC, _LOAD.replace("{}", "62"), _FREE),
        examples.tensor_kernel(_ALLOC, _LOAD.replace("{}", "60"), _FREE),
    ),
    "tensor-memory-columns": Rule(
        "A kernel frees as many columns of tensor memory as it has allocated, and their number is a legal one in a register, too.",
        "Assemblers look at constants alone, and at each by itself. An allocation of which a part is freed is not one that the manual has.",
        "Write the same number into tcgen05.alloc and tcgen05.dealloc: a power of two from 32 to 512.",
        examples.tensor_kernel(examples.TENSOR_ALLOCATION.replace(" 32;", " 64;"), "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE),
        examples.tensor_kernel(examples.TENSOR_ALLOCATION, "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE),
    ),
}

_ADDRESS = re.compile(rb"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+)\s*)?\]")
#: An instruction that makes an address of another one, or reads the first one from shared memory.
_MOVED = re.compile(rb"(?:mov\.[bus]|add\.[us])32|ld(?:\.\w+)*\.shared[\w.:]*")
#: Instructions between an address and the one that it is made of.
_DEEPEST = 64
#: The bits of an address that have the column; the lane is above them.
COLUMN_BITS = 16
#: The start of the kinds of operands that are addresses in tensor memory.
_TENSOR = "tensor-"


class _Access(NamedTuple):
    """The part of tensor memory that an operand takes from its address on."""

    place: int  # the number of the operand
    lanes: int  # 0 where the upper half of the address may have something else
    columns: int
    source: str


class TensorAddresses:
    """The addresses of a kernel: constants, and distances from what it loads from shared memory.

    Args:
        kernel: the kernel.
        statements: the instructions of the kernel.
    """

    def __init__(self, kernel: Kernel, statements: Sequence[Statement]) -> None:
        self._kernel = kernel
        self._distances = functools.cache(self._distance)  # many accesses have one address
        #: The opcodes of instructions that read their first operand.
        self._reading = tuple({each.opcode for each in statements if each.operands and not each.operands[0].startswith((b"{", b"["))})

    def of(self, operand: bytes, *, exact: bool = False) -> tuple[int, bool] | None:
        """The number of an address, and whether it counts from an allocation; None where it is not known.

        Of numbers that are not known, the smallest counts, and of an index that goes round in a ring, the last; unless it is to be exact.
        """
        match = _ADDRESS.fullmatch(operand)
        offset = integer(match[2]) if match and match[2] else 0
        if match is None or offset is None:
            return None
        bits = self._kernel.bits.of(match[1]).within(32)
        if not bits.unknown:
            return bits.value + offset, False
        distance = self._distances(match[1], exact)
        return None if distance is None else (distance + offset, True)

    def _distance(self, name: bytes, exact: bool) -> int | None:
        """The sum of what is added to an address that is loaded: without the lane, if a register that is added has it."""
        registers, distance, has_lane = self._kernel.registers, 0, False
        for _ in range(_DEEPEST):
            writes = registers.writes(name)
            moves = [write for write in writes if _MOVED.fullmatch(write[0]) and not registers.is_of_list(write)]
            if len(moves) != 1 or sum(not write[0].startswith(self._reading) for write in writes) > 1:
                return None
            opcode, _, rest, place = moves[0]
            if opcode.startswith(b"ld"):
                if not has_lane:
                    return distance
                column = distance % (1 << COLUMN_BITS)
                return column if not column >> (COLUMN_BITS - 1) else None
            added = {operand.strip(): self._added(operand.strip(), exact) for operand in rest.split(b",")}
            bases = [operand for operand, columns in added.items() if columns is None] or [*added][:1]
            if len(bases) > 1 and not exact:
                added |= {operand: self._last(operand, place) for operand in bases}
                bases = [operand for operand in bases if added[operand] is None]
            if len(bases) != 1:
                return None
            (name,) = bases
            has_lane = has_lane or any(operand != name and integer(operand) is None for operand in added)
            distance += sum(columns or 0 for operand, columns in added.items() if operand != name)
        return None

    def _added(self, operand: bytes, exact: bool) -> int | None:
        """The columns that an operand adds, whatever the lane is; None if it may be any number."""
        number = integer(operand)
        if number is not None:
            return number
        bits = self._kernel.bits.of(operand).within(COLUMN_BITS)
        return None if (bits.value | bits.unknown) >> (COLUMN_BITS - 1) or (exact and bits.unknown) else bits.value

    def _last(self, operand: bytes, place: int) -> int | None:
        """The columns that an index adds in the last place of a ring; None for anything else."""
        addresses = self._kernel.addresses
        total = addresses.of(operand, place)
        counts = [(times, addresses.values(index)) for index, times in total.terms.items()]
        if not all(times > 0 and values for times, values in counts):
            return None
        return total.constant + sum(times * (values - 1) for times, values in counts)


class Count(NamedTuple):
    """The operand of an instruction that is a number of columns.

    Attributes:
        place: the number of the operand.
        name: the operand's.
        legal: the numbers that it may be.
        columns: the number; None where it is not known.
    """

    place: int
    name: str
    legal: tuple[int, ...]
    columns: int | None


class TensorMemory:
    """The tensor memory of a kernel: its columns, and the accesses to them.

    Args:
        catalog: the catalog of the instructions.
        kernel: the kernel.
        allocating, freeing: the steps of the protocol.
        statements: the instructions of the kernel on tensor memory.
    """

    def __init__(self, catalog: Catalog, kernel: Kernel, allocating: Step, freeing: Step | None, statements: Sequence[Statement]) -> None:
        self._catalog, self._kernel, self._allocating, self._freeing, self._statements = catalog, kernel, allocating, freeing, statements

    def bounds(self, product_of: Callable[[Statement, KnownBits, str], Instruction | None]) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on accesses that leave it, each with the opcode that it is about.

        Args:
            product_of: the product that an instruction makes of its descriptor; None where it is not known.
        """
        for statement, access, text in self._outside(product_of):
            message = f"{text} (PTX ISA {access.source})"
            yield (
                Remark(self._kernel.function.operand(statement, access.place), "warning", "tensor-memory-bounds", message),
                statement.opcode,
            )

    def _outside(self, product_of: Callable[[Statement, KnownBits, str], Instruction | None]) -> Iterator[tuple[Statement, _Access, str]]:
        addresses = TensorAddresses(self._kernel, self._statements)
        allocated, target = self._allocated, self._kernel.target
        for statement in self._statements:
            if statement.broken is not None:
                continue
            instruction = product_of(statement, self._kernel.bits, target) or self._catalog.meaning(spelling_of(statement.opcode))
            memory = self._catalog.database.spec.tensor_memory_of(instruction.variant.facts) if instruction is not None else None
            if instruction is None or memory is None:
                continue
            most, lanes = self._most(memory), memory.most("lane")
            for access in _accesses(instruction, statement):
                address = addresses.of(statement.operands[access.place])
                if address is None or address[0] < 0:
                    continue
                number, relative = address
                lane, column = (memory.parts(number)[name] for name in ("lane", "column"))
                limit = min(allocated, most) if relative and allocated else most
                what = f"the {limit} columns that the kernel has allocated" if limit < most else f"the {most} columns of tensor memory"
                if column + access.columns > limit:
                    columns = f"columns {column} to {column + access.columns - 1} are" if access.columns > 1 else f"column {column} is"
                    yield statement, access, f"{columns} not among {what}; use lower ones"
                elif access.lanes and lane + access.lanes > lanes:
                    outside = f"lanes {lane} to {lane + access.lanes - 1} are not among the {lanes} of tensor memory; use lower ones"
                    yield statement, access, outside

    @functools.cached_property
    def capacity(self) -> int:
        """The number of columns on the kernel's target; 0 where none of its instructions says which memory it uses."""
        spec = self._catalog.database.spec
        meant = (self._catalog.meaning(spelling_of(each.opcode)) for each in self._statements)
        memories = (spec.tensor_memory_of(instruction.variant.facts) for instruction in meant if instruction is not None)
        return next((self._most(memory) for memory in memories if memory is not None), 0)

    def _most(self, memory: Space) -> int:
        """The columns of tensor memory on the kernel's target; the most on any where it is not known."""
        targets = targets_of(self._catalog.database.spec)
        features = targets.features(self._kernel.target) if self._kernel.target in targets.by_name else ()
        rows = (row.size for row in memory.coordinates["column"] if not features or not {*row.targets}.isdisjoint(features))
        return next(rows, memory.most("column"))

    @functools.cached_property
    def _allocated(self) -> int:
        """The columns of all allocations of the kernel; 0 where they are not known."""
        counts = [self.count_of(each) for each in self._statements_of(self._allocating)]
        columns = [count.columns for count in counts if count is not None and count.columns]
        return sum(columns) if len(columns) == len(counts) else 0

    def _statements_of(self, step: Step | None) -> list[Statement]:
        """The instructions of a step."""
        opcode = step.instruction.encode() if step is not None else None
        return [each for each in self._statements if opcode and each.broken is None and each.opcode.startswith(opcode)]

    def columns(self) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on numbers of columns, each with the opcode that it is about."""
        for each, place, text in self._wrong_numbers():
            yield Remark(self._kernel.function.operand(each, place), "warning", "tensor-memory-columns", text), each.opcode

    def _wrong_numbers(self) -> Iterator[tuple[Statement, int, str]]:
        """The doubts: an instruction, the number of an operand, and the reason."""
        allocated = set[int | None]()
        freed: list[tuple[Statement, int, int]] = []
        allocating = self._statements_of(self._allocating)
        for each in sorted((*allocating, *self._statements_of(self._freeing)), key=lambda each: each.start):
            count = self.count_of(each)
            if count is None:
                continue
            place, columns = count.place, count.columns
            if columns is not None and columns not in count.legal:
                if integer(each.operands[place]) is None:
                    yield each, place, f"{count.name} is {columns} here; it must be {constants(count.legal)}"
                columns = None
            if each in allocating:
                allocated.add(columns)
            elif columns is not None:
                freed.append((each, place, columns))
        if allocated and None not in allocated and self._freeing is not None:
            for each, place, columns in freed:
                if columns not in allocated:
                    lacking = f"no {self._allocating.instruction} of the kernel has as many; free as many as were allocated"
                    yield each, place, f"it frees {columns} columns, and {lacking} (PTX ISA {self._freeing.source})"

    def count_of(self, statement: Statement) -> Count | None:
        """The number of columns that an instruction allocates or frees; None where it has no such operand."""
        instruction = self._catalog.meaning(spelling_of(statement.opcode))
        operands = instruction.forms[0].operands if instruction is not None else ()
        for place, (operand, written) in enumerate(zip(operands, statement.operands, strict=False)):
            if operand.kind == "columns":
                value = self._kernel.bits.of(written).within(32)
                return Count(place, operand.name, tuple(operand.immediates or ()), None if value.unknown else value.value)
        return None


def _accesses(instruction: Instruction, statement: Statement) -> Iterator[_Access]:
    """The parts of tensor memory that an instruction takes: one cell of it where their sizes are not known."""
    addressing = [each.startswith(b"[") for each in statement.operands]
    forms = (form.operands for form in instruction.forms)
    operands = next((each for each in forms if [operand.kind.startswith(_TENSOR) for operand in each] == addressing), ())
    fragment = next((each for each in operands if each.kind == "fragment"), None)
    for place, operand in enumerate(operands):
        if not statement.operands[place].startswith(b"["):
            continue
        # CuTe writes the id of scale factors not only into the descriptor, but also into the highest bits of their address.
        lanes = 0 if operand.kind == "tensor-scales" else 1
        if operand.tensor is not None:
            yield _Access(place, lanes, operand.tensor.columns, operand.source)
        elif operand.kind == "tensor-address" and fragment is not None and fragment.sizes.keys() == {"row", "col"}:
            yield _Access(place, fragment.sizes["row"], fragment.sizes["col"], operand.source)
        else:
            yield _Access(place, lanes, 1, operand.source)

"""A machine that runs the PTX of a cluster of two thread blocks: warps, barriers, and engines that finish asynchronous work at any time.

It knows what nvcc makes of the example for tcgen05; another instruction is an error. A schedule decides when asynchronous work is done: a
copy reads what lies there then, a load from tensor memory gives its registers at the wait, and stores to shared memory reach the
asynchronous proxy at a fence. So a missing wait gives wrong numbers under some schedule, and a wait for nothing is a deadlock.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LANES, BLOCKS = 32, 2
_PARAMETERS, _GENERIC, _RANK = 1 << 44, 1 << 40, 24  # where addresses of parameters begin, generic ones, and the rank of a block in one
_MEMORY = 1024  # address of the dynamic shared memory
_POISON = 0x7FC0DEAD  # a NaN: cells and registers that nobody has written


class MachineError(Exception):
    """The program did what no program may do, or waits for ever."""


@dataclass
class Tensor:
    """A tensor in global memory and the box that a tensor map describes; the innermost dimension of both is the last."""

    data: Any
    box: tuple[int, ...]
    swizzled: bool

    def places(self, coordinates: list[int]) -> tuple[Any, Any, Any]:
        """The bytes of a box in shared memory, the elements of the tensor that they are, and which of these exist."""
        index = np.indices(self.box).reshape(len(self.box), -1)
        element = index + np.array(coordinates[::-1])[:, None]
        inside = ((element >= 0) & (element < np.array(self.data.shape)[:, None])).all(axis=0)
        width = self.data.dtype.itemsize
        offset = np.arange(index.shape[1])[:, None] * width + np.arange(width)
        return offset, tuple(np.where(inside, element, 0)), inside

    def address(self, start: int, offset: Any) -> Any:
        address = start + offset
        return address ^ ((address >> 7 & 7) << 4) if self.swizzled else address


class Engines(Protocol):
    """The work of the tensor cores on shared memory and the cells of tensor memory."""

    def multiply(self, images: Any, cells: Any, operands: list[int]) -> None:
        """Execute a product of a pair: ``images`` and ``cells`` belong to both blocks."""

    def copy(self, image: Any, cells: Any, address: int, descriptor: int) -> None:
        """Execute a tcgen05.cp of one block."""


@dataclass
class Barrier:
    count: int
    pending: int
    bytes: int = 0
    phase: int = 0


@dataclass
class Block:
    shared: Any  # as threads see it
    visible: Any  # as the asynchronous proxy sees it
    barriers: dict[int, Barrier] = field(default_factory=dict)
    named: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))  # arrived, phase
    left: bool = False


@dataclass
class Warp:
    rank: int
    number: int
    pair: tuple[int, int]  # which one of how many
    registers: dict[str, Any] = field(init=False)
    pc: Any = field(default_factory=lambda: np.zeros(LANES, int))
    alive: Any = field(default_factory=lambda: np.ones(LANES, bool))
    apart: Any = field(default_factory=lambda: np.zeros(LANES, bool))  # lanes that wait for the others of their warp
    cluster: Any = field(default_factory=lambda: np.zeros(LANES, int))  # phase of the cluster's barrier at which a lane arrived
    named: int | None = None  # phase of the named barrier at which it waits
    loads: list[tuple[list[str], int]] = field(default_factory=list)
    unfenced: list[list[tuple[int, Any]]] = field(default_factory=lambda: [[] for _ in range(LANES)])
    groups: list[list[list[Any]]] = field(default_factory=lambda: [[[]] for _ in range(LANES)])  # bulk copies that still read
    unordered: Any = field(default_factory=lambda: np.zeros(LANES, bool))  # lanes that waited, and have not fenced after it
    unannounced: Any = field(
        default_factory=lambda: np.zeros(LANES, bool)
    )  # lanes that loaded cells, and have not fenced before they arrive
    asleep: int = -1  # version of the machine's state at which it found nothing to do

    def __post_init__(self) -> None:
        numbers = {
            "%tid.x": LANES * self.number + np.arange(LANES),
            "%cluster_ctarank": self.rank,
            "%ctaid.x": BLOCKS * self.pair[0] + self.rank,
            "%nctaid.x": BLOCKS * self.pair[1],
        }
        self.registers = {name: np.full(LANES, number, np.uint64) for name, number in numbers.items()}


@dataclass
class Schedule:
    """The turns of each engine: weights of warps, loads and stores of TMA, tensor cores. One of 0 waits for all others."""

    seed: int
    warps: float = 1
    loads: float = 1
    stores: float = 1
    tensor: float = 1
    late_leader: bool = False  # warps of the first block only run when those of the second cannot


def _split(text: str) -> list[str]:
    """Operands at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def program_of(ptx: str, kernel: str) -> tuple[list[tuple[str, str, list[str]]], dict[str, int]]:
    """The instructions of a kernel, each with its predicate, opcode and operands; and where its labels are."""
    body = re.search(rf"\.entry \w*{kernel}\w*\([^{{]*\{{(.*?)(?=\.visible|\Z)", ptx, re.DOTALL)
    if not body:
        raise LookupError(kernel)
    text = re.sub(r"//[^\n]*", "", body[1])
    code: list[tuple[str, str, list[str]]] = []
    labels: dict[str, int] = {}
    for statement in re.split(r";|(?<=:)\s*\n", text):
        found = re.sub(r"^[{}\s]+", "", statement).strip()
        if found.endswith(":"):
            labels[found[:-1]] = len(code)
        elif found and not found.startswith("."):
            taken = re.match(r"(?:@(!?\S+)\s+)?(\S+)\s*(.*)", found, re.DOTALL)
            assert taken
            code.append((taken[1] or "", taken[2], _split(taken[3])))
    return code, labels


class Machine:
    """A cluster that runs one kernel.

    ``parameters`` are the bytes that the kernel takes, ``tensors`` has the tensor map at each of their offsets, and ``pair`` says which
    cluster of how many.
    """

    def __init__(
        self,
        ptx: str,
        kernel: str,
        warps: int,
        shared: int,
        parameters: bytes,
        tensors: dict[int, Tensor],
        engines: Engines,
        pair: tuple[int, int],
    ) -> None:
        code, self.labels = program_of(ptx, kernel)
        self.code = [(guard, opcode, operands, _function_of(opcode)) for guard, opcode, operands in code]
        self.parameters, self.tensors = parameters, tensors
        self.blocks = [Block(np.full(_MEMORY + shared, 0xA5, np.uint8), np.full(_MEMORY + shared, 0xA5, np.uint8)) for _ in range(BLOCKS)]
        self.cells = np.full((BLOCKS, 128, 512), _POISON, np.uint32)
        self.warps = [Warp(rank, number, pair) for rank in range(BLOCKS) for number in range(warps)]
        self.threads = BLOCKS * warps * LANES
        self.cluster = [0, 0]  # arrived, phase
        self.allocated: dict[int, int] = {}
        self.freed: set[int] = set()
        self.version = 0
        self.copies: list[Callable[[], None]] = []
        self.stores: list[Callable[[], None]] = []
        self.queue: deque[Callable[[], None]] = deque()
        self.engines = engines
        self.constants: dict[str, Any] = {}

    # Running

    def run(self, schedule: Schedule) -> None:
        rng = np.random.default_rng(schedule.seed)
        while any(warp.alive.any() for warp in self.warps):
            awake = [warp for warp in self.warps if warp.alive.any() and warp.asleep != self.version]
            choices = [
                (awake, schedule.warps),
                (self.copies, schedule.loads),
                (self.stores, schedule.stores),
                (self.queue, schedule.tensor),
            ]
            open_ = [(what, weight) for what, weight in choices if what]
            if not open_:
                raise MachineError("deadlock: " + ", ".join(sorted({self._at(warp) for warp in self.warps if warp.alive.any()})))
            weights = np.array([weight for _, weight in open_]) + 1e-9
            chosen: Any = open_[rng.choice(len(open_), p=weights / weights.sum())][0]
            if chosen is awake:
                self._turn(chosen[-1 if schedule.late_leader else rng.integers(len(chosen))], int(rng.integers(1, 400)))
            elif chosen is self.queue:
                self.queue.popleft()()
            else:
                chosen.pop(rng.integers(len(chosen)))()
        if self.copies or self.stores or self.queue:
            raise MachineError("the cluster has left before its asynchronous work was done")
        if self.allocated.keys() != self.freed:
            raise MachineError("tensor memory was not freed")

    def _at(self, warp: Warp) -> str:
        return f"warp {warp.number} of block {warp.rank} at {' '.join(map(str, self.code[warp.pc[warp.alive].min()]))}"

    def _turn(self, warp: Warp, steps: int) -> None:
        for _ in range(steps):
            if not warp.alive.any():
                return
            version = self.version
            if not self._step(warp):
                warp.asleep = version
                return

    def _step(self, warp: Warp) -> bool:
        """Execute an instruction in the lanes that are furthest behind; False if it has to wait."""
        lanes = warp.alive & ~warp.apart
        if not lanes.any():
            raise MachineError(f"the lanes of a warp do not meet: {self._at(warp)}")
        at = int(warp.pc[lanes].min())
        mask = lanes & (warp.pc == at)
        guard, opcode, operands, function = self.code[at]
        if guard:
            mask_true = np.broadcast_to(warp.registers[guard.lstrip("!")], LANES) ^ guard.startswith("!")
            active = mask & mask_true
        else:
            active = mask
        if ".sync" in opcode or opcode.startswith("bar."):
            together = (warp.apart | mask) & (warp.pc == at)
            if not np.array_equal(together, warp.alive):
                warp.apart |= mask
                return True
            warp.apart[:] = False
            mask = active = together
        if opcode.startswith("bra"):
            warp.pc[active] = self.labels[operands[0]]
            warp.pc[mask & ~active] += 1
            return not (active.any() and self.labels[operands[0]] <= at and self._spins(at))
        if opcode == "ret":
            warp.alive[active] = False
            warp.pc[mask & ~active] += 1
            self.blocks[warp.rank].left = not any(other.alive.any() for other in self.warps if other.rank == warp.rank)
            return True
        if active.any() and function(self, warp, opcode, operands, active) is False:
            return False
        warp.pc[mask] += 1
        return True

    def _spins(self, at: int) -> bool:
        return any("try_wait" in self.code[before][1] for before in range(max(at - 3, 0), at))

    # Values

    def _read(self, warp: Warp, operand: str) -> Any:
        """The 32 values of an operand, uint64, or bool of a predicate."""
        if operand in warp.registers:
            return warp.registers[operand]
        if operand not in self.constants:
            self.constants[operand] = _constant(operand)
        return self.constants[operand]

    def _write(self, warp: Warp, name: str, value: Any, active: Any) -> None:
        if name == "_":
            return
        old = warp.registers.get(name)
        if old is None:
            old = np.zeros(LANES, bool) if value.dtype == bool else np.full(LANES, _POISON, np.uint64)
        warp.registers[name] = np.where(active, value, old)

    def _address(self, warp: Warp, operand: str) -> Any:
        base, _, offset = operand.strip("[]").partition("+")
        return self._read(warp, base.strip()) + np.uint64(int(offset or 0))

    def _place(self, warp: Warp, address: int) -> tuple[Block, int]:
        """The block, and the offset in its shared memory, of an address of shared::cta or shared::cluster."""
        rank = (address >> _RANK) - 1 if address >> _RANK else warp.rank
        block = self.blocks[rank]
        if block.left:
            raise MachineError(f"shared memory of block {rank} is used after it has left")
        return block, address & ((1 << _RANK) - 1)

    # Barriers

    def _complete(self, barrier: Barrier) -> None:
        if barrier.pending < 0:
            raise MachineError("more threads arrive at an mbarrier than it expects")
        if barrier.pending == 0 and barrier.bytes == 0:
            barrier.pending = barrier.count
            barrier.phase += 1
            self.version += 1

    def _barrier(self, warp: Warp, address: int) -> Barrier:
        block, offset = self._place(warp, address)
        if offset not in block.barriers:
            raise MachineError("an mbarrier is used that nobody has initialised")
        return block.barriers[offset]

    def _arrive(self, warp: Warp, address: int, expected: int = 0) -> None:
        barrier = self._barrier(warp, address)
        barrier.bytes += expected
        barrier.pending -= 1
        self._complete(barrier)

    # Instructions

    def _arithmetic(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        name, kind = opcode.split(".")[0], opcode.split(".")[-1]
        values = [self._read(warp, operand) for operand in operands[1:]]
        if kind == "pred":
            result = {"or": np.logical_or, "and": np.logical_and}[name](*values)
        elif kind == "f32":
            with np.errstate(invalid="ignore"):  # what is poisoned stays so
                result = np.multiply(*(value.astype(np.uint32).view(np.float32) for value in values)).view(np.uint32).astype(np.uint64)
        else:
            bits = int(kind[1:])
            signed = [self._signed(value, bits) if kind[0] == "s" else value for value in values]
            result = np.where(values[2], values[0], values[1]) if name == "selp" else _OPERATIONS[name](*signed)
            result = result.astype(np.uint64) & np.uint64((1 << bits) - 1)
        self._write(warp, operands[0], result, active)

    @staticmethod
    def _signed(value: Any, bits: int) -> Any:
        shifted = value.astype(np.uint64) << np.uint64(64 - bits)
        return shifted.view(np.int64) >> np.int64(64 - bits)

    def _setp(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        _, comparison, kind = opcode.split(".")
        one, other = (self._signed(self._read(warp, operand), int(kind[1:])) for operand in operands[1:])
        self._write(warp, operands[0], getattr(np, _COMPARISONS[comparison])(one, other), active)

    def _move(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        bits = 32 if opcode.startswith("cvt.u32") else 64
        self._write(warp, operands[0], self._read(warp, operands[1]) & np.uint64((1 << bits) - 1), active)

    def _round(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        halves = []
        for operand in operands[1:]:
            bits = self._read(warp, operand)
            halves.append((bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16) & np.uint64(0xFFFF))
        self._write(warp, operands[0], halves[0] << np.uint64(16) | halves[1], active)

    def _convert_address(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        value = self._read(warp, operands[1])
        generic = np.uint64(_GENERIC)
        moved = value if "param" in opcode else value - generic if ".to." in opcode else value + generic
        self._write(warp, operands[0], moved, active)

    def _map_to_rank(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        rank = self._read(warp, operands[2]) + np.uint64(1)
        self._write(warp, operands[0], self._read(warp, operands[1]) | rank << np.uint64(_RANK), active)

    def _load_parameter(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        start = int(self._address(warp, operands[1])[0]) - _PARAMETERS
        for number, name in enumerate(operands[0].strip("{}").split(",")):
            word = int.from_bytes(self.parameters[start + 4 * number : start + 4 * number + 4], "little")
            self._write(warp, name.strip(), np.full(LANES, word, np.uint64), active)

    def _load_shared(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        block, start = self._place(warp, int(self._address(warp, operands[1])[active][0]))
        self._write(warp, operands[0], block.shared[start : start + 4].view(np.uint32).astype(np.uint64), active)

    def _store_shared(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        names = [name.strip() for name in operands[1].strip("{}").split(",")]
        words = np.stack([self._read(warp, name) for name in names], axis=-1).astype(np.uint32)
        for lane in np.flatnonzero(active):
            block, start = self._place(warp, int(self._address(warp, operands[0])[lane]))
            data = words[lane].view(np.uint8)
            block.shared[start : start + len(data)] = data
            warp.unfenced[lane].append((start, data))

    def _fence_proxy(self, warp: Warp, _opcode: str, _operands: list[str], active: Any) -> None:
        for lane in np.flatnonzero(active):
            for start, data in warp.unfenced[lane]:
                self.blocks[warp.rank].visible[start : start + len(data)] = data
            warp.unfenced[lane].clear()

    def _shuffle(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        self._write(warp, operands[0].partition("|")[0], self._read(warp, operands[1])[int(self._read(warp, operands[2])[0])], active)

    def _elect(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        self._write(warp, operands[0].partition("|")[2], np.arange(LANES) == 0, active)

    def _initialise(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        address, count = (int(self._read(warp, operand.strip("[]"))[active][0]) for operand in operands)
        block, offset = self._place(warp, address)
        block.barriers[offset] = Barrier(count, count)

    def _try_wait(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        parities = self._read(warp, operands[2])
        barrier = self._barrier(warp, int(self._address(warp, operands[1])[active][0]))
        complete = (parities & np.uint64(1)) != np.uint64(barrier.phase & 1)
        self._write(warp, operands[0], complete, active)
        warp.unordered |= active & complete

    def _arrive_lanes(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        self._announce(warp, active)
        for lane in np.flatnonzero(active):
            expected = int(self._read(warp, operands[2])[lane]) if "expect_tx" in opcode else 0
            self._arrive(warp, int(self._address(warp, operands[1])[lane]), expected)

    def _sync_named(self, warp: Warp, _opcode: str, operands: list[str], _active: Any) -> bool:
        values = [int(self._read(warp, operand)[0]) for operand in operands]
        threads = values[1] if len(values) > 1 else self.threads // BLOCKS
        barrier = self.blocks[warp.rank].named[values[0]]
        if warp.named is None:
            barrier[0] += LANES
            if barrier[0] < threads:
                warp.named = barrier[1]
                return False
            barrier[:] = [0, barrier[1] + 1]
            self.version += 1
            return True
        if warp.named == barrier[1]:
            return False
        warp.named = None
        return True

    def _arrive_cluster(self, warp: Warp, _opcode: str, _operands: list[str], active: Any) -> None:
        self._announce(warp, active)
        warp.cluster[active] = self.cluster[1]
        self.cluster[0] += int(active.sum())
        if self.cluster[0] == self.threads:
            self.cluster[:] = [0, self.cluster[1] + 1]
            self.version += 1

    def _wait_cluster(self, warp: Warp, _opcode: str, _operands: list[str], active: Any) -> bool:
        return bool((warp.cluster[active] < self.cluster[1]).all())

    # Asynchronous copies

    def _lanes(self, warp: Warp, operands: list[str], active: Any) -> Iterator[tuple[int, list[list[int]]]]:
        """Each lane, and its operands: of brackets and braces the numbers in them."""
        for lane in np.flatnonzero(active):
            values = [[int(self._address(warp, name)[lane]) for name in re.findall(r"[%\w.$]+(?:\+\d+)?", operand)] for operand in operands]
            yield int(lane), values

    def _tensor(self, address: int) -> Tensor:
        return self.tensors[address - _PARAMETERS]

    def _load_box(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        for _, ((to,), (tensor_map, *coordinates), (full,)) in self._lanes(warp, operands, active):
            if ".cta_group::2" not in opcode and full >> _RANK:
                raise MachineError("the mbarrier of the other block needs .cta_group::2")
            self.copies.append(partial(self._bring, warp, to, tensor_map, coordinates, full))

    def _bring(self, warp: Warp, to: int, tensor_map: int, coordinates: list[int], full: int) -> None:
        tensor = self._tensor(tensor_map)
        block, start = self._place(warp, to)
        offset, element, inside = tensor.places([_as_signed(value) for value in coordinates])
        values = np.where(inside, tensor.data[element], tensor.data.dtype.type(0))
        at = tensor.address(start, offset)
        for image in (block.shared, block.visible):
            image[at] = values.view(np.uint8).reshape(at.shape)
        barrier = self._barrier(warp, full)
        barrier.bytes -= at.size
        self._complete(barrier)

    def _store_box(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        for lane, ((tensor_map, *coordinates), (start,)) in self._lanes(warp, operands, active):
            group = warp.groups[lane][-1]
            mark = object()
            group.append(mark)
            self.stores.append(partial(self._put, warp, tensor_map, coordinates, start, group, mark))

    def _put(self, warp: Warp, tensor_map: int, coordinates: list[int], start: int, group: list[Any], mark: object) -> None:
        tensor = self._tensor(tensor_map)
        block, begin = self._place(warp, start)
        offset, element, inside = tensor.places([_as_signed(value) for value in coordinates])
        values = block.visible[tensor.address(begin, offset)].view(tensor.data.dtype)[:, 0]
        tensor.data[tuple(index[inside] for index in element)] = values[inside]
        group.remove(mark)
        self.version += 1

    def _commit_group(self, warp: Warp, _opcode: str, _operands: list[str], active: Any) -> None:
        for lane in np.flatnonzero(active):
            warp.groups[lane].append([])

    def _wait_group(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> bool:
        allowed = int(operands[0])
        return all(not any(warp.groups[lane][: len(warp.groups[lane]) - 1 - allowed]) for lane in np.flatnonzero(active))

    # Tensor memory

    def _allocate(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> bool:
        self.allocated[warp.rank] = int(self._read(warp, operands[1])[0])
        if len(self.allocated) < BLOCKS:
            return False
        block, start = self._place(warp, int(self._address(warp, operands[0])[active][0]))
        block.shared[start : start + 4] = 0
        self.version += 1
        return True

    def _free(self, warp: Warp, _opcode: str, operands: list[str], _active: Any) -> None:
        if self.queue or any(other.loads for other in self.warps):
            raise MachineError("tensor memory is freed while it is used")
        if int(self._read(warp, operands[1])[0]) != self.allocated[warp.rank]:
            raise MachineError("another number of columns is freed than was allocated")
        self.freed.add(warp.rank)

    def _load_cells(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        self._order(warp, active)
        names = [name.strip() for name in operands[0].strip("{}").split(",")]
        address = int(self._read(warp, operands[1].strip("[]"))[0])
        if address >> 16 != warp.number % 4 * LANES:
            raise MachineError("a warp loads lanes that it does not reach")
        warp.loads.append((names, address & 0xFFFF))
        for name in names:
            warp.registers[name] = np.full(LANES, _POISON, np.uint64)

    def _wait_loads(self, warp: Warp, _opcode: str, _operands: list[str], _active: Any) -> None:
        lanes = slice(warp.number % 4 * LANES, warp.number % 4 * LANES + LANES)
        for names, column in warp.loads:
            if self.freed:
                raise MachineError("tensor memory is read after it was freed")
            for number, name in enumerate(names):
                warp.registers[name] = self.cells[warp.rank, lanes, column + number].astype(np.uint64)
        warp.loads.clear()
        warp.unannounced[:] = True

    @staticmethod
    def _announce(warp: Warp, active: Any) -> None:
        if (warp.unannounced & active).any():
            raise MachineError("a thread that loaded from tensor memory arrives without tcgen05.fence::before_thread_sync")

    @staticmethod
    def _order(warp: Warp, active: Any) -> None:
        if (warp.unordered & active).any():
            raise MachineError("a thread that waited uses tensor memory without tcgen05.fence::after_thread_sync")

    def _fence(self, warp: Warp, opcode: str, _operands: list[str], active: Any) -> None:
        (warp.unannounced if "before" in opcode else warp.unordered)[active] = False

    def _product(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        self._order(warp, active)
        for lane in np.flatnonzero(active):
            values = [int(self._read(warp, operand.strip("[]"))[lane]) for operand in operands]
            self.queue.append(partial(self.engines.multiply, [block.visible for block in self.blocks], self.cells, values))

    def _copy_cells(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        self._order(warp, active)
        for lane in np.flatnonzero(active):
            address, descriptor = (int(self._read(warp, operand.strip("[]"))[lane]) for operand in operands)
            for block, cells in zip(self.blocks, self.cells, strict=True):
                self.queue.append(partial(self.engines.copy, block.visible, cells, address, descriptor))

    def _commit(self, warp: Warp, _opcode: str, operands: list[str], active: Any) -> None:
        for lane in np.flatnonzero(active):
            address, mask = (int(self._read(warp, operand.strip("[]"))[lane]) for operand in operands)
            self.queue.append(partial(self._tell, warp, address & ((1 << _RANK) - 1), mask))

    def _tell(self, warp: Warp, offset: int, mask: int) -> None:
        for rank in range(BLOCKS):
            if mask >> rank & 1:
                self._arrive(warp, (rank + 1) << _RANK | offset)

    def _nothing(self, warp: Warp, opcode: str, operands: list[str], active: Any) -> None:
        """Do nothing: the instruction only orders others, or only hurries."""


def _function_of(opcode: str) -> Callable[..., bool | None]:
    for pattern, function in _INSTRUCTIONS:
        if re.match(pattern, opcode):
            return function
    raise MachineError(f"unknown instruction {opcode}")


def _constant(operand: str) -> Any:
    """The value of a number or of a symbol."""
    if re.fullmatch(r"-?\d+", operand):
        return np.full(LANES, int(operand) & 0xFFFFFFFFFFFFFFFF, np.uint64)
    if "param" in operand:
        return np.full(LANES, _PARAMETERS, np.uint64)
    if "memory" in operand:
        return np.full(LANES, _MEMORY, np.uint64)
    raise MachineError(f"{operand} is read before it is written")


def _as_signed(value: int) -> int:
    return (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)


def _divide(one: Any, other: Any) -> Any:
    """Division of integers, rounded towards 0; by 0, in lanes that are off, anything."""
    safe = np.where(other == 0, 1, other)
    return np.sign(one) * np.sign(safe) * (np.abs(one) // np.abs(safe))


_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "gt": "greater", "ge": "greater_equal", "le": "less_equal"}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "mov": lambda one: one,
    "neg": np.negative,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "mad": lambda one, other, third: one * other + third,
    "div": _divide,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": lambda one, other: np.where(other < 64, one << other, 0),
    "shr": lambda one, other: one >> other,
}
_INSTRUCTIONS: list[tuple[str, Callable[..., bool | None]]] = [
    (r"(mov|neg|add|sub|mul|mad|div|min|max|and|or|xor|shl|shr|selp)\.", Machine._arithmetic),
    (r"setp\.", Machine._setp),
    (r"cvt\.u\d\d\.u\d\d$", Machine._move),
    (r"cvt\.rn\.bf16x2\.f32$", Machine._round),
    (r"cvta\.", Machine._convert_address),
    (r"mapa\.u64$", Machine._map_to_rank),
    (r"ld\.param\.", Machine._load_parameter),
    (r"ld\.shared\.u32$", Machine._load_shared),
    (r"st\.shared\.v4\.u32$", Machine._store_shared),
    (r"fence\.proxy\.async\.shared::cta$", Machine._fence_proxy),
    (r"shfl\.sync\.idx\.b32$", Machine._shuffle),
    (r"elect\.sync$", Machine._elect),
    (r"mbarrier\.init\.", Machine._initialise),
    (r"mbarrier\.try_wait\.parity\.", Machine._try_wait),
    (r"mbarrier\.arrive\.", Machine._arrive_lanes),
    (r"bar\.sync$|barrier\.sync\.aligned$", Machine._sync_named),
    (r"barrier\.cluster\.arrive", Machine._arrive_cluster),
    (r"barrier\.cluster\.wait", Machine._wait_cluster),
    (r"cp\.async\.bulk\.tensor\.[23]d\.shared::cluster\.global", Machine._load_box),
    (r"cp\.async\.bulk\.tensor\.2d\.global\.shared::cta", Machine._store_box),
    (r"cp\.async\.bulk\.commit_group$", Machine._commit_group),
    (r"cp\.async\.bulk\.wait_group\.read$", Machine._wait_group),
    (r"tcgen05\.alloc\.", Machine._allocate),
    (r"tcgen05\.dealloc\.", Machine._free),
    (r"tcgen05\.ld\.sync\.aligned\.32x32b\.x\d+\.b32$", Machine._load_cells),
    (r"tcgen05\.wait::ld\.", Machine._wait_loads),
    (r"tcgen05\.mma\.cta_group::2\.", Machine._product),
    (r"tcgen05\.cp\.cta_group::2\.32x128b\.warpx4$", Machine._copy_cells),
    (r"tcgen05\.commit\.cta_group::2\.", Machine._commit),
    (r"tcgen05\.fence::", Machine._fence),
    (r"(bra(\.uni)?|ret)$|tcgen05\.relinquish|fence\.mbarrier_init|prefetch\.tensormap|bar\.warp\.sync", Machine._nothing),
]

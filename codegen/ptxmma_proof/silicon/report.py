"""Everything that a chip is asked, in parallel, and the report of its answers."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import joblib

from ptxmma import __version__
from ptxmma.catalog.instructions import Catalog, load
from ptxmma.evidence import facts
from ptxmma.evidence.silicon import Beside, Compiler, Execution, Failure, Held, Launch, Shared, Silicon
from ptxmma.evidence.silicon import Chip as ChipRecord
from ptxmma_proof.silicon import products, replay, sass
from ptxmma_proof.silicon.kernels import N_IN_FULL, PER_FILE, Chip, Kernel, kernels
from ptxmma_proof.silicon.observations import observe


class Memory(NamedTuple):
    """An operand in shared memory."""

    operand: str
    type: str
    majorness: str
    swizzle: str


class Row(NamedTuple):
    """What became of one kernel."""

    instruction: str
    form: str
    constants: Mapping[str, int]
    beside: tuple[str, ...]
    layouts: tuple[str, ...]
    launches: int
    wrong: int  # launches in which an element of D was wrong
    machine: Mapping[str, int]  # tensor-core instructions
    replay: Launch
    memory: tuple[tuple[Memory, int, bool], ...]  # of each image its base offset, and whether D was wrong


def run(database: Path, include: Path, target: str | None = None, *, families: Iterable[str] = (), jobs: int = -1, date: str) -> Silicon:
    """Run every kernel of a target on the chip of this machine.

    Args:
        database: ``ptxmma.json``.
        include: the headers that were generated with it.
        target: what to compile for; by default the chip's own, with what only it has: ``"sm_90a"``.
        families: only these.
        jobs: processes, as joblib counts them.
        date: of the run.

    Raises:
        RuntimeError: no chip, or no compiler.
    """
    catalog, asked = Catalog(load(database)), this_chip()
    nvcc = _tool("nvcc", "a CUDA toolkit")
    _tool("cuobjdump", "a CUDA toolkit")
    target = target or _target(catalog, asked)
    count = sum(1 for _ in kernels(catalog, target, families))
    if not count:
        raise RuntimeError(f"nothing to run: the database has no matrix instruction for {target} in {', '.join(families) or 'any family'}")
    ranges = [range(first, min(first + PER_FILE, count)) for first in range(0, count, PER_FILE)]
    tasks = (joblib.delayed(_part)(database, include, target, tuple(families), part, nvcc) for part in ranges)
    rows = [row for part in joblib.Parallel(n_jobs=jobs)(tasks) for row in part]
    with tempfile.TemporaryDirectory() as folder:
        seen = observe(catalog, target, nvcc, include, Path(folder))
    return Silicon(
        date=date,
        spec=__version__,
        target=target,
        chip=asked,
        compiler=_compiler(nvcc),
        instructions=tuple(_by_instruction(catalog, rows)),
        beside=tuple(_beside(catalog, rows)),
        layouts=tuple(_by_layout(rows)),
        shared_memory=tuple(_by_memory(rows)),
        failures=tuple(_failure(row) for row in rows if row.wrong),
        observations=tuple(seen),
    )


def _part(database: Path, include: Path, target: str, families: tuple[str, ...], numbers: range, nvcc: str) -> list[Row]:
    """The kernels with these numbers: compiled, disassembled and run."""
    catalog = Catalog(load(database))
    chosen = list(kernels(catalog, target, families))[numbers.start : numbers.stop]
    with tempfile.TemporaryDirectory() as folder:
        chip = Chip(nvcc, target, include, Path(folder), chosen)
        machine = sass.products(chip.libraries[0])
        return [_row(catalog, chip, number, kernel, machine[number]) for number, kernel in enumerate(chosen)]


def _row(catalog: Catalog, chip: Chip, number: int, kernel: Kernel, machine: Counter[str]) -> Row:
    wrong = launches = 0
    memory = []
    for seed, swizzle in _launches(kernel):
        result = products.run(chip, number, kernel, seed, swizzle)
        launches += 1
        wrong += result.wrong > 0
        for name, image in result.operands.images.items():
            held = Memory(name.partition("-")[0], image.element.name, image.majorness, image.swizzle)
            memory.append((held, image.base_offset, result.wrong > 0))
    layouts = tuple(sorted({operand.layout.name for operand in kernel.form.operands if operand.layout is not None}))
    beside = tuple(each.canonical for each in kernel.beside(catalog))
    return Row(
        kernel.instruction.canonical, kernel.form.name, kernel.immediates, beside, layouts, launches, wrong, machine,
        replay.record(chip, number, kernel, seed), tuple(memory),
    )  # fmt: skip


def _launches(kernel: Kernel) -> Iterator[tuple[int, str | None]]:
    """Seeds of the launches of a kernel, with the swizzle: those with all constants try each, twice."""
    memory = kernel.instruction.database.spec.shared_memory
    first = zlib.crc32(f"{kernel.instruction.canonical} {kernel.form.name} {sorted(kernel.immediates.items())}".encode())
    assert kernel.instruction.shape is not None
    swizzles: list[str | None] = [None]
    if kernel.descriptors and memory is not None and kernel.instruction.shape[1] in N_IN_FULL:
        swizzles = [mode.name for mode in memory.swizzles]
    for number, swizzle in enumerate(swizzles * 2):
        yield first + number, swizzle


# --- the report's tables ----------------------------------------------------------------------------------------------------------


def _by_instruction(catalog: Catalog, rows: Iterable[Row]) -> Iterator[Execution]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.instruction].append(row)
    for name, found in grouped.items():
        yield Execution(
            instruction=name,
            facts=facts.executed(catalog.find(name)),
            launches=sum(row.launches for row in found),
            wrong=sum(row.wrong for row in found),
            machine=tuple(sorted({sass.text(row.machine) for row in found})),
            replays=tuple(row.replay for row in found),
        )


def _beside(catalog: Catalog, rows: Iterable[Row]) -> Iterator[Beside]:
    launches, wrong = _added_up((row, row.beside) for row in rows)
    for instruction in catalog.all():
        name = instruction.canonical
        if launches[name]:
            yield Beside(instruction=name, facts=facts.executed(instruction), launches=launches[name], wrong=wrong[name])


def _by_layout(rows: Iterable[Row]) -> Iterator[Held]:
    launches, wrong = _added_up((row, row.layouts) for row in rows)
    return (Held(layout=name, launches=launches[name], wrong=wrong[name]) for name in sorted(launches))


def _added_up(each: Iterable[tuple[Row, Iterable[str]]]) -> tuple[Counter[str], Counter[str]]:
    """Launches, and wrong ones, of everything that rows have a part in."""
    launches: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for row, names in each:
        for name in names:
            launches[name] += row.launches
            wrong[name] += row.wrong
    return launches, wrong


def _by_memory(rows: Iterable[Row]) -> Iterator[Shared]:
    found: dict[Memory, list[tuple[int, bool]]] = defaultdict(list)
    for row in rows:
        for memory, base_offset, wrong in row.memory:
            found[memory].append((base_offset, wrong))
    for memory, each in sorted(found.items()):
        yield Shared(
            **memory._asdict(),
            launches=len(each),
            wrong=sum(wrong for _, wrong in each),
            base_offsets=tuple(sorted({base_offset for base_offset, _ in each})),
        )


def _failure(row: Row) -> Failure:
    return Failure(
        instruction=row.instruction, form=row.form, constants=dict(row.constants), launches=row.launches, wrong=row.wrong
    )  # fmt: skip


# --- tools ------------------------------------------------------------------------------------------------------------------------


def _tool(name: str, of: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not on the PATH; it comes with {of}")
    return found


def this_chip() -> ChipRecord:
    """Name, compute capability and driver of the first GPU.

    Raises:
        RuntimeError: there is none.
    """
    query = [_tool("nvidia-smi", "the driver of an NVIDIA GPU"), "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"there is no GPU here: {(done.stdout + done.stderr).strip()}")
    first = next(iter(done.stdout.splitlines()), "")
    if first.count(",") != 2:
        raise RuntimeError(f"there is no GPU here: nvidia-smi says {first or 'nothing'}")
    name, capability, driver = (field.strip() for field in first.split(","))
    return ChipRecord(name=name, compute_capability=capability, driver=driver)


def _target(catalog: Catalog, chip: ChipRecord) -> str:
    """The target for a chip: the one with its own features where there is one."""
    name = f"sm_{chip.compute_capability.replace('.', '')}"
    known = [target.name for target in catalog.database.spec.targets]
    if name not in known:
        raise RuntimeError(f"the database has no target {name} for the {chip.name}")
    return f"{name}a" if f"{name}a" in known else name


def _compiler(nvcc: str) -> Compiler:
    """Release of the toolkit, and the assembler's binary."""
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"release (\S+), (V\S+)", text)
    assembler = Path(_tool("ptxas", "a CUDA toolkit")).resolve()
    return Compiler(
        cuda=release[1] if release else "",
        nvcc=release[2] if release else "",
        ptxas_sha256=hashlib.sha256(assembler.read_bytes()).hexdigest(),
    )

"""Runs everything on a chip, and records the results."""

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

from ptxmma.catalog import digest
from ptxmma.catalog.descriptors.shared_formats import read_by
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog, load
from ptxmma.model import Version
from ptxmma_proof.silicon import products, replay, sass, transferred
from ptxmma_proof.silicon.kernels import N_IN_FULL, PER_FILE, Chip, Kernel, kernels
from ptxmma_proof.silicon.observations import Seen, observe
from ptxmma_proof.silicon.replay import Launch

#: Launches of each load, store and transposition.
_TRANSFERS = 4


class Memory(NamedTuple):
    """An operand in shared memory."""

    operand: str
    type: str
    majorness: str
    swizzle: str


class Row(NamedTuple):
    """The outcome of one kernel."""

    instruction: str
    form: str
    constants: Mapping[str, int]
    beside: tuple[str, ...]
    layouts: tuple[str, ...]
    launches: int
    wrong: int  # launches in which an element of the result was wrong
    machine: Mapping[str, int]  # tensor-core instructions
    replay: Launch
    memory: tuple[tuple[Memory, int, bool], ...]  # each image with its base offset, and whether D was wrong


class ThisChip(NamedTuple):
    """A chip and its driver."""

    name: str  # "NVIDIA H200"
    compute_capability: str  # "9.0"
    driver: str


class Outcome(NamedTuple):
    """The outcome of a run."""

    chip: ThisChip
    rows: list[Row]
    observations: list[Seen]
    record: list[Line]

    @property
    def launches(self) -> list[Launch]:
        """The launches that can be repeated."""
        return [row.replay for row in self.rows]

    @property
    def agrees(self) -> bool:
        """True if no element was wrong."""
        return not any(row.wrong for row in self.rows)

    def words(self) -> Iterator[str]:
        """The run in words."""
        for row in self.rows:
            if row.wrong:
                yield f"{row.instruction} {row.form} {dict(row.constants)}: {row.wrong} of {row.launches} launches are wrong"
        for seen in self.observations:
            yield f"{seen.question}, {seen.instruction}: {seen.tried}: {seen.seen}"
        instructions, layouts = {row.instruction for row in self.rows}, {name for row in self.rows for name in row.layouts}
        launches, wrong = sum(row.launches for row in self.rows), sum(row.wrong > 0 for row in self.rows)
        yield (
            f"{self.chip.name}: {len(instructions)} instructions, {len(layouts)} layouts, {launches} launches, "
            f"{wrong} kernels with a wrong element"
        )


def run(database: Path, include: Path, target: str | None = None, *, families: Iterable[str] = (), jobs: int = -1, date: str) -> Outcome:
    """Run every kernel of a target on the chip of this machine.

    Args:
        database: ``ptxmma.json``.
        include: the headers that were generated with it.
        target: the target to compile for; by default the chip's own with all its features, ``"sm_90a"``.
        families: only these.
        jobs: processes, as joblib counts them.
        date: the date of the run.

    Raises:
        RuntimeError: no chip, or no compiler.
    """
    asked, catalog = this_chip(), Catalog(load(database))
    nvcc = tool("nvcc", "a CUDA toolkit")
    tool("cuobjdump", "a CUDA toolkit")
    target, compiler = target or target_of(catalog, asked), _compiler(nvcc, asked.name, date)
    newest = _newest(catalog, compiler)
    count = sum(1 for _ in kernels(catalog, target, families, newest))
    if not count:
        raise RuntimeError(f"nothing to run: the database has no matrix instruction for {target} in {', '.join(families) or 'any family'}")
    ranges = [range(first, min(first + PER_FILE, count)) for first in range(0, count, PER_FILE)]
    tasks = (joblib.delayed(_part)(database, include, target, tuple(families), newest, part, nvcc) for part in ranges)
    rows = [row for part in joblib.Parallel(n_jobs=jobs)(tasks) for row in part]
    with tempfile.TemporaryDirectory() as folder:
        seen = observe(catalog, target, nvcc, include, Path(folder))
    return Outcome(asked, rows, seen, list(_recorded(catalog, target, asked, compiler, rows, seen, date)))


def _part(database: Path, include: Path, target: str, families: tuple[str, ...], newest: str, numbers: range, nvcc: str) -> list[Row]:
    """The kernels with these numbers: compiled, disassembled and run."""
    catalog = Catalog(load(database))
    chosen = list(kernels(catalog, target, families, newest))[numbers.start : numbers.stop]
    with tempfile.TemporaryDirectory() as folder:
        chip = Chip(nvcc, target, include, Path(folder), chosen)
        machine = sass.products(chip.libraries[0])
        return [_row(catalog, chip, number, kernel, machine[number]) for number, kernel in enumerate(chosen)]


def _row(catalog: Catalog, chip: Chip, number: int, kernel: Kernel, machine: Counter[str]) -> Row:
    wrong = launches = 0
    memory = []
    for seed, swizzle in _launches(kernel):
        launches += 1
        if kernel.instruction.operation != "multiply":
            wrong += not transferred.run(chip, number, kernel, seed)
            continue
        result = products.run(chip, number, kernel, seed, swizzle)
        wrong += result.wrong > 0
        for name, image in result.operands.images.items():
            operand = Memory(name.partition("-")[0], image.element.name, image.majorness, image.swizzle)
            memory.append((operand, image.base_offset, result.wrong > 0))
    layouts = tuple(sorted({operand.layout.name for operand in kernel.form.operands if operand.layout is not None}))
    beside = tuple(each.canonical for each in kernel.beside(catalog))
    return Row(
        kernel.instruction.canonical, kernel.form_name, kernel.immediates, beside, layouts, launches, wrong, machine,
        replay.record(chip, number, kernel, seed), tuple(memory),
    )  # fmt: skip


def _launches(kernel: Kernel) -> Iterator[tuple[int, str | None]]:
    """The launches of a kernel, each with its seed and swizzle; products with all constants try each swizzle twice."""
    memory = kernel.instruction.database.spec.shared_memory
    first = zlib.crc32(f"{kernel.instruction.canonical} {kernel.form.name} {sorted(kernel.immediates.items())}".encode())
    swizzles: list[str | None] = [None] if kernel.instruction.operation == "multiply" else [None] * (_TRANSFERS // 2)
    if kernel.descriptors and memory is not None and kernel.instruction.extents["n"] in N_IN_FULL:
        spec, family = kernel.instruction.database.spec, kernel.instruction.variant.instruction.family
        swizzles = [mode.name for mode in read_by(spec, memory, family).swizzles]
    for number, swizzle in enumerate(swizzles * 2):
        yield first + number, swizzle


# --- the record -------------------------------------------------------------------------------------------------------------------


def _recorded(
    catalog: Catalog, target: str, chip: ThisChip, compiler: Tool, rows: list[Row], seen: list[Seen], date: str
) -> Iterator[Line]:
    """The run as lines of ``spec/evidence/silicon.jsonl``."""
    executed = list(_executed(catalog, rows))
    beside = list(_beside(catalog, rows))
    yield witnesses.Run(
        date=date,
        spec=catalog.database.spec.version,
        tools=(Tool(kind="chip", name=chip.name, version=f"driver {chip.driver}", date=date), compiler),
        targets=(target,),
        totals={
            "instructions": len(executed),
            "beside": len(beside),
            "launches": sum(row.launches for row in rows),
            "replays": len(rows),
            "failures": sum(row.wrong > 0 for row in rows),
        },
    )
    rest: list[Line] = [*executed, *beside, *_memory(rows), *_observed(seen)]
    yield from rest


def _executed(catalog: Catalog, rows: Iterable[Row]) -> Iterator[witnesses.Executed]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.instruction].append(row)
    for name, own in grouped.items():
        launches = Counter[str]()
        for row in own:
            launches[row.form] += row.launches
        yield witnesses.Executed(
            instruction=name,
            facts=digest.computed(catalog.find(name)),
            launches=dict(launches),
            wrong=sum(row.wrong for row in own),
            machine=tuple(sorted({sass.text(row.machine) for row in own})),
        )


def _beside(catalog: Catalog, rows: Iterable[Row]) -> Iterator[witnesses.Executed]:
    launches, wrong = Counter[str](), Counter[str]()
    for row in rows:
        for name in row.beside:
            launches[name] += row.launches
            wrong[name] += row.wrong
    for instruction in catalog.all():
        name = instruction.canonical
        if launches[name]:
            yield witnesses.Executed(instruction=name, facts=digest.computed(instruction), launches={"": launches[name]}, wrong=wrong[name])


def _memory(rows: Iterable[Row]) -> Iterator[witnesses.Memory]:
    grouped: dict[tuple[str, str, str], list[tuple[str, int]]] = defaultdict(list)
    for row in rows:
        for memory, base_offset, _ in row.memory:
            grouped[memory.operand, memory.majorness, memory.swizzle].append((memory.type, base_offset))
    for (operand, majorness, swizzle), each in sorted(grouped.items()):
        types, offsets = sorted({name for name, _ in each}), sorted({offset for _, offset in each})
        yield witnesses.Memory(
            operand=operand, majorness=majorness, swizzle=swizzle, types=tuple(types), launches=len(each), base_offsets=tuple(offsets)
        )


def _observed(seen: Iterable[Seen]) -> Iterator[witnesses.Observation]:
    grouped: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in seen:
        grouped[one.question, one.tried, one.seen].append(one.instruction)
    for (question, tried, answer), names in grouped.items():
        yield witnesses.Observation(question=question, tried=tried, seen=answer, instructions=tuple(names))


# --- tools ------------------------------------------------------------------------------------------------------------------------


def tool(name: str, of: str) -> str:
    """The path of a program.

    Raises:
        RuntimeError: it is not on the PATH.
    """
    program = shutil.which(name)
    if program is None:
        raise RuntimeError(f"{name} is not on the PATH; it comes with {of}")
    return program


def this_chip() -> ThisChip:
    """Name, compute capability and driver of the first GPU.

    Raises:
        RuntimeError: there is no GPU.
    """
    query = [tool("nvidia-smi", "the driver of an NVIDIA GPU"), "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"there is no GPU here: {(done.stdout + done.stderr).strip()}")
    first = next(iter(done.stdout.splitlines()), "")
    if first.count(",") != 2:
        raise RuntimeError(f"there is no GPU here: nvidia-smi says {first or 'nothing'}")
    name, capability, driver = (field.strip() for field in first.split(","))
    return ThisChip(name, capability, driver)


def target_of(catalog: Catalog, chip: ThisChip) -> str:
    """The target for a chip, with its own features if there is such a target.

    Raises:
        RuntimeError: the database has none.
    """
    name = f"sm_{chip.compute_capability.replace('.', '')}"
    known = [target.name for target in catalog.database.spec.targets]
    if name not in known:
        raise RuntimeError(f"the database has no target {name} for the {chip.name}")
    return f"{name}a" if f"{name}a" in known else name


def _newest(catalog: Catalog, compiler: Tool) -> str:
    """The newest version that a compiler knows."""
    release = Version(compiler.version.partition(",")[0].removeprefix("CUDA "))
    return max((entry.version for entry in catalog.database.spec.isa_versions if Version(entry.cuda) <= release), key=Version)


def _compiler(nvcc: str, chip: str, date: str) -> Tool:
    """Release of the toolkit, and the assembler's binary."""
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"release (\S+), (V\S+)", text)
    version = f"CUDA {release[1]}, nvcc {release[2]}; SHA-256 of its ptxas" if release else ""
    program = Path(tool("ptxas", "a CUDA toolkit")).resolve()
    digits = hashlib.sha256(program.read_bytes()).hexdigest()
    return Tool(kind="compiler", name=f"compiler for {chip}", version=version, sha256=digits, date=date)

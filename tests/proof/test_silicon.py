"""The run on a chip with the emulator in the chip's place: operands, products, observations and the record."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from ptxmma import paths
from ptxmma.arrays.elements import Array
from ptxmma.catalog import digest
from ptxmma.catalog.evidence.witnesses import Executed, Witness
from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices.emulator import emulate
from ptxmma_proof.commands import main
from ptxmma_proof.silicon import observations, products, replay, sass, transferred
from ptxmma_proof.silicon.drawn_operands import Builder
from ptxmma_proof.silicon.kernels import PER_FILE, Kernel, build, kernels
from ptxmma_proof.silicon.replay import Launch, Words

_TARGET = "sm_90a"
_FAMILIES = ("mma", "mma.sp", "wgmma", "wgmma.sp", "wmma")


class _Emulating:
    """Runs kernels like a chip, by emulation; ``flips`` inverts a bit of D."""

    def __init__(self, emulated: list[Kernel], *, flips: bool = False) -> None:
        self._kernels, self._flips = emulated, flips

    def run(
        self,
        number: int,
        registers: dict[str, Array],
        *,
        image: Array | None = None,
        descriptors: Mapping[str, int] | None = None,
        stride: int = 0,
        scale_d: bool = True,
    ) -> Array:
        """The result."""
        kernel = self._kernels[number]
        if kernel.instruction.operation != "multiply":
            return self._transferred(kernel, registers, image, stride)
        constants: Any = {"constants": kernel.immediates, "descriptors": descriptors or {}}
        parts: list[Array] = []

        def keep(array: Array) -> str:
            parts.append(array)
            return ""

        launch = Launch(instruction="", seed=0, d="", **constants)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replay, "digest", keep)
            replay.emulated(kernel, launch, Words(registers, image, scale_d))
        d = np.array(parts[0])
        if self._flips:
            d.view(np.uint32)[0, 0, 0] ^= 1 << 30
        return d

    def _transferred(self, kernel: Kernel, registers: dict[str, Array], image: Array | None, stride: int) -> Array:
        given: dict[str, Any] = {} if image is None else {"memory": image}
        for operand in kernel.form.operands:
            if operand.kind == "stride":
                given[operand.name] = stride
            elif operand.name in registers:
                words = registers[operand.name][0]
                one = operand.kind == "address" and operand.layout is None
                given[operand.name] = int(words[0, 0]) if one else words[:, 0] if operand.kind == "address" else words
        left: Array = transferred.emulated(kernel, transferred.Transfer(given, registers)).copy()
        if self._flips:
            left.view(np.uint8)[0] ^= 1
        return left


def _sample(catalog: Catalog, family: str) -> list[Kernel]:
    """Some kernels of a family: of every operand form and set of constants."""
    own = [kernel for kernel in kernels(catalog, _TARGET, [family]) if kernel.instruction.operation == "multiply"]
    assert len(own) > 100
    return own[:: max(1, len(own) // 60)]


@pytest.mark.parametrize("family", _FAMILIES)
def test_operands_give_the_product(catalog: Catalog, family: str) -> None:
    chosen = _sample(catalog, family)
    chip: Any = _Emulating(chosen)
    for number, kernel in enumerate(chosen):
        for seed in range(2):
            assert products.run(chip, number, kernel, 97 * number + seed).wrong == 0, f"{kernel.instruction} {kernel.immediates}"


@pytest.mark.parametrize("family", _FAMILIES)
def test_a_wrong_bit_shows(catalog: Catalog, family: str) -> None:
    kernel = _sample(catalog, family)[0]
    chip: Any = _Emulating([kernel], flips=True)
    assert products.run(chip, 0, kernel, 1).wrong == 1


def test_loads_stores_and_transpositions_are_compared_to_the_bit(catalog: Catalog) -> None:
    families = ("ldmatrix", "stmatrix", "movmatrix", "wmma")
    chosen = [kernel for kernel in kernels(catalog, _TARGET, families, "9.0") if kernel.instruction.operation != "multiply"]
    assert {kernel.instruction.operation for kernel in chosen} == {"load", "store", "transpose"}
    sound: Any = _Emulating(chosen)
    broken: Any = _Emulating(chosen, flips=True)
    for number, kernel in [*enumerate(chosen)][::9]:
        made = transferred.drawn(kernel, number)
        assert made.image is None or len(made.image) <= 48 << 10  # shared memory of a block
        assert transferred.run(sound, number, kernel, number), kernel.instruction
        assert not transferred.run(broken, number, kernel, number), kernel.instruction
        assert replay.record(sound, number, kernel, 7).d == replay.emulated(kernel, replay.record(sound, number, kernel, 7))
    assert [name for name in dict.fromkeys(kernel.form_name for kernel in chosen) if "stride" in name] == [
        "r, [p], stride",
        "[p], r, stride",
    ]


def test_kernels_need_no_newer_version_than_the_compiler_speaks(catalog: Catalog) -> None:
    of = {newest: {kernel.instruction.canonical for kernel in kernels(catalog, _TARGET, ["ldmatrix"], newest)} for newest in ("9.0", "9.4")}
    assert {spelling.rpartition(".m8n16.")[0] for spelling in of["9.4"] - of["9.0"]} == {"ldmatrix.sync.aligned"}
    assert len(of["9.0"]) == 18


def test_other_threads_metadata_is_poisoned(catalog: Catalog) -> None:
    kernel = next(kernel for kernel in kernels(catalog, _TARGET, ["mma.sp"]) if kernel.immediates == {"f": 1})
    random = np.random.default_rng(0)
    made = Builder(kernel, random, products.Drawn(kernel.instruction, random)).build()
    metadata = kernel.instruction.metadata
    assert metadata.selectors > 1
    own = metadata.pack(metadata.unpack(made.registers["e"][..., 0], 1), 1)
    assert (made.registers["e"][..., 0] != own).any()


@pytest.mark.parametrize("ask", ["_illegal_fields", "_unused_descriptor_bits", "_idle_base_offset", "_saturation"])
def test_what_the_manual_leaves_open_is_asked(catalog: Catalog, ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {
        "_illegal_fields": observations._one_for_each_metadata_layout,
        "_unused_descriptor_bits": observations._by_descriptors,
        "_idle_base_offset": observations._by_descriptors,
        "_saturation": observations._saturating,
    }[ask]
    kernel = next(chosen(catalog, _TARGET))
    chip: Any = _Emulating([kernel])
    if ask == "_illegal_fields":  # the emulator refuses what the manual leaves undefined, and D stays
        monkeypatch.setattr(observations, "_run", lambda *_: np.zeros(()))
    seen = list(getattr(observations, ask)(chip, 0, kernel))
    assert seen
    assert all(answer.instruction == kernel.instruction.canonical and answer.seen for answer in seen)
    if ask == "_saturation":
        assert seen[0].seen == "the exact sum saturates once"


def test_products_of_tensor_cores_are_found_in_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        Function : _Z8kernel_0N12_GLOBAL__N_18OperandsE
        /*0120*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
        /*0130*/              @!P0 HMMA.16816.F32 R4, R8, R12, R4 ;
        /*0140*/                   IMAD.MOV.U32 R1, RZ, RZ, R2 ;
        Function : _Z8kernel_1N12_GLOBAL__N_18OperandsE
        /*0150*/                   HGMMA.64x8x16.F32 R24, gdesc[UR4], !UPT ;
        Function : _Z8kernel_2N12_GLOBAL__N_18OperandsE
        /*0150*/                   EXIT ;
    """
    monkeypatch.setattr("subprocess.run", lambda *_, **__: type("Done", (), {"stdout": text})())
    assert sass.products(tmp_path) == {0: Counter({"HMMA.16816.F32": 2}), 1: Counter({"HGMMA.64x8x16.F32": 1}), 2: Counter()}


def test_a_chip_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxmma_proof.silicon import chip_run

    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="nvidia-smi is not on the PATH; it comes with the driver of an NVIDIA GPU"):
        chip_run.run(paths.DATABASE, paths.INCLUDE, date="2026-01-01")


def test_the_emulator_takes_the_keywords(catalog: Catalog) -> None:
    """The builder gives the emulator the same operands as the kernel's registers."""
    kernel = next(kernels(catalog, _TARGET, ["wgmma.sp"]))
    random = np.random.default_rng(5)
    made = Builder(kernel, random, products.Drawn(kernel.instruction, random)).build()
    expected = emulate(kernel.instruction, **made.keywords)
    assert expected.d.shape[0] == len(made.registers["d"])


def test_fences_and_waits_run_beside_products(catalog: Catalog) -> None:
    def beside(family: str) -> set[str]:
        return {neighbour.canonical for kernel in kernels(catalog, _TARGET, [family]) for neighbour in kernel.beside(catalog)}

    assert beside("mma.sp") == set()
    protocols = [protocol for protocol in catalog.database.spec.protocols if "wgmma" in protocol.families]
    named = tuple({step.instruction for protocol in protocols for step in protocol.steps} - {""})
    ordering = {
        each.canonical
        for each in catalog.all()
        if each.operation == "synchronise" and each.canonical.startswith(named) and _TARGET in each.accepted_by()
    }
    assert beside("wgmma") == ordering
    assert len(ordering) > 3


def test_elements_put_together_from_halves(catalog: Catalog) -> None:
    instruction = catalog.find("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    element = instruction.operand("b").element
    assert element is not None
    pattern = instruction.metadata.granularity
    b = np.array([[1.5], [-3.0], [1 + 2**-10], [64.0]])
    legal = {int(value, 2): units for value in instruction.metadata.legal for units in [pattern.kept_units(value)]}
    assert len(legal) == 2
    for field, (unit,) in legal.items():  # both halves of one element: this element
        assert np.array_equal(observations._mixed(b, field, pattern, element), b[[unit, 2 + unit]])
    # The low half of the first element of a chunk below the high half of the second one.
    mixed = observations._mixed(b, 0b1100, pattern, element)
    assert np.array_equal(mixed, [[-3.0], [64.0 * (1 + 2**-10)]])


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_the_assembler_makes_of_it_what_the_chip_ran(catalog: Catalog, nvcc: str, tmp_path: Path) -> None:
    """The machine code that the installed assembler makes is the one in the evidence."""
    witness = Witness(paths.SPEC / "evidence" / "silicon.jsonl")
    assert witness.run is not None
    (release,) = [tool.version.split(",")[0].removeprefix("CUDA ") for tool in witness.run.tools if tool.kind == "compiler"]
    if f"release {release}," not in subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout:
        pytest.skip(f"nvcc is not that of CUDA {release}, which the evidence was made with")
    recorded = {row.instruction: row.machine for row in witness.of(Executed)}
    (target,) = witness.run.targets
    chosen: dict[tuple[object, ...], Kernel] = {}
    for kernel in kernels(catalog, target):
        instruction = kernel.instruction
        if not recorded.get(instruction.canonical):
            continue
        made = tuple(text.partition(".")[0] for text in recorded[instruction.canonical])
        chosen.setdefault((instruction.family, instruction.extents.get("k"), instruction.qualifiers.get("atype"), made), kernel)
    sample = list(chosen.values())
    assert {"none", "2 HMMA", "1 LDSM", "1 STSM", "1 MOVM"} < {made[0] for *_, made in chosen if isinstance(made, tuple)}
    libraries = [
        build(nvcc, target, paths.INCLUDE, sample[first : first + PER_FILE], tmp_path / f"sample_{first}.so")
        for first in range(0, len(sample), PER_FILE)
    ]
    counted = [machine for library in libraries for _, machine in sorted(sass.products(library).items())]
    for kernel, machine in zip(sample, counted, strict=True):
        assert sass.text(machine) in recorded[kernel.instruction.canonical], f"{kernel.instruction} {kernel.immediates}"


def _of_today(catalog: Catalog) -> list[Launch]:
    """The recorded launches of instructions whose evidence is up to date."""
    witness = Witness(paths.SPEC / "evidence" / "silicon.jsonl")
    facts = {line.instruction: line.facts for line in witness.of(Executed)}
    known = {instruction.canonical for instruction in catalog.all() if facts.get(instruction.canonical) == digest.computed(instruction)}
    return [launch for launch in replay.read() if launch.instruction in known]


def test_the_emulator_repeats_what_the_chip_did(catalog: Catalog) -> None:
    """Bit by bit, from bare words in registers and memory."""
    launches = _of_today(catalog)
    if not launches:
        pytest.skip("the database says something else today of all instructions that the chip ran")
    for launch in launches:
        assert replay.emulated(replay.kernel_of(catalog.find(launch.instruction), launch), launch) == launch.d, launch


def test_another_bit_is_another_digest(catalog: Catalog) -> None:
    launches = _of_today(catalog)
    if not launches:
        pytest.skip("the database says something else today of all instructions that the chip ran")
    other = msgspec.structs.replace(launches[0], seed=launches[0].seed + 1)
    assert replay.emulated(replay.kernel_of(catalog.find(other.instruction), other), other) != launches[0].d


def test_launches_are_written_as_they_are_read(tmp_path: Path) -> None:
    replay.write(tmp_path / "launches", replay.read())
    assert (tmp_path / "launches").read_bytes() == replay.RECORDED.read_bytes()


@pytest.mark.parametrize("said", ["", "No devices were found"])
def test_a_driver_without_a_chip(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    result = CliRunner().invoke(main, ["silicon"])
    assert result.exit_code == 1
    assert f"there is no GPU here: nvidia-smi says {said or 'nothing'}" in result.stderr


def test_the_record_of_another_chip_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'Another chip, 9.0, 1.2'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    path = Path(shutil.copy(paths.SPEC / "evidence" / "silicon.jsonl", tmp_path))
    result = CliRunner().invoke(main, ["silicon", "--record", str(path)])
    assert result.exit_code == 1
    assert "is the record of another chip, NVIDIA H200, and this is Another chip: write it elsewhere" in result.stderr

"""Every CUDA wrapper, compiled once; and for every architecture that the installed toolkit knows, a wrapper of each requirement.

The wrappers of a family with one requirement share a guard, and their text does not depend on the target.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from cuda_calls import Call, Kernels, Nvcc, calls, instructions_in
from ptxmma import paths
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.variants import recased

pytestmark = pytest.mark.nvcc


def _targets() -> list[str]:
    """The targets of the spec whose chips the installed toolkit knows."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return []
    known = set(subprocess.run([nvcc, "--list-gpu-code"], check=True, capture_output=True, text=True).stdout.split())
    spec = yaml.safe_load((paths.SPEC / "targets.yaml").read_text(encoding="utf-8"))
    return [entry["name"] for entry in spec["targets"] if entry["name"].rstrip("af") in known]


@pytest.fixture(scope="module")
def compiled(compiler: Nvcc, catalog: Catalog) -> dict[str, list[Instruction]]:
    """The instructions that are compiled for each target.

    Each is compiled for the first target that takes all of its operand lists; for other targets only where its family has no other
    with the same requirements.
    """
    chosen: dict[str, list[Instruction]] = {target: [] for target in _targets()}
    seen = set()
    for instruction in catalog.all():
        accepted = {target: first for target, first in instruction.accepted_by().items() if target in chosen and first <= compiler.ptx}
        takes = {target: [form for form in instruction.forms if target in instruction.accepted_by(form=form)] for target in accepted}
        full = next((target for target in accepted if len(takes[target]) == len(instruction.forms)), None)
        assert full or not accepted, instruction.canonical
        for target in accepted:
            requirement = (instruction.family, target, *instruction.accepted_by().items(), *map(len, takes.values()))
            if target == full or requirement not in seen:
                seen.add(requirement)
                chosen[target].append(instruction)
    return chosen


@pytest.mark.parametrize("target", _targets() or [pytest.param("", marks=pytest.mark.skip(reason="nvcc is not installed"))])
def test_every_wrapper_makes_its_canonical_instruction(
    compiler: Nvcc, catalog: Catalog, compiled: dict[str, list[Instruction]], target: str, tmp_path: Path
) -> None:
    kernels = Kernels("ptxmma/ptxmma.cuh")  # all headers: those that a target has no use for must compile there, too
    for instruction in compiled[target]:
        for call in calls(catalog, instruction, target):
            kernels.add(call.of(f"ptxmma::{instruction.identifier}"), instruction.canonical)
    assert kernels.expected
    ptx = compiler.ptx_of(kernels.source, target, tmp_path)
    assert instructions_in(ptx, (instruction.canonical for instruction in catalog.all())) == kernels.expected


@pytest.mark.parametrize("target", [name for name in _targets() if name[-1] == "a"])
def test_wrappers_compile_for_the_chip_without_its_features(compiler: Nvcc, catalog: Catalog, target: str, tmp_path: Path) -> None:
    """One of each requirement, with each hint: in the pass for compute_90 that ``nvcc -arch=sm_90a`` makes, too, it ends the kernel."""
    kernels, seen = Kernels("ptxmma/ptxmma.cuh"), set()
    for instruction in catalog.all():
        for each in (instruction, *instruction.hinted()):
            accepted = each.accepted_by()
            requirement = (each.family, *accepted.items(), *each.hints)
            if accepted.get(target, "99.0") <= compiler.ptx and requirement not in seen:
                seen.add(requirement)
                for call in calls(catalog, instruction, target):
                    kernels.add(_tagged(each, call), each.canonical)
    ptx = compiler.ptx_of(kernels.source, target.rstrip("a"), tmp_path)
    _, *parts = re.split(r"\.entry (\w+)\(", ptx)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        [canonical] = kernels.expected[name]
        assert (canonical in body) != ("detail6absent" in body.split("ret;")[0]), canonical


def _tagged(instruction: Instruction, call: Call) -> str:
    """A call with the tags of an instruction's hints."""
    tags = [recased(instruction.hints.get(hint.name, "no_hint")) for hint, _ in instruction.possible_hints()]
    return call._replace(immediates=[*call.immediates, *(f"ptxmma::{tag}" for tag in tags)]).of(f"ptxmma::{instruction.identifier}")


def test_a_tag_adds_its_hint(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    """Every combination of the hints of an instruction, for one instruction of each kind."""
    if compiler.ptx < "9.0":
        pytest.skip("nvcc is too old")
    kernels = Kernels("ptxmma/ptxmma.cuh")
    for entry in (entry for entry in catalog.database.spec.instructions if entry.hints):
        instruction = catalog.of(entry.name)[0]
        for each in instruction.hinted():
            if each.accepted_by().get("sm_100a", "99.0") <= compiler.ptx:
                kernels.add(_tagged(each, next(calls(catalog, instruction))), each.canonical)
    assert len(kernels.expected) > 30
    spellings = [spelling for each in kernels.expected.values() for spelling in each]
    assert instructions_in(compiler.ptx_of(kernels.source, "sm_100a", tmp_path), spellings) == kernels.expected


def test_names_of_users_macros_are_left_alone(compiler: Nvcc, tmp_path: Path) -> None:
    """A program that defines M, N and K as macros may include the headers after them."""
    letters = "".join(f"#define {letter} 1024\n" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    call = "ptxmma::wgmma<ptxmma::shape<64, 16, 16>, ptxmma::f32, ptxmma::f16, ptxmma::f16>::call(d, a, a, true);"
    declared = "float d[8] = {}; ptxmma::matrix_descriptor<PTXMMA_MAJORNESS_K, ptxmma::f16> a = {};"
    kernel = f"__global__ void kernel(float* out) {{ {declared} {call} ptxmma::wgmma_wait_group<0>(); out[threadIdx.x] = d[0]; }}"
    assert "wgmma.mma_async" in compiler.ptx_of(f"{letters}#include <ptxmma/ptxmma.cuh>\n{kernel}\n", "sm_90a", tmp_path)


def test_a_number_of_any_type_is_no_truth_value(compiler: Nvcc, tmp_path: Path) -> None:
    """Of overloads with a number and a truth value, numbers of all types choose the first, and truth values the second."""
    calls = "".join(f"ptxmma::cp_async_ca_shared<8>(d, s, {size});" for size in ("2", "2u", "size_t{2}", "short{2}", "true"))
    kernel = f"#include <ptxmma/cp_async.cuh>\n__global__ void kernel(uint32_t d, const void* s) {{ {calls} }}\n"
    ptx = compiler.ptx_of(kernel, "sm_80", tmp_path)
    assert (ptx.count("cp.async.ca.shared.global"), ptx.count("setp.ne.b32 ignore_src")) == (5, 1)

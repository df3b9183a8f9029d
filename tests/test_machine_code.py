"""The wrappers cost nothing: each becomes the machine code that a statement written by hand becomes."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog

_STATEMENTS = Path(__file__).with_name("hand_written_asm.txt")
_OPERAND = re.compile(r"(\w+)([:=+])(?:\[(\d+)\])?(\w)")

#: C++ type and constraint by the letter of an operand.
_TYPES = {"r": ("uint32_t", "r"), "i": ("int32_t", "r"), "f": ("float", "f"), "d": ("double", "d"), "l": ("uint64_t", "l")}
_TYPES |= {"s": ("uint32_t", "r"), "h": ("uint16_t", "h"), "g": ("void*", "l"), "p": ("bool", "r")}


class _Operand(NamedTuple):
    """An operand of a statement; ``access`` is ``:`` (read), ``=`` (written) or ``+`` (both)."""

    name: str
    access: str
    size: str
    letter: str

    @property
    def registers(self) -> list[str]:
        return [f"{self.name}[{i}]" for i in range(int(self.size))] if self.size else [self.name]

    @property
    def declaration(self) -> str:
        """Declares the operand and reads it from memory, each thread its own."""
        c_type = _TYPES[self.letter][0]
        array = f"[{self.size}]" if self.size else ""
        loads = "".join(f" {one} = static_cast<{c_type} const volatile*>(in)[threadIdx.x];" for one in self.registers)
        return f"{c_type} {self.name}{array};{loads if self.access != '=' else ''}"

    @property
    def stores(self) -> str:
        c_type = _TYPES[self.letter][0]
        return "".join(f" static_cast<{c_type} volatile*>(out)[threadIdx.x] = {one};" for one in self.registers if self.access != ":")


def _by_hand(statement: str, operands: list[_Operand]) -> str:
    """The ``asm`` of a statement."""
    lists: dict[bool, list[str]] = {True: [], False: []}
    places, number, before = {}, 0, ""
    for operand in sorted(operands, key=lambda one: one.access == ":"):
        numbers = [f"%{number + i}" for i in range(len(operand.registers))]
        number += len(numbers)
        places[operand.name] = "{" + ", ".join(numbers) + "}" if operand.size else numbers[0]
        if operand.letter == "p":
            before, places[operand.name] = f".reg .pred q; setp.ne.b32 q, {numbers[0]}, 0; ", "q"
        constraint = _TYPES[operand.letter][1]
        prefix = operand.access.replace(":", "")
        values = [f"static_cast<int>({one})" if operand.letter == "p" else one for one in operand.registers]
        lists[bool(prefix)] += [f'"{prefix}{constraint}"({value})' for value in values]
    text = "{" + before + statement.format(**places) + "}"
    return f'asm volatile("{text}" : {", ".join(lists[True])} : {", ".join(lists[False])} : "memory");'


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
@pytest.mark.parametrize("target", ["sm_90a", "sm_103a"])
def test_wrappers_become_what_is_written_by_hand(nvcc: str, catalog: Catalog, target: str, tmp_path: Path) -> None:
    """Ten statements of each family that the toolkit's assembler takes; those of tensor memory on the target that has most of them."""
    families: Counter[str] = Counter()
    kernels = []
    for line in _STATEMENTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or line.startswith("tcgen05") != (target == "sm_103a"):
            continue
        statement, declared, *immediates = re.split(r" \| ?", line)
        instruction = catalog.find(statement.split()[0].rstrip(";"))
        families[instruction.family] += 1
        operands = [_Operand(*fields) for fields in _OPERAND.findall(declared)]
        call = f"ptxmma::{instruction.identifier}{''.join(immediates)}({', '.join(one.name for one in operands)});"
        for kind, body in (("wrapper", call), ("hand", _by_hand(statement, operands))):
            if instruction.family.startswith("wgmma"):
                body = f"ptxmma::wgmma_fence(); {body} ptxmma::wgmma_commit_group(); ptxmma::wgmma_wait_group<0>();"
            lines = [*(one.declaration for one in operands), body, *(one.stores for one in operands)]
            signature = f'extern "C" __global__ void {kind}_{families.total()}(void* in, void* out)'
            kernels.append(f"{signature} {{\n  " + "\n  ".join(lines) + "\n}")
    assert len(families) == {"sm_90a": 8, "sm_103a": 9}[target]
    assert {family: count for family, count in families.items() if count != 10} == ({"movmatrix": 1} if target == "sm_90a" else {})

    source, built = tmp_path / "kernels.cu", tmp_path / "kernels.cubin"
    source.write_text("#include <ptxmma/ptxmma.cuh>\n" + "\n".join(kernels) + "\n", encoding="utf-8")
    gencode = f"arch=compute_{target[3:]},code={target}"
    command = [nvcc, "-std=c++17", f"-I{paths.INCLUDE}", "-gencode", gencode, "-cubin", str(source), "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "C75" not in done.stderr
    code = subprocess.run(["cuobjdump", "-sass", str(built)], capture_output=True, text=True, check=True).stdout
    bodies = dict(re.findall(r"Function : (\w+)\n(.*?)(?=Function : |\Z)", code, re.DOTALL))
    assert len(bodies) == 2 * families.total()
    for number in range(1, families.total() + 1):
        hand, wrapper = (re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", bodies[f"{kind}_{number}"]) for kind in ("hand", "wrapper"))
        assert len(hand) > 4
        assert wrapper == hand, f"statement {number}"

"""CuTe's copies between tensor memory and registers: its traits, evaluated by a program for every thread and element."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ptxmma_proof.peers import headers, probe
from ptxmma_proof.peers.register_loads import Load
from ptxmma_proof.peers.sources import Source

_OPERATIONS = "cute/arch/copy_sm100.hpp"
_OPCODE = re.compile(r"tcgen05\.(ld|st)\.")
_NUMBERED = re.compile(r"(\d+)$")
_LANES, _REGISTER_BITS, _PACKED_BITS = 32, 32, 16

_SOURCE = (
    probe.INCLUDES
    + r"""
template <class Operation, class Registers> void copied(int element) {
  auto const places = composition(typename Copy_Traits<Operation>::ValID{}, Registers{});
  for (int lane = 0; lane < 32; ++lane)
    for (int bit = 0; bit < size<1>(Registers{}); bit += element) std::printf("%lld ", (long long)places(lane, bit));
  std::printf("\n");
}
int main() {
"""
)


def read(cutlass: Source, nvcc: str = "nvcc") -> Iterator[Load]:
    """Every copy of CuTe that is one such instruction, by the opcode in its assembly text.

    The registers of a statement are CuTe's by their numbers; its immediate is the columns between two accesses.

    Raises:
        MissingPeerError: the compiler is not installed.
        CompilerError: it refuses the headers.
    """
    operations = {
        name: own[0] for name, own in headers.statements(cutlass, _OPERATIONS).items() if len(own) == 1 and _OPCODE.match(own[0].mnemonic)
    }
    lines = []
    for name, statement in operations.items():
        registers = "DstLayout" if _OPCODE.match(statement.mnemonic)[1] == "ld" else "SrcLayout"  # type: ignore[index]  # it matched
        lines.append(f"  copied<{name}, Copy_Traits<{name}>::{registers}>({_bits(statement.mnemonic)});\n")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "loads"
        probe.compile_source(cutlass, _SOURCE + "".join(lines) + "}\n", Path(scratch), nvcc, program)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    for (name, statement), line in zip(operations.items(), printed.splitlines(), strict=True):
        order = [int(match[1]) for place in statement.places if (match := _NUMBERED.search(place.expression)) and place.constraint]
        places = np.array(line.split(), np.int64).reshape(_LANES, len(order), -1)[:, order].reshape(_LANES, -1)
        immediates = [int(place.expression) for place in statement.places if place.expression.isdecimal()]
        yield Load("CuTe", name, statement.mnemonic, sum(immediates), places)


def _bits(opcode: str) -> int:
    """The bits of an element in a register."""
    return _PACKED_BITS if "pack::16b" in opcode else _REGISTER_BITS

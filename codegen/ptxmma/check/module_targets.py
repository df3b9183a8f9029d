"""Targets that a module names, and conditions on the architecture that let through targets without an instruction.

``#if __CUDA_ARCH__ >= 1200`` also holds for sm_120.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.model import Version
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ptxmma.check.asm_operands import Judged
    from ptxmma.model import Spec
    from ptxmma.ptx.cplusplus_tokens import Guard
    from ptxmma.ptx.statements import Function

_SCALED = (
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 "
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {0, 0}, %10, {0, 0};"
)
_CONDITION = "__CUDA_ARCH__ >= 1200"
_BAD = f"""\
__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], unsigned scales) {{
#if {_CONDITION}
  asm volatile("{_SCALED}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scales));
#endif
}}
"""

RULES: Mapping[str, Rule] = {
    "architecture-guard": Rule(
        "A condition on the architecture holds for no plain target that lacks the instruction.",
        "The value of __CUDA_ARCH__ is 1200 for sm_120, sm_120f and sm_120a alike. A build for sm_120, for which a "
        "CMAKE_CUDA_ARCHITECTURES of 120 asks, then ends in the assembler: feature not supported on .target 'sm_120'.",
        "Compile for the target that the message names, and ask for its feature macro instead of __CUDA_ARCH__.",
        _BAD,
        _BAD.replace(_CONDITION, "defined(__CUDA_ARCH_FEAT_SM120_ALL)"),
    ),
}


def of_guard(spec: Spec, guard: Guard, judged: Iterable[Judged]) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on the instructions of a text, each with its opcode.

    Args:
        spec: the targets.
        guard: the condition around the text.
        judged: the instructions.
    """
    compiled = [target for target in spec.targets if guard.holds(target.number)]
    plain = next((target for target in compiled if not target.suffix and not target.until), None)
    for statement, instruction, _ in judged if plain else ():
        accepts = [target for target in compiled if target.name in instruction.accepted_by()]
        fit = next((target for target in accepts if target.suffix == "a" and not target.until), None)
        if plain is None or fit is None or not all(target.suffix for target in accepts):
            continue
        text = f"#if {guard.text} also holds for {plain.name}, which does not have it: compile for {fit.name} "
        text += f"(CMAKE_CUDA_ARCHITECTURES {fit.name.removeprefix('sm_')}), and ask for __CUDA_ARCH_FEAT_SM{fit.number}_ALL"
        yield Remark(Token(statement.opcode, statement.start), "note", "architecture-guard", text), statement.opcode


#: The directives, with the version or the target that they name; each pattern begins with letters, so that a search is fast.
_DIRECTIVES = {
    b".version": re.compile(rb"\.version\s+(\d+\.\d+)"),
    b".target": re.compile(rb"\.target\s+(?:\w+\s*,\s*)*(sm_\w+)"),
}


class Headers:
    """Judges the directives of modules by a spec.

    Args:
        spec: the targets and versions.
        target, ptx: instead of what modules declare; empty without one.
    """

    def __init__(self, spec: Spec, target: str, ptx: str) -> None:
        self._targets = {entry.name: entry for entry in spec.targets}
        self._releases = {entry.version: entry.cuda for entry in spec.isa_versions}
        self._target, self._ptx = target, ptx

    def of_text(self, function: Function) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the directives in a text outside functions, each with the directive that it is about."""
        if function.name or b".target" not in function.text:
            return
        places = {
            name: Token(match[1], match.start(1)) for name, pattern in _DIRECTIVES.items() for match in pattern.finditer(function.text)
        }
        version, target = function.module.version, self._targets.get(function.module.target)
        if version not in self._releases or len(places) < 2:
            return
        if self._ptx and Version(version) > Version(self._ptx):
            text = f"drivers and assemblers of PTX ISA {self._ptx} refuse a module of PTX ISA {version}, whatever is in it"
            yield Remark(places[b".version"], "note", "version", text), b".version"
        if self._ptx or self._target or target is None:
            return
        if Version(version) < min(Version(ptx) for ptx in (target.ptx, *(each.ptx for each in target.ptx_in))):
            needed = f"needs PTX ISA {target.ptx} on {target.name}, but is checked for {version}"
            release = self._releases[target.ptx]
            text = f"{target.name} needs PTX ISA {target.ptx} (CUDA {release}), but the module is of {version} [{target.source}]"
            yield Remark(places[b".target"], "error", "version", text, cause=needed), b".target"

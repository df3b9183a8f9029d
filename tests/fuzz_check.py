"""Feeds ``ptxmma check`` with damaged modules: ``python tests/fuzz_check.py -max_total_time=600``.

It needs atheris (``pip install atheris``), which takes libFuzzer's options.  Inputs are modules with the database's own instructions,
damaged by libFuzzer's mutations and by ours: tokens dropped, repeated and moved, braces, comments and strings opened and not closed,
bytes that are not UTF-8.  For every input:

- no exception, and an answer within seconds;
- every finding is at a place of the input, and its excerpt is the text there;
- the same holds when it comes in small pieces, and when it is read as C, Python or LLVM IR.

Of the modules to start from, small pieces must be judged as the whole.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
from importlib import import_module
from typing import Any, BinaryIO

atheris: Any = import_module("atheris")
with atheris.instrument_imports(include=["ptxmma.check", "ptxmma.ptx"]):
    import ptxmma
    from ptxmma.catalog.instructions import catalog
    from ptxmma.check import Checker, Findings
    from ptxmma.ptx import inline_assembly
    from ptxmma.ptx import lines as ptx
    from ptxmma.ptx.opcodes import Opcodes
    from ptxmma.ptx.python_strings import NotPythonError

_CATALOG = catalog(None)
_CHECKER = Checker()
_OPCODES = Opcodes(_CATALOG.database.spec)
#: The most seconds for one input; libFuzzer reports slower ones.
_PATIENCE = 30
#: The step through the instructions: few of them reach every kind of operand.
_EVERY = 97
_LINES = tuple(line for instruction in list(_CATALOG.all())[::_EVERY] for line in ptx.lines(instruction))
_BANKS = tuple(entry.name for entry in _CATALOG.database.spec.types.registers)
#: Tokens that open, close and declare, and others that a reader may stumble over.
_FRAGMENTS = (
    *(b"/*", b"*/", b"//", b'"', b"'''", b"{", b"}", b"(", b")", b"[", b"]", b";", b"<", b">", b"%", b"_", b"-", b"::", b"@%p ", b"@!p "),
    *(b".reg .b32 %r<9>;", b".reg .v2 .f32 x;", b"<999999999999999999>", b".func f(", b".entry k()", b".section .debug {"),
    *(b".target sm_80", b".target", b".version 8.0", b".version", b"bra L;", b"L:", b"ret;", b"mma", b"wgmma."),
    *(b"\x00", b"\xff\xfe", b"\r", b"\t", b"\\\n", b"0x", b"1.0e9", b"0f3f800000", b"::ordered_metadata", b".kind::f8f6f4"),
    *(b"wgmma.fence.sync.aligned;", b"wgmma.commit_group.sync.aligned;", b"wgmma.wait_group.sync.aligned 0;"),
    *(b'asm volatile("', b'" : "+f"(d) : "r"(a));'),
)


def modules() -> list[bytes]:
    """Modules to start from: one for each target, in its newest version."""
    newest = _CATALOG.database.spec.isa_versions[-1].version
    made = []
    for number, target in enumerate(_CATALOG.database.spec.targets):
        text, _ = ptx.module(newest, target.name, _LINES[number :: len(_CATALOG.database.spec.targets)], _BANKS)
        made.append(text.encode())
    return made


def damage(data: bytes, limit: int, seed: int) -> bytes:
    """The input with one or two of its parts dropped, repeated, moved or replaced, or with libFuzzer's own change."""
    chance = random.Random(seed)
    if not data or chance.random() < 0.3:
        return bytes(atheris.Mutate(data or chance.choice(_MODULES), limit))
    parts = re.findall(rb"\w+|\s+|.", data, re.DOTALL)
    for _ in range(chance.randint(1, 2)):
        place, other = chance.randrange(len(parts)), chance.randrange(len(parts))
        match chance.randrange(5):
            case 0:
                parts[place] = b""
            case 1:
                parts.insert(place, parts[other])
            case 2:
                parts[place], parts[other] = parts[other], parts[place]
            case 3:
                parts.insert(place, chance.choice(_FRAGMENTS))
            case 4:
                parts[place:place] = [b"\n", chance.choice(_LINES).encode(), b"\n"]
    return b"".join(parts)[:limit]


_MODULES = modules()


class _Pieces(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._left = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._left.read(min(size, 7) if size > 0 else 7)


def one(data: bytes) -> None:
    """Check one input."""
    _placed(_CHECKER.check(data, "fuzz.ptx"), data)
    _placed(_in_pieces(data), data)
    for language in ("c++", "python", "llvm"):
        with contextlib.suppress(NotPythonError):
            for function in inline_assembly.functions([data], language, _OPCODES, _CATALOG.database.spec):
                _CHECKER.check_function(function, "fuzz")


def _in_pieces(data: bytes) -> Findings:
    stream: BinaryIO = _Pieces(data)  # type: ignore[assignment]
    return _CHECKER.check_stream(stream, "fuzz.ptx")


def _placed(findings: Findings, data: bytes) -> None:
    """Every finding is at a place of the input."""
    lines = data.split(b"\n")
    for finding in findings:
        assert 1 <= finding.line <= len(lines), f"line {finding.line} of {len(lines)}"
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1, f"column {finding.column} of line {finding.line}"
        assert finding.length >= 1
        assert finding.message
        assert "\n" not in finding.message
        assert finding.caret <= len(finding.source)


def main() -> None:
    """Run libFuzzer."""
    options = [f"-timeout={_PATIENCE}", "-max_len=16384", *sys.argv[1:]]
    atheris.Setup([sys.argv[0], *options], one, custom_mutator=damage)
    print(f"ptxmma {ptxmma.__version__}, {len(_MODULES)} modules to start from", file=sys.stderr)
    for module in _MODULES:
        assert _in_pieces(module) == _CHECKER.check(module, "fuzz.ptx")
    one(b"mma.sync.unheard_of;")  # what is made at the first unknown instruction is made now
    atheris.Fuzz()


if __name__ == "__main__":
    main()

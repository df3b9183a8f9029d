"""PTX inside other sources: the strings of ``asm`` statements in C, C++ and LLVM IR, and string literals in Python.

Only what is known without a compiler is read.  Strings that a macro or a format makes, operands whose constraints cannot be seen, and
numbers that a template gives are unknown.  Nothing is reported about them, but their instructions are counted.  Every place is one of
the original source.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ptxmma.ptx.asm_statements import LONGEST, AsmReader
from ptxmma.ptx.cplusplus_tokens import Conditions, holds_assembly
from ptxmma.ptx.mapped_text import Source, Text, TextBuilder
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.operand_values import ANYTHING
from ptxmma.ptx.python_strings import add_literal, strings
from ptxmma.ptx.snippets import Snippet, replaced
from ptxmma.ptx.statements import Function, Statement

if TYPE_CHECKING:
    from ptxmma.model import Spec


#: Characters of C++ that are kept at a time.
_PART = 1 << 22


def functions(chunks: Iterable[bytes], language: str, opcodes: Opcodes, spec: Spec) -> Iterator[Function]:
    """Each string of a source that holds matrix instructions, as if it were a function.

    Args:
        chunks: the source; bytes that are not UTF-8 are replaced.
        language: ``"c++"``, ``"python"`` or ``"llvm"``.
        opcodes: the first words of matrix instructions.
        spec: the spec with the register of each constraint of ``asm``.

    Raises:
        ptxmma.ptx.python_strings.NotPythonError: a source of Python cannot be read to its end.
    """
    constraints = _constraints(spec)
    if language == "c++":
        yield from _of_cplusplus(chunks, opcodes, constraints)
        return
    data = b"".join(chunks)
    if not opcodes.mentioned(data):
        return
    source = Source(data.decode("utf-8", "replace"))
    if language == "python":
        yield from _of_python(source, opcodes, constraints)
    else:
        yield from _of_llvm(source, opcodes, constraints)


# --- C++ -----------------------------------------------------------------------------------------------------------------------


def _of_cplusplus(chunks: Iterable[bytes], opcodes: Opcodes, constraints: Mapping[str, str]) -> Iterator[Function]:
    """The ``asm`` statements of C++; a long source is read in parts, each of which begins with a line."""
    conditions = Conditions()
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    text, line, start = "", 1, 0
    rest = iter(chunks)
    last = False
    while not last:
        pieces, missing = [text], max(_PART, len(text))
        while not last and missing > 0:
            chunk = next(rest, None)
            last = chunk is None
            pieces.append(decode(chunk or b"", final=last))
            missing -= len(pieces[-1])
        text = "".join(pieces)
        del pieces
        if start == 0 and last and not opcodes.mentioned(text.encode("utf-8", "replace")):
            return
        start = yield from AsmReader(Source(text, line), opcodes, constraints).of_part(conditions, start, last=last)
        cut = text.rfind("\n", 0, start) + 1
        line += text.count("\n", 0, cut)
        text, start = text[cut:], start - cut


def _constraints(spec: Spec) -> dict[str, str]:
    """The type of the register that a constraint asks for."""
    types: dict[str, str] = {}
    for register in spec.types.registers:
        types.setdefault(register.constraint, register.name)
    return types


def _operand_types(listed: str, constraints: Mapping[str, str]) -> list[str]:
    """The types of the operands that LLVM's list of constraints has: ``"=f,r,0"``."""
    types: list[str] = []
    for each in listed.split(","):
        constraint = each.strip().lstrip("=+&*")
        tied = constraint.isdecimal() and len(constraint) < 4 and int(constraint) < len(types)
        if not constraint.startswith("~"):  # what the instruction overwrites
            types.append(types[int(constraint)] if tied else constraints.get(constraint, ANYTHING))
    return types


def _as_ptx(text: Text) -> Text:
    """The text of LLVM's ``asm`` as PTX: ``$0`` is a name already, ``$$`` is a dollar sign."""
    return replaced(text, re.compile(r"\$\$|\$\{(\d+)(?::\w+)?\}|%%"), lambda match: f"${match[1]}" if match[1] else match[0][0])


# --- LLVM IR -------------------------------------------------------------------------------------------------------------------

_ESCAPE = re.compile(r"\\(?:\\|([0-9a-fA-F]{2}))")
_LLVM = re.compile(
    r";[^\n]*|\basm(?:\s+(?:sideeffect|alignstack|inteldialect|unwind))*\s*"
    r'"(?P<text>[^"]*)"(?:\s*,\s*"(?P<constraints>[^"]*)")?|"[^"]*"'
)


def _of_llvm(source: Source, opcodes: Opcodes, constraints: Mapping[str, str]) -> Iterator[Function]:
    """The ``asm`` strings of LLVM IR."""
    for match in _LLVM.finditer(source.text):
        if match["text"] is not None:
            maker = TextBuilder(Text(source.text, None))
            maker.keep(*match.span("text"))
            text = replaced(maker.made(), _ESCAPE, lambda escape: chr(int(escape[1], 16)) if escape[1] else "\\")
            if len(text.chars) <= LONGEST and opcodes.places(text.chars.encode("utf-8", "replace")):
                kinds = _operand_types(match["constraints"], constraints) if match["constraints"] else []
                types = {f"${number}": kind for number, kind in enumerate(kinds)}
                yield Snippet(source, _as_ptx(text), opcodes, types, lambda _: True, numbered=match["constraints"] is not None)


# --- Python --------------------------------------------------------------------------------------------------------------------

_PLAIN = re.compile(rb"\{[\w$%,\s!-]*\}|!?-?[\w$%]+")
#: An operand of MLIR's ``nvvm.inline_ptx``: read, written, or both.
_OF_MLIR = re.compile(r"\{(\$(?:rw?|w)\d+)\}")


def _complete(statement: Statement) -> bool:
    """Return whether a statement in any string is an instruction, and not a word in a sentence or a piece of one."""
    if statement.broken is not None or not all(_PLAIN.fullmatch(operand) for operand in statement.operands):
        return False
    if not statement.operands:
        return statement.opcode.count(b".") > 1
    return any(mark in operand for operand in statement.operands for mark in (b"%", b"$", b"{"))


def _begun(statement: Statement) -> bool:
    """Return whether a statement in a string that is certainly PTX, or that an expression completes, is an instruction."""
    return statement.opcode.count(b".") > 1


def _of_python(source: Source, opcodes: Opcodes, constraints: Mapping[str, str]) -> Iterator[Function]:
    """The string literals of Python."""
    reader = AsmReader(source, opcodes, constraints)
    for string in strings(source):
        maker = TextBuilder(Text(source.text, None))
        for start, stop in string.literals:
            add_literal(maker, source.text, start, stop)
        text = maker.made()
        if len(text.chars) > LONGEST or not opcodes.places(text.chars.encode("utf-8", "replace")):
            continue
        if not string.known:
            yield Snippet(source, text, opcodes, {}, _begun, known=False)
        elif holds_assembly(text.chars):
            yield from reader.statements(text)
        else:
            kinds = _operand_types(string.constraints, constraints) if string.constraints else []
            types = {f"{mark}{number}": kind for number, kind in enumerate(kinds) for mark in "$%"}
            wanted = _begun if _OF_MLIR.search(text.chars) else _complete
            yield Snippet(source, _as_ptx(replaced(text, _OF_MLIR, lambda match: match[1])), opcodes, types, wanted)

"""The checker's remark on a place in a function, and the finding that it becomes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ptxmma.catalog.citations import cited
from ptxmma.check import rule_examples as examples
from ptxmma.check.diagnosis import Diagnosis
from ptxmma.check.findings import Finding, Fix, Severity
from ptxmma.check.operand_faults import Fault
from ptxmma.check.rule import Rule
from ptxmma.ptx import operand_values
from ptxmma.ptx.operand_values import ANYTHING, PREDICATE
from ptxmma.ptx.scopes import Scopes
from ptxmma.ptx.statements import Function, Statement, Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction

RULES: Mapping[str, Rule] = {
    "predicate": Rule(
        "The predicate of an instruction is a declared register of type .pred.",
        "The assembler refuses it.",
        "Declare the register, or compute a predicate with setp.",
        f"@%r0 {examples.MMA}",
        f".reg .pred %p;\nsetp.ne.b32 %p, %r0, 0;\n@%p {examples.MMA}",
    ),
    "syntax": Rule(
        "An instruction has at most one predicate, commas between its operands, braces around lists, and a semicolon at its end.",
        "Assemblers stop at such a slip, often with a message about the next line.",
        "Write what the message says is missing.",
        examples.MMA.replace("%r3},", "%r3}"),
        examples.MMA,
    ),
}

#: Characters of an opcode that a finding repeats.
_MOST_OPCODE = 300
#: An operand at the end of a line, where the next one begins another instruction.
_UNFINISHED = re.compile(rb"\s*(?:\{[^{};]*\}|\[[^\[\];]*\]|[\w%$.+-]+)[ \t\r]*\n\s*[a-z@.}]")

#: The operators, which the text of a predicate may not have.
_OPERATOR = re.compile(rb"[|&^,+*-]")

#: Names and numbers of operands, in which the copies that an unrolled loop has of an instruction differ.
_NAMES = re.compile(rb"[%\w$+-]+(?=[\]},\s;]|$)")
#: Lines that a message names, and the start of its source.
_MOST_LINES, _SOURCE = 8, " (PTX ISA "
#: A comment that ignores the findings of its line; a list that nothing closes goes to the end of the line.
_COMMENT = re.compile(r"(?://|/\*|[#;])\s*ptxmma:\s*ignore\b(?:\[(?P<rules>[^\]]*)\]?)?")


class Remark(NamedTuple):
    """A finding before its place is known in lines and columns."""

    token: Token
    severity: Severity
    rule: str
    message: str
    mended: str = ""  # the text that replaces the token; empty where there is no mechanical repair
    safe: bool = True  # whether that keeps the meaning
    cause: str = ""  # the reason that remarks on other instructions share, which one wrong line causes
    alike: str = ""  # the text that remarks on copies of one instruction share; the whole message where it is empty


@functools.lru_cache(maxsize=1 << 12)
def spelling_of(opcode: bytes) -> str:
    """An opcode without blanks."""
    return b"".join(opcode.split()).decode(errors="replace")


def unbroken(instruction: Instruction) -> str:
    """The start of an opcode in which assemblers take no blanks: its first two words, or more of them where they name an instruction."""
    family, opcode = instruction.variant.instruction.family, instruction.variant.instruction.opcode
    return family if "." in family and opcode.startswith(family) else opcode


def of_predicate(token: Token, registers: Scopes) -> Iterator[Remark]:
    """The faults of the text before an instruction."""
    name = token.text.strip(b"@! \t\r\n")
    kind = registers.known[name] or registers.unregistered(name)
    if slip := _slip(token.text, name, kind):
        yield Remark(token, "error", "syntax", slip)
    elif kind not in (PREDICATE, ANYTHING):
        what = f"a .{kind} register" if kind else "not declared here"
        yield Remark(token, "error", "predicate", f"{name.decode()} must be a declared register of type .pred; it is {what}")


def _slip(predicate: bytes, name: bytes, kind: str) -> str:
    """The fault in the spelling of a predicate; empty where there is none."""
    if predicate.count(b"@") > 1:
        return "an instruction can have only one predicate"
    if not name:
        return "a predicate must follow '@'"
    if operator := _OPERATOR.search(name):
        return f"a predicate is one register: '{operator[0].decode()}' cannot follow it"
    if predicate.count(b"!") > 1:
        return "a predicate can be negated only once"
    return f"'@' is missing before {name.decode(errors='replace')}" if b"@" not in predicate and kind != ANYTHING else ""


def breaks(function: Function, statement: Statement) -> str:
    """The fault at the place where a statement cannot be read on."""
    if divides(function, statement):
        return "a dot must be here, not a comma"
    if statement.operands and _UNFINISHED.match(function.text, statement.broken or 0) is None:
        return "the operands cannot be read from here on"
    return "a semicolon is missing after the operands"


def divides(function: Function, statement: Statement) -> bool:
    """Return whether a comma divides an opcode."""
    return statement.broken == statement.start + len(statement.opcode) and function.text.startswith(b",", statement.broken)


def of_opcode(opcode: Token, diagnosis: Diagnosis) -> Remark:
    """A remark on the modifier that is wrong, or on the whole opcode."""
    token = diagnosis.token.encode()
    at = opcode.text.find(b"." + token) + 1 if token else 0
    place = Token(token, opcode.offset + at) if at else opcode
    return Remark(place, "error", diagnosis.rule, diagnosis.message, diagnosis.mended, cause=diagnosis.cause)


def place_of(function: Function, statement: Statement, fault: Fault) -> Token:
    """The operand, or the element of it, that a fault is about."""
    if fault.operand < 0:
        return Token(statement.opcode, statement.start)
    operand = function.operand(statement, fault.operand)
    if fault.element < 0:
        return operand
    elements = operand_values.elements(operand)
    return elements[fault.element] if fault.element < len(elements) else operand


def folded(function: Function, remarks: Iterable[tuple[Remark, bytes]]) -> Iterator[tuple[Remark, bytes]]:
    """Remarks, one for all copies that an unrolled loop has of an instruction: it counts the others, and names their lines.

    Each error stays, and each remark with a repair.  Copies on lines whose comments ignore the same rules are folded.
    """
    alike: dict[tuple[str, str, bytes, bytes, tuple[str, ...]], list[tuple[Remark, bytes]]] = {}
    for remark, opcode in remarks:
        if remark.severity == "error" or remark.mended:
            yield remark, opcode
            continue
        place = remark.token.offset
        written = _NAMES.sub(b"", function.text[place : function.text.find(b";", place)])
        ignored = ignored_by(function.line_at(place))
        alike.setdefault((remark.rule, remark.alike or remark.message, opcode, written, ignored), []).append((remark, opcode))
    for (first, opcode), *others in alike.values():
        lines = [f"line {function.position(offset)[0]}" for each, _ in others if (offset := each.token.offset) != first.token.offset]
        more = f"; {len(lines)} more like it: {', '.join(lines[:_MOST_LINES])}{', …' if len(lines) > _MOST_LINES else ''}" if lines else ""
        message, source, section = first.message.rpartition(_SOURCE)
        yield first._replace(message=f"{message}{more}{source}{section}" if source else f"{first.message}{more}"), opcode


def findings_of(function: Function, remarks: Iterable[tuple[Remark, bytes]], file: str, numbered: Mapping[str, str]) -> Iterator[Finding]:
    """Remarks, ascending, with their places in the file; each has the opcode that it is about.

    ``numbered`` has the numbers of sections, from :func:`ptxmma.catalog.citations.elsewhere`.
    """
    line = 0
    ignored: tuple[str, ...] = ()
    for remark, opcode in remarks:
        finding = _finding(function, remark, opcode, file, numbered)
        if finding.line != line:  # each line is read once: it may be long
            line, ignored = finding.line, ignored_by(function.line_at(remark.token.offset))
        yield msgspec.structs.replace(finding, ignored=ignored) if ignored else finding


def ignored_by(line: str) -> tuple[str, ...]:
    """The rules that the comments on a line name; ``""`` for a comment that names none."""
    comments = _COMMENT.finditer(line)
    return tuple(rule for each in comments for rule in ([""] if each["rules"] is None else each["rules"].replace(",", " ").split()))


def _finding(function: Function, remark: Remark, opcode: bytes, file: str, numbered: Mapping[str, str]) -> Finding:
    line, column = function.position(remark.token.offset)
    source, caret = function.source(remark.token.offset)
    text = remark.token.text.decode(errors="replace")
    return Finding(
        file=file,
        line=line,
        column=column,
        severity=remark.severity,
        rule=remark.rule,
        instruction=spelling_of(opcode)[:_MOST_OPCODE],
        message=cited(remark.message, numbered),
        length=max(1, len(text)),
        source=source,
        caret=caret,
        fix=Fix(text, remark.mended, remark.safe) if remark.mended else None,
        cause=remark.cause if function.module.target else "",
    )

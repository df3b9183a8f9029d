"""Remarks on legal but doubtful code: spellings, undocumented forms, metadata, addresses and strides whose behaviour is undefined."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.instructions.spellings import without_hints
from ptxmma.catalog.layouts import granularity
from ptxmma.check import rule_examples as examples
from ptxmma.check.findings import Severity
from ptxmma.check.legality import accepted
from ptxmma.check.rule import Rule
from ptxmma.ptx.known_bits import constant_before
from ptxmma.ptx.lines import items, named
from ptxmma.ptx.operand_values import Address, Value

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import OperandForm
    from ptxmma.catalog.operands import Operand
    from ptxmma.ptx.statements import Function, Statement

_STRIDED = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16\n    {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [rows], 16;"
_DOUBLE = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0, %fd1}, {%fd2}, {%fd3}, {%fd0, %fd1};"

RULES: Mapping[str, Rule] = {
    "alignment": Rule(
        "The address of a matrix, and of each of its rows or columns, is aligned as the manual requires.",
        "With another address, behaviour is undefined; the hardware may trap.",
        "Declare the variable with the .align that the message names, and keep offsets and strides multiples of it.",
        f".shared .align 8 .b8 narrow[512];\n{examples.LOAD.replace('tile', 'narrow')}",
        f".shared .align 16 .b8 narrow[512];\n{examples.LOAD.replace('tile', 'narrow')}",
    ),
    "metadata": Rule(
        "Every field of sparsity metadata is one of the instruction's legal values.",
        "With other fields, behaviour is undefined.",
        "Write one of the fields that the message lists; ptxmma.sparse.compress computes them.",
        f"mov.b32 %r4, 0;\n{examples.ORDERED_SPARSE}",
        f"mov.b32 %r4, 0x44444444;\n{examples.ORDERED_SPARSE}",
    ),
    "spelling": Rule(
        "An opcode is spelt as the manual spells it: every modifier, in the manual's order.",
        "Assemblers accept other spellings, but a reader who searches for the instruction does not find them.",
        "Write the canonical spelling, which the message shows.",
        f".reg .f64 %fd<4>;\n{_DOUBLE}",
        f".reg .f64 %fd<4>;\n{_DOUBLE.replace('.f64 {', '.f64.rn {')}",
    ),
    "stride": Rule(
        "The rows or columns of a matrix do not overlap.",
        "With a stride that is shorter than a row or column, behaviour is undefined.",
        "Write the distance between the starts of two rows or columns, in elements.",
        f".shared .align 32 .b8 rows[512];\n{_STRIDED.replace(', 16;', ', 8;')}",
        f".shared .align 32 .b8 rows[512];\n{_STRIDED}",
    ),
    "undocumented": Rule(
        "The manual has the form of the instruction that is written.",
        "Assemblers accept some forms that it does not have; a later release may refuse them, or read them otherwise.",
        "Write the form of the manual that the message proposes.",
        "wgmma.fence.sync.aligned.b8x16;",
        "wgmma.fence.sync.aligned;",
    ),
    "unordered-metadata": Rule(
        "mma.sp has ordered metadata.",
        "Without it, the instruction may be much slower on recent targets.",
        "Write mma.sp::ordered_metadata if the indices of each group ascend; ptxmma.sparse.compress makes such metadata.",
        examples.SPARSE,
        examples.SPARSE.replace("mma.sp.", "mma.sp::ordered_metadata."),
    ),
}

#: Severity, rule and message.
Remark = tuple[Severity, str, str]


class SpellingRemark(NamedTuple):
    """A remark on an opcode, with the opcode to write in its place; ``""`` without one."""

    severity: Severity
    rule: str
    message: str
    mended: str = ""
    safe: bool = True


class Advice:
    """Advice from a database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.of_spelling = functools.lru_cache(maxsize=1 << 12)(self._of_spelling)
        self.of_memory = functools.lru_cache(maxsize=1 << 12)(_of_memory)
        self._faults = functools.lru_cache(maxsize=1 << 12)(self._metadata_faults)

    def _of_spelling(self, instruction: Instruction, spelling: str, target: str, version: str) -> tuple[SpellingRemark, ...]:
        """The remarks on an instruction as it is spelt; what a target does not have in a version mends nothing."""
        remarks: list[SpellingRemark] = []
        canonical = instruction.canonical
        if not instruction.documented:
            remarks.append(SpellingRemark("warning", "undocumented", "assemblers accept it, but the manual does not have it"))
        if _without_hints(instruction, spelling) != _without_hints(instruction, canonical):
            remarks.append(SpellingRemark("note", "spelling", f"the canonical spelling is {canonical}", canonical))
        if ordered := self._ordered(instruction):
            first = min(ordered.accepted_by().values())
            text = f"{ordered.canonical} may be much faster (from PTX ISA {first}); it needs metadata with ascending indices"
            mended = ordered.canonical if accepted(ordered, target, version) else ""
            remarks.append(SpellingRemark("note", "unordered-metadata", text, mended, safe=False))
        return tuple(remarks)

    def _ordered(self, instruction: Instruction) -> Instruction | None:
        """The instruction that does the same with ordered metadata, of one that takes any order."""
        pattern = granularity(self._catalog.database.spec, instruction.variant) if instruction.sparse else None
        if pattern is None:
            return None
        facts = instruction.variant.facts
        wanted = {
            key: allowed[0]
            for condition in _conditions(self._catalog)
            for key, allowed in condition.items()
            if key in instruction.qualifiers
        }
        if not wanted or all(facts.get(key) == value for key, value in wanted.items()):
            return None
        other = dict(facts) | wanted
        return next((entry for entry in self._catalog.of(instruction.variant.instruction.name) if dict(entry.variant.facts) == other), None)

    def of_metadata(
        self, function: Function, statement: Statement, instruction: Instruction, values: tuple[Value, ...]
    ) -> Iterator[tuple[int, str]]:
        """The operand of metadata and what is wrong with it, where its value is a constant that can be seen."""
        form = next((form for form in instruction.forms if len(form.syntax.split(",")) >= len(values)), None)
        if form is None:
            return
        kinds = [operand.kind for operand in form.operands]
        if "metadata" not in kinds:
            return
        place = kinds.index("metadata")
        selector = values[kinds.index("selector")] if "selector" in kinds else 0
        name = statement.operands[place].strip(b"{} \t\r\n")
        value = constant_before(function.text, statement.start, name)
        if value is not None and isinstance(selector, int) and 0 <= selector < instruction.metadata.selectors:
            for fault in self._faults(instruction, value & 0xFFFFFFFF, selector):
                yield place, fault

    def _metadata_faults(self, instruction: Instruction, value: int, selector: int) -> tuple[str, ...]:
        """The faults of metadata that has one value in all threads."""
        metadata = instruction.metadata
        faults = metadata.granularity.faults(metadata.legal)
        width = metadata.width
        lanes = range(metadata.layout.threads)
        fields = next(filter(None, (metadata.fields(lane, selector) for lane in lanes)), [])
        wrong = {value >> bit & (1 << width) - 1 for _, _, bit in fields} & set(faults)
        listed = ", ".join(f"{field:#0{width + 2}b} ({faults[field]})" for field in sorted(wrong))
        if not wrong:
            return ()
        return (f"the metadata is {value:#x}, with the fields {listed}: behaviour is undefined; legal fields: {', '.join(metadata.legal)}",)


def _without_hints(instruction: Instruction, spelling: str) -> list[str]:
    """The words of a spelling that have a place: manuals and compilers write hints at several."""
    return without_hints(instruction.variant.instruction, spelling.split("."))[0]


def _of_memory(instruction: Instruction, values: tuple[Value, ...]) -> tuple[tuple[int, Remark], ...]:
    """The remarks on operands, by their number, that place a matrix in memory: what is not aligned, or overlaps."""
    form = next((form for form in instruction.forms if len(items(form.syntax)) == len(values)), None)
    if form is None:
        return ()
    names = enumerate(zip(map(named, items(form.syntax)), values, strict=True))
    pairs = ((place, (form.operand(*own), value)) for place, (own, value) in names if len(own) == 1)
    remarks = ((place, _of_address(operand, value) or _of_stride(form, operand, value)) for place, (operand, value) in pairs)
    return tuple((place, remark) for place, remark in remarks if remark)


def _of_address(operand: Operand, value: Value) -> Remark | None:
    if not isinstance(value, Address) or not operand.alignment:
        return None
    needed = f"{operand.name} must be a multiple of {operand.alignment} bytes (PTX ISA {operand.source})"
    if value.offset % operand.alignment:
        sure = value.aligned and value.aligned % operand.alignment == 0
        consequence = "behaviour is undefined" if sure else "the register would have to make up for it"
        return "warning" if sure else "note", "alignment", f"{needed}, but its offset is only one of {value.offset}: {consequence}"
    if value.aligned % operand.alignment:
        return "note", "alignment", f"{needed}: declare the variable with .align {operand.alignment}, not {value.aligned}"
    return None


def _of_stride(form: OperandForm, operand: Operand, value: Value) -> Remark | None:
    if not operand.unit or not isinstance(value, int) or operand.default is None or not 0 <= value != operand.default:
        return None
    if value < operand.default:
        text = f"{operand.name} must be at least {operand.default} {operand.unit}, or be left out: behaviour is undefined"
        return "warning", "stride", f"{text} (PTX ISA {operand.source})"
    bits = form.operand(operand.of).bits
    aligned = max(other.alignment for other in form.operands if other.of == operand.of)
    if value * bits % (8 * aligned):
        unit = 8 * aligned // math.gcd(8 * aligned, bits)
        text = f"each row or column must start at a multiple of {aligned} bytes (PTX ISA {operand.source})"
        return "note", "alignment", f"{text}: {operand.name} should be a multiple of {unit} {operand.unit}"
    return None


def _conditions(catalog: Catalog) -> list[dict[str, tuple[str | int, ...]]]:
    """The conditions under which metadata must be ordered."""
    return [condition for pattern in catalog.database.spec.granularities for condition in pattern.ordered_when]

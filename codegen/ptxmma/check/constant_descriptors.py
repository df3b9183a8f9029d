"""Doubts about the matrix descriptors of asynchronous instructions, as far as their bits are known.

The start of a matrix is rarely a constant, but its strides and its swizzle usually are: each is judged if all bits are known that it
depends on.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.matrices.product_operands import Multiplicand, product_operands
from ptxmma.matrices.shared.suspicions import suspicions
from ptxmma.ptx.known_bits import Bits, KnownBits, RegisterBits
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog
    from ptxmma.ptx.flow_events import Issue
    from ptxmma.ptx.outline import Outline
    from ptxmma.ptx.statements import Function

RULES: Mapping[str, Rule] = {
    "descriptor": Rule(
        "The strides, the base offset and the swizzle of a matrix descriptor agree with each other and with the matrix, and the fixed bits "
        "of descriptors and of column masks are right.",
        "The instruction accepts all 64-bit numbers. With a stride in bytes instead of units of 16, or one of another swizzle, it reads "
        "other elements than were meant.",
        "Let ptxmma descriptor encode make the descriptor from the type, the swizzle and the size of the matrix.",
        f"mov.b64 %rd1, 0x4000040000010040;\nmov.b64 %rd2, %rd1;\nwgmma.fence.sync.aligned;\n{examples.WGMMA}",
        f"mov.b64 %rd1, 0x4000004000010040;\nmov.b64 %rd2, %rd1;\nwgmma.fence.sync.aligned;\n{examples.WGMMA}",
    ),
}


class _Described(NamedTuple):
    """An operand that is a descriptor."""

    place: int  # its number among the operands
    matrix: Multiplicand
    family: str  # the family of the instruction
    majorness: int | None  # the number of the operand that says how the matrix lies; None where only one majorness is possible
    meanings: dict[int | None, str]  # the majorness for each value of that operand
    source: str


class ConstantDescriptors:
    """Judges descriptors by a database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._described = functools.lru_cache(maxsize=1 << 8)(self._descriptors)
        self._texts: dict[tuple[Bits, str | None, Multiplicand, str], list[str]] = {}

    def of_function(self, function: Function, outline: Outline) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the descriptors of a function, each with the opcode that it is about: the first of those that are alike."""
        reported = set[str]()
        for issue, each, text in RegisterBits(function.text, function.passed).doubts(functools.partial(self._doubts, outline)):
            message = f"in the descriptor of {each.matrix.name.upper()}, {text} (PTX ISA {each.source})"
            statement = function.statement(issue.offset)
            if statement is not None and statement.broken is None and message not in reported:
                reported.add(message)
                yield Remark(function.operand(statement, each.place), "warning", "descriptor", message), issue.opcode

    def _doubts(self, outline: Outline, known: KnownBits) -> Iterator[tuple[Issue, _Described, str]]:
        """The doubts about the descriptors of asynchronous instructions, each with its instruction."""
        for issue in outline.issues:
            operands = issue.operands
            for each in self._described(issue.opcode, tuple([operand.startswith(b"{") for operand in operands])):
                majorness = None
                if each.majorness is not None:
                    majorness = each.meanings.get(integer(operands[each.majorness]))
                    if majorness is None:
                        continue
                for text in self._wrong(known.of(operands[each.place]), majorness, each.matrix, each.family):
                    yield issue, each, text

    def _descriptors(self, opcode: bytes, listed: tuple[bool, ...]) -> list[_Described]:
        """The descriptors among the operands of an instruction, by which of its operands are lists."""
        instruction = self._catalog.meaning(spelling_of(opcode))
        forms = instruction.forms if instruction is not None else ()
        form = next((form for form in forms if tuple(operand.listed for operand in form.operands) == listed), None)
        if instruction is None or form is None:
            return []
        product, described = product_operands(instruction), []
        for place, operand in enumerate(form.operands):
            if operand.kind == "descriptor":
                matrix = product.a if operand.of == product.a.name else product.b
                kinds = ((number, other) for number, other in enumerate(form.operands) if other.of == operand.of)
                number, other = next(((number, other) for number, other in kinds if other.kind == "majorness"), (None, operand))
                meanings: dict[int | None, str] = {value: name for name, value in other.meanings.items()}
                described.append(_Described(place, matrix, instruction.family, number, meanings, operand.source))
        return described

    def _wrong(self, bits: Bits, majorness: str | None, matrix: Multiplicand, family: str) -> list[str]:
        """The faults of a descriptor that it has whatever its unknown bits are."""
        key = bits, majorness, matrix, family
        if key not in self._texts:
            doubts = suspicions(bits.value, majorness, matrix=matrix, unknown=bits.unknown, family=family, database=self._catalog.database)
            # A base offset of 0 is right for every matrix that TMA writes, wherever it starts.
            self._texts[key] = [each.text for each in doubts if each.severity == "warning"]
        return self._texts[key]

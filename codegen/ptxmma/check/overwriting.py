"""Registers of C that an assembler overwrites before it has read them; the errata say which assemblers do."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.model import matches
from ptxmma.ptx import operand_values

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction, OperandForm
    from ptxmma.model import Spec
    from ptxmma.ptx.statements import Function, Statement

_EXAMPLE = (
    ".version 8.6\n.target sm_100a\n.visible .entry kernel()\n{\n    .reg .b32 %r<6>;\n    .reg .f32 %f<4>;\n"
    "    mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32\n"
    "        {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n    ret;\n}\n"
)

RULES: Mapping[str, Rule] = {
    "overwritten": Rule(
        "C has the registers of D at the same places, or none of them, where assemblers overwrite registers of C.",
        "On targets from sm_90 to sm_110, ptxas makes several instructions of an FP8 mma. They write the registers of D in order, and read "
        "those of C one by one: a register of D that is a later one of C has its new value by then. All releases from 12.4 to 13.5 do so.",
        "Use the registers of D for C in the same order, or others.",
        _EXAMPLE.replace("{%f0, %f1, %f2, %f3};", "{%f1, %f0, %f3, %f2};"),
        _EXAMPLE,
    ),
}


class Overwritten:
    """Knows the bugs of a spec's errata; answers are remembered."""

    def __init__(self, spec: Spec) -> None:
        self._bugs = [(erratum, bug) for erratum in spec.errata for bug in erratum.overwriting]
        self._numbers = {target.name: target.number for target in spec.targets}
        self.erratum = functools.lru_cache(maxsize=1 << 10)(self._erratum)

    def _erratum(self, instruction: Instruction, target: str) -> str:
        """The erratum about an instruction on a target; ``""`` where the code is right, or no target is known."""
        number = self._numbers.get(target, 0)
        for erratum, bug in self._bugs:
            if self._numbers[bug.lowest] <= number <= self._numbers[bug.highest] and matches(bug.when, instruction.variant.facts):
                return erratum.id
        return ""


def remarks(function: Function, statement: Statement, form: OperandForm, erratum: str, target: str) -> Iterator[Remark]:
    """The remark on the first register of D that is a later one of C.

    Args:
        function: the function with the statement.
        statement: an instruction that an erratum is about.
        form: the form of its operands.
        erratum: its name.
        target: the target for which the code is made.
    """
    lists = [(place, operand) for place, operand in enumerate(form.operands) if operand.kind == "accumulator" and operand.listed]
    written = next((operand_values.element_texts(statement.operands[place]) for place, operand in lists if operand.access == "write"), [])
    for place, operand in lists:
        if operand.access == "read":
            elements = operand_values.elements(function.operand(statement, place))
            for number, element in enumerate(elements):
                if element.text in written[:number]:
                    name, first = element.text.decode(errors="replace"), written.index(element.text)
                    text = f"{name} is element {number} of {operand.name} and element {first} of the result: assemblers for {target} "
                    text += f"write it before they read it (erratum {erratum}); use other registers, or the same order"
                    yield Remark(element, "warning", "overwritten", text)
                    return

"""The wrapper functions: what each kind of operand adds to a signature and to an asm statement, and how they come together."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import ROLES, Operand, Parameter
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.cuda.guards import Guard
from ptxmma.model import Spec

_LISTED = 16  # registers on a line of a long list
_WORD = re.compile(r"[\w-]+")
_KEYWORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue default delete do "
    "double else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register return short signed sizeof static struct switch template this throw "
    "true try typedef typename union unsigned using virtual void volatile while xor xor_eq"
)
#: What C++ reserves and PTX or a spec could use as a name.
_RESERVED = frozenset(_KEYWORDS.split())


def identifier(text: str) -> str:
    """A name or token of the spec as a C++ name: ``scale_d`` for ``scale-d``, ``and_`` for ``and``, ``n`` for ``N`` (often a macro)."""
    name = c_text.identifier(text).lower()
    return f"{name}_" if name in _RESERVED or name[0].isdigit() else name


# --- functions --------------------------------------------------------------------------------------------------------------


class Body(NamedTuple):
    """A function without its name and its instruction: variants with like operands share it.

    Attributes:
        syntax: the operands in the manual's notation.
        template: template parameters.
        parameters: function parameters.
        checks: statements that check the template arguments.
        before, after: the asm text around the instruction's name.
        operands: the lists of asm operands.
    """

    syntax: str
    template: str
    parameters: str
    checks: tuple[str, ...]
    before: str
    after: str
    operands: str


class Function(NamedTuple):
    """One wrapper."""

    name: str
    spelling: str
    requirement: str
    guard: str
    body: Body


class Functions:
    """Makes the functions of a spec and keeps what they share."""

    def __init__(self, spec: Spec) -> None:
        self._c_types = {entry.name: entry.c_type for entry in spec.types.registers}
        self._parts: dict[int, tuple[Parameter, ...]] = {}
        self._same: dict[Parameter, Parameter] = {}
        self._bodies: dict[tuple[object, ...], Body] = {}

    def c_type(self, operand: Operand) -> str:
        """The C type of the operand's registers."""
        return self._c_types[operand.register_types[0]] if operand.register_types else ""

    def of(self, instruction: Instruction, guard: Guard) -> Iterator[Function]:
        """The functions of a variant: one for each operand form and each way to pass its operands."""
        requirement = guard.text + ("" if instruction.documented else "; not in the manual")
        memory = instruction.variant.instruction.memory
        for form in instruction.forms or (OperandForm("", "", ()),):
            for parts in self.ways(form):
                key = (form.syntax, memory, *map(id, parts))
                body = self._bodies.get(key)
                if body is None:
                    body = self._bodies[key] = _body(form, parts, memory=memory)
                yield Function(instruction.identifier, instruction.canonical, requirement, guard.macro, body)

    def ways(self, form: OperandForm) -> list[list[Parameter]]:
        """The ways to pass the operands of a form: a part of a signature for each operand."""
        each = [self._ways(operand) for operand in form.operands]
        return [[one[min(way, len(one) - 1)] for one in each] for way in range(max(map(len, each), default=1))]

    def _ways(self, operand: Operand) -> tuple[Parameter, ...]:
        """The ways to pass an operand; the database keeps its operands and gives like variants the same ones."""
        parts = self._parts.get(id(operand))
        if parts is None:
            made = ROLES[operand.kind].parameters(operand, identifier(operand.name), self.c_type(operand))
            parts = self._parts[id(operand)] = tuple(self._same.setdefault(part, part) for part in made)
        return parts


def _body(form: OperandForm, parts: Sequence[Parameter], *, memory: bool) -> Body:
    texts: dict[str, str] = {}
    lists: tuple[list[str], list[str]] = ([], [])
    prologue, first = "", 0
    for read in (False, True):  # asm numbers its outputs before its inputs
        for operand, part in zip(form.operands, parts, strict=True):
            if (operand.access == "read") == read:
                numbers = _numbers(first, len(part.values))
                texts[operand.name] = part.text.format(numbers)
                prologue += part.prologue.format(numbers)
                lists[read].extend(part.values)
                first += len(part.values)
    space = " " if form.syntax else ""
    return Body(
        syntax=space + form.syntax,
        template=", ".join([*(part.template for part in parts if part.template), "class Use = void"]),
        parameters=", ".join(part.parameter for part in parts if part.parameter),
        checks=tuple(part.check for part in parts if part.check),
        before=f"{{{prologue}" if prologue else "",
        after=space + _WORD.sub(lambda match: texts[match[0]], form.syntax) + (";}" if prologue else ";"),
        operands=_operands(_lines(lists[0]), _lines(lists[1]), '"memory"' if memory else ""),
    )


@functools.cache
def _numbers(first: int, count: int) -> str:
    """``%4, %5, %6``; a long list on several lines, as one string literal after another."""
    numbers = [f"%{i}" for i in range(first, first + count)]
    rows = [", ".join(numbers[i : i + _LISTED]) for i in range(0, count, _LISTED)]
    return ', "\n      "'.join(rows)


def _lines(values: Sequence[str]) -> str:
    """The asm operands on lines of even length."""
    half = _LISTED // 2
    return ",\n      ".join(", ".join(values[i : i + half]) for i in range(0, len(values), half))


def _operands(outputs: str, inputs: str, clobbers: str) -> str:
    """The operand lists of an asm statement, the empty ones at the end left out."""
    lists = [outputs, inputs, clobbers]
    while lists and not lists[-1]:
        lists.pop()
    return "".join(f"\n    : {values}" if values else " :" for values in lists)

"""The wrapper functions: what each kind of operand adds to a signature and to an asm statement, and how they come together."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.cuda.guards import Guard
from ptxmma.model import Spec

_INT_MAX = 2**31 - 1  # nvcc prints larger immediates as negative
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


# --- operands ---------------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """What one operand adds to a function.

    Attributes:
        parameter: ``"const uint32_t (&a)[4]"``; empty for a template argument.
        template: ``"int imm_scale_a = 1"``; empty for a parameter.
        check: statement that checks a template argument.
        values: its asm operands: ``('"r"(a[0])', …)``.
        text: how it reads in the asm text, around the numbers of its values.
        prologue: asm text before the instruction.
    """

    parameter: str = ""
    template: str = ""
    check: str = ""
    values: tuple[str, ...] = ()
    text: str = "{}"
    prologue: str = ""


def _array(operand: Operand, c_type: str) -> Part:
    """Registers of a fragment, an array by reference; the instruction takes them in braces."""
    name, prefix = identifier(operand.name), {"read": "", "write": "=", "read-write": "+"}[operand.access]
    return Part(
        parameter=f"{'' if prefix else 'const '}{c_type} (&{name})[{operand.registers}]",
        values=tuple(f'"{prefix}{operand.constraint}"({name}[{i}])' for i in range(operand.registers)),
        text="{{{}}}",
    )


def _register(operand: Operand, c_type: str) -> Part:
    """One register, by value."""
    name = identifier(operand.name)
    return Part(parameter=f"{c_type} {name}", values=(f'"{operand.constraint}"({name})',))


def _predicate(operand: Operand, c_type: str) -> Part:
    """A bool that becomes a predicate inside the asm statement, since no constraint stands for predicates."""
    name = identifier(operand.name)
    return Part(
        parameter=f"{c_type} {name}",
        values=(f'"{operand.constraint}"(static_cast<int>({name}))',),
        text=name,
        prologue=f".reg .pred {name}; setp.ne.b32 {name}, {{}}, 0; ",
    )


def _immediate(operand: Operand, _: str) -> Part:
    """A template argument, checked against the legal values."""
    name, values = identifier(operand.name), operand.immediates or ()
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        check = f"PTXMMA_FROM_TO({name}, {values[0]}, {min(values[-1], _INT_MAX)})"
    else:
        check = f"PTXMMA_ONE_OF({name}, {', '.join(map(str, values))})"
    default = "" if operand.default is None else f" = {operand.default}"
    return Part(template=f"int {name}{default}", check=check, values=(f'"n"({name})',))


_Builder = Callable[[Operand, str], Part]
#: How each kind of operand is passed; a second way makes a second overload.
_WAYS: dict[str, tuple[_Builder, ...]] = {
    "fragment": (_array,),
    "accumulator": (_array,),
    "descriptor": (_register,),
    "predicate": (_predicate,),
    "metadata": (_register,),
    "selector": (_immediate,),
    "immediate": (_immediate,),
    "scale-data": (_register,),
    "scale-id": (_immediate, _register),
}


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
        self._parts: dict[tuple[_Builder, int], Part] = {}
        self._same: dict[Part, Part] = {}
        self._bodies: dict[tuple[object, ...], Body] = {}

    def c_type(self, operand: Operand) -> str:
        """The C type of the operand's registers."""
        return self._c_types[operand.register_types[0]] if operand.register_types else ""

    def of(self, instruction: Instruction, guard: Guard) -> Iterator[Function]:
        """The functions of a variant: one for each operand form and each way to pass its operands."""
        requirement = guard.text + ("" if instruction.documented else "; not in the manual")
        memory = instruction.variant.instruction.memory
        for form in instruction.forms or (OperandForm("", "", ()),):
            kinds = [_WAYS[operand.kind] for operand in form.operands]
            for way in range(max(map(len, kinds), default=1)):
                parts = [self._part(kind[min(way, len(kind) - 1)], operand) for kind, operand in zip(kinds, form.operands, strict=True)]
                key = (form.syntax, memory, *map(id, parts))
                body = self._bodies.get(key)
                if body is None:
                    body = self._bodies[key] = _body(form, parts, memory=memory)
                yield Function(instruction.identifier, instruction.canonical, requirement, guard.macro, body)

    def _part(self, builder: _Builder, operand: Operand) -> Part:
        key = (builder, id(operand))  # the database keeps its operands and gives like variants the same ones
        part = self._parts.get(key)
        if part is None:
            part = builder(operand, self.c_type(operand))
            part = self._parts[key] = self._same.setdefault(part, part)
        return part


def _body(form: OperandForm, parts: Sequence[Part], *, memory: bool) -> Body:
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

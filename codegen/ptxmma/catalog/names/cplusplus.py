"""Instructions in C and C++: names, signatures and asm statements, for the generated headers and for ``ptxmma show``."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import ROLES, Parameter
from ptxmma.catalog.variants import Variant, expand, placeholders, recased, telling_tokens
from ptxmma.model import Facts, Hint, InstructionSet, matches

#: A family with more variants than this has a header for each pair of multiplicand types: one header stays cheap to include.
_MOST = 100
#: The header of the instructions that order the instructions of large families, or of several.
ORDERING = "cuda/ordering.cuh"

#: The tag for the absence of a hint.
NO_HINT = "no_hint"

_LISTED = 16  # registers on a line of a long list
_AS_MACRO = 8  # registers from which on a list is a macro in a header
_NOT_A_WORD = re.compile(r"\W", re.ASCII)
_WORD = re.compile(r"[\w-]+")
_KEYWORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq"
)
#: Functions of C and CUDA that every program has: ``using namespace ptxmma`` must not hide them.
_FUNCTIONS = "min max abs nan"
#: The words that C and C++ reserve and PTX or a spec could use as a name.
RESERVED = frozenset([*_KEYWORDS.split(), *_FUNCTIONS.split()])


# --- names ------------------------------------------------------------------------------------------------------------------


def part_of_name(name: str) -> str:
    """A name as part of an identifier: ``sp::ordered_metadata`` becomes ``sp__ordered_metadata``."""
    return _NOT_A_WORD.sub("_", name)


@functools.cache
def identifier(text: str) -> str:
    """A name or token of the spec as a C++ name: ``scale_d`` for ``scale-d``, ``and_`` for ``and``, ``n`` for ``N`` (often a macro)."""
    name = part_of_name(text).lower()
    if name[0].isdigit():
        return f"_{name}"
    return f"{name}_" if name in RESERVED else name


def enumerator(*names: str) -> str:
    """Names of the spec as an enumerator in C: ``PTXMMA_TCGEN05_CTA_GROUP_1`` for ``tcgen05`` and ``cta_group::1``."""
    return f"PTXMMA_{recased('_'.join(names)).upper()}"


def type_qualifiers(entry: InstructionSet) -> list[str]:
    """The qualifiers that name types of the matrices, in order: the types of operands, and the qualifiers among them."""
    made: list[str] | None = entry.memo.get("type qualifiers")
    if made is None:
        typed = {kind.type for kind in entry.operand_kinds.values() if kind.type}
        typed.update(*(group for group in entry.ordered if typed.intersection(group)))
        made = entry.memo["type qualifiers"] = [name for name in placeholders(entry.syntax) if name in typed]
    return made


def front_name(variant: Variant, facts: Facts | None = None) -> tuple[str, tuple[str, ...]]:
    """The template of a variant in the typed front, and its arguments after the shape: ``("mma_sp", ("f32", "f16", "f16", "f32"))``.

    What comes before the shape in its identifier belongs to the name; of the rest, the types come first.  Where the syntax does not name
    the shape, the stem alone is the name.
    """
    entry = variant.instruction
    tokens = telling_tokens(entry, variant.facts if facts is None else facts)
    at = next((place for place, (name, _) in enumerate(tokens) if name == entry.shape), 0)
    types = type_qualifiers(entry)
    later = sorted([token for token in tokens[at:] if token[0] != entry.shape], key=lambda pair: pair[0] not in types)
    return "_".join([entry.stem, *(token for _, token in tokens[:at])]), tuple(identifier(token) for _, token in later)


def without_defaults(variant: Variant) -> Facts | None:
    """The facts without the qualifiers that a name may leave out, as PTX does: their values are the default.  None where there are none."""
    entry, facts = variant.instruction, variant.facts
    told = {name for name, _ in telling_tokens(entry, facts)}
    left_out = {
        name: ""
        for name, qualifier in entry.qualifiers.items()
        if name in told and any(default.value == facts[name] and matches(default.when, facts) for default in qualifier.default)
    }
    return {**facts, **left_out} if left_out else None


def aliases(variant: Variant) -> tuple[str, ...]:
    """The other names of a function: ``("mma_m8n8k4_f64_f64_f64_f64",)`` for ``mma_m8n8k4_f64_f64_f64_f64_rn``."""
    facts = without_defaults(variant)
    if facts is None:
        return ()
    return ("_".join([variant.instruction.stem, *(token for _, token in telling_tokens(variant.instruction, facts))]),)


def header(instruction: Instruction) -> str:
    """The header with the functions of an instruction, below ``ptxmma/``: ``"wgmma/bf16_bf16.cuh"``."""
    stem, members = part_of_name(instruction.family), _members(instruction)
    shared = not members and not any(instruction.family in protocol.families for protocol in instruction.database.spec.protocols)
    if instruction.operation == "synchronise" and (shared or members > _MOST):
        return ORDERING
    return f"{stem}.cuh" if members <= _MOST else f"{stem}/{_pair(instruction)}.cuh"


def _members(instruction: Instruction) -> int:
    """Return the number of variants of its family that do more than order others, up to the first too many for one header."""
    memo, key = instruction.database.memo, ("members of a family", instruction.family)
    if key not in memo:
        entries = instruction.database.spec.instructions
        own = (entry for entry in entries if entry.family == instruction.family and entry.operation != "synchronise")
        variants = itertools.chain.from_iterable(expand(entry) for entry in own)
        memo[key] = sum(1 for _ in itertools.islice(variants, _MOST + 1))
    return int(memo[key])


def _pair(instruction: Instruction) -> str:
    """Return the name of a header of a large family: the two multiplicands' types, ``f16_f16``; without types the instruction's."""
    entry = instruction.variant.instruction
    accumulators = {kind.type for kind in entry.operand_kinds.values() if kind.kind == "accumulator"}
    multiplicands = [name for name in type_qualifiers(entry) if name not in accumulators][:2]
    return "_".join(str(instruction.variant.facts[name]) for name in multiplicands) or entry.stem


# --- asm statements ---------------------------------------------------------------------------------------------------------


class Body(NamedTuple):
    """The parts of a function that variants with equal operands share: all but its name and its instruction.

    Attributes:
        syntax: the operands in the manual's notation.
        template: template parameters.
        deduced: template parameters that a call deduces, after all others.
        parameters: function parameters.
        checks: statements that check the template arguments.
        before, after: the asm text around the instruction's name.
        operands: the lists of asm operands.
        lists: the lengths of the lists of registers that are macros.
    """

    syntax: str
    template: str
    deduced: str
    parameters: str
    checks: tuple[str, ...]
    before: str
    after: str
    operands: str
    lists: frozenset[int] = frozenset()

    def statement(self, spelling: str) -> str:
        """The asm statement."""
        return f'asm volatile("{self.before}{spelling}{self.after}"{self.operands});'


def parameters(operand: Operand, c_type: str) -> tuple[Parameter, ...]:
    """The parameters by which a function can take an operand, one for each overload."""
    return ROLES[operand.kind].parameters(operand, identifier(operand.name), c_type)


def hint_parameters(instruction: Instruction) -> tuple[str, ...]:
    """The names of the template parameters for the hints that an instruction takes."""
    return tuple(hint_parameter(hint) for hint, _ in instruction.possible_hints())


def hint_parameter(hint: Hint) -> str:
    """A hint's template parameter: ``CollectorA`` for ``collector_a``."""
    return "".join(map(str.capitalize, hint.name.split("_")))


def ways(each: Sequence[Sequence[Parameter]]) -> list[list[Parameter]]:
    """Return the parameters of each overload, from the parameters of each operand."""
    return [[one[min(way, len(one) - 1)] for one in each] for way in range(max(map(len, each), default=1))]


def body(form: OperandForm, parts: Sequence[Parameter], *, memory: bool, hints: Sequence[str] = (), brief: bool = False) -> Body:
    """The body of a function, with template parameters for ``hints``; with ``memory`` its asm statement clobbers memory.

    With ``brief`` long lists of registers are macros of the CUDA headers.
    """
    texts: dict[str, str] = {}
    lists: tuple[list[str], list[str]] = ([], [])
    prologue, epilogue, first = "", "", 0
    counts: set[int] = set()
    for read in (False, True):  # asm numbers its outputs before its inputs
        for operand, part in zip(form.operands, parts, strict=True):
            if (operand.access == "read") == read:
                count = len(part.values)
                as_macro = brief and bool(part.array) and count >= _AS_MACRO
                numbers = f'" PTXMMA_PLACES_{count} "' if as_macro and first == 0 else _numbers(first, count)
                texts[operand.name] = part.text.format(numbers)
                prologue += part.prologue.format(numbers)
                epilogue += part.epilogue.format(numbers)
                lists[read].extend([f"PTXMMA_REGISTERS_{count}({part.array})"] if as_macro else part.values)
                first += count
                counts.update([count] * as_macro)
    space = " " if form.syntax else ""
    named = [f"class {hint} = {NO_HINT}" for hint in hints]
    modifiers = "".join(f'" PTXMMA_HINT("%{first + place}") "' for place, _ in enumerate(hints))
    return Body(
        syntax=space + form.syntax,
        template=", ".join([*(part.template for part in parts if part.template), *named]),
        deduced="".join(part.deduced for part in parts),
        parameters=", ".join(part.parameter for part in parts if part.parameter),
        checks=(*(part.check for part in parts if part.check), *(f"PTXMMA_HINT_IS({hint})" for hint in hints)),
        before=f"{{{prologue}" if prologue else "",
        after=modifiers + space + _WORD.sub(lambda match: texts[match[0]], form.syntax) + (f";{epilogue}}}" if prologue else ";"),
        operands=_asm_operands(
            _lines(lists[0]), _lines(lists[1]) + "".join(f" PTXMMA_HINTED({hint})" for hint in hints), '"memory"' if memory else ""
        ),
        lists=frozenset(counts),
    )


class Shown(NamedTuple):
    """An instruction in C++.

    Attributes:
        header: the header to include.
        functions: signatures of the function, one for each way to pass its operands.
        front: its name in the typed front; empty without a shape.
        statements: complete asm statements over the parameters of the functions, immediates with their default or first legal value.
    """

    header: str
    functions: tuple[str, ...]
    front: str
    statements: tuple[str, ...]


def shown(instruction: Instruction) -> Shown:
    """The header, functions and asm statements of an instruction."""
    signatures, statements = [], []
    for form in instruction.forms or (OperandForm("", "", ()),):
        for parts in ways([parameters(operand, operand.c_type) for operand in form.operands]):
            fixed = [
                part._replace(values=(f'"n"({usual(operand)})',)) if part.template else part
                for operand, part in zip(form.operands, parts, strict=True)
            ]
            made = body(form, parts, memory=instruction.variant.instruction.memory, hints=hint_parameters(instruction))
            template = f"template <{made.template}> " if made.template else ""
            names = (instruction.identifier, *aliases(instruction.variant))
            signatures += [f"{template}ptxmma::{name}({made.parameters})" for name in names]
            statements.append(body(form, fixed, memory=instruction.variant.instruction.memory).statement(instruction.canonical))
    front = ""
    if instruction.variant.shape:
        name, arguments = front_name(instruction.variant)
        sizes = ", ".join(map(str, instruction.shape_sizes.values()))
        front = f"ptxmma::{name}<{', '.join([f'ptxmma::shape<{sizes}>', *(f'ptxmma::{one}' for one in arguments)])}>"
    return Shown(f"ptxmma/{header(instruction)}", tuple(signatures), front, tuple(statements))


def usual(operand: Operand) -> int:
    """The default of an immediate, or the first that is legal."""
    return operand.default if operand.default is not None else (operand.immediates or (0,))[0]


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


def _asm_operands(outputs: str, inputs: str, clobbers: str) -> str:
    """The operand lists of an asm statement, the empty ones at the end left out."""
    lists = [outputs, inputs, clobbers]
    while lists and not lists[-1]:
        lists.pop()
    return "".join(f"\n    : {values}" if values else " :" for values in lists)

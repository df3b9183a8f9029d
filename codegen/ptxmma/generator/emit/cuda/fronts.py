"""The typed front: a template for each instruction, specialised for shapes, types and qualifiers, over the functions of its variants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.descriptors.shared_formats import read_by
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.layouts import granularity
from ptxmma.catalog.names.cplusplus import front_name, identifier, without_defaults
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import Parameter
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.cuda.functions import Functions
from ptxmma.model import Layout, Range, Spec

#: The extent that ranges, as a template parameter; capital letters may be macros of users.
_RANGING = "columns"


#: So many legal numbers are listed.
_FEW = 8
#: The extent along which a product sums.
_DEPTH = "k"
#: The extent of each multiplicand that the product keeps.
_LINES = {"a": "m", "b": "n"}


class Call(NamedTuple):
    """A member function ``call``.

    Attributes:
        template: template parameters.
        parameters: function parameters.
        options: the tags that may follow them.
        immediates: template arguments of the function that it calls, one tuple for each value of the selector.
        arguments: its function arguments.
        selector: the parameter that chooses among several tuples of immediates; empty where there is one tuple.
        selectors: its values.
    """

    template: str
    parameters: str
    options: tuple[str, ...]
    immediates: tuple[str, ...]
    arguments: str
    selector: str
    selectors: tuple[int, ...]


class Tile(NamedTuple):
    """A matrix that the multiply reads through a descriptor.

    Attributes:
        name: ``"a_tile"``.
        element: its element type.
        step: elements along k that an instruction reads.
        lines: the extent that says how many rows of A or columns of B it reads: ``"m"``.
    """

    name: str
    element: str
    step: int
    lines: str


class Front(NamedTuple):
    """One specialisation: it names the function of a variant, or of every n, its fragments, tiles and layouts.

    Attributes:
        name: ``"wgmma"``.
        shape: ``"shape<64, columns, 16>"``.
        brief: ``"shape<64, columns>"`` where the depth follows from the types, else empty.
        arguments: the template arguments after the shape: ``("f32", "bf16", "bf16")``.
        usual: the same without defaults, such as the rounding of f64; empty without any.
        extents: sizes by name, as C++.
        ranges: the legal values of the extent that ranges, in words; empty where none does.
        check: condition on it.
        base: the specialisation above it with the same extents, operands and tiles, which it inherits; empty where it has its own.
        operands: member types by name.
        tiles: the matrices in shared memory.
        calls: the member functions.
        cases: ``(n, function)``.
    """

    name: str
    shape: str
    brief: str
    arguments: tuple[str, ...]
    usual: tuple[str, ...]
    extents: dict[str, str]
    ranges: str
    check: str
    base: str
    operands: dict[str, str]
    tiles: list[Tile]
    calls: list[Call]
    cases: list[tuple[int, str]]

    @property
    def spelling(self) -> str:
        """``"wgmma<shape<64, columns, 16>, f32, bf16, bf16>"``."""
        return f"{self.name}<{', '.join((self.shape, *self.arguments))}>"


class Fronts:
    """Makes the specialisations of a spec."""

    def __init__(self, spec: Spec, functions: Functions) -> None:
        self._spec, self._functions = spec, functions

    def of(self, members: Iterable[Instruction], *, implied: bool) -> Iterator[Front]:
        """The specialisations for the instructions of a header: one for all that differ in n alone, where n ranges over many.

        ``implied`` says that the depth follows from what else the front names, as ``depth_follows`` finds out for the family.
        """
        groups: dict[tuple[object, ...], list[Instruction]] = {}
        for instruction in members:
            variant = instruction.variant
            others = [variant.facts.get(name) for name in variant.instruction.qualifiers if name != variant.instruction.shape]
            key = (variant.facts["name"], variant.shape_label, *others)
            groups.setdefault(key, []).append(instruction)
        first: dict[tuple[object, ...], str] = {}
        for variants in groups.values():
            front = self._front(variants, implied=implied)
            parts = (*front.extents.items(), *front.operands.items(), *front.tiles)
            base = first.setdefault(parts, front.spelling)
            yield front if front.check or base == front.spelling else front._replace(base=base)

    def _front(self, variants: Sequence[Instruction], *, implied: bool) -> Front:
        first = variants[0]
        variant = first.variant
        name, arguments = front_name(first.variant)
        ranging = next(iter(variant.ranging), "")
        ns = [instruction.extents.get(ranging, 0) for instruction in variants]
        spans = dict.fromkeys(span for one in variants if ranging for span in one.variant.form.ranges[ranging])
        ranges, check = _legal(list(spans), ns)
        operands: dict[str, str] = {}
        calls: list[Call] = []
        for place, form in enumerate(first.forms):
            counts = {}
            for index, operand in enumerate(form.operands):
                alike = [instruction.forms[place].operands[index] for instruction in variants]
                if operand.layout is not None:
                    operands[identifier(operand.name)] = self._member(operand.layout, ns, alike)
                if operand.listed:
                    counts[operand.name] = _count(ns, [one.registers for one in alike])
            calls += self._calls(first, form, counts)
        extents = {one: _RANGING if one in variant.ranging else str(size) for one, size in first.extents.items()}
        return Front(
            name=name,
            shape=_shape(extents, first.shape_sizes),
            brief=_shape(extents, [one for one in first.shape_sizes if one != _DEPTH]) if implied else "",
            arguments=arguments,
            usual=front_name(variant, facts)[1] if (facts := without_defaults(variant)) is not None else (),
            extents=extents,
            ranges=ranges,
            check=check,
            base="",
            operands=operands,
            tiles=sorted(set(self._tiles(first))),
            calls=list({call.parameters: call for call in calls}.values()),
            cases=[(n, instruction.identifier) for n, instruction in zip(ns, variants, strict=True)],
        )

    def _member(self, layout: Layout, ns: Sequence[int], operands: Sequence[Operand]) -> str:
        """The member type of an operand: its registers, and where its elements are."""
        c_type, where = self._functions.c_type(operands[0]), f"layout::{c_text.identifier(layout.name)}"
        if layout.kind != "fragment":
            return f"word<{c_type}, {where}>"
        registers = _count(ns, [operand.registers for operand in operands])
        elements = _count(ns, [operand.elements for operand in operands])
        return f"fragment<{identifier(str(operands[0].element_type))}, {c_type}, {registers}, {elements}, {where}>"

    def _tiles(self, instruction: Instruction) -> Iterator[Tile]:
        """The matrices that it reads through descriptors."""
        kinds = instruction.variant.instruction.operand_kinds
        pattern = granularity(self._spec, instruction.variant)
        for operand in instruction.operands:
            if operand.kind == "descriptor" and self._spec.shared_memory is not None:
                step = instruction.extents[_DEPTH] // (pattern.ratio if pattern and kinds[operand.name].sparse else 1)
                yield Tile(f"{identifier(operand.of)}_tile", identifier(instruction.matrix_types[operand.of]), step, _LINES[operand.of])

    # --- calls --------------------------------------------------------------------------------------------------------------

    def _calls(self, instruction: Instruction, form: OperandForm, counts: dict[str, str]) -> Iterator[Call]:
        """One for each way to pass the operands that passes at run time what can be passed so."""
        ways = self._functions.ways(form)
        for parts in ways:
            numbers = [operand for operand, part in zip(form.operands, parts, strict=True) if part.template]
            if len(ways) == 1 or all(operand.kind in ("majorness", "negation", "selector") for operand in numbers):
                yield self._call(instruction, form, parts, counts)

    def _call(self, instruction: Instruction, form: OperandForm, parts: Sequence[Parameter], counts: dict[str, str]) -> Call:
        template, parameters, arguments, options, selectors = [], [], [], [], [("", 0)]
        immediates: list[list[str]] = []
        majornesses = {operand.of for operand in form.operands if operand.kind == "majorness"}
        for operand, part in zip(form.operands, parts, strict=True):
            name = identifier(operand.name)
            if operand.kind == "descriptor" and self._spec.shared_memory is not None:
                major = f"major_{identifier(operand.of)}"
                if operand.of in majornesses:
                    template.append(f"ptxmma_majorness {major}")
                else:
                    major = f"PTXMMA_MAJORNESS_{c_text.macro(self._majorness(instruction, operand))}"
                parameters.append(f"matrix_descriptor<{major}, {identifier(instruction.matrix_types[operand.of])}> {name}")
                arguments.append(f"{name}.bits")
            elif operand.kind == "majorness":
                immediates.append([_chosen(f"major_{identifier(operand.of)}", operand.meanings)])
            elif operand.kind == "negation":
                options.append(f"negate_{identifier(operand.of)}")
                other = next(value for value in operand.immediates or () if value != operand.default)
                immediates.append([f"detail::given<{options[-1]}, Options...>::value ? {other} : {operand.default}"])
            elif operand.kind == "selector":
                parameters.append(f"uint32_t {name}")
                selectors = [(name, value) for value in operand.immediates or ()]
                immediates.append([str(value) for _, value in selectors])
            elif part.template:
                template.append(part.template)
                immediates.append([name])
            else:
                declared = part.parameter
                parameters.append(f"{declared.rpartition('[')[0]}[{counts[operand.name]}]" if operand.name in counts else declared)
                arguments.append(name)
        # A pack comes last: nvcc writes all template arguments out where a call is the argument of a kernel.
        template += ["class Use = void", *["class... Options"] * bool(options)]
        parameters += ["Options..."] * bool(options)
        chosen = [name for name, _ in selectors]
        return Call(
            template=", ".join(template),
            parameters=", ".join(parameters),
            options=tuple(options),
            immediates=tuple(", ".join(each) for each in itertools.product(*immediates)),
            arguments=", ".join(arguments),
            selector=chosen[0],
            selectors=tuple(value for _, value in selectors),
        )

    def _majorness(self, instruction: Instruction, operand: Operand) -> str:
        """The majorness of a descriptor's matrix where the instruction cannot choose.

        Raises:
            ValueError: there are several, so that the instruction would have to say which.
        """
        memory, element = self._spec.shared_memory, instruction.matrix_types[operand.of]
        entries = read_by(self._spec, memory, instruction.variant.instruction.family).majorness if memory else ()
        legal = [entry.majorness for entry in entries if element in entry.elements]
        if len(legal) != 1:
            raise ValueError(f"{instruction.canonical} reads {' and '.join(legal) or 'no'} majorness without an operand that chooses")
        return legal[0]


def depth_follows(members: Iterable[Instruction]) -> bool:
    """Return whether instructions of a family that differ in their depth differ in another argument of the front, too."""
    depths: dict[tuple[object, ...], int] = {}
    for instruction in members:
        depth = instruction.extents.get(_DEPTH)
        others = tuple((name, size) for name, size in instruction.extents.items() if name != _DEPTH)
        if depth is None or depths.setdefault((*front_name(instruction.variant), others), depth) != depth:
            return False
    return True


def _shape(extents: dict[str, str], names: Iterable[str]) -> str:
    return f"shape<{', '.join(extents[name] for name in names)}>"


def _legal(spans: Sequence[Range], numbers: Sequence[int]) -> tuple[str, str]:
    """The legal numbers of the extent that ranges, in words and as a condition: a list where they are few, else spans."""
    if len(spans) > 1 and len(numbers) <= _FEW:
        return f"one of {', '.join(map(str, numbers))}", " || ".join(f"{_RANGING} == {number}" for number in numbers)
    words = [f"from {span.first} to {span.last} in steps of {span.step}" for span in spans]
    conditions = [
        f"({_RANGING} >= {span.first} && {_RANGING} <= {span.last} && ({_RANGING} - {span.first}) % {span.step} == 0)" for span in spans
    ]
    return ", or ".join(words), " || ".join(conditions)


def _chosen(name: str, meanings: dict[str, int]) -> str:
    """The number of a majorness."""
    *others, (_, last) = meanings.items()
    return "".join(f"{name} == PTXMMA_MAJORNESS_{c_text.macro(word)} ? {value} : " for word, value in others) + str(last)


def _count(ns: Sequence[int], counts: Sequence[int]) -> str:
    """A count as an expression over the extent that ranges.

    Raises:
        ValueError: the counts are neither equal nor proportional to it, nor one for each part of it that begins.
    """
    if len(set(counts)) == 1:
        return str(counts[0])
    part = ns[-1] // counts[-1]
    if counts[0] == 1 and all(count == -(-n // part) for n, count in zip(ns, counts, strict=True)) and ns[0] < part:
        return f"({_RANGING} + {part - 1}) / {part}"
    if any(count * ns[0] != counts[0] * n for n, count in zip(ns, counts, strict=True)):
        raise ValueError(f"the typed front needs counts proportional to n, not {dict(zip(ns, counts, strict=True))}")
    common = math.gcd(counts[0], ns[0])
    up, down = counts[0] // common, ns[0] // common
    return _RANGING + (f" * {up}" if up > 1 else "") + (f" / {down}" if down > 1 else "")

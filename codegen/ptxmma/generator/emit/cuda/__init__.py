"""CUDA headers: a wrapper for each variant and operand form, and a typed front over them.

A family is one header, or, where that would be slow to include, a folder with one for each pair of multiplicand types.
"""

from __future__ import annotations

import math
import posixpath
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.variants import placeholders, telling_tokens
from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.cuda.functions import Function, Functions, identifier
from ptxmma.generator.emit.cuda.guards import Guards
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import InstructionSet, Layout, RegisterType

_FOLDER = "generated/include/ptxmma"
_SOURCES = ("spec/instructions", "spec/types.yaml", "spec/targets.yaml", "spec/isa_versions.yaml")
_CONFIG = "cuda/config.cuh"
_ORDERING = "cuda/ordering.cuh"
#: N as a template parameter; capital letters may be macros of users.
_N = "columns"
#: A family with more variants than this is split: a header stays cheap to include.
_MOST = 100


# --- the typed front --------------------------------------------------------------------------------------------------------


class Front(NamedTuple):
    """One specialisation of the typed front: it names the function of a variant, or of every n, its fragments and layouts.

    Attributes:
        name: ``"wgmma"``.
        shape: ``"shape<64, columns, 16>"``.
        arguments: what stands after the shape: ``("f32", "bf16", "bf16")``.
        check: condition on N; empty where n is fixed.
        operands: member types by name.
        cases: ``(n, function)``.
    """

    name: str
    shape: str
    arguments: tuple[str, ...]
    check: str
    operands: dict[str, str]
    cases: list[tuple[int, str]]


def _fronts(functions: Functions, members: Iterable[Instruction]) -> list[Front]:
    """The specialisations for some instructions: one for all that differ in n alone, where n ranges over many."""
    groups: dict[tuple[object, ...], list[Instruction]] = {}
    for instruction in members:
        variant = instruction.variant
        others = [variant.facts.get(name) for name in variant.instruction.qualifiers if name != variant.instruction.shape]
        key = (variant.facts["name"], variant.shape_label, *others)
        groups.setdefault(key, []).append(instruction)
    return [_front(functions, variants) for variants in groups.values()]


def _front(functions: Functions, variants: Sequence[Instruction]) -> Front:
    variant = variants[0].variant
    name, arguments = front_name(variants[0])
    ranging = next(iter(variant.ranging), "")
    ns = [instruction.extents.get(ranging, 0) for instruction in variants]
    check = ""
    if ranging:
        spans = dict.fromkeys(span for instruction in variants for span in instruction.variant.form.ranges[ranging])
        check = " || ".join(f"({_N} >= {span.first} && {_N} <= {span.last} && ({_N} - {span.first}) % {span.step} == 0)" for span in spans)
    operands = {}
    for place, form in enumerate(variants[0].forms):
        for index, operand in enumerate(form.operands):
            if operand.layout is not None:
                alike = [instruction.forms[place].operands[index] for instruction in variants]
                operands[identifier(operand.name)] = _member(functions, operand.layout, ns, alike)
    return Front(
        name=name,
        shape=f"shape<{', '.join(_N if name in variant.ranging else str(size) for name, size in variants[0].shape_sizes.items())}>",
        arguments=arguments,
        check=check,
        operands=operands,
        cases=[(n, instruction.identifier) for n, instruction in zip(ns, variants, strict=True)],
    )


def _member(functions: Functions, layout: Layout, ns: Sequence[int], operands: Sequence[Operand]) -> str:
    """The member type of an operand: its registers, and where its elements are."""
    c_type, where = functions.c_type(operands[0]), f"layout::{c_text.identifier(layout.name)}"
    if layout.kind != "fragment":
        return f"word<{c_type}, {where}>"
    registers = _count(ns, [operand.registers for operand in operands])
    elements = _count(ns, [operand.elements for operand in operands])
    return f"fragment<{identifier(str(operands[0].element_type))}, {c_type}, {registers}, {elements}, {where}>"


def _count(ns: Sequence[int], counts: Sequence[int]) -> str:
    """A count as an expression over N."""
    if len(set(counts)) == 1:
        return str(counts[0])
    if any(count * ns[0] != counts[0] * n for n, count in zip(ns, counts, strict=True)):
        raise ValueError(f"the typed front needs counts proportional to n, not {dict(zip(ns, counts, strict=True))}")
    common = math.gcd(counts[0], ns[0])
    up, down = counts[0] // common, ns[0] // common
    return _N + (f" * {up}" if up > 1 else "") + (f" / {down}" if down > 1 else "")


def front_name(instruction: Instruction) -> tuple[str, tuple[str, ...]]:
    """Its template and the arguments after the shape: ``("mma_sp", ("f32", "f16", "f16", "f32"))``.

    What comes before the shape in its identifier belongs to the name; of the rest, the types come first.  Where the syntax does not name
    the shape, the stem alone is the name.
    """
    entry = instruction.variant.instruction
    tokens = telling_tokens(entry, instruction.variant.facts)
    at = next((place for place, (name, _) in enumerate(tokens) if name == entry.shape), 0)
    types = _types(entry)
    later = sorted([token for token in tokens[at:] if token[0] != entry.shape], key=lambda pair: pair[0] not in types)
    return "_".join([entry.stem, *(token for _, token in tokens[:at])]), tuple(identifier(token) for _, token in later)


def _types(entry: InstructionSet) -> list[str]:
    """The qualifiers that name types of the matrices, in order: those of operands, and those ordered among them."""
    typed = {kind.type for kind in entry.operand_kinds.values() if kind.type}
    typed.update(*(group for group in entry.ordered if typed.intersection(group)))
    return [name for name in placeholders(entry.syntax) if name in typed]


def header(instruction: Instruction, family_size: int) -> str:
    """The header with the functions of an instruction, below ``ptxmma/``; ``family_size`` is the number of variants of its family."""
    if instruction.operation == "synchronise":
        return _ORDERING
    stem = c_text.identifier(instruction.family)
    return f"{stem}.cuh" if family_size <= _MOST else f"{stem}/{_pair(instruction)}.cuh"


# --- files ------------------------------------------------------------------------------------------------------------------


def emit(catalog: Catalog) -> Iterator[Output]:
    """``ptxmma/**/*.cuh``."""
    families: dict[str, list[Instruction]] = {}
    ordering = []
    for instruction in catalog.all():
        if instruction.operation == "synchronise":
            ordering.append(instruction)
        else:
            families.setdefault(instruction.family, []).append(instruction)
    headers = _Headers(catalog)
    outputs = list(headers.ordering(ordering))
    for family, members in families.items():
        outputs += headers.family(family, members, _ORDERING if ordering else "")
    yield from outputs
    yield headers.config()
    yield headers.output("ptxmma.cuh", "all.cuh", includes=sorted(output.path.removeprefix(f"{_FOLDER}/") for output in outputs))


class _Headers:
    """Makes the headers of a catalog; the shared one last, when it is known what the others need of it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._guards = Guards(catalog.database.spec)
        self._functions = Functions(catalog.database.spec)
        self._fronts: list[Front] = []

    def ordering(self, members: Sequence[Instruction]) -> Iterator[Output]:
        """The instructions without a shape, which order the others."""
        protocol = self._catalog.database.spec.protocol
        about = []
        if protocol is not None:
            about += [f"{number}. {step.name}: {step.text}" for number, step in enumerate(protocol.steps, 1)]
            about += [ordering.text for ordering in protocol.orderings]
        if members:
            yield self._header(_ORDERING, members, [_CONFIG], about=about)

    def family(self, family: str, members: Sequence[Instruction], ordering: str) -> Iterator[Output]:
        """One header, or one for each pair of types beside one for their layouts."""
        stem = c_text.identifier(family)
        layouts = [_layout(layout) for layout in self._catalog.database.layouts if layout.family == family]
        shared = [_CONFIG, f"{stem}.h"]
        if ordering and any(instruction.variant.instruction.asynchronous for instruction in members):
            shared.append(ordering)
        if len(members) <= _MOST:
            yield self._header(f"{stem}.cuh", members, shared, layouts=layouts)
            return
        parts: dict[str, list[Instruction]] = {}
        for instruction in members:
            parts.setdefault(header(instruction, len(members)), []).append(instruction)
        common = f"{stem}/layouts.cuh"
        yield self._header(common, [], shared, layouts=layouts)
        for path, part in parts.items():
            yield self._header(path, part, [common])

    def _header(
        self,
        path: str,
        members: Sequence[Instruction],
        includes: Sequence[str],
        *,
        layouts: Sequence[tuple[str, list[str]]] = (),
        about: Iterable[str] = (),
    ) -> Output:
        """A header with the functions of some instructions and the front over them."""
        functions: list[Function] = []
        for instruction in members:
            functions += self._functions.of(instruction, self._guards.of(instruction))
        fronts = _fronts(self._functions, (instruction for instruction in members if instruction.shape is not None))
        self._fronts += fronts
        description = [line for text in (*_describe(members), *about) for line in _comment(text)]
        return self.output(
            path, "family.cuh", includes=includes, description=description, layouts=layouts, functions=functions, fronts=fronts
        )

    def config(self) -> Output:
        """What all headers share."""
        spec = self._catalog.database.spec
        fenced: dict[str, RegisterType] = {}
        for entry in spec.types.registers:
            if entry.bits > 1:
                fenced.setdefault(entry.c_type, entry)
        tags = dict.fromkeys(identifier(entry.name) for entry in spec.types.elements)
        tags.update(dict.fromkeys(argument for front in self._fronts for argument in front.arguments))
        return self.output(
            _CONFIG,
            "config.cuh",
            specific=[target.number for target in spec.targets if target.suffix == "a"],
            guards=self._guards.all(),
            fenced=list(fenced.values()),
            tags=list(tags),
            fronts=list(dict.fromkeys(front.name for front in self._fronts)),
            example=next(iter(self._fronts), None),
        )

    def output(self, path: str, template: str, *, includes: Sequence[str] = (), **values: object) -> Output:
        """A file whose includes are relative to it."""
        near = [posixpath.relpath(include, posixpath.dirname(path) or ".") for include in includes]
        head = banner("//", self._catalog, _SOURCES)
        return Output(f"{_FOLDER}/{path}", render(f"cuda/{template}.jinja", banner=head, includes=near, **values))


def _layout(layout: Layout) -> tuple[str, list[str]]:
    """A layout's name and its functions in the C header."""
    functions = [*layout.map.outputs]
    if "i" in layout.map.inputs:
        functions += ["lane", "element"]
    if layout.kind == "metadata":
        functions += ["insert"]
    return c_text.identifier(layout.name), functions


def _pair(instruction: Instruction) -> str:
    """The types by which a large family is split: those of the two multiplicands, ``f16_f16``."""
    entry = instruction.variant.instruction
    accumulators = {kind.type for kind in entry.operand_kinds.values() if kind.kind == "accumulator"}
    multiplicands = [name for name in _types(entry) if name not in accumulators][:2]
    return "_".join(str(instruction.variant.facts[name]) for name in multiplicands)


def _describe(members: Sequence[Instruction]) -> Iterator[str]:
    """What the head of a file says of its instructions and their operands."""
    sets: dict[str, tuple[InstructionSet, dict[str, str]]] = {}
    for instruction in members:
        entry = instruction.variant.instruction
        _, operands = sets.setdefault(entry.name, (entry, {}))
        operands.update((operand.name, operand.title) for form in instruction.forms for operand in form.operands)
    for entry, operands in sets.values():
        yield f"{entry.name}: {entry.title}; executed by a {entry.scope} (PTX ISA {entry.source})."
        yield from (f"- {name}: {title}" for name, title in operands.items())


def _comment(text: str) -> list[str]:
    """Text as lines after ``//``; none ends in a backslash, which would swallow the next."""
    return [line.rstrip("\\") for line in textwrap.wrap(c_text.comment(text), c_text.WIDTH, break_long_words=False)]

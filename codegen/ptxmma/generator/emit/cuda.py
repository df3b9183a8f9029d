"""CUDA wrappers: one ``__device__`` function per variant and operand form, and a typed front over them.

A family is one header, or, where that would be slow to include, a folder with one header per combination of element types.
"""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.templating import banner, render
from ptxmma.instructions import Catalog, Instruction, OperandForm
from ptxmma.model import InstructionSet, Layout, RegisterType, Spec, Target
from ptxmma.operands import Operand
from ptxmma.requirements import version_key
from ptxmma.variants import SHAPE, placeholders, telling_tokens

_FOLDER = "generated/include/ptxmma"
_SOURCES = ("spec/instructions", "spec/types.yaml", "spec/targets.yaml", "spec/isa_versions.yaml")
_CONFIG = "cuda/config.cuh"
_ORDERING = "cuda/ordering.cuh"
#: A family with more functions than this is split by element types: a header stays cheap to include.
_MOST_FUNCTIONS = 150
_INT_MAX = 2**31 - 1  # of a template argument
_LISTED = 16  # registers on a line of a long list
_WORD = re.compile(r"[\w-]+")
#: What C++ reserves among the tokens that PTX and the spec could use.
_RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue default delete do "
    "double else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register return short signed sizeof static struct switch template this throw "
    "true try typedef typename union unsigned using virtual void volatile while xor xor_eq".split()
)


# --- requirements -----------------------------------------------------------------------------------------------------------


class Guard(NamedTuple):
    """The macro that lets an instruction through where target and toolkit have it.

    Attributes:
        macro: ``PTXMMA_SM_90A_PTX_8_0``.
        text: the requirement in words, for comments.
        target: preprocessor condition on ``PTXMMA_PASS``: the pass compiles for one of the targets.
        near: condition on ``__CUDA_ARCH__``: the chip is one of theirs, compiled without their features; empty where none is.
        toolkit: condition on ``PTXMMA_TOOLKIT``.
        needs_target, needs_toolkit: what the user reads where a condition fails.
    """

    macro: str
    text: str
    target: str
    near: str
    toolkit: str
    needs_target: str
    needs_toolkit: str


class _Guards:
    """The guards of a spec, one for each distinct requirement."""

    def __init__(self, spec: Spec) -> None:
        self._targets = sorted(spec.targets, key=_code)
        self._includes = {target.name: set(target.includes) for target in spec.targets}
        self._cuda = {entry.version: entry.cuda for entry in spec.isa_versions}
        self._known: dict[tuple[tuple[str, str], ...], Guard] = {}

    def of(self, instruction: Instruction) -> Guard:
        accepted = instruction.accepted_by()
        key = tuple(accepted.items())
        if key not in self._known:
            self._known[key] = self._guard(accepted)
        return self._known[key]

    def all(self) -> list[Guard]:
        """Those asked for so far; requirements that differ in nothing a compiler sees share one."""
        return sorted(set(self._known.values()))

    def _guard(self, accepted: dict[str, str]) -> Guard:
        # Targets whose own features are asked for: those that get theirs from no other of the set.
        first = [target for target in self._targets if target.name in accepted and not self._includes[target.name] & accepted.keys()]
        names = [target.name for target in first]
        ptx = min(accepted.values(), key=version_key)
        cuda = self._cuda[ptx]
        newer = " or newer" if not first[0].suffix else ""
        arch = names[0].replace("sm_", "compute_")
        near = [target.number for target in self._targets if not target.suffix and target.name not in accepted]
        numbers = {target.number for target in self._targets if target.name in accepted}
        return Guard(
            macro="_".join(["PTXMMA", *(name.upper() for name in names), "PTX", ptx.replace(".", "_")]),
            text=f"PTX ISA {ptx}, {' or '.join(names)}{newer}",
            target=" || ".join(self._runs(accepted)),
            near=" || ".join(f"__CUDA_ARCH__ == {10 * number}" for number in near if number in numbers),
            toolkit=f"PTXMMA_TOOLKIT >= {_toolkit(cuda)}",
            needs_target=f"ptxmma: this instruction needs {' or '.join(names)}{newer}: compile with "
            f"-gencode arch={arch},code={names[0]}{newer}",
            needs_toolkit=f"ptxmma: this instruction needs PTX ISA {ptx}: compile with CUDA {cuda} or newer",
        )

    def _runs(self, accepted: Iterable[str]) -> Iterator[str]:
        """Conditions for the runs of accepted targets; a run of plain ones up to the newest goes on to what is not known yet."""
        allowed = set(accepted)
        for taken, group in itertools.groupby(self._targets, lambda target: target.name in allowed):
            run = list(group)
            if not taken:
                continue
            low, high = _code(run[0]), _code(run[-1])
            if run[-1] is self._targets[-1] and not run[0].suffix:
                yield f"PTXMMA_PASS >= {low}"
            elif low == high:
                yield f"PTXMMA_PASS == {low}"
            else:
                yield f"(PTXMMA_PASS >= {low} && PTXMMA_PASS <= {high})"


def _code(target: Target) -> int:
    """What ``PTXMMA_PASS`` is for a target: 900 for sm_90, 902 for sm_90a, 1201 for sm_120f."""
    return 10 * target.number + ("", "f", "a").index(target.suffix)


def _toolkit(release: str) -> int:
    """What ``PTXMMA_TOOLKIT`` is for a CUDA release: 1208 for 12.8."""
    major, minor = version_key(release)
    return 100 * major + minor


# --- operands of a function -------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """What one operand adds to a function.

    Attributes:
        parameter: ``"const uint32_t (&a)[4]"``; empty for a template argument.
        template: ``"int imm_scale_a = 1"``; empty for a parameter.
        check: condition on a template argument.
        values: asm operands in order: ``('"r"(a[0])', …)``.
        text: how the operand reads in the asm text, around the numbers of its values.
        prologue: asm text before the instruction.
    """

    parameter: str = ""
    template: str = ""
    check: str = ""
    values: tuple[str, ...] = ()
    text: str = "{}"
    prologue: str = ""


def _array(operand: Operand, c_type: str) -> _Part:
    """Registers of a fragment, an array by reference; the instruction takes them in braces."""
    name, written = _name(operand.name), operand.access != "read"
    prefix = {"read": "", "write": "=", "read-write": "+"}[operand.access]
    return _Part(
        parameter=f"{'' if written else 'const '}{c_type} (&{name})[{operand.registers}]",
        values=tuple(f'"{prefix}{operand.constraint}"({name}[{i}])' for i in range(operand.registers)),
        text="{{{}}}",
    )


def _register(operand: Operand, c_type: str) -> _Part:
    """One register by value."""
    name = _name(operand.name)
    return _Part(parameter=f"{c_type} {name}", values=(f'"{operand.constraint}"({name})',))


def _predicate(operand: Operand, c_type: str) -> _Part:
    """A bool that becomes a predicate inside the asm, which has no constraint for predicates."""
    name = _name(operand.name)
    return _Part(
        parameter=f"{c_type} {name}",
        values=(f'"{operand.constraint}"(static_cast<int>({name}))',),
        text=name,
        prologue=f".reg .pred {name}; setp.ne.b32 {name}, {{}}, 0; ",
    )


def _immediate(operand: Operand, c_type: str) -> _Part:  # noqa: ARG001  # all builders are called alike
    """A template argument, checked against the legal values."""
    name, values = _name(operand.name), operand.immediates or ()
    default = "" if operand.default is None else f" = {operand.default}"
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        high = f" && {name} <= {values[-1]}" if values[-1] < _INT_MAX else ""
        check = f"{name} >= {values[0]}{high}"
        legal = f"{values[0]} to {values[-1]}"
    else:
        check = " || ".join(f"{name} == {value}" for value in values)
        legal = " or ".join(map(str, values))
    return _Part(template=f"int {name}{default}", check=f'{check}, "ptxmma: {operand.name} is {legal}"', values=(f'"n"({name})',))


_Builder = Callable[[Operand, str], _Part]
#: How each kind of operand is passed; where there are two ways, each makes an overload.
_PASSED: dict[str, tuple[_Builder, ...]] = {
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


def _name(text: str) -> str:
    """A name of the spec as a C++ name."""
    name = c_text.identifier(text)
    return f"{name}_" if name in _RESERVED else name


# --- functions --------------------------------------------------------------------------------------------------------------


class Function(NamedTuple):
    """One wrapper, as the template lays it out."""

    comment: str
    template: str
    name: str
    parameters: str
    guard: str
    checks: list[str]
    text: str
    operands: str


class _Emitter:
    """Makes the texts of one catalog; keeps what variants share."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.guards = _Guards(catalog.database.spec)
        self._registers = {entry.name: entry for entry in catalog.database.spec.types.registers}
        self._parts: dict[tuple[_Builder, int], _Part] = {}

    def functions(self, instruction: Instruction) -> Iterator[Function]:
        """The functions of a variant: for each operand form, one for each way to pass its operands."""
        guard = self.guards.of(instruction)
        documented = "" if instruction.documented else "; not in the manual"
        for form, builders in _ways(instruction):
            parts = [self._part(builder, operand) for builder, operand in zip(builders, form.operands, strict=True)]
            comment = f"{instruction.canonical}{' ' * bool(form.syntax)}{form.syntax};  {guard.text}{documented}"
            yield _function(instruction, form, parts, guard.macro, comment)

    def _part(self, builder: _Builder, operand: Operand) -> _Part:
        key = (builder, id(operand))  # variants share operands, and the database keeps them
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = builder(operand, self.c_type(operand))
        return part

    def c_type(self, operand: Operand) -> str:
        return self._registers[operand.register_types[0]].c_type if operand.register_types else ""


def _ways(instruction: Instruction) -> Iterator[tuple[OperandForm, list[_Builder]]]:
    """Its operand forms, each with every way to pass the operands."""
    for form in instruction.forms or (OperandForm("", "", ()),):
        kinds = [_PASSED[operand.kind] for operand in form.operands]
        for way in range(max(map(len, kinds), default=1)):
            yield form, [kind[min(way, len(kind) - 1)] for kind in kinds]


def _function(instruction: Instruction, form: OperandForm, parts: Sequence[_Part], guard: str, comment: str) -> Function:
    texts, prologue, lists, first = {}, "", ([], []), 0  # type: dict[str, str], str, tuple[list[str], list[str]], int
    for read in (False, True):  # asm numbers its outputs before its inputs
        for operand, part in zip(form.operands, parts, strict=True):
            if (operand.access == "read") == read:
                numbers = _numbers(first, len(part.values))
                texts[operand.name] = part.text.format(numbers)
                prologue += part.prologue.format(numbers)
                lists[read].extend(part.values)
                first += len(part.values)
    syntax = _WORD.sub(lambda match: texts[match[0]], form.syntax)
    line = f"{instruction.canonical}{' ' * bool(syntax)}{syntax};"
    return Function(
        comment=comment,
        template=", ".join([*(part.template for part in parts if part.template), "class Use = void"]),
        name=instruction.identifier,
        parameters=", ".join(part.parameter for part in parts if part.parameter),
        guard=guard,
        checks=[part.check for part in parts if part.check],
        text=f"{{{prologue}{line}}}" if prologue else line,
        operands=_operands(_lines(lists[0]), _lines(lists[1]), '"memory"' if instruction.variant.instruction.memory else ""),
    )


@functools.cache
def _numbers(first: int, count: int) -> str:
    """``%4, %5, %6``; a long list on several lines, as one string literal after another."""
    numbers = [f"%{i}" for i in range(first, first + count)]
    rows = [", ".join(numbers[i : i + _LISTED]) for i in range(0, count, _LISTED)]
    return ', "\n        "'.join(rows)


def _lines(values: Sequence[str]) -> str:
    """asm operands, eight on a line."""
    half = _LISTED // 2
    return ",\n        ".join(", ".join(values[i : i + half]) for i in range(0, len(values), half))


def _operands(outputs: str, inputs: str, clobbers: str) -> str:
    """The operand lists of an asm statement, the empty ones at the end left out."""
    lists = [outputs, inputs, clobbers]
    while lists and not lists[-1]:
        lists.pop()
    return "".join(f"\n      : {values}" if values else "\n      :" for values in lists)


# --- the typed front --------------------------------------------------------------------------------------------------------


class Front(NamedTuple):
    """One specialisation: it picks the function of a variant, or of every n, with its fragments and layouts.

    Attributes:
        template: ``"int N"`` where one specialisation serves every n.
        name: ``"wgmma"``.
        arguments: ``"shape<64, N, 16>, f32, bf16, bf16"``.
        check: condition on N.
        operands: member types by name.
        cases: the function of each n.
    """

    template: str
    name: str
    arguments: str
    check: str
    operands: dict[str, str]
    cases: list[tuple[int, str]]


def _front(emitter: _Emitter, variants: Sequence[Instruction]) -> Front:
    """The specialisation for variants that differ in n alone."""
    variant = variants[0].variant
    name, arguments = front_name(variants[0])
    over_n = len(variants) > 1
    shape = f"shape<{variant.facts['m']}, {'N' if over_n else variant.facts['n']}, {variant.facts['k']}>"
    ns = [int(instruction.variant.facts["n"]) for instruction in variants]
    operands = {}
    for place, form in enumerate(variants[0].forms):
        for index, operand in enumerate(form.operands):
            if operand.layout is not None:
                same = [instruction.forms[place].operands[index] for instruction in variants]
                operands[_name(operand.name)] = _member(emitter, ns, same)
    assert variant.shape is not None
    spans = (f"(N >= {span.first} && N <= {span.last} && (N - {span.first}) % {span.step} == 0)" for span in variant.shape.n)
    return Front(
        template="int N" if over_n else "",
        name=name,
        arguments=", ".join([shape, *arguments]),
        check=" || ".join(spans) if over_n else "",
        operands=operands,
        cases=[(n, instruction.identifier) for n, instruction in zip(ns, variants, strict=True)],
    )


def _member(emitter: _Emitter, ns: Sequence[int], operands: Sequence[Operand]) -> str:
    """The member type of an operand: its registers, and where its elements are."""
    operand = operands[0]
    assert operand.layout is not None
    layout, c_type = f"layout::{c_text.identifier(operand.layout.name)}", emitter.c_type(operand)
    if operand.layout.kind != "fragment":
        return f"word<{c_type}, {layout}>"
    registers = _count(ns, [operand.registers for operand in operands])
    elements = _count(ns, [operand.elements for operand in operands])
    return f"fragment<{_tag(str(operand.element_type))}, {c_type}, {registers}, {elements}, {layout}>"


def _count(ns: Sequence[int], counts: Sequence[int]) -> str:
    """A count as an expression over N."""
    if len(set(counts)) == 1:
        return str(counts[0])
    ratios = {Fraction(count, n) for n, count in zip(ns, counts, strict=True)}
    if len(ratios) > 1:
        raise ValueError(f"the number of registers or elements is not proportional to n: {dict(zip(ns, counts, strict=True))}")
    ratio = ratios.pop()
    return "N" + (f" * {ratio.numerator}" if ratio.numerator > 1 else "") + (f" / {ratio.denominator}" if ratio.denominator > 1 else "")


def front_name(instruction: Instruction) -> tuple[str, list[str]]:
    """Its template's name and the arguments after the shape: ``("mma_sp", ["f32", "f16", "f16", "f32"])``.

    What stands before the shape in the identifier belongs to the name; of the rest, the types of the operands come first.
    """
    entry = instruction.variant.instruction
    tokens = telling_tokens(entry, instruction.variant.facts)
    at = [name for name, _ in tokens].index(SHAPE)
    types = _types(entry)
    later = [(name, _tag(token)) for name, token in tokens[at + 1 :]]
    arguments = [token for name, token in later if name in types] + [token for name, token in later if name not in types]
    return "_".join([entry.stem, *(token for _, token in tokens[:at])]), arguments


def _tag(token: str) -> str:
    """The type that stands for a token; PTX has ``and`` and ``xor``, which C++ reserves."""
    return f"{token}_" if token in _RESERVED or token[0].isdigit() else token


def _types(entry: InstructionSet) -> list[str]:
    """The qualifiers that name the types of A, B, C and D, in order: those of the operands and those ordered among them."""
    typed = {kind.type for kind in entry.operand_kinds.values() if kind.type}
    typed.update(*(group for group in entry.ordered if typed.intersection(group)))
    return [name for name in placeholders(entry.syntax) if name in typed]


# --- files ------------------------------------------------------------------------------------------------------------------


def emit(catalog: Catalog) -> Iterator[Output]:
    """``ptxmma/*.cuh``."""
    emitter = _Emitter(catalog)
    families: dict[str, list[Instruction]] = {}
    ordering = []
    for instruction in catalog.all():
        if instruction.shape is None:
            ordering.append(instruction)
        else:
            families.setdefault(instruction.family, []).append(instruction)
    outputs = [output for family, members in families.items() for output in _family(emitter, family, members)]
    if ordering:
        outputs.append(_header(emitter, _ORDERING, ordering, includes=[_CONFIG]))
    yield from outputs
    yield _config(emitter, families)
    paths = sorted(output.path.removeprefix(f"{_FOLDER}/") for output in outputs)
    yield _output(emitter, "ptxmma.cuh", "all.cuh", includes=paths)


def _family(emitter: _Emitter, family: str, members: list[Instruction]) -> Iterator[Output]:
    """One header, or one for each type of A beside one for their layouts."""
    stem = c_text.identifier(family)
    layouts = [_layout(layout) for layout in emitter.catalog.database.layouts if layout.family == family]
    shared = [_CONFIG, f"{stem}.h"]
    if any(instruction.variant.instruction.asynchronous for instruction in members):
        shared.append(_ORDERING)
    if sum(len(list(_ways(instruction))) for instruction in members) <= _MOST_FUNCTIONS:
        yield _header(emitter, f"{stem}.cuh", members, includes=shared, layouts=layouts)
        return
    parts: dict[str, list[Instruction]] = {}
    for instruction in members:
        parts.setdefault(_place(instruction), []).append(instruction)
    common = f"{stem}/layouts.cuh"
    yield _header(emitter, common, [], includes=shared, layouts=layouts)
    for place, part in parts.items():
        yield _header(emitter, f"{stem}/{place}.cuh", part, includes=[common])


def _layout(layout: Layout) -> tuple[str, list[str]]:
    """A layout's name and its functions in the C header."""
    outputs = {"fragment": [*layout.map.outputs, "lane", "element"], "metadata": ["lane", "bit"], "scale": ["lane", "byte"]}
    return c_text.identifier(layout.name), outputs[layout.kind]


def _place(instruction: Instruction) -> str:
    """The type by which a large family is split: that of its first multiplicand."""
    entry = instruction.variant.instruction
    accumulators = {kind.type for kind in entry.operand_kinds.values() if kind.kind == "accumulator"}
    return next((str(instruction.variant.facts[name]) for name in _types(entry) if name not in accumulators), "")


def _header(
    emitter: _Emitter,
    path: str,
    members: Sequence[Instruction],
    *,
    includes: list[str],
    layouts: Sequence[tuple[str, list[str]]] = (),
) -> Output:
    fronts: dict[tuple[object, ...], list[Instruction]] = {}
    for instruction in members:
        if instruction.shape is not None:
            m, n, k = instruction.shape
            place = (m, k) if instruction.variant.ranges_over_n else (m, n, k)
            name, arguments = front_name(instruction)
            fronts.setdefault((name, *arguments, *place), []).append(instruction)
    return _output(
        emitter,
        path,
        "family.cuh",
        includes=includes,
        layouts=layouts,
        description=_describe(members),
        functions=[function for instruction in members for function in emitter.functions(instruction)],
        fronts=[_front(emitter, variants) for variants in fronts.values()],
    )


def _describe(members: Sequence[Instruction]) -> Iterator[str]:
    """What the head of a file says of its instructions and their operands."""
    sets: dict[str, tuple[InstructionSet, dict[str, str]]] = {}
    for instruction in members:
        entry = instruction.variant.instruction
        _, operands = sets.setdefault(entry.name, (entry, {}))
        operands.update((operand.name, operand.title) for form in instruction.forms for operand in form.operands)
    for entry, operands in sets.values():
        yield c_text.comment(f"{entry.name}: {entry.title}; executed by a {entry.scope} (PTX ISA {entry.source})")
        yield from (c_text.comment(f"  {name}: {title}") for name, title in operands.items())


def _config(emitter: _Emitter, families: dict[str, list[Instruction]]) -> Output:
    spec = emitter.catalog.database.spec
    shaped = [front_name(instruction) for members in families.values() for instruction in members if instruction.shape is not None]
    elements = [_tag(entry.name) for entry in spec.types.elements]
    fenced: dict[str, RegisterType] = {}
    for entry in spec.types.registers:
        if entry.bits > 1:
            fenced.setdefault(entry.c_type, entry)
    return _output(
        emitter,
        _CONFIG,
        "config.cuh",
        specific=[target.number for target in spec.targets if target.suffix == "a"],
        guards=emitter.guards.all(),
        tags=list(dict.fromkeys([*elements, *(token for _, arguments in shaped for token in arguments)])),
        fronts=list(dict.fromkeys(name for name, _ in shaped)),
        fenced=fenced.values(),
    )


def _output(emitter: _Emitter, path: str, template: str, *, includes: Sequence[str] = (), **values: object) -> Output:
    near = [posixpath.relpath(include, posixpath.dirname(path) or ".") for include in includes]
    return Output(f"{_FOLDER}/{path}", render(f"cuda/{template}.j2", banner=banner("//", emitter.catalog, _SOURCES), includes=near, **values))

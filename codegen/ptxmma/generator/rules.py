"""Stage 3, rules: what no schema can say, checked across entries; every problem is collected.

References lead somewhere, names are unique, every variant has exactly one answer to every question, and no two rules disagree.
"""

from __future__ import annotations

import itertools
import keyword
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog import layouts, requirements
from ptxmma.catalog.instructions import operand_names
from ptxmma.catalog.variants import SHAPE, Variant, expand, expand_form, fixed_tokens, placeholders, qualifier_values
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Position, Problem, SpecError
from ptxmma.model import Condition, Facts, Form, Granularity, InstructionSet, OperandKind, Spec, Target, matches
from ptxmma.model.formula import FormulaError

#: Facts that conditions may test besides an instruction's qualifiers.
_COMMON_FACTS = {"name", "family", "m", "n", "k", SHAPE}
_OPERAND_FACTS = {"operand", "bits", "ratio"}

#: Files and folders beside which the headers and modules of the families stand.
RESERVED = frozenset(
    {"block_scaling", "config", "cuda", "isa_versions", "pack", "ptxmma", "register_types", "shared_layout", "shared_memory", "sparse"}
    | {"status", "targets", "types", "variants"}
)
#: What formulas read, by section: helper definitions of these names would hide them.
_VARIABLES = {
    "fragments": {"lane", "warp", "i", "m", "n", "k", "bits", "ratio"},
    "metadata": {"lane", "i", "m", "n", "k", "bits", "ratio", "row", "chunk", "selector"},
    "scales": {"lane", "i", "m", "n", "k", "bits", "ratio", "row", "block", "byte_id", "thread_id"},
}
#: Far above what hardware has; larger numbers are slips, and would keep the generator busy for hours.
_LARGEST_SIZE = 4096
_MOST_VARIANTS = 100_000
_LARGEST_DOMAIN = 1 << 16
#: How far published peaks may lie from the product of their parts: they are rounded, and some are twice a rounded number.
_PEAK_TOLERANCE = 0.005


def check(spec: Spec, positions: Positions) -> None:
    """Check the model across its entries.

    Raises:
        SpecError: with every problem.
    """
    checker = _Checker(spec, positions)
    problems = [
        *checker.names(),
        *checker.references(),
        *checker.order(),
        *checker.sparsity(),
        *checker.instructions(),
        *checker.conditions(),
    ]
    if not problems:  # variants of a broken instruction would only repeat its problems
        problems = list(checker.variants())
    if not problems:  # and what they reach is known only where each is covered
        problems = [*checker.reached(), *checker.scaling(), *checker.throughput()]
    if problems:
        raise SpecError(problems)


class _Checker:
    def __init__(self, spec: Spec, positions: Positions) -> None:
        self.spec = spec
        self.at = positions.at
        self.targets = [entry.name for entry in spec.targets]
        self.versions = [entry.version for entry in spec.isa_versions]
        self.elements = [entry.name for entry in spec.types.elements]
        self.registers = [entry.name for entry in spec.types.registers]
        self.told: set[Position] = set()
        self.sized: set[tuple[object, ...]] = set()
        self.missing: set[tuple[tuple[str, ...], Position, str]] = set()

    # --- one entry against the others ---------------------------------------------------------------------------------------

    def names(self) -> Iterator[Problem]:
        """Nothing stands twice."""
        spec, memory = self.spec, self.spec.shared_memory
        for place, entries in {
            ("types", "elements"): [entry.name for entry in spec.types.elements],
            ("types", "registers"): [entry.name for entry in spec.types.registers],
            ("targets",): [entry.name for entry in spec.targets],
            ("isa_versions",): [entry.version for entry in spec.isa_versions],
            ("instructions",): [entry.name for entry in spec.instructions],
            ("errata",): [entry.id for entry in spec.errata],
            ("block_formats",): [entry.name for entry in spec.block_formats],
            ("shared_memory", "swizzles"): [entry.name for entry in memory.swizzles] if memory else [],
            ("shared_memory", "descriptor"): [entry.name for entry in memory.descriptor] if memory else [],
        }.items():
            seen: dict[str, int] = {}
            for index, name in enumerate(entries):
                if name in seen:
                    first = self.at(*place, seen[name])
                    yield Problem(self.at(*place, index), f"{name!r} stands twice; the first is at {first}")
                seen.setdefault(name, index)
        files: dict[str, str] = {}
        for index, entry in enumerate(spec.instructions):
            file = entry.family.replace(".", "_")
            others = {files.setdefault(name, entry.family) for name in (file, f"{file}_pack")} - {entry.family}
            if file in RESERVED or keyword.iskeyword(file):
                yield Problem(
                    self.at("instructions", index, "family"), f"a family cannot be called {entry.family!r}: other files have this name"
                )
            for other in sorted(others):
                yield Problem(
                    self.at("instructions", index, "family"), f"the families {other!r} and {entry.family!r} would share their files"
                )

    def references(self) -> Iterator[Problem]:
        """Every name leads to an entry."""
        spec = self.spec
        for index, target in enumerate(spec.targets):
            yield from self._known("target", target.includes, self.targets, "targets", index, "includes")
            yield from self._known("PTX ISA version", [target.ptx], self.versions, "targets", index, "ptx")
            if target.name in self._ancestors(target.name):
                yield Problem(self.at("targets", index, "includes"), f"{target.name} includes itself")
            elif fault := self._wrong_includes(target):
                yield Problem(self.at("targets", index, "includes"), f"{target.name} {fault}")
        for index, container in enumerate(spec.types.containers):
            yield from self._known("element type", container.elements, self.elements, "types", "containers", index, "elements")
        for index, carrier in enumerate(spec.types.carriers):
            yield from self._known("element type", carrier.elements, self.elements, "types", "carriers", index, "elements")
            yield from self._known("register type", carrier.registers, self.registers, "types", "carriers", index, "registers")
        for index, scaling in enumerate(spec.block_scaling):
            yield from self._known("element type", scaling.stypes, self.elements, "block_scaling", index, "stypes")
        for index, held in enumerate(spec.block_formats):
            yield from self._known("element type", [held.element], self.elements, "block_formats", index, "element")
            yield from self._known("element type", [held.scale], self.elements, "block_formats", index, "scale")
        for index, scale in enumerate(spec.scales):
            for name, ids in (("byte_ids", scale.byte_ids), ("thread_ids", scale.thread_ids)):
                step = ids[1] if len(ids) > 1 else 1
                if ids != tuple(range(0, step * len(ids), step)) or len(ids) & (len(ids) - 1) or step & (step - 1):
                    message = f"{name} must be 0 and the multiples of a power of two, a power of two of them: [0], [0, 2], [0, 1, 2, 3]"
                    yield Problem(self.at("scales", index, name), message)
        for index, entry in enumerate(spec.instructions):
            for number, semantics in enumerate(entry.semantics):
                place = ("instructions", index, "semantics", number, "sums")
                yield from self._known("element type", [semantics.sums], self.elements, *place)
        families = dict.fromkeys(entry.family for entry in spec.instructions)
        for index, chip in enumerate(spec.throughput):
            yield from self._known("target", [chip.target], self.targets, "throughput", index, "target")
        for index, erratum in enumerate(spec.errata):
            if erratum.family:
                yield from self._known("family", [erratum.family], families, "errata", index, "family")
        for section in _VARIABLES:
            for index, part in enumerate(getattr(spec, section)):
                yield from self._let(part.let, section, index)
        errata = [entry.id for entry in spec.errata]
        for index, fragment in enumerate(spec.fragments):
            for number, stated in enumerate(fragment.stated):
                yield from self._let(stated.let, "fragments", index, "stated", number)
                if stated.erratum:
                    yield from self._known("erratum", [stated.erratum], errata, "fragments", index, "stated", number, "erratum")
        if spec.shared_memory is not None:
            swizzles = [entry.name for entry in spec.shared_memory.swizzles]
            for index, layout in enumerate(spec.shared_memory.layouts):
                yield from self._known("swizzle", layout.swizzles, swizzles, "shared_memory", "layouts", index, "swizzles")
            for index, example in enumerate(spec.shared_memory.examples):
                yield from self._known("swizzle", [example.swizzle], swizzles, "shared_memory", "examples", index, "swizzle")
                yield from self._known("element type", [example.type], self.elements, "shared_memory", "examples", index, "type")
            taken: dict[int, str] = {}
            for index, field in enumerate(spec.shared_memory.descriptor):
                for bit in range(field.low, field.low + field.width):
                    if bit in taken:
                        yield Problem(self.at("shared_memory", "descriptor", index), f"bit {bit} belongs to {taken[bit]!r} already")
                        break
                    taken[bit] = field.name

    def order(self) -> Iterator[Problem]:
        """Versions ascend with the releases that brought them, and the steps of a protocol are steps of what is there."""
        spec = self.spec
        for name in ("version", "cuda"):
            values = [getattr(entry, name) for entry in spec.isa_versions]
            for index, (before, value) in enumerate(itertools.pairwise(values), 1):
                if requirements.version_key(value) <= requirements.version_key(before):
                    yield Problem(
                        self.at("isa_versions", index, name), f"{name} {value} must be above {before}: list the versions in their order"
                    )
        if spec.protocol is None:
            return
        names = [entry.name for entry in spec.instructions]
        for section, key in (("steps", "instruction"), ("orderings", "needs")):
            for index, part in enumerate(getattr(spec.protocol, section)):
                if value := getattr(part, key):
                    yield from self._known("instruction", [value], names, "protocol", section, index, key)
        taken = [step.instruction for step in spec.protocol.steps if step.instruction]
        for index, step in enumerate(spec.protocol.steps):
            if step.instruction and taken.count(step.instruction) > 1:
                yield Problem(self.at("protocol", "steps", index), f"{step.instruction} is two steps")
        for index, entry in enumerate(spec.instructions):
            if _is_order(entry) and entry.name not in taken:
                yield Problem(self.at("instructions", index, "name"), f"{entry.name} only orders others, and is no step of the protocol")

    def _let(self, let: Iterable[str], section: str, *place: str | int) -> Iterator[Problem]:
        for name in let:
            if name in _VARIABLES[section]:
                yield Problem(self.at(section, *place, "let", name), f"{name!r} is a variable of formulas already; choose another name")

    def _wrong_includes(self, target: Target) -> str:
        """What is wrong with what a target includes: names say which features it can have."""
        known = {entry.name: entry for entry in self.spec.targets}
        included = [known[name] for name in target.includes if name in known]
        wider = {"a": ("", "f"), "f": ("",), "": ()}[target.suffix]
        own = [entry.name for entry in known.values() if entry.number == target.number and entry.suffix in wider]
        if any(entry.suffix == "a" for entry in included):
            return "includes a target with the suffix a, whose features no other has"
        if target.suffix == "a":
            nearest = max(own, default="")  # the f target, where there is one
            return "" if list(target.includes) == [nearest] else f"must include {nearest or 'a plain target'} and nothing else"
        if target.suffix == "f":
            others = [entry for entry in included if entry.name not in own]
            fits = set(own) <= set(target.includes) and all(entry.suffix == "f" and entry.number < target.number for entry in others)
            return "" if fits else f"must include {_list(own)}, and besides only earlier targets with the suffix f"
        fits = all(entry.suffix == "" and entry.number < target.number for entry in included) and len(included) < 2
        return "" if fits else "may include one earlier target without a suffix, and nothing else"

    def _ancestors(self, name: str) -> set[str]:
        includes = {entry.name: entry.includes for entry in self.spec.targets}
        found: set[str] = set()
        left = list(includes.get(name, ()))
        while left:
            parent = left.pop()
            if parent not in found:
                found.add(parent)
                left += includes.get(parent, ())
        return found

    def _known(self, what: str, names: Iterable[str], known: Iterable[str], *place: str | int) -> Iterator[Problem]:
        allowed = list(known)
        for name in names:
            if name not in allowed:
                yield Problem(self.at(*place), f"unknown {what} {name!r}; known: {_list(allowed)}")

    # --- sparsity -----------------------------------------------------------------------------------------------------------

    def sparsity(self) -> Iterator[Problem]:
        """Patterns of one name are one pattern, and compression can choose a legal field for every chunk that is sparse enough."""
        choices: dict[int, int] = {}
        for index, choice in enumerate(self.spec.choices):
            if (first := choices.setdefault(choice.units, index)) != index:
                place = self.at("choices", first)
                yield Problem(self.at("choices", index), f"another entry chooses fields for {choice.units} units; the first is at {place}")
        named: dict[str, Granularity] = {}
        for index, pattern in enumerate(self.spec.granularities):
            here = self.at("granularities", index)
            first_of_name = named.setdefault(pattern.name, pattern)
            if _sizes(first_of_name) != _sizes(pattern):
                yield Problem(here, f"another pattern {pattern.name!r} has other sizes")
            if pattern.chunk % pattern.unit or pattern.kept % pattern.unit or pattern.units & (pattern.units - 1):
                message = (
                    f"chunk {pattern.chunk} and kept {pattern.kept} must be whole units of {pattern.unit}, chunk a power of two of them"
                )
                yield Problem(here, message)
            elif pattern.units not in choices:
                yield Problem(here, f"no entry of choices says which field {pattern.name} compresses to: it has {pattern.units} units")
            else:
                yield from self._choice(choices[pattern.units], pattern)

    def _choice(self, index: int, pattern: Granularity) -> Iterator[Problem]:
        """The fields that compression writes suit a pattern."""
        choice, place = self.spec.choices[index], ("choices", index, "fields")
        most, ordered = pattern.kept // pattern.unit, pattern.ordered or pattern.legal
        for units in range(1 << pattern.units):
            key = f"{units:#0{2 + pattern.units}b}"
            if key not in choice.fields and units.bit_count() <= most:
                yield from self._once(self.at(*place), f"{key} has no field, and {pattern.name} keeps {most} units")
        for key, field in choice.fields.items():
            here = self.at(*place, key)
            units = int(key, 2)
            if len(key) != 2 + pattern.units:
                yield from self._once(here, f"{key} must have a digit for each of the {pattern.units} units")
            elif units.bit_count() > most:
                yield from self._once(here, f"{key} has more units than the {most} that {pattern.name} keeps")
            elif field not in ordered:
                yield from self._once(here, f"{field} is no legal field of {pattern.name} in order; there are {_list(ordered)}")
            elif units & ~sum(1 << unit for unit in pattern.kept_units(field)):
                kept = _list(map(str, pattern.kept_units(field)))
                yield from self._once(here, f"{field} keeps the units {kept} of {pattern.name}, not all of {key}")

    def _once(self, position: Position, message: str) -> Iterator[Problem]:
        """A problem of an entry that several others meet."""
        if position not in self.told:
            self.told.add(position)
            yield Problem(position, message)

    # --- instructions -------------------------------------------------------------------------------------------------------

    def instructions(self) -> Iterator[Problem]:
        """Syntax, qualifiers, operands and forms of each instruction agree with each other."""
        for index, entry in enumerate(self.spec.instructions):
            place = ("instructions", index)
            named = set(placeholders(entry.syntax)) - {SHAPE}
            for name in sorted(named - set(entry.qualifiers)):
                known = _list(entry.qualifiers)
                yield Problem(self.at(*place, "syntax"), f"the syntax names {name!r}, which is no qualifier; known: {known}")
            for name in sorted(set(entry.qualifiers) - named):
                yield Problem(self.at(*place, "qualifiers", name), f"the syntax does not name qualifier {name!r}")
            fixed = fixed_tokens(entry.syntax)
            for number, group in enumerate(entry.ordered):
                yield from self._known("qualifier or modifier", group, [*entry.qualifiers, *fixed], *place, "ordered", number)
            for number, ignored in enumerate(entry.ignored):
                if ignored.behind:
                    yield from self._known("qualifier", [ignored.behind], entry.qualifiers, *place, "ignored", number, "behind")
            tokens = {*entry.syntax.replace("{", "").replace("}", "").split(".")}
            tokens |= {value for name in entry.qualifiers for value in qualifier_values(entry, name)}
            yield from self._known("modifier", entry.repeatable, sorted(tokens), *place, "repeatable")
            described = [(operand.kind, operand.of) for operand in entry.operand_kinds.values() if operand.kind in _ONE_FOR_EACH]
            for kind, of in sorted({pair for pair in described if described.count(pair) > 1}):
                yield Problem(self.at(*place, "operand_kinds"), f"two operands of kind {kind} are of {of!r}")
            for name, operand in entry.operand_kinds.items():
                yield from self._operand_kind(entry, name, operand, (*place, "operand_kinds", name))
            for key, texts in entry.operands.items():
                for text in texts:
                    yield from self._known("operand", operand_names(text), entry.operand_kinds, *place, "operands", key)
                    yield from self._scale_ids(entry, text, (*place, "operands", key))
                yield from self._alternatives(entry, texts, (*place, "operands", key))
            for number, form in enumerate(entry.forms):
                yield from self._form(entry, form, (*place, "forms", number))
            if _is_order(entry) and not entry.memory:
                yield Problem(self.at(*place), f"{entry.name} writes nothing, so it must order something: say memory: true")
            for number, rule in enumerate(entry.requires):
                yield from self._rule(rule.ptx, rule.targets, (*place, "requires", number))
                for before, other in enumerate(entry.requires[:number]):
                    differ = (rule.ptx and other.ptx and rule.ptx != other.ptx) or (
                        rule.targets and other.targets and rule.targets != other.targets
                    )
                    if differ and _normal(rule.when) == _normal(other.when):
                        first = self.at(*place, "requires", before)
                        yield Problem(
                            self.at(*place, "requires", number),
                            f"another rule has the same condition and asks for something else, at {first}",
                        )
            for number, observed in enumerate(entry.observed):
                yield from self._rule(observed.ptx, observed.targets, (*place, "observed", number))

    def _operand_kind(self, entry: InstructionSet, name: str, operand: OperandKind, here: tuple[str | int, ...]) -> Iterator[Problem]:
        if operand.kind in _MATRICES:
            yield from self._known("qualifier", [operand.type], entry.qualifiers, *here, "type")
            if operand.type in entry.qualifiers:
                for value in sorted(qualifier_values(entry, operand.type) - set(self.elements)):
                    message = f"{operand.type!r} gives no element types: it may be {value!r}; known: {_list(self.elements)}"
                    yield Problem(self.at(*here, "type"), message)
        if operand.kind in ("metadata", "selector") and not entry.sparse:
            yield Problem(self.at(*here), f"{name!r} is for instructions with a sparse A; this one does not say sparse: true")
        if operand.kind in (*_ONE_FOR_EACH, "scale-id") and not operand.of:
            yield Problem(self.at(*here), f"{name!r} is a {operand.kind}: say of: and the operand that it describes")
        if operand.kind == "scale-id" and not operand.immediate:
            yield Problem(self.at(*here), f"{name!r} may be an immediate, as every scale id: say immediate: true")
        if operand.kind == "immediate" and not operand.values and operand.limit < 0:
            yield Problem(self.at(*here), f"immediate {name!r} needs values: [...] or limit: N (for 0..N)")
        elif operand.default is not None and operand.default not in (operand.values or range(operand.limit + 1)):
            allowed = _list(map(str, operand.values)) or f"0..{operand.limit}"
            yield Problem(self.at(*here, "default"), f"{operand.default} is no value of {name!r}; there are {allowed}")

    def _scale_ids(self, entry: InstructionSet, text: str, place: tuple[str | int, ...]) -> Iterator[Problem]:
        """Scale ids stand after the scale factors that they choose from."""
        of = ""
        for name in operand_names(text):
            operand = entry.operand_kinds.get(name)
            if operand is not None and operand.kind == "scale-data":
                of = operand.of
            elif operand is not None and operand.kind == "scale-id" and operand.of != of:
                yield Problem(self.at(*place), f"{name!r} is of {operand.of!r}, and stands after the scale factors of {of or 'nothing'!r}")

    def _alternatives(self, entry: InstructionSet, texts: Sequence[str], place: tuple[str | int, ...]) -> Iterator[Problem]:
        """The operand lists of one form differ in where their matrices stand, and in the constants that go with it."""
        rests = []
        for text in texts:
            kinds = {name: entry.operand_kinds[name].kind for name in operand_names(text) if name in entry.operand_kinds}
            rests.append([name for name, kind in kinds.items() if kind not in ("fragment", "descriptor", "immediate")])
        for rest in rests[1:]:
            if rest != rests[0]:
                yield Problem(
                    self.at(*place),
                    f"besides matrices and constants one list has {_list(rest)}, another {_list(rests[0])}: they are of two forms",
                )

    def _shapes(self, form: Form, place: tuple[str | int, ...]) -> Iterator[Problem]:
        for number, shape in enumerate(form.shapes):
            here = (*place, "shape", number) if len(form.shapes) > 1 else (*place, "shape")
            for span in shape.n:
                if span.first > span.last:
                    yield Problem(self.at(*here, "n"), f"a range from {span.first} to {span.last} is empty")
                elif (span.last - span.first) % span.step:
                    yield Problem(self.at(*here, "n"), f"steps of {span.step} from {span.first} do not reach {span.last}")
            for name, value in (("m", shape.m), ("n", max(span.last for span in shape.n)), ("k", shape.k)):
                if not 1 <= value <= _LARGEST_SIZE:
                    yield Problem(self.at(*here, name), f"{name} = {value} is out of range: 1..{_LARGEST_SIZE}")

    def _form(self, entry: InstructionSet, form: Form, place: tuple[str | int, ...]) -> Iterator[Problem]:
        yield from self._shapes(form, place)
        shapes = sum(len(range(span.first, span.last + 1, span.step)) for shape in form.shapes for span in shape.n)
        count = max(shapes, 1) * math.prod(len(values) for values in form.qualifiers.values())
        if count > _MOST_VARIANTS:
            yield Problem(self.at(*place), f"this form has {count} variants; at most {_MOST_VARIANTS} are allowed")
        yield from self._matrices(entry, form, place)
        if form.documented != form.source[0].isdigit():
            there = "is documented" if form.documented else "is not"
            yield Problem(self.at(*place, "source"), f"{form.source!r} is no source for a form that {there}: a section documents a form")
        for name, values in form.qualifiers.items():
            here = (*place, name)
            if name not in entry.qualifiers:
                yield Problem(self.at(*here), f"unknown qualifier {name!r}; known: {_list(entry.qualifiers)}")
            origin = values[0][1:] if values[0].startswith("=") else ""
            if origin and (origin not in form.qualifiers or form.qualifiers[origin][0].startswith("=")):
                yield Problem(self.at(*here), f"'={origin}' must name a qualifier of this form that has values of its own")
            if name in _TYPE_QUALIFIERS and not origin:
                yield from self._known("element type", values, self.elements, *here)
        optional = {name for name in entry.qualifiers if f"{{.{name}}}" in entry.syntax}
        for name in placeholders(entry.syntax):
            given = bool(form.shapes) if name == SHAPE else bool(form.qualifiers.get(name)) and "" not in form.qualifiers[name]
            if not given and name not in optional:
                yield Problem(self.at(*place), f"the syntax needs {name!r}, which this form does not give")
        if entry.operands or form.operands:
            yield from self._known("operand list", [form.operands], entry.operands, *place, "operands")

    def _matrices(self, entry: InstructionSet, form: Form, place: tuple[str | int, ...]) -> Iterator[Problem]:
        """A form gives all that the layouts of its instruction's operands are derived from."""
        matrices = {name: operand.type for name, operand in entry.operand_kinds.items() if operand.kind in _MATRICES}
        if entry.sparse:
            matrices.setdefault("a", "atype")
        if matrices and not form.shapes:
            yield Problem(self.at(*place), f"operand {next(iter(matrices))!r} holds a matrix, and this form gives no shape")
        for name, qualifier in matrices.items():
            values = form.qualifiers.get(qualifier, ("",))
            if "" in values:
                yield Problem(self.at(*place), f"operand {name!r} needs {qualifier!r}, which this form does not always give")

    def _rule(self, ptx: str, targets: Sequence[str], place: tuple[str | int, ...]) -> Iterator[Problem]:
        if ptx:
            yield from self._known("PTX ISA version", [ptx], self.versions, *place, "ptx")
        yield from self._known("target", targets, self.targets, *place, "targets")
        admitted = [entry.ptx for entry in self.spec.targets if {entry.name, *self._ancestors(entry.name)} & set(targets)]
        first = min(admitted, key=requirements.version_key, default="")
        if ptx and first and requirements.version_key(ptx) < requirements.version_key(first):
            yield Problem(self.at(*place, "ptx"), f"no target that this rule admits is known to {ptx}; the first of them came with {first}")

    def conditions(self) -> Iterator[Problem]:
        """Conditions test facts that exist, against values that some variant has."""
        everything: dict[str, set[str]] = {}
        for index, entry in enumerate(self.spec.instructions):
            values = {name: set(qualifier_values(entry, name)) for name in entry.qualifiers}
            for name, found in values.items():
                everything.setdefault(name, set()).update(found)
            lists: list[tuple[str, Sequence[object]]] = [
                (name, getattr(entry, name)) for name in ("ignored", "requires", "observed", "semantics", "undefined", "uniform", "notes")
            ]
            for name, rules in lists:
                for number, rule in enumerate(rules):
                    conditions: tuple[Condition, ...] = getattr(rule, "when")  # noqa: B009  # the entries differ in type
                    yield from self._condition(conditions, values, _COMMON_FACTS, ("instructions", index, name, number, "when"))
            for name, qualifier in entry.qualifiers.items():
                if qualifier.usual:
                    here = ("instructions", index, "qualifiers", name, "usual")
                    yield from self._known(f"value of {name}", [qualifier.usual], sorted(values[name]), *here)
                for number, default in enumerate(qualifier.default):
                    place = ("instructions", index, "qualifiers", name, "default", number)
                    yield from self._condition(default.when, values, _COMMON_FACTS, (*place, "when"))
                    yield from self._known(f"value of {name}", [default.value], sorted(values[name]), *place, "value")
        for section, key in (
            ("fragments", "of"),
            ("granularities", "of"),
            ("metadata", "of"),
            ("scales", "of"),
            ("block_formats", "of"),
        ):
            for number, part in enumerate(getattr(self.spec, section)):
                yield from self._condition(getattr(part, key), everything, _COMMON_FACTS | _OPERAND_FACTS, (section, number, key))
        for index, chip in enumerate(self.spec.throughput):
            for number, rate in enumerate(chip.rates):
                yield from self._condition(rate.of, everything, _COMMON_FACTS, ("throughput", index, "rates", number, "of"))
        for section in ("containers", "carriers"):
            for number, part in enumerate(getattr(self.spec.types, section)):
                yield from self._condition(part.when, everything, _COMMON_FACTS | _OPERAND_FACTS, ("types", section, number, "when"))

    def _condition(
        self, conditions: Iterable[Condition], values: dict[str, set[str]], others: set[str], place: tuple[str | int, ...]
    ) -> Iterator[Problem]:
        for condition in conditions:
            for key, allowed in condition.items():
                if key not in values and key not in others:
                    known = _list([*values, *sorted(others)])
                    yield Problem(self.at(*place), f"the condition tests {key!r}, which is no fact here; known: {known}")
                for value in allowed if key in values else ():
                    if value and value not in values[key]:
                        yield Problem(self.at(*place), f"no form has {key} {value!r}; there are {_list(sorted(values[key])) or 'none'}")

    # --- variants -----------------------------------------------------------------------------------------------------------

    def variants(self) -> Iterator[Problem]:
        """Every variant exists once, is accepted somewhere, and has one answer to every question."""
        spellings: dict[str, Position] = {}
        identifiers: dict[str, tuple[str, Position]] = {}
        answered: set[tuple[object, ...]] = set()
        for index, entry in enumerate(self.spec.instructions):
            for number, form in enumerate(entry.forms):
                position = self.at("instructions", index, "forms", number)
                for variant in expand_form(entry, form):
                    name, spelling = variant.identifier, variant.canonical
                    if spelling in spellings:
                        yield Problem(position, f"{spelling} stands in another form too, at {spellings[spelling]}")
                        break
                    if name in identifiers:
                        yield Problem(position, f"{spelling} gets the identifier {name}, as does {identifiers[name][0]}")
                        break
                    spellings[spelling] = position
                    identifiers[name] = spelling, position
                    yield from self._requirements(variant, index, position)
                    yield from self._semantics(variant, index)
                    key = layouts.key(variant)
                    if key not in answered:
                        answered.add(key)
                        yield from self._factors(variant, position)
                        yield from self._operands(variant, position)

    # --- what variants reach ------------------------------------------------------------------------------------------------

    def reached(self) -> Iterator[Problem]:
        """Each value that a condition allows is that of a variant which it admits, and each layout has a printed formula if any has."""
        held: list[_Held] = []
        for index, entry in enumerate(self.spec.instructions):
            variants = list(expand(entry))
            facts = [variant.facts for variant in variants]
            for name in ("ignored", "requires", "observed", "semantics", "undefined", "uniform", "notes"):
                for number, rule in enumerate(getattr(entry, name)):
                    yield from self._dead(rule.when, facts, ("instructions", index, name, number, "when"))
            for name, qualifier in entry.qualifiers.items():
                for number, default in enumerate(qualifier.default):
                    yield from self._dead(default.when, facts, ("instructions", index, "qualifiers", name, "default", number, "when"))
            distinct = {layouts.key(variant): variant for variant in variants}
            held += (part for variant in distinct.values() for part in self._held(variant))
        yield from self._carried(held)
        sparse = [part.facts for part in held if part.sparse]
        for index, pattern in enumerate(self.spec.granularities):
            yield from self._dead(pattern.of, sparse, ("granularities", index, "of"))
            yield from self._dead(pattern.ordered_when, sparse, ("granularities", index, "ordered_when"))
        for index, metadata in enumerate(self.spec.metadata):
            yield from self._dead(metadata.of, sparse, ("metadata", index, "of"))
        everything = [part.facts for part in held]
        for section in ("scales", "block_formats"):
            for index, part in enumerate(getattr(self.spec, section)):
                yield from self._dead(part.of, everything, (section, index, "of"))
        for index, majorness in enumerate(self.spec.shared_memory.majorness if self.spec.shared_memory else ()):
            described = [part.facts for part in held if part.kind == "descriptor"]
            yield from self._dead(majorness.of, described, ("shared_memory", "majorness", index, "of"))

    def _held(self, variant: Variant) -> Iterator[_Held]:
        """The operands of a variant with the facts that conditions test of them."""
        kinds = variant.instruction.operand_kinds
        for text in variant.instruction.operands.get(variant.form.operands, ()):
            for name in operand_names(text):
                entry = kinds[name]
                element = str(variant.facts.get(entry.type, "")) if entry.type else ""
                plan = layouts.fragment_plan(self.spec, variant, name, element) if element else None
                facts: Facts = plan.facts if plan else dict(variant.facts) | {"operand": name}
                if variant.instruction.sparse and not plan:
                    facts = dict(layouts.metadata_facts(self.spec, variant)) | {"operand": name}
                # The sparse A stands for its variant: it has the facts of its metadata.
                yield _Held(name, entry.kind, element, facts, variant.instruction.sparse and entry.kind in ("metadata", "selector"))

    def _carried(self, held: Sequence[_Held]) -> Iterator[Problem]:
        for index, carrier in enumerate(self.spec.types.carriers):
            named = [part for part in held if part.name in carrier.operands and part.kind not in ("immediate", "selector")]
            fitting = [part for part in named if (part.element in carrier.elements if part.element else not carrier.elements)]
            yield from self._dead(carrier.when, [part.facts for part in fitting], ("types", "carriers", index, "when"))
            admitted = [part for part in fitting if matches(carrier.when, part.facts)]
            yield from self._unused(carrier.operands, {part.name for part in admitted}, ("types", "carriers", index, "operands"))
            yield from self._unused(carrier.elements, {part.element for part in admitted}, ("types", "carriers", index, "elements"))
        for index, container in enumerate(self.spec.types.containers):
            fitting = [part for part in held if part.element in container.elements]
            yield from self._dead(container.when, [part.facts for part in fitting], ("types", "containers", index, "when"))
            admitted = [part for part in fitting if matches(container.when, part.facts)]
            yield from self._unused(container.elements, {part.element for part in admitted}, ("types", "containers", index, "elements"))
            for before, other in enumerate(self.spec.types.containers[:index]):
                for part in admitted:
                    if part.element in other.elements and matches(other.when, part.facts):
                        first = self.at("types", "containers", before)
                        said = f"{part.element} has a container already where kind is {part.facts.get('kind') or 'absent'}, at {first}"
                        yield from self._once(self.at("types", "containers", index, "elements"), said)
        for index, fragment in enumerate(self.spec.fragments):
            fitting = [part for part in held if part.element and part.name in fragment.operands]
            place = ("fragments", index)
            yield from self._dead(fragment.of, [part.facts for part in fitting], (*place, "of"))
            admitted = [part for part in fitting if matches(fragment.of, part.facts)]
            yield from self._unused(fragment.operands, {part.name for part in admitted}, (*place, "operands"))
            for number, stated in enumerate(fragment.stated):
                yield from self._dead(stated.of, [part.facts for part in admitted], (*place, "stated", number, "of"))
            for part in admitted if fragment.stated else ():
                if not any(matches(stated.of, part.facts) for stated in fragment.stated):
                    shape = f"{part.facts['shape']} with {part.facts['bits']} bits, family {part.facts['family']}"
                    yield from self._once(self.at(*place), f"no printed formula under stated is for operand {part.name!r} of {shape}")

    def _dead(self, conditions: Sequence[Condition], everything: Sequence[Facts], place: tuple[str | int, ...]) -> Iterator[Problem]:
        """The values of conditions that nothing has which the condition admits, where there is anything to judge by."""
        for condition in conditions if everything else ():
            left = {(key, value) for key, allowed in condition.items() for value in allowed}
            for facts in everything:
                if not left:
                    break
                if matches((condition,), facts):
                    left -= {(key, facts.get(key, "")) for key in condition}
            for key, value in sorted(left, key=str):
                yield Problem(self.at(*place), f"nothing that this condition admits has {key} {value!r}; leave it out")

    def _unused(self, names: Iterable[str], used: set[str], place: tuple[str | int, ...]) -> Iterator[Problem]:
        for name in names:
            if name not in used:
                yield Problem(self.at(*place), f"no variant that this entry is for has {name!r}; leave it out")

    def scaling(self) -> Iterator[Problem]:
        """Scale vectors, scale types and block-scaled formats are those of the forms, and blocks of one size fill K."""
        spec = self.spec
        combinations: dict[tuple[str, str], set[str]] = {}
        variants = [variant for entry in spec.instructions for variant in expand(entry)] if spec.block_scaling or spec.block_formats else []
        scaled = [variant for variant in variants if variant.facts.get("scale_vec")]
        for variant in scaled:
            facts = variant.facts
            combinations.setdefault((str(facts.get("kind", "")), str(facts["scale_vec"])), set()).add(str(facts.get("stype", "")))
        told: set[tuple[str, str]] = set()
        for index, entry in enumerate(spec.block_scaling):
            here = self.at("block_scaling", index)
            key = (entry.kind, entry.scale_vec)
            if key in told or combinations.get(key) != set(entry.stypes) or len(set(entry.stypes)) != len(entry.stypes):
                yield Problem(here, f"{' with '.join(key)} has the scale types {_list(sorted(combinations.get(key, ()))) or 'of no form'}")
            told.add(key)
            sizes = {scale.blocks for scale in spec.scales if matches(scale.of, {"scale_vec": entry.scale_vec})}
            if sizes - {entry.blocks}:
                yield Problem(here, f"{entry.scale_vec} has {entry.blocks} blocks here, and {_list(map(str, sorted(sizes)))} in its layout")
        for key in combinations.keys() - told if spec.block_scaling else ():
            yield Problem(self.at("block_scaling"), f"no entry has {' with '.join(key)}, which forms have")
        for index, held in enumerate(spec.block_formats):
            here = self.at("block_formats", index)
            for variant in variants:
                facts = variant.facts
                if not matches(held.of, facts):
                    continue
                blocks = next((scale.blocks for scale in spec.scales if matches(scale.of, facts)), 0)
                if not blocks:
                    yield from self._once(here, f"{held.name}: {variant.canonical} scales nothing")
                    continue
                if facts.get("stype") != held.scale:
                    yield from self._once(here, f"{held.name}: {variant.canonical} takes no {held.scale}")
                if held.block * blocks != int(facts["k"]):
                    yield from self._once(
                        here, f"{held.name}: {variant.canonical} has {blocks} blocks along k, not of {held.block} elements"
                    )
            admitted = [v.facts for v in scaled if matches(held.of, v.facts)]
            if not any(held.element in (facts.get("atype"), facts.get("btype")) and facts.get("stype") == held.scale for facts in admitted):
                yield from self._once(here, f"{held.name}: no instruction multiplies {held.element} with scale factors {held.scale}")
        for variant in scaled if spec.block_formats else ():
            yield from self._formats(variant)

    def _formats(self, variant: Variant) -> Iterator[Problem]:
        """A variant that multiplies the blocks of a format is among those that the format names, and its types are those of a format."""
        facts = variant.facts
        if facts.get("atype") != facts.get("btype"):
            return
        places = [
            index for index, held in enumerate(self.spec.block_formats) if (held.element, held.scale) == (facts["atype"], facts["stype"])
        ]
        if not places:
            types = f"{facts['atype']} with scale factors {facts['stype']}"
            yield from self._once(self.at("block_formats"), f"no format has elements of {types}, which {variant.canonical} multiplies")
        blocks = next((scale.blocks for scale in self.spec.scales if matches(scale.of, facts)), 1)
        for index in places:
            held = self.spec.block_formats[index]
            named = any(facts["family"] in condition.get("family", (facts["family"],)) for condition in held.of)
            if named and held.block * blocks == int(facts["k"]) and not matches(held.of, facts):
                yield from self._once(self.at("block_formats", index, "of"), f"{held.name}: {variant.canonical} multiplies such blocks too")

    def throughput(self) -> Iterator[Problem]:
        """Published peaks are what rate, SMs and clock multiply to, and are those of instructions that the chip has."""
        known = requirements.targets_of(self.spec.targets)
        variants = [variant for entry in self.spec.instructions for variant in expand(entry)] if self.spec.throughput else []
        for index, chip in enumerate(self.spec.throughput):
            here = [
                v.facts
                for v in variants
                if any(known.by_name[chip.target].number == t.number for t in requirements.accepting(self.spec, v))
            ]
            for number, rate in enumerate(chip.rates):
                place = ("throughput", index, "rates", number)
                yield from self._dead(rate.of, here, (*place, "of"))
                rates = [rate.dense, rate.sparse] if rate.sparse else [rate.dense]
                if len(rates) != len(rate.published):
                    yield Problem(self.at(*place, "published"), "give one number, or with sparse two: of dense and of sparse operands")
                    continue
                for operations, published in zip(rates, rate.published, strict=True):
                    peak = operations * chip.sms * chip.clock / 1e6
                    if abs(peak - float(published)) > _PEAK_TOLERANCE * float(published):
                        product = f"{operations} operations x {chip.sms} SMs x {chip.clock} MHz"
                        yield Problem(self.at(*place, "published"), f"{product} are {peak:.1f} * 10**12 a second, not {published}")

    def _requirements(self, variant: Variant, index: int, position: Position) -> Iterator[Problem]:
        if len(seen := requirements.observed(variant)) > 1:
            numbers = [variant.instruction.observed.index(entry) for entry in seen]
            first, second = (self.at("instructions", index, "observed", number) for number in numbers[:2])
            yield Problem(second, f"two observations answer for {variant.canonical}; the other is at {first}")
        elif not any(rule.ptx for rule in requirements.stated(variant)):
            yield Problem(position, f"no rule under requires gives {variant.canonical} a PTX ISA version")
        elif not any(rule.targets for rule in requirements.stated(variant)):
            yield Problem(position, f"no rule under requires gives {variant.canonical} a target")
        elif not requirements.accepting(self.spec, variant):
            rules = " and ".join(_list(rule.targets) for rule in requirements.stated(variant) if rule.targets)
            yield Problem(position, f"the rules leave no target to {variant.canonical}: they ask for {rules}")

    def _semantics(self, variant: Variant, index: int) -> Iterator[Problem]:
        """One entry says what a variant computes, if any does for its instruction."""
        found = [number for number, entry in enumerate(variant.instruction.semantics) if matches(entry.when, variant.facts)]
        if not found and variant.instruction.semantics:
            yield from self._once(self.at("instructions", index, "semantics"), f"no entry says what {variant.canonical} computes")
        if len(found) > 1 and (second := self.at("instructions", index, "semantics", found[1])) not in self.told:
            self.told.add(second)
            first = self.at("instructions", index, "semantics", found[0])
            yield Problem(second, f"two entries say what {variant.canonical} computes; the other is at {first}")

    def _factors(self, variant: Variant, position: Position) -> Iterator[Problem]:
        """Elements of A and of B take up as many bits in a register or in memory, those of a container the container's."""
        types = [str(variant.facts.get(name, "")) for name in ("atype", "btype")]
        if all(name in self.elements for name in types):
            a, b = (layouts.container_bits(self.spec, name, variant.facts) for name in types)
            if a != b:
                said = f"{variant.canonical} multiplies elements of {a} bits ({types[0]}) by elements of {b} bits ({types[1]})"
                yield from self._once(position, f"{said}; both must take up the same number")

    def _operands(self, variant: Variant, position: Position) -> Iterator[Problem]:
        spec = self.spec
        form_lists = variant.instruction.operands.get(variant.form.operands, ())
        names = dict.fromkeys(name for text in form_lists for name in operand_names(text))
        for name in names:
            entry = variant.instruction.operand_kinds[name]
            facts: Facts = dict(variant.facts) | {"operand": name}
            element = str(variant.facts.get(entry.type, "")) if entry.type else ""
            if entry.kind not in ("immediate", "selector"):
                fits = [
                    name in c.operands and (element in c.elements if element else not c.elements) and matches(c.when, facts)
                    for c in spec.types.carriers
                ]
                yield from self._one(fits, ("types", "carriers"), f"operand {name!r} of {variant.canonical}", position, name)
            if element:
                facts = layouts.fragment_facts(spec, variant, name, element)
                fits = [name in f.operands and matches(f.of, facts) for f in spec.fragments]
                yield from self._one(fits, ("fragments",), f"operand {name!r} of {variant.canonical}", position, name)
                if sum(fits) == 1:
                    yield from self._fragment_size(fits.index(True), facts, variant)
            if entry.kind == "metadata":
                yield from self._matching([p.of for p in spec.granularities], variant.facts, ("granularities",), variant, position)
                facts = layouts.metadata_facts(spec, variant)
                yield from self._matching([m.of for m in spec.metadata], facts, ("metadata",), variant, position)
                pattern, metadata = layouts.granularity(spec, variant), layouts.metadata_entry(spec, variant)
                if pattern is not None and metadata is not None:
                    points = int(facts["m"]) * (int(facts["k"]) // pattern.chunk) * metadata.selectors
                    yield from self._domain(points, variant, ("metadata", spec.metadata.index(metadata)))
            if entry.kind == "scale-data":
                fits = [s.operand == entry.of and matches(s.of, variant.facts) for s in spec.scales]
                yield from self._one(fits, ("scales",), f"the scale factors of {entry.of} of {variant.canonical}", position)

    def _matching(
        self, conditions: list[tuple[Condition, ...]], facts: Facts, section: tuple[str], variant: Variant, position: Position
    ) -> Iterator[Problem]:
        yield from self._one([matches(of, facts) for of in conditions], section, variant.canonical, position)

    def _fragment_size(self, index: int, facts: Facts, variant: Variant) -> Iterator[Problem]:
        """The matrix of a fragment has a size, and every thread a part of it."""
        decisive = (index, variant.instruction.scope, *(value for value in facts.values() if isinstance(value, int)))
        if decisive in self.sized:
            return
        self.sized.add(decisive)
        entry = self.spec.fragments[index]
        sizes = []
        for name in ("rows", "cols"):
            try:
                sizes.append(layouts.size(getattr(entry, name), facts))
            except FormulaError as error:
                place = self.at("fragments", index, name)
                place = place._replace(column=place.column + error.column)
                if place not in self.told:
                    self.told.add(place)
                    yield Problem(place, f"{variant.canonical}: {error}")
        if len(sizes) == 2:  # both could be evaluated
            yield from self._domain(math.prod(sizes) * entry.computations if min(sizes) > 0 else 0, variant, ("fragments", index))

    def _domain(self, points: int, variant: Variant, place: tuple[str | int, ...]) -> Iterator[Problem]:
        threads = layouts.THREADS[variant.instruction.scope]
        if not threads <= points <= _LARGEST_DOMAIN and (position := self.at(*place)) not in self.told:
            self.told.add(position)
            yield Problem(position, f"{variant.canonical} has {points} elements here; there must be {threads} to {_LARGEST_DOMAIN}")

    def _one(self, fits: Sequence[bool], section: tuple[str, ...], what: str, position: Position, operand: str = "") -> Iterator[Problem]:
        """Exactly one entry of a section answers."""
        found = [index for index, fit in enumerate(fits) if fit]
        if not found:
            if (missing := (section, position, operand)) in self.missing:
                return  # once is enough for all variants of a form
            self.missing.add(missing)
            yield Problem(position, f"no entry of {'.'.join(section)} covers {what}")
        elif len(found) > 1 and (second := self.at(*section, found[1])) not in self.told:
            self.told.add(second)  # once is enough: the same two cover many variants
            yield Problem(second, f"two entries cover {what}; the other is at {self.at(*section, found[0])}")


class _Held(NamedTuple):
    """An operand of a variant, with the facts that conditions test of it."""

    name: str
    kind: str
    element: str
    facts: Facts
    sparse: bool


def _is_order(entry: InstructionSet) -> bool:
    """Whether an instruction has no result: it can only order others, or wait for them."""
    return all(operand.access == "read" for operand in entry.operand_kinds.values())


_TYPE_QUALIFIERS = ("dtype", "atype", "btype", "ctype", "stype")


_MATRICES = ("fragment", "accumulator")

#: Kinds of operands of which an instruction has one for each matrix that they describe.
_ONE_FOR_EACH = ("descriptor", "scale-data")


def _sizes(pattern: Granularity) -> tuple[int, ...]:
    return pattern.chunk, pattern.kept, pattern.unit, pattern.index_bits, pattern.indices


def _normal(conditions: Iterable[Condition]) -> frozenset[frozenset[tuple[str, frozenset[str | int]]]]:
    """Equal for conditions that differ in the order of their parts only."""
    return frozenset(frozenset((key, frozenset(values)) for key, values in condition.items()) for condition in conditions)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)

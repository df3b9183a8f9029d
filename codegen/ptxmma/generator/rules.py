"""Stage 3, rules: what no schema can say, checked across entries; every problem is collected.

References lead somewhere, names are unique, every variant has exactly one answer to every question, and no two rules disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ptxmma import layouts, requirements
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Position, Problem, SpecError
from ptxmma.instructions import operand_names
from ptxmma.model import Condition, Facts, Form, InstructionSet, Spec, matches
from ptxmma.operands import KINDS
from ptxmma.variants import SHAPE, Variant, expand_form, placeholders, qualifier_values

#: Facts that conditions may test besides an instruction's qualifiers.
_COMMON_FACTS = {"name", "family", "m", "n", "k", SHAPE}
_OPERAND_FACTS = {"operand", "bits", "ratio"}


def check(spec: Spec, positions: Positions) -> None:
    """Check the model across its entries.

    Raises:
        SpecError: with every problem.
    """
    checker = _Checker(spec, positions)
    problems = [*checker.names(), *checker.references(), *checker.instructions(), *checker.conditions()]
    if not problems:  # variants of a broken instruction would only repeat its problems
        problems = list(checker.variants())
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
            ("shared_memory", "swizzles"): [entry.name for entry in memory.swizzles] if memory else [],
            ("shared_memory", "descriptor"): [entry.name for entry in memory.descriptor] if memory else [],
        }.items():
            seen: dict[str, int] = {}
            for index, name in enumerate(entries):
                if name in seen:
                    first = self.at(*place, seen[name])
                    yield Problem(self.at(*place, index), f"{name!r} stands twice; the first is at {first}")
                seen.setdefault(name, index)

    def references(self) -> Iterator[Problem]:
        """Every name leads to an entry."""
        spec = self.spec
        for index, target in enumerate(spec.targets):
            yield from self._known("target", target.includes, self.targets, "targets", index, "includes")
            yield from self._known("PTX ISA version", [target.ptx], self.versions, "targets", index, "ptx")
            if target.name in self._ancestors(target.name):
                yield Problem(self.at("targets", index, "includes"), f"{target.name} includes itself")
        for index, container in enumerate(spec.types.containers):
            yield from self._known("element type", container.elements, self.elements, "types", "containers", index, "elements")
        for index, carrier in enumerate(spec.types.carriers):
            yield from self._known("element type", carrier.elements, self.elements, "types", "carriers", index, "elements")
            yield from self._known("register type", carrier.registers, self.registers, "types", "carriers", index, "registers")
        for index, scaling in enumerate(spec.block_scaling):
            yield from self._known("element type", scaling.stypes, self.elements, "block_scaling", index, "stypes")
        for index, scale in enumerate(spec.scales):
            for name, ids in (("byte_ids", scale.byte_ids), ("thread_ids", scale.thread_ids)):
                step = ids[1] if len(ids) > 1 else 1
                if ids != tuple(range(0, step * len(ids), step)) or len(ids) & (len(ids) - 1) or step & (step - 1):
                    message = f"{name} must be 0 and the multiples of a power of two, a power of two of them: [0], [0, 2], [0, 1, 2, 3]"
                    yield Problem(self.at("scales", index, name), message)
        families = dict.fromkeys(entry.family for entry in spec.instructions)
        for index, erratum in enumerate(spec.errata):
            if erratum.family:
                yield from self._known("family", [erratum.family], families, "errata", index, "family")
        errata = [entry.id for entry in spec.errata]
        for index, fragment in enumerate(spec.fragments):
            for number, stated in enumerate(fragment.stated):
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
                yield Problem(self.at(*place), f"unknown {what} {name!r}; known: {', '.join(allowed)}")

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
            for number, group in enumerate(entry.ordered):
                yield from self._known("qualifier", group, entry.qualifiers, *place, "ordered", number)
            for name, operand in entry.operand_kinds.items():
                here = (*place, "operand_kinds", name)
                if KINDS[operand.kind] in (KINDS["fragment"], KINDS["accumulator"]):
                    yield from self._known("qualifier", [operand.type], entry.qualifiers, *here)
                if operand.kind == "immediate" and not operand.values and operand.limit < 0:
                    yield Problem(self.at(*here), f"immediate {name!r} needs values: [...] or limit: N (for 0..N)")
            for key, texts in entry.operands.items():
                for text in texts:
                    yield from self._known("operand", operand_names(text), entry.operand_kinds, *place, "operands", key)
            for number, form in enumerate(entry.forms):
                yield from self._form(entry, form, (*place, "forms", number))
            for number, rule in enumerate(entry.requires):
                yield from self._rule(rule.ptx, rule.targets, (*place, "requires", number))
            for number, observed in enumerate(entry.observed):
                yield from self._rule(observed.ptx, observed.targets, (*place, "observed", number))

    def _form(self, entry: InstructionSet, form: Form, place: tuple[str | int, ...]) -> Iterator[Problem]:
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

    def _rule(self, ptx: str, targets: Sequence[str], place: tuple[str | int, ...]) -> Iterator[Problem]:
        if ptx:
            yield from self._known("PTX ISA version", [ptx], self.versions, *place, "ptx")
        yield from self._known("target", targets, self.targets, *place, "targets")

    def conditions(self) -> Iterator[Problem]:
        """Conditions test facts that exist, against values that some variant has."""
        everything: dict[str, set[str]] = {}
        for index, entry in enumerate(self.spec.instructions):
            values = {name: set(qualifier_values(entry, name)) for name in entry.qualifiers}
            for name, found in values.items():
                everything.setdefault(name, set()).update(found)
            lists: list[tuple[str, Sequence[object]]] = [
                (name, getattr(entry, name)) for name in ("requires", "observed", "semantics", "undefined", "uniform", "notes")
            ]
            for name, rules in lists:
                for number, rule in enumerate(rules):
                    conditions: tuple[Condition, ...] = getattr(rule, "when")  # noqa: B009  # the entries differ in type
                    yield from self._condition(conditions, values, _COMMON_FACTS, ("instructions", index, name, number, "when"))
            for name, qualifier in entry.qualifiers.items():
                for number, default in enumerate(qualifier.default):
                    here = ("instructions", index, "qualifiers", name, "default", number)
                    yield from self._condition(default.when, values, _COMMON_FACTS, (*here, "when"))
                    yield from self._known(f"value of {name}", [default.value], sorted(values[name]), *here, "value")
        for section, key in (("fragments", "of"), ("granularities", "of"), ("metadata", "of"), ("scales", "of")):
            for number, part in enumerate(getattr(self.spec, section)):
                yield from self._condition(getattr(part, key), everything, _COMMON_FACTS | _OPERAND_FACTS, (section, number, key))
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
                        yield Problem(self.at(*place), f"no form has {key} {value!r}; there are {_list(sorted(values[key]))}")

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
                    key = layouts.key(variant)
                    if key not in answered:
                        answered.add(key)
                        yield from self._operands(variant, position)

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
                yield from self._one(fits, ("types", "carriers"), f"operand {name!r} of {variant.canonical}", position)
            if element:
                facts = layouts.fragment_facts(spec, variant, name, element)
                fits = [name in f.operands and matches(f.of, facts) for f in spec.fragments]
                yield from self._one(fits, ("fragments",), f"operand {name!r} of {variant.canonical}", position)
            if entry.kind == "metadata":
                yield from self._matching([p.of for p in spec.granularities], variant.facts, ("granularities",), variant, position)
                facts = layouts.metadata_facts(spec, variant)
                yield from self._matching([m.of for m in spec.metadata], facts, ("metadata",), variant, position)
            if entry.kind == "scale-data":
                fits = [s.operand == entry.of and matches(s.of, variant.facts) for s in spec.scales]
                yield from self._one(fits, ("scales",), f"the scale factors of {entry.of} of {variant.canonical}", position)

    def _matching(
        self, conditions: list[tuple[Condition, ...]], facts: Facts, section: tuple[str], variant: Variant, position: Position
    ) -> Iterator[Problem]:
        yield from self._one([matches(of, facts) for of in conditions], section, variant.canonical, position)

    def _one(self, fits: Sequence[bool], section: tuple[str, ...], what: str, position: Position) -> Iterator[Problem]:
        """Exactly one entry of a section answers."""
        found = [index for index, fit in enumerate(fits) if fit]
        if not found:
            yield Problem(position, f"no entry of {'.'.join(section)} covers {what}")
        elif len(found) > 1 and (second := self.at(*section, found[1])) not in self.told:
            self.told.add(second)  # once is enough: the same two cover many variants
            yield Problem(second, f"two entries cover {what}; the other is at {self.at(*section, found[0])}")


_TYPE_QUALIFIERS = ("dtype", "atype", "btype", "ctype", "stype")


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)

"""Calls of products in C++: for each opcode a header in which a product picks the function that multiplies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.names.cplusplus import enumerator, header, hint_parameters, identifier, parameters
from ptxmma.catalog.names.product_family import ProductFamily
from ptxmma.generator.emit.c_text import Fact, among, any_of
from ptxmma.generator.emit.products.facts import open_fields, passes_of, scale_ids
from ptxmma.model import Condition, DescriptorField, Spec, matches

#: Operands that are bare numbers in the functions: the front's parameter, and the argument that the function gets of it.
_TYPED = {
    "tensor-accumulator": ("tensor_address {name}", "{name}.bits"),
    "tensor-matrix": ("tensor_address {name}", "{name}.bits"),
    "shared-descriptor": ("{stem}_descriptor<major_{of}, {type}> {name}", "{name}.bits"),
    "tensor-metadata": ("tensor_metadata {name}", "{name}.address.bits"),
    "tensor-scales": ("tensor_scales {name}", "{name}.address.bits"),
}
#: Fields of the instruction descriptor that come with an operand, where the family's has them.
_WITH = {"tensor-metadata": ("sparsity_selector", "selector"), "tensor-scales": ("scale_{of}_id", "id")}
#: The check of such a field's value.
_CHECKED = {"tensor-scales": "chosen::checked_scale_id({})"}


class _Call(NamedTuple):
    """A member function ``call``.

    Attributes:
        syntax: the operands in the manual's notation.
        template: the template parameters.
        parameters: the parameters.
        checks: a statement that checks the length of an array.
        choices: statements that set fields of the instruction descriptor.
        qualifiers: template arguments: the options that choose another function.
        arguments: the arguments of the function that it picks.
        tensor_a: whether A lies in tensor memory.
    """

    syntax: str
    template: str
    parameters: str
    checks: str
    choices: list[str]
    qualifiers: str
    arguments: str
    tensor_a: bool


# --- calls ------------------------------------------------------------------------------------------------------------------


def values(family: ProductFamily, name: str, facts: Mapping[str, Fact]) -> dict[str, Any]:
    """The values for the header of an instruction."""
    entries = [opcode for opcode in family.callable if opcode.variant.instruction.name == name]
    groups: dict[bool, list[Instruction]] = {}
    for entry in entries:
        groups.setdefault(any(operand.kind == "tensor-scales" for operand in entry.forms[0].operands), []).append(entry)
    return {
        "name": name,
        "opcode": enumerator(name),
        "wrappers": header(entries[0]),
        "example": "metadata, " if name in family.sparse else "",
        "hints": hint_parameters(entries[0]),
        "groups": [
            {"scaled": scaled, "calls": _overloads(family, group, facts), "rows": [_row(family, entry, facts) for entry in group]}
            for scaled, group in groups.items()
        ],
    }


def _overloads(family: ProductFamily, entries: Iterable[Instruction], facts: Mapping[str, Fact]) -> list[_Call]:
    """One for each operand form; those that differ in an immediate are one, since that is an option."""
    calls = [_call(family, form, entry, facts) for entry in entries for form in entry.forms]
    return list({(call.parameters, call.arguments): call for call in calls[::-1]}.values())[::-1]


def _call(family: ProductFamily, form: OperandForm, entry: Instruction, facts: Mapping[str, Fact]) -> _Call:
    template, taken, given, choices, checks = [], [], [], [], ""
    kinds = {(operand.kind, operand.of) for operand in form.operands}
    majors = [f"major_{side}" if ("shared-descriptor", side) in kinds else "PTXMMA_MAJORNESS_K" for side in family.sides]
    fields = {field.name for format in family.formats for field in open_fields(facts, format)}
    instruction = f"template instruction<{', '.join(majors)}>" if majors else "instruction"
    for operand in form.operands:
        name = identifier(operand.name)
        if operand.kind == "instruction-descriptor":
            given.append(f"Product::{instruction}(choices)")
        elif operand.kind in _TYPED:
            parameter, argument = (
                text.format(name=name, of=operand.of, type=operand.of.upper(), stem=family.stem) for text in _TYPED[operand.kind]
            )
            taken.append(parameter)
            given.append(argument)
            template += [f"ptxmma_majorness major_{operand.of}"] * (operand.kind == "shared-descriptor")
        elif operand.listed:
            own = operand.registers // entry.extents.get("ctas", 1)
            template.append("uint32_t words")
            taken.append(f"const {operand.c_type} (&{name})[words]")
            given.append(name)
            checks = f'static_assert(words == {own} * Product::ctas, "ptxmma: {name} has {own} words for each CTA");'
        elif operand.kind != "immediate":
            taken.append(parameters(operand, operand.c_type)[0].parameter)
            given.append(name)
        if operand.kind in _WITH:
            field, member = _WITH[operand.kind][0].format(of=operand.of), _WITH[operand.kind][1]
            checked = _CHECKED.get(operand.kind, "{}") if scale_ids(family) else "{}"
            choices += [f"choices.{field} = {checked.format(f'{name}.{member}')};"] if field in fields else []
    immediates = {operand.name for operand in form.operands if operand.kind == "immediate"}
    return _Call(
        syntax=", ".join(part for part in form.syntax.split(", ") if part not in immediates),
        template=", ".join([*template, "class Use = void, class... Options"]),
        parameters=", ".join([*taken, "Options..."]),
        checks=checks,
        choices=choices,
        qualifiers=", ".join(f"chosen::has_{option}" for option in family.options),
        arguments=", ".join(given),
        tensor_a=any(operand.kind == "tensor-matrix" and operand.of == "a" for operand in form.operands),
    )


def _row(family: ProductFamily, entry: Instruction, facts: Mapping[str, Fact]) -> dict[str, str]:
    """The function of an opcode, and the values that a product has to have for it."""
    own = [facts[name][1](value) for name, value in family.values(entry).items()]
    options = ["true" if entry.qualifiers.get(option) else "false" for option in family.options]
    return {"given": ", ".join([*own, *options]), "function": entry.identifier}


# --- options ----------------------------------------------------------------------------------------------------------------


class Options:
    """The options of the calls of a family: qualifiers of opcodes, immediates, and fields of descriptors that come with no operand.

    Attributes:
        flags: the title of each that is given or not.
        numbers: the title of each that is a number.
    """

    def __init__(self, spec: Spec, family: ProductFamily, facts: Mapping[str, Fact]) -> None:
        self._spec, self._family, self._facts = spec, family, facts
        carried = {field.format(of=side) for field, _ in _WITH.values() for side in "ab"}
        fields = {field.name: field for format in family.formats for field in open_fields(facts, format)}
        self._fields = {name: field for name, field in fields.items() if name not in carried}
        titles = {name: each.title for opcode in family.callable for name, each in opcode.variant.instruction.qualifiers.items()}
        self._immediates = {identifier(each.name): each for entry in family.callable for each in entry.operands if each.kind == "immediate"}
        self.flags = {name: field.title for name, field in self._fields.items() if not _numbers(field)}
        self.flags |= {name: titles[name] for name in family.options}
        self.numbers = {name: field.title for name, field in self._fields.items() if _numbers(field)}
        self.numbers |= {name: each.title for name, each in self._immediates.items()}

    def values(self) -> dict[str, Any]:
        """The values for the template."""
        return {
            "words": ", ".join([*self.flags, *(f"{name}<{self._unit(name)}>" for name in self.numbers)]),
            "flags": [*self.flags],
            "numbers": [*self.numbers],
            "immediates": [*self._immediates],
            "choices": {name: self._choice(name, field) for name, field in self._fields.items()},
            "hints": taken_hints(self._family.callable),
            "needs": [*self._needs()],
            "checked": [check for check in self._checked() if check["condition"] != "(1)"],
        }

    @staticmethod
    def _choice(name: str, field: DescriptorField) -> str:
        """The number that a field holds, by the options of a call."""
        number = f"number_among<{name}, Options...>::value"
        stored = "".join(f"{number} == {value} ? {stored} : " for value, stored in _numbers(field).items() if stored)
        return f"{stored}0" if _numbers(field) else f"given<{name}, Options...>::value"

    def _unit(self, name: str) -> str:
        """The unit of a number."""
        return ((name in self._fields and self._fields[name].unit) or "number").capitalize()

    def _given(self, name: str) -> str:
        """The condition that an option is given."""
        return f"number_among<{name}, Options...>::given" if name in self.numbers else f"given<{name}, Options...>::value"

    def _checked(self) -> Iterator[dict[str, str]]:
        """The condition under which a product has an option, and the message where it lacks it."""
        kinds = list(dict.fromkeys(entry.qualifiers.get(self._family.kind, "") for entry in self._family.callable))
        for name, field in self._fields.items():
            yield self._check(name, {"": [kind for kind in kinds if self._has(field, kind)]})
            if numbers := _numbers(field):
                value = f"number_among<{name}, Options...>::value"
                legal = " || ".join(f"{value} == {number}" for number in numbers)
                yield {"given": self._given(name), "condition": legal, "words": f"{name} is one of {', '.join(numbers)}"}
        for option in self._family.options:
            having = [entry for entry in self._family.callable if entry.qualifiers.get(option)]
            yield self._check(option, self._by_name(having), *self._limited(option, having))
        for tag in self._immediates:
            kinds_of = (entry for entry in self._family.callable if any(identifier(each.name) == tag for each in entry.operands))
            yield self._check(tag, self._by_name(kinds_of))

    def _needs(self) -> Iterator[dict[str, str]]:
        """The numbers that only some targets have, with the condition that a pass compiles for one of these."""
        for name, field in self._fields.items():
            for value, targets in (
                (value, case.targets) for case in field.cases if case.targets for value in case.values if value.isdigit()
            ):
                given = f"number_among<{name}, Options...>::value == {value}"
                words = f"{name}<{value}> needs {' or '.join(targets)}"
                yield {"given": given, "condition": passes_of(self._spec, targets), "words": words}

    def _limited(self, option: str, having: Sequence[Instruction]) -> tuple[str, str]:
        """The demands of an option on the product beyond its opcode: in C++, and in words."""
        where = words = ""
        if all(operand.kind != "shared-descriptor" for entry in having for operand in entry.operands if operand.of == "a"):
            where, words = " && TensorA", ", and for A in tensor memory"
        for row in self._family.rules.limits:
            if row.m and any(option in condition for condition in row.of):
                where += f" && ({among(*self._facts['m'], row.m)})"
                words += f" with M = {' or '.join(map(str, row.m))}"
        return where, words

    def _check(self, tag: str, rows: Mapping[str, Sequence[str]], also: str = "", words: str = "") -> dict[str, str]:
        """The check that an option is for these kinds of products, by the names of instructions; of no name, for any."""
        together: dict[tuple[str, ...], list[str]] = {}
        for name, own in rows.items():
            together.setdefault(tuple(filter(None, own)), []).append(name)
        qualifier = self._family.kind
        conditions: list[Condition] = [
            {**({"name": tuple(names)} if any(names) else {}), **({qualifier: own} if own else {})} for own, names in together.items()
        ]
        text = "; or ".join(" with ".join(filter(None, (" and ".join(names), ", ".join(own)))) for own, names in together.items())
        condition = any_of(conditions, self._facts) if all(conditions) else "1"
        return {"given": self._given(tag), "condition": f"({condition}){also}", "words": f"{tag} is for {text}{words}"}

    def _by_name(self, entries: Iterable[Instruction]) -> dict[str, list[str]]:
        """The kinds of opcodes, by the instruction's name."""
        rows: dict[str, list[str]] = {}
        for entry in entries:
            own, kind = rows.setdefault(entry.variant.instruction.name, []), entry.qualifiers.get(self._family.kind, "")
            own += [kind] * (kind not in own)
        return rows

    def _has(self, field: DescriptorField, kind: str) -> bool:
        """Return whether the instruction descriptors of a kind have a field."""
        formats = [format for format in self._family.formats if not format.kinds or kind in format.kinds]
        return any(
            not each.cases or any(matches(case.when, format.chosen_by(kind)) for case in each.cases)
            for format in formats
            for each in format.fields
            if each.name == field.name
        )


def taken_hints(members: Iterable[Instruction]) -> str:
    """The hints that each instruction takes, in words."""
    names: dict[tuple[str, ...], dict[str, None]] = {}
    for entry in members:
        names.setdefault(hint_parameters(entry), {})[entry.variant.instruction.name] = None
    texts = (f"{' and '.join(own)} take {_these(hints)}" for hints, own in names.items())
    return "; ".join(texts)


def _these(hints: Sequence[str]) -> str:
    return f"{' and '.join(hints)} of <ptxmma/cuda/hints.cuh>" if hints else "none"


def _numbers(field: DescriptorField) -> dict[str, int]:
    """The values of a field that are numbers, with what it holds for each."""
    return {value: stored for case in field.cases for value, stored in case.values.items() if value.isdigit()}

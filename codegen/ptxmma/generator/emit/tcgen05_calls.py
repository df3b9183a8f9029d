"""Calls of products of ``tcgen05.mma`` in C++: for each opcode a header in which a product picks the function that multiplies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.catalog.cplusplus import enumerator, header, hint_parameters, identifier, parameters
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.product_types import QUALIFIERS, calls_header
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.c_conditions import Fact, among, any_of
from ptxmma.generator.emit.tcgen05_facts import instruction_formats, known_facts, multiplies, open_fields
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import Condition, DescriptorField, Facts, Spec, matches

_FOLDER = "generated/include/ptxmma"
_SOURCES = ("spec/instructions", "spec/tensor_products.yaml", "spec/descriptors.yaml")

#: Operands that are bare numbers in the functions: the front's parameter, and the argument that the function gets of it.
_TYPED = {
    "tensor-accumulator": ("tensor_address {name}", "{name}.bits"),
    "tensor-matrix": ("tensor_address {name}", "{name}.bits"),
    "shared-descriptor": ("tcgen05_descriptor<major_{of}> {name}", "{name}.bits"),
    "tensor-metadata": ("tensor_metadata {name}", "{name}.address.bits"),
    "tensor-scales": ("tensor_scales {name}", "{name}.address.bits"),
}
#: Fields of the instruction descriptor that come with an operand.
_WITH = {"tensor-metadata": ("sparsity_selector", "selector"), "tensor-scales": ("scale_{of}_id", "id")}
#: The check of such a field's value.
_CHECKED = {"tensor-scales": "checked_scale_id<Product>({})"}
#: Operands that this front does not have: the tables of sm_107, which no source lays out.
_WITHOUT = {"lookup-table"}
#: Qualifiers of an opcode that are options of a call.
_OPTIONS = ("ashift",)


class _Call(NamedTuple):
    """A member function ``call``.

    Attributes:
        syntax: the operands in the manual's notation.
        template, parameters: the function's template parameters and parameters.
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


def emit(catalog: Catalog) -> Iterator[Output]:
    """``cuda/tcgen05_options.cuh`` and ``cuda/*_product.cuh``, where the spec has such products."""
    spec = catalog.database.spec
    if spec.tensor_products is None or not spec.tensor_memories or spec.shared_memory is None:
        return
    members = [entry for entry in multiplies(catalog) if entry.forms and not _without(entry) and _has_types(spec, entry)]
    head = banner("//", catalog, _SOURCES)
    yield Output(f"{_FOLDER}/cuda/tcgen05_options.cuh", render("cuda/tcgen05_options.cuh.jinja", banner=head, tags=_tags(spec, members)))
    opcodes: dict[str, list[Instruction]] = {}
    for entry in members:
        opcodes.setdefault(entry.variant.instruction.name, []).append(entry)
    for name, entries in opcodes.items():
        text = render("cuda/tcgen05_calls.cuh.jinja", banner=head, **_calls(name, entries))
        yield Output(f"{_FOLDER}/{calls_header(entries[0])}", text)


def _without(entry: Instruction) -> bool:
    return any(operand.kind in _WITHOUT for form in entry.forms for operand in form.operands)


def _has_types(spec: Spec, entry: Instruction) -> bool:
    assert spec.tensor_products is not None
    return any(matches(row.of, entry.variant.facts) for row in spec.tensor_products.types)


# --- calls ------------------------------------------------------------------------------------------------------------------


def _calls(name: str, entries: Sequence[Instruction]) -> dict[str, Any]:
    """The values for the header of an opcode."""
    facts = known_facts()
    groups: dict[bool, list[Instruction]] = {}
    for entry in entries:
        groups.setdefault(_scaled(entry), []).append(entry)
    made = [
        {"scaled": scaled, "calls": _overloads(group), "rows": [_row(entry, facts) for entry in group]} for scaled, group in groups.items()
    ]
    sparse = any(entry.sparse for entry in entries)
    return {
        "name": name,
        "opcode": enumerator(name),
        "wrappers": header(entries[0]),
        "example": "metadata, " if sparse else "",
        "hints": hint_parameters(entries[0]),
        "qualifiers": _OPTIONS,
        "groups": made,
    }


def _scaled(entry: Instruction) -> bool:
    return any(operand.kind == "tensor-scales" for operand in entry.forms[0].operands)


def _overloads(entries: Iterable[Instruction]) -> list[_Call]:
    """One for each operand form; those that differ in an immediate are one, since that is an option."""
    calls = [_call(form, entry.variant.facts) for entry in entries for form in entry.forms]
    return list({(call.parameters, call.arguments): call for call in calls[::-1]}.values())[::-1]


def _call(form: OperandForm, facts: Facts) -> _Call:
    template, taken, given, choices, checks = [], [], [], [], ""
    for operand in form.operands:
        name = identifier(operand.name)
        if operand.kind == "instruction-descriptor":
            given.append("Product::template instruction<{}>(choices)")
        elif operand.kind in _TYPED:
            parameter, argument = (text.format(name=name, of=operand.of) for text in _TYPED[operand.kind])
            taken.append(parameter)
            given.append(argument)
            template += [f"ptxmma_majorness major_{operand.of}"] * (operand.kind == "shared-descriptor")
        elif operand.listed:
            own = operand.registers // int(facts["ctas"])
            template.append("uint32_t words")
            taken.append(f"const {operand.c_type} (&{name})[words]")
            given.append(name)
            checks = f'static_assert(words == {own} * Product::ctas, "ptxmma: {name} has {own} words for each CTA");'
        elif operand.kind != "immediate":
            taken.append(parameters(operand, operand.c_type)[0].parameter)
            given.append(name)
        if operand.kind in _WITH:
            field, member = _WITH[operand.kind]
            value = f"{name}.{member}"
            choices.append(f"choices.{field.format(of=operand.of)} = {_CHECKED.get(operand.kind, '{}').format(value)};")
    tensor_a = any(operand.kind == "tensor-matrix" for operand in form.operands)
    sides = ["PTXMMA_MAJORNESS_K" if tensor_a else "major_a", "major_b"]
    immediates = {operand.name for operand in form.operands if operand.kind == "immediate"}
    return _Call(
        syntax=", ".join(part for part in form.syntax.split(", ") if part not in immediates),
        template=", ".join([*template, "class Use = void, class... Options"]),
        parameters=", ".join([*taken, "Options..."]),
        checks=checks,
        choices=choices,
        qualifiers=", ".join(f"chosen::has_{option}" for option in _OPTIONS),
        arguments=", ".join(given).format(", ".join(sides)),
        tensor_a=tensor_a,
    )


def _row(entry: Instruction, facts: Mapping[str, Fact]) -> dict[str, str]:
    """The function of an opcode, and the values that a product has to have for it."""
    own = [facts[name][1](entry.qualifiers.get(name, "")) for name in ("kind", *QUALIFIERS)]
    options = ["true" if entry.qualifiers.get(option) else "false" for option in _OPTIONS]
    return {"given": ", ".join([*own, *options]), "function": entry.identifier}


# --- options ----------------------------------------------------------------------------------------------------------------


def _tags(spec: Spec, members: Sequence[Instruction]) -> dict[str, Any]:
    """The options: qualifiers of opcodes, immediates, and fields of instruction descriptors that come with no operand."""
    fields = {field.name: field for format in instruction_formats(spec) for field in open_fields(format)}
    carried = {field.format(of=side) for field, _ in _WITH.values() for side in "ab"}
    fields = {name: field for name, field in fields.items() if name not in carried}
    immediates = {each.name: each for entry in members for form in entry.forms for each in form.operands if each.kind == "immediate"}
    (immediate,) = immediates.values()
    shared = [name for name in fields if name.startswith("negate_")]
    flags = {name: field.title for name, field in fields.items() if not _numbers(field)}
    titles = {name: each.title for entry in members for name, each in entry.variant.instruction.qualifiers.items()}
    flags |= {name: titles[name] for name in _OPTIONS}
    counted = {name: field.title for name, field in fields.items() if _numbers(field)}
    tag = identifier(immediate.name)
    numbers = [{"name": name, "number": "Columns", "title": title} for name, title in counted.items()]
    numbers.append({"name": tag, "number": "Power", "title": immediate.title})
    values = {name: f"given<{name}, Options...>::value" for name in flags if name in fields}
    for name in counted:
        number = f"number_among<{name}, Options...>::value"
        values[name] = "".join(f"{number} == {value} ? {stored} : " for value, stored in _numbers(fields[name]).items() if stored) + "0"
    return {
        "shared": shared,
        "plain": [{"name": name, "title": title} for name, title in flags.items() if name not in shared],
        "numbers": numbers,
        "every": list(flags),
        "words": ", ".join([*flags, *(f"{each['name']}<{each['number']}>" for each in numbers)]),
        "immediate": tag,
        "conditions": ("kind", *QUALIFIERS),
        "qualifiers": _OPTIONS,
        "choices": values,
        "hints": taken_hints(members),
        "checked": list(_checked(spec, members, fields, immediate)),
    }


def taken_hints(members: Iterable[Instruction]) -> str:
    """The hints that each instruction takes, in words."""
    names: dict[tuple[str, ...], dict[str, None]] = {}
    for entry in members:
        names.setdefault(hint_parameters(entry), {})[entry.variant.instruction.name] = None
    return "; ".join(f"{' and '.join(own)} take {_list(hints)}" for hints, own in names.items())


def _list(hints: Iterable[str]) -> str:
    listed = " and ".join(hints)
    return f"{listed} of <ptxmma/cuda/hints.cuh>" if listed else "none"


def _numbers(field: DescriptorField) -> dict[str, int]:
    """The values of a field that are numbers, with what it holds for each."""
    return {value: stored for case in field.cases for value, stored in case.values.items() if value.isdigit()}


def _checked(
    spec: Spec, members: Sequence[Instruction], fields: Mapping[str, DescriptorField], immediate: Operand
) -> Iterator[dict[str, str]]:
    """Under which condition a product has an option, and what the user reads where it lacks it."""
    facts = known_facts()
    kinds = list(dict.fromkeys(str(entry.qualifiers["kind"]) for entry in members))

    def check(tag: str, given: str, rows: Mapping[str, Sequence[str]], also: str = "", words: str = "") -> dict[str, str]:
        together: dict[tuple[str, ...], list[str]] = {}
        for name, own in rows.items():
            together.setdefault(tuple(own), []).append(name)
        conditions: list[Condition] = [{**({"name": tuple(names)} if any(names) else {}), "kind": own} for own, names in together.items()]
        text = "; or ".join(f"{' and '.join(names)}{' with ' if any(names) else ''}{', '.join(own)}" for own, names in together.items())
        return {"given": given, "condition": f"({any_of(conditions, facts)}){also}", "words": f"{tag} is for {text}{words}"}

    for name, field in fields.items():
        own = [kind for kind in kinds if _has(spec, field, kind)]
        numbers = _numbers(field)
        given = f"number_among<{name}, Options...>::given" if numbers else f"given<{name}, Options...>::value"
        yield check(name, given, {"": own})
        if numbers:
            value = f"number_among<{name}, Options...>::value"
            legal = " || ".join(f"{value} == {number}" for number in numbers)
            yield {"given": given, "condition": legal, "words": f"{name} is one of {', '.join(numbers)}"}
    for option in _OPTIONS:
        having = [entry for entry in members if entry.qualifiers.get(option)]
        where, words = " && TensorA", ", and for A in tensor memory"
        for row in spec.tensor_products.limits if spec.tensor_products is not None else ():
            if row.m and any(option in condition for condition in row.of):
                where += f" && ({among(*facts['m'], row.m)})"
                words += f" with M = {' or '.join(map(str, row.m))}"
        yield check(option, f"given<{option}, Options...>::value", _by_name(having), where, words)
    tag = identifier(immediate.name)
    takes = (entry for entry in members if any(each.kind == "immediate" for form in entry.forms for each in form.operands))
    yield check(tag, f"number_among<{tag}, Options...>::given", _by_name(takes))


def _by_name(entries: Iterable[Instruction]) -> dict[str, list[str]]:
    """The kinds of opcodes, by the instruction's name."""
    rows: dict[str, list[str]] = {}
    for entry in entries:
        own = rows.setdefault(entry.variant.instruction.name, [])
        own += [str(entry.qualifiers["kind"])] * (entry.qualifiers["kind"] not in own)
    return rows


def _has(spec: Spec, field: DescriptorField, kind: str) -> bool:
    """Whether the instruction descriptors of a kind have a field."""
    own = (each for format in instruction_formats(spec) if kind in format.kinds for each in format.fields if each.name == field.name)
    return any(not each.cases or any(matches(case.when, {"kind": kind}) for case in each.cases) for each in own)

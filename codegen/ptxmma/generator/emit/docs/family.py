"""The forms of an instruction family: its syntax, the rows of its table of forms, and what each row needs."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from ptxmma.catalog import layouts, requirements
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.variants import Variant, placeholders, qualifier_values, syntax_parts
from ptxmma.generator.emit.docs import rest
from ptxmma.generator.short_forms import folded
from ptxmma.model import (
    Form,
    InstructionSet,
    Spec,
    Version,
)

#: Mark of assemblers' deviations from the manual.
DAGGER = "\u2020"
#: The remark on forms that assemblers accept.
UNDOCUMENTED = "not in the manual"
#: Targets with the first PTX ISA version on each.
_Versions = tuple[tuple[str, Version], ...]


class Row(NamedTuple):
    """Variants of one form with the same requirements: every combination of ``values``; copies of another qualifier are left out."""

    form: Form
    values: dict[str, tuple[str, ...]]
    members: list[Instruction]
    accepted: dict[str, Version]
    stated: dict[str, Version]  # the versions that the manual's rules accept


def syntax(entry: InstructionSet) -> list[str]:
    """The syntax line as the manual prints it, and below it the lists of operands, one of which follows."""
    opcode = "".join(
        literal.removesuffix("{") + ("" if not name else f"{{.{name}}}" if optional else f".{name}")
        for literal, name, optional in _parts(entry)
    )
    opcode += hinted(entry)
    lists = operand_lists(entry, entry.operands)
    return [opcode, *lists] if lists else [f"{opcode};"]


def hinted(entry: InstructionSet) -> str:
    """The hints that may follow an instruction: ``{.collector_a}{.collector_b}``."""
    return "".join(f"{{.{hint.name}}}" for hint in entry.hints)


def operand_lists(entry: InstructionSet, names: Collection[str]) -> list[str]:
    """The lists of operands of these names as the manual writes them, each once."""
    return list(dict.fromkeys(f"    {text};" for name, texts in entry.operands.items() if name in names for text in folded(texts)))


def spelled(entry: InstructionSet, shown: Sequence[Row]) -> list[str]:
    """The spellings of some rows of forms, above the operands that they take; the manual's alone, where it has some with these operands."""
    patterns: dict[tuple[str, ...], dict[str, None]] = {}
    documented = {row.form.operands for row in shown if row.form.documented}
    for row in shown:
        if row.form.documented or row.form.operands not in documented:
            patterns.setdefault(tuple(operand_lists(entry, [row.form.operands])), {})[pattern(entry, row)] = None
    return [line for lists, spellings in patterns.items() for line in (*spellings, *lists)]


def _parts(entry: InstructionSet) -> Iterator[tuple[str, str, bool]]:
    """The literal texts of a syntax line with the qualifier after each, and whether that may be absent."""
    for literal, name in syntax_parts(entry.syntax):
        yield literal, name, f"{{.{name}}}" in entry.syntax


def pattern(entry: InstructionSet, row: Row) -> str:
    """The spellings of a row of forms in one line: alternatives in braces."""
    text = []
    for literal, name, _ in _parts(entry):
        text.append(literal)
        if name in row.form.unspelled:
            continue
        if name in row.values:
            text.append(_alternatives([value.partition(" ")[0] for value in row.values[name]]))
        elif name in row.form.qualifiers:
            text.append(f".{{{row.form.qualifiers[name][0]}}}")
    spans = dict.fromkeys(value.partition(" ")[2] for value in row.values.get(entry.shape, ()))
    return "".join(text) + hinted(entry) + "".join(f"  {span}" for span in spans if span)


def _alternatives(values: Sequence[str]) -> str:
    """``.f16``, ``.{f16|f32}`` or ``{.satfinite}``."""
    present = [value for value in values if value]
    if not present:
        return ""
    tokens = f".{present[0]}" if len(present) == 1 else f".{{{'|'.join(present)}}}"
    return f"{{{tokens}}}" if "" in values else tokens


def rows(spec: Spec, entry: InstructionSet, instructions: Iterable[Instruction]) -> list[Row]:
    """The forms of variants of an instruction, cut where their requirements differ."""
    targets = requirements.targets_of(spec)
    # Variants that differ in n only are one point, so that 32 values of n cost no more than one.
    alike: dict[int, dict[tuple[_Versions, _Versions], dict[tuple[object, ...], list[Instruction]]]] = {}
    for instruction in instructions:
        accepted = tuple(instruction.accepted_by().items())
        variant = instruction.variant
        stated = _stated(targets, variant) if variant.observed and variant.form.documented else accepted
        points = alike.setdefault(id(variant.form), {}).setdefault((accepted, stated), {})
        points.setdefault(layouts.key(variant), []).append(instruction)
    made: list[Row] = []
    for form in entry.forms:
        free = [name for name in placeholders(entry.syntax) if name == entry.shape or _is_free(form, name)]
        for (accepted, stated), groups in alike.get(id(form), {}).items():
            coordinates = (
                (tuple(_span(group) if name == entry.shape else str(group[0].variant.facts[name]) for name in free), group)
                for group in groups.values()
            )
            for values, covered in boxes(coordinates):
                members = [instruction for group in covered for instruction in group]
                made.append(Row(form, dict(zip(free, values, strict=True)), members, dict(accepted), dict(stated)))
    return made


def _stated(targets: requirements.Targets, variant: Variant) -> _Versions:
    """The targets that the manual's rules admit, with the first version on each, whatever assemblers accept."""
    sets = tuple(rule.targets for rule in variant.requires if rule.targets)
    first = max(Version(rule.ptx) for rule in variant.requires if rule.ptx)
    return tuple(targets.first_versions(sets, first).items())


def _is_free(form: Form, name: str) -> bool:
    """Return whether a form has a qualifier that is not copied from another one."""
    return name in form.qualifiers and not form.qualifiers[name][0].startswith("=")


def _span(group: Sequence[Instruction]) -> str:
    """The shape of instructions that differ in n only: ``m16n8k16`` or ``m64nNk16 (N = 8..256 step 8)``."""
    shape = group[0].variant.shape_label
    spans = [
        f"{extent.upper()} = {rest.numbers(sorted(instruction.extents[extent] for instruction in group))}"
        for extent in group[0].variant.ranging
    ]
    return f"{shape} ({', '.join(spans)})" if spans else shape


def qualifier_table(entry: InstructionSet, instructions: Sequence[Instruction]) -> str:
    """The meaning of each placeholder of the syntax, and its values in some variants."""

    def described(name: str) -> tuple[str, ...]:
        qualifier = entry.qualifiers[name]
        values = [str(instruction.variant.facts.get(name, "")) for instruction in instructions]
        defaults = [f"{rest.code('.' + default.value)}" + _where(rest.condition(default.when)) for default in qualifier.default]
        return (
            rest.code(f".{name}"),
            rest.text(qualifier.title),
            rest.codes(f".{value}" for value in dict.fromkeys(values) if value),
            "; ".join(defaults),
        )

    named = [
        name
        for name in placeholders(entry.syntax)
        if name in entry.qualifiers and any(instruction.variant.facts.get(name) for instruction in instructions)
    ]
    return rest.table(*rest.dense(("Qualifier", "Meaning", "Values", "Left out, it means"), map(described, named)))


def hint_table(entry: InstructionSet) -> str:
    """The values of each hint, what they mean, and what they need."""
    rows = [
        (
            rest.code(f".{hint.name}"),
            rest.code(f".{value}"),
            rest.text(meaning.text) + ("; left out, it means this" if value == hint.default else ""),
            rest.condition(meaning.when),
            "; ".join(f"PTX {rule.ptx}, {rest.text(', '.join(rule.targets))}+" for rule in hint.requires),
        )
        for hint in entry.hints
        for value, meaning in hint.values.items()
    ]
    return rest.table(*rest.dense(("Hint", "Value", "Meaning", "Where", "Needs"), rows))


def _where(condition: str) -> str:
    return f" where {condition}" if condition else ""


def _hidden(entry: InstructionSet, name: str) -> bool:
    """Return whether tables leave out the usual value of a qualifier: they do where every form has the qualifier."""
    usual = entry.qualifiers[name].usual if name in entry.qualifiers else ""
    return bool(usual) and all(form.qualifiers.get(name, ("",))[0] for form in entry.forms)


def usual(entry: InstructionSet) -> str:
    """The values that the table of forms leaves out."""
    names = [name for name in placeholders(entry.syntax) if _hidden(entry, name) and len(qualifier_values(entry, name)) > 1]
    return " and ".join(f"{rest.code('.' + name)} is {rest.code('.' + entry.qualifiers[name].usual)}" for name in names)


def form_table(spec: Spec, entry: InstructionSet, shown: Sequence[Row]) -> str:
    """The table of forms: shapes, types, modifiers, operands, requirements."""
    elements = {element.name for element in spec.types.elements}
    types = [name for name in placeholders(entry.syntax) if _names_types(entry, name, elements)]
    others = [name for name in placeholders(entry.syntax) if name not in (*types, entry.shape)]

    def cells(row: Row) -> list[str]:
        modifiers = [
            _alternatives(row.values[name])
            for name in others
            if row.values.get(name, ("",)) != ("",) and not (_hidden(entry, name) and row.values[name] == (entry.qualifiers[name].usual,))
        ]
        return [
            _sizes(row.values.get(entry.shape, ())),
            *(_type(row, name) for name in types),
            " ".join(map(rest.code, modifiers)),
            needs(spec, row.accepted) + ("" if row.accepted == row.stated else f"\n\n{DAGGER} {needs(spec, row.stated)}"),
            "" if row.form.documented else rest.source(row.form.source),
        ]

    header = ["Sizes", *(rest.code(f".{name}") for name in types), "Modifiers", "Needs", "Seen in"]
    return rest.table(*rest.dense(header, map(cells, shown)), kind="forms")


def _sizes(values: Iterable[str]) -> str:
    """The ranges of sizes of a shape; empty without any."""
    return "; ".join(dict.fromkeys(rest.text(span.strip("()")) for _, _, span in (value.partition(" ") for value in values) if span))


def _names_types(entry: InstructionSet, name: str, elements: Container[str]) -> bool:
    """Return whether a qualifier is an element type in every form."""
    values = [value for form in entry.forms for value in form.qualifiers.get(name, ("",))]
    return all(value in elements or value.startswith("=") for value in values)


def _type(row: Row, name: str) -> str:
    if name in row.values:
        return rest.codes(row.values[name])
    copied = row.form.qualifiers.get(name, ("",))[0]
    return f"as {rest.code('.' + copied[1:])}" if copied else ""


def needs(spec: Spec, accepted: dict[str, Version]) -> str:
    """The first version and the smallest targets: ``PTX 7.0, sm_80+``, where ``+`` says that others include it."""
    if not accepted:
        return "no target"
    features = requirements.targets_of(spec).features
    smallest = [name for name in accepted if not any(other != name and other in features(name) for other in accepted)]
    shown = [name + "+" * any(other != name and name in features(other) for other in accepted) for name in smallest]
    return f"PTX {min(accepted.values())}, {rest.text(', '.join(shown))}"


# --- products of values ------------------------------------------------------------------------------------------------------


Member = TypeVar("Member")
#: The values of each dimension.
Values = tuple[tuple[str, ...], ...]


def boxes(points: Iterable[tuple[tuple[str, ...], Member]]) -> list[tuple[Values, list[Member]]]:
    """Cover exactly the given points with few products, in the order of the points, each with its members.

    ``points`` are ``(coordinates, member)``, all with equally many coordinates; several members may share one point.
    """
    products: dict[Values, list[Member]] = {}
    for point, member in points:
        products.setdefault(tuple((coordinate,) for coordinate in point), []).append(member)
    for dimension in range(len(next(iter(products), ()))):
        merged: dict[Values, tuple[tuple[str, ...], list[Member]]] = {}
        for values, members in products.items():
            others = (*values[:dimension], *values[dimension + 1 :])
            along, before = merged.get(others, ((), []))
            merged[others] = (along + values[dimension], before + members)
        products = {(*others[:dimension], along, *others[dimension:]): members for others, (along, members) in merged.items()}
    return list(products.items())

"""What the page of an instruction family says, as data for its template.

Everything is derived from the model; which sections a family has follows from what the spec says of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ptxmma.catalog import layouts, requirements
from ptxmma.catalog.expressions import both_ways
from ptxmma.catalog.instructions import Catalog, Instruction, operand_names
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.variants import SHAPE, Variant, placeholders, qualifier_values, shape_token, syntax_parts
from ptxmma.generator.emit.docs import mathematics, rest
from ptxmma.generator.emit.docs.boxes import boxes
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.expressions import cases_to_latex, to_latex
from ptxmma.matrices import pictures
from ptxmma.model import (
    Accumulation,
    Cases,
    Condition,
    Erratum,
    Form,
    InstructionSet,
    Layout,
    Semantics,
    Sighting,
    Spec,
    Statement,
    matches,
)

#: Marks what assemblers do otherwise than the manual says.
_DAGGER = "\u2020"


#: Targets with the first PTX ISA version on each.
_Versions = tuple[tuple[str, str], ...]


class Row(NamedTuple):
    """Variants of one form that need the same: every combination of ``values``, without what is copied from another qualifier."""

    form: Form
    values: dict[str, tuple[str, ...]]
    members: list[Instruction]
    accepted: dict[str, str]
    stated: dict[str, str]  # what the manual's rules say that is accepted


def page(catalog: Catalog, gallery: Gallery, family: str, forms: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The data of a family's page; ``forms`` are the :func:`rows` of each instruction."""
    spec = catalog.database.spec
    entries = [entry for entry in spec.instructions if entry.family == family]
    return {
        "title": rest.text(family),
        "page_label": rest.label("family", family),
        "keywords": ", ".join(dict.fromkeys(_every_shape(catalog, entries))),
        "instructions": [_instruction(catalog, gallery, entry, forms[entry.name]) for entry in entries],
        "protocol": spec.protocol is not None and any(entry.asynchronous for entry in entries),
        "errata": errata_table(erratum for erratum in spec.errata if erratum.family == family),
    }


def _every_shape(catalog: Catalog, entries: Iterable[InstructionSet]) -> Iterator[str]:
    """The shapes that the page abbreviates: the search should find them."""
    for entry in entries:
        for instruction in catalog.of(entry.name):
            if instruction.variant.ranges_over_n:
                yield str(instruction.variant.facts[SHAPE])


def _instruction(catalog: Catalog, gallery: Gallery, entry: InstructionSet, forms: Sequence[Row]) -> dict[str, Any]:
    spec = catalog.database.spec
    representatives = _representatives(catalog, entry)
    uses = _uses(catalog, gallery, entry, representatives)
    described = _described(entry, representatives)
    return {
        "name": rest.text(entry.name),
        "label": rest.label("instruction", entry.name),
        "summary": _summary(spec, entry, forms),
        "syntax": syntax(entry),
        "qualifiers": _qualifiers(entry),
        "forms": _forms(spec, entry, [row for row in forms if row.form.documented]),
        "beyond": _forms(spec, entry, [row for row in forms if not row.form.documented]),
        "usual": _usual(entry),
        "dagger": _DAGGER if any(row.accepted != row.stated for row in forms) else "",
        "matrix": matrix(spec, {needs(spec, row.accepted): row.accepted for row in forms}, "Forms that need"),
        "operands": _operands(entry, described),
        "register_types": _register_types(spec, entry, representatives, described),
        "registers": _registers(uses),
        "layouts": _layouts(spec, gallery, uses),
        "sparsity": entry.sparse and bool(spec.granularities),
        "block_scaling": bool(spec.block_scaling) and any(kind.kind == "scale-data" for kind in entry.operand_kinds.values()),
        "descriptors": spec.shared_memory is not None and any(kind.kind == "descriptor" for kind in entry.operand_kinds.values()),
        "semantics": _semantics(entry),
        "accumulation": _accumulation(entry),
        "uniform": statements(entry.uniform),
        "undefined": statements(entry.undefined),
        "notes": statements(entry.notes),
        "requirements": rest.table(
            *rest.dense(
                ("When", "PTX ISA", "Targets", "Note", "Source"),
                (
                    (
                        rest.condition(rule.when) or "always",
                        rest.text(rule.ptx),
                        rest.codes(rule.targets),
                        rest.text(rule.note),
                        rest.source(rule.source),
                    )
                    for rule in entry.requires
                ),
            )
        ),
        "observed": rest.table(
            *rest.dense(
                ("When", "PTX ISA", "Targets", "Releases that differ", "Seen in"),
                (
                    (
                        rest.condition(seen.when) or "always",
                        rest.text(seen.ptx),
                        rest.codes(seen.targets),
                        rest.text(seen.releases),
                        rest.source(seen.source),
                    )
                    for seen in entry.observed
                ),
            )
        ),
    }


def _summary(spec: Spec, entry: InstructionSet, forms: Sequence[Row]) -> str:
    """One paragraph: what it is, who executes it, how many there are, and since when."""
    count = sum(len(row.members) for row in forms)
    threads = layouts.THREADS[entry.scope]
    who = f"All {threads} threads of a {entry.scope} execute it together" if threads > 1 else f"Each {entry.scope} executes it by itself"
    if entry.asynchronous:
        who += "; its results appear at a later wait"
    first = dict.fromkeys(needs(spec, row.accepted) for row in sorted(forms, key=lambda row: _first(row.accepted)))
    since = f"the first of them with {next(iter(first))}" if len(first) > 1 else f"with {next(iter(first))}"
    many = f"{count} variants" if count > 1 else "one variant"
    beyond = sum(len(row.members) for row in forms if not row.form.documented)
    many += f" ({beyond} of them beyond the manual)" if beyond else ""
    return f"{rest.text(entry.title)}. {who}. There {'are' if count > 1 else 'is'} {many}, {since} (PTX ISA {rest.source(entry.source)})."


def _first(accepted: dict[str, str]) -> tuple[int, ...]:
    return min(map(requirements.version_key, accepted.values()), default=())


# --- syntax and forms -------------------------------------------------------------------------------------------------------


def syntax(entry: InstructionSet) -> list[str]:
    """The syntax line as the manual prints it, and below it each list of operands that may follow."""
    opcode = "".join(
        literal.removesuffix("{") + ("" if not name else f"{{.{name}}}" if optional else f".{name}")
        for literal, name, optional in _parts(entry)
    )
    lists = [(name, text) for name, texts in entry.operands.items() for text in texts]
    if not lists:
        return [f"{opcode};"]
    named = len(entry.operands) > 1
    return [opcode, *(f"    {text};" + (f"  // {name}" if named else "") for name, text in lists)]


def _parts(entry: InstructionSet) -> Iterator[tuple[str, str, bool]]:
    """The literal texts of a syntax line with the qualifier after each, and whether that may be absent."""
    for literal, name in syntax_parts(entry.syntax):
        yield literal, name, f"{{.{name}}}" in entry.syntax


def pattern(entry: InstructionSet, row: Row) -> str:
    """The spellings of a row of forms in one line: alternatives in braces."""
    text = []
    for literal, name, _ in _parts(entry):
        text.append(literal)
        if name in row.values:
            text.append(_alternatives([value.partition(" ")[0] for value in row.values[name]]))
        elif name in row.form.qualifiers:
            text.append(f".{{{row.form.qualifiers[name][0]}}}")
    spans = dict.fromkeys(value.partition(" ")[2] for value in row.values.get(SHAPE, ()))
    return "".join(text) + "".join(f"  {span}" for span in spans if span)


def _alternatives(values: Sequence[str]) -> str:
    """``.f16``, ``.{f16|f32}`` or ``{.satfinite}``."""
    present = [value for value in values if value]
    if not present:
        return ""
    tokens = f".{present[0]}" if len(present) == 1 else f".{{{'|'.join(present)}}}"
    return f"{{{tokens}}}" if "" in values else tokens


def rows(catalog: Catalog, entry: InstructionSet) -> list[Row]:
    """The forms of an instruction, cut where their requirements differ."""
    targets = requirements.targets_of(catalog.database.spec.targets)
    # What differs in n only is one point, so that 32 values of n cost no more than one.
    alike: dict[int, dict[tuple[_Versions, _Versions], dict[tuple[object, ...], list[Instruction]]]] = {}
    for instruction in catalog.of(entry.name):
        accepted = tuple(instruction.accepted_by().items())
        variant = instruction.variant
        stated = _stated(targets, variant) if variant.observed and variant.form.documented else accepted
        points = alike.setdefault(id(variant.form), {}).setdefault((accepted, stated), {})
        points.setdefault(layouts.key(variant), []).append(instruction)
    found: list[Row] = []
    for form in entry.forms:
        free = [name for name in placeholders(entry.syntax) if name == SHAPE or _is_free(form, name)]
        for (accepted, stated), groups in alike.get(id(form), {}).items():
            coordinates = (
                (tuple(_span(group) if name == SHAPE else str(group[0].variant.facts[name]) for name in free), group)
                for group in groups.values()
            )
            for values, held in boxes(coordinates):
                members = [instruction for group in held for instruction in group]
                found.append(Row(form, dict(zip(free, values, strict=True)), members, dict(accepted), dict(stated)))
    return found


def _stated(targets: requirements.Targets, variant: Variant) -> _Versions:
    """The targets that the manual's rules leave, with the first version on each, whatever assemblers do."""
    sets = tuple(rule.targets for rule in variant.requires if rule.targets)
    first = max((rule.ptx for rule in variant.requires if rule.ptx), key=requirements.version_key)
    return tuple(targets.first_versions(sets, first).items())


def _is_free(form: Form, name: str) -> bool:
    """Whether a form has a qualifier that is not copied from another one."""
    return name in form.qualifiers and not form.qualifiers[name][0].startswith("=")


def _span(group: Sequence[Instruction]) -> str:
    """The shape of instructions that differ in n only: ``m16n8k16`` or ``m64nNk16 (N = 8..256 step 8)``."""
    shape = _shape(group[0].variant)
    if not group[0].variant.ranges_over_n:
        return shape
    return f"{shape} (N = {rest.numbers(int(instruction.variant.facts['n']) for instruction in group)})"


def _shape(variant: Variant) -> str:
    """``m16n8k16``, or ``m64nNk16`` for all n of a range."""
    if variant.shape is None:
        return ""
    return shape_token(variant.shape.m, "N" if variant.ranges_over_n else int(variant.facts["n"]), variant.shape.k)


def _qualifiers(entry: InstructionSet) -> str:
    def described(name: str) -> tuple[str, ...]:
        qualifier = entry.qualifiers[name]
        values = [value for form in entry.forms for value in form.qualifiers.get(name, ("",)) if not value.startswith("=")]
        defaults = [f"{rest.code('.' + default.value)}" + _where(rest.condition(default.when)) for default in qualifier.default]
        return (
            rest.code(f".{name}"),
            rest.text(qualifier.title),
            rest.codes(f".{value}" for value in dict.fromkeys(values) if value),
            "; ".join(defaults),
        )

    named = [name for name in placeholders(entry.syntax) if name in entry.qualifiers]
    return rest.table(*rest.dense(("Qualifier", "Meaning", "Values", "Left out, it means"), map(described, named)))


def _where(condition: str) -> str:
    return f" where {condition}" if condition else ""


def _hidden(entry: InstructionSet, name: str) -> bool:
    """Whether the usual value of a qualifier need not be shown: every form has the qualifier."""
    usual = entry.qualifiers[name].usual if name in entry.qualifiers else ""
    return bool(usual) and all(form.qualifiers.get(name, ("",))[0] for form in entry.forms)


def _usual(entry: InstructionSet) -> str:
    """What the table of forms does not show."""
    hidden = [name for name in placeholders(entry.syntax) if _hidden(entry, name) and len(qualifier_values(entry, name)) > 1]
    return " and ".join(f"{rest.code('.' + name)} is {rest.code('.' + entry.qualifiers[name].usual)}" for name in hidden)


def _forms(spec: Spec, entry: InstructionSet, found: Sequence[Row]) -> str:
    """The table of forms: shapes, types, what else they have, what they need."""
    elements = {one.name for one in spec.types.elements}
    types = [name for name in placeholders(entry.syntax) if _names_types(entry, name, elements)]
    others = [name for name in placeholders(entry.syntax) if name not in (*types, SHAPE)]

    def cells(row: Row) -> list[str]:
        spellings = "".join(f"   single: {member.canonical}\n" for member in row.members)
        modifiers = [
            _alternatives(row.values[name])
            for name in others
            if row.values.get(name, ("",)) != ("",) and not (_hidden(entry, name) and row.values[name] == (entry.qualifiers[name].usual,))
        ]
        return [
            f".. index::\n{spellings}\n{_shapes(row.values.get(SHAPE, ())) or rest.code(entry.name)}",
            *(_type(row, name) for name in types),
            " ".join(map(rest.code, modifiers)),
            rest.text(row.form.operands) if len(entry.operands) > 1 else "",
            needs(spec, row.accepted) + ("" if row.accepted == row.stated else f"\n\n{_DAGGER} {needs(spec, row.stated)}"),
            "" if row.form.documented else rest.source(row.form.source),
        ]

    header = ["Shape" if any(form.shapes for form in entry.forms) else "Instruction", *(rest.code(f".{name}") for name in types)]
    header += ["Modifiers", "Operands", "Needs", "Seen in"]
    return rest.table(*rest.dense(header, map(cells, found)), kind="forms")


def _shapes(values: Iterable[str]) -> str:
    """Shapes that share a range of n name it once."""
    spans: dict[str, list[str]] = {}
    for value in values:
        token, _, span = value.partition(" ")
        if token:
            spans.setdefault(span.strip("()"), []).append(token)
    return "; ".join(rest.codes(tokens) + (f", {rest.text(span)}" if span else "") for span, tokens in spans.items())


def _names_types(entry: InstructionSet, name: str, elements: Container[str]) -> bool:
    """Whether a qualifier is an element type in every form."""
    values = [value for form in entry.forms for value in form.qualifiers.get(name, ("",))]
    return all(value in elements or value.startswith("=") for value in values)


def _type(row: Row, name: str) -> str:
    if name in row.values:
        return rest.codes(row.values[name])
    copied = row.form.qualifiers.get(name, ("",))[0]
    return f"as {rest.code('.' + copied[1:])}" if copied else ""


# --- targets ----------------------------------------------------------------------------------------------------------------


def needs(spec: Spec, accepted: dict[str, str]) -> str:
    """The first version and the smallest targets: ``PTX 7.0, sm_80+``, where ``+`` says that others include it."""
    if not accepted:
        return "no target"
    features = requirements.targets_of(spec.targets).features
    smallest = [name for name in accepted if not any(other != name and other in features(name) for other in accepted)]
    shown = [name + "+" * any(other != name and name in features(other) for other in accepted) for name in smallest]
    return f"PTX {min(accepted.values(), key=requirements.version_key)}, {rest.text(', '.join(shown))}"


def matrix(spec: Spec, accepted: dict[str, dict[str, str]], head: str) -> str:
    """A row for each label, a column for each target that accepts something: the first version."""
    targets = [target.name for target in spec.targets if any(target.name in versions for versions in accepted.values())]
    return rest.table(
        [head, *map(rest.text, targets)],
        ([label, *(versions.get(target, rest.NOTHING) for target in targets)] for label, versions in accepted.items()),
        kind="matrix",
    )


# --- operands ---------------------------------------------------------------------------------------------------------------


def _representatives(catalog: Catalog, entry: InstructionSet) -> list[Instruction]:
    """One instruction for each set of operands: those that differ in n only have the same."""
    found: dict[tuple[object, ...], Instruction] = {}
    for instruction in catalog.of(entry.name):
        found.setdefault(layouts.key(instruction.variant), instruction)
    return list(found.values())


def _described(entry: InstructionSet, representatives: Iterable[Instruction]) -> dict[str, list[Operand]]:
    """Each operand as the instructions have it, in the order of the operand lists."""
    described: dict[str, list[Operand]] = {name: [] for texts in entry.operands.values() for text in texts for name in operand_names(text)}
    for instruction in representatives:
        for form in instruction.forms:
            for operand in form.operands:
                described[operand.name].append(operand)
    return described


def _register_types(spec: Spec, entry: InstructionSet, representatives: Iterable[Instruction], described: dict[str, list[Operand]]) -> str:
    """The register types of each operand: what the spec says of carriers, as far as it is about this instruction."""
    lines = []
    variants = [instruction.variant for instruction in representatives]
    for carrier in spec.types.carriers:
        names = [name for name in described if name in carrier.operands]
        held = {operand.element_type or "" for name in names for operand in described[name]}
        elements = [element for element in carrier.elements if element in held]
        if not names or bool(elements) != bool(carrier.elements):
            continue
        if any(matches(carrier.when, {**variant.facts, "operand": name}) for name in names for variant in variants):
            when = _here(carrier.when, entry)
            lines.append((rest.codes(names), rest.codes(elements), when, rest.codes(carrier.registers), rest.source(carrier.source)))
    return rest.table(*rest.dense(("Operand", "Type", "Where", "Register types", "Source"), lines))


def _here(when: Sequence[Condition], entry: InstructionSet) -> str:
    """A condition on the page of a family: what is about the family itself goes without saying."""
    about = ("family", "name")
    parts = [part for part in when if all(getattr(entry, name) in part.get(name, (getattr(entry, name),)) for name in about)]
    left = [{name: values for name, values in part.items() if name not in about} for part in parts]
    return rest.condition(left) if all(left) else ""


def _operands(entry: InstructionSet, described: dict[str, list[Operand]]) -> str:
    def cells(name: str, seen: Sequence[Operand]) -> tuple[str, ...]:
        kind = entry.operand_kinds[name]
        elements = dict.fromkeys(operand.element_type for operand in seen if operand.element_type)
        immediates = dict.fromkeys(rest.numbers(operand.immediates) for operand in seen if operand.immediates)
        return (
            rest.code(name),
            rest.text(kind.title),
            kind.kind.replace("-", " "),
            kind.access,
            rest.code(f".{kind.type}") if kind.type else rest.codes(elements),
            rest.codes(dict.fromkeys(operand.constraint for operand in seen if operand.constraint)),
            "; ".join(map(rest.text, immediates)) + (" (by form)" if len(immediates) > 1 else ""),
            "" if kind.default is None else str(kind.default),
            f"the {kind.uniform}" if kind.uniform else "",
        )

    header = ("Operand", "Meaning", "Kind", "Access", "Type", "Constraint", "Immediates", "Default", "One value over")
    return rest.table(*rest.dense(header, (cells(name, seen) for name, seen in described.items())))


class _Use(NamedTuple):
    """A register operand with a layout, in one instruction."""

    instruction: str
    picture: str
    operand: Operand
    layout: Layout
    plan: Plan
    shape: str
    element: str
    elements: str
    registers: str


def _uses(catalog: Catalog, gallery: Gallery, entry: InstructionSet, representatives: Iterable[Instruction]) -> list[_Use]:
    """Every register operand with a layout, in the order of the operand lists."""
    spec = catalog.database.spec
    found: dict[tuple[str, str, str, str], _Use] = {}
    for instruction in representatives:
        variant = instruction.variant
        for form in instruction.forms:
            for operand in form.operands:
                layout = operand.layout
                if layout is None:
                    continue
                # Metadata has no elements of its own: what it describes are A's.
                element = operand.element_type or str(variant.facts.get("atype", ""))
                key = (layout.name, operand.name, _shape(variant), element)
                if key in found:
                    continue
                endless = pictures.endless(catalog.database.spec, layout)
                found[key] = _Use(
                    instruction=entry.name,
                    picture=gallery.layout(operand),
                    operand=operand,
                    layout=layout,
                    plan=_plan(spec, variant, operand, entry),
                    shape=_shape(variant),
                    element=element,
                    elements=_of_n(operand.elements, variant) if endless else str(operand.elements or ""),
                    registers=_of_n(operand.registers, variant) if endless else str(operand.registers),
                )
    order = list(dict.fromkeys(name for texts in entry.operands.values() for text in texts for name in operand_names(text)))
    return sorted(found.values(), key=lambda use: order.index(use.operand.name))


def _plan(spec: Spec, variant: Variant, operand: Operand, entry: InstructionSet) -> Plan:
    """The sizes that the formulas of an operand's layout see."""
    plan = {
        "fragment": lambda: layouts.fragment_plan(spec, variant, operand.name, operand.element_type or ""),
        "metadata": lambda: layouts.metadata_plan(spec, variant, operand.name),
        "scale": lambda: layouts.scale_plan(spec, variant, entry.operand_kinds[operand.name].of),
    }[operand.layout.kind if operand.layout else ""]()
    assert plan is not None
    return plan


def _of_n(count: int, variant: Variant) -> str:
    """A number that grows with n: ``N / 2``."""
    ratio = Fraction(count, int(variant.facts["n"]))
    over = f"N / {ratio.denominator}" if ratio.denominator > 1 else "N"
    return over if ratio.numerator == 1 else f"{ratio.numerator}{rest.TIMES}{over}"


def _registers(uses: Sequence[_Use]) -> str:
    """The table of layouts: which operand of which shapes and types has which picture."""
    alike: dict[tuple[object, ...], dict[str, list[_Use]]] = {}
    for use in uses:
        key = (use.picture, use.elements, use.registers)
        alike.setdefault(key, {}).setdefault(use.operand.name, []).append(use)
    lines: dict[tuple[str, ...], list[str]] = {}
    for by_operand in alike.values():
        for name, group in by_operand.items():
            for (shapes, elements), held in boxes(((use.shape, use.element), use) for use in group):
                use = held[0]
                shown = pictures.size(use.layout, "N" in use.elements)
                cells = (
                    rest.codes(shapes),
                    rest.codes(elements),
                    rest.link(shown, _layout_label(use)),
                    use.elements,
                    use.registers,
                )
                lines.setdefault(cells, []).append(name)
    header = ("Operand", "Shape", "Type", "Layout", "Elements", "Registers")
    return rest.table(*rest.dense(header, ((rest.codes(names), *cells) for cells, names in lines.items())))


def _layout_label(use: _Use) -> str:
    return rest.label("layout", use.instruction, use.picture)


def _layouts(spec: Spec, gallery: Gallery, uses: Sequence[_Use]) -> list[dict[str, Any]]:
    """A section for each picture."""
    found: dict[str, list[_Use]] = {}
    for use in uses:
        found.setdefault(use.picture, []).append(use)
    return [_layout(spec, picture, gallery.width(picture), group) for picture, group in found.items()]


def _layout(spec: Spec, picture: str, width: int, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    section = {"fragment": _fragment_section, "metadata": _metadata_section, "scale": _scale_section}[use.layout.kind](spec, group)
    used = boxes(((one.shape, one.element), one) for one in _unique(group))
    return {
        "label": _layout_label(use),
        "picture": picture,
        "width": width,
        "of": "; ".join(rest.codes(shapes) + (f" with {rest.codes(elements)}" if any(elements) else "") for (shapes, elements), _ in used),
        "names": rest.codes(dict.fromkeys(one.layout.name for one in group)),
        "code": _code(spec, use.layout),
        "warps": use.layout.threads > layouts.THREADS["warp"],
        **section,
    }


def _unique(group: Iterable[_Use]) -> list[_Use]:
    """One use for each shape and type, whichever operand it is."""
    return list({(use.shape, use.element): use for use in group}.values())


def _code(spec: Spec, layout: Layout) -> list[str]:
    """A layout as bit operations, fragments both ways."""
    forward, back = both_ways(spec, layout)
    shown = [*forward.items(), *(back.items() if layout.kind == "fragment" else ())]
    return [f"{name} = {expression};" for name, expression in shown]


def _fragment_section(spec: Spec, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    entry = spec.fragments[use.layout.entry]
    cases = {"row": entry.row, "col": entry.col} | ({"computation": entry.computation} if entry.computation else {})
    operands = " and ".join(rest.code(name) for name in use.layout.operands)
    each = use.operand.elements_per_register
    label = f", {entry.computations} computations" if entry.computations > 1 else ""
    label += f", {rest.text(entry.label)}" if entry.label else ""
    return {
        "title": f"{operands}: {pictures.size(use.layout, 'N' in use.elements)}{label}, {each} per register",
        "alt": f"Layout of {' and '.join(use.layout.operands)}",
        "math": _math(entry.let, cases, use),
        "text": "",
        "sources": _sources(entry.source, group, spec),
    }


def _metadata_section(spec: Spec, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    entry = spec.metadata[use.layout.entry]
    return {
        "title": f"{rest.code(use.operand.name)}: {use.layout.rows} rows{rest.TIMES}{use.layout.cols} chunks",
        "alt": "Layout of the metadata",
        "math": _math(entry.let, {"lane": entry.lane, "bit": entry.bit}, use),
        "text": f" Contributing threads: {rest.text(entry.contributors)}.",
        "sources": rest.source(entry.source),
    }


def _scale_section(spec: Spec, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    entry = spec.scales[use.layout.entry]
    return {
        "title": f"{rest.code(use.operand.name)}: {use.layout.rows}{rest.TIMES}{use.layout.cols} scale factors",
        "alt": f"Scale factors of {entry.operand}",
        "math": _math(entry.let, {"lane": entry.lane, "byte": entry.byte}, use),
        "text": "",
        "sources": rest.source(entry.source),
    }


def _math(let: dict[str, str], cases: dict[str, Cases], use: _Use) -> list[str]:
    """The formulas of a layout with its sizes put in, one line of mathematics each."""
    unknown = {"n"} if "N" in use.shape else set()
    sizes = {name: value for name, value in use.plan.facts.items() if isinstance(value, int) and name not in unknown}
    written = mathematics.specialise(let, cases, sizes)
    lines = [f"{to_latex(name)} &= {to_latex(text)}" for name, text in written.let.items()]
    return lines + [f"{to_latex(name)} &= {cases_to_latex(entries)}" for name, entries in written.cases.items()]


def _sources(source: str, group: Sequence[_Use], spec: Spec) -> str:
    """Where a formula comes from, and which printed formulas it was held against."""
    agreeing: dict[str, None] = {}
    wrong: dict[str, None] = {}
    for use in group:
        for stated in spec.fragments[use.layout.entry].stated:
            if matches(stated.of, {**use.plan.facts, "operand": use.operand.name}):
                (wrong if stated.erratum else agreeing).setdefault(stated.erratum or stated.section)
    text = rest.source(source)
    if agreeing:
        text += f"; held against the formulas printed in {', '.join(map(rest.source, agreeing))}"
    if wrong:
        text += f"; differs from the manual where that errs: {', '.join(rest.link(name, rest.label('erratum', name)) for name in wrong)}"
    return text


# --- statements -------------------------------------------------------------------------------------------------------------


def statements(entries: Iterable[Statement]) -> str:
    """Facts in words, as a list."""
    return rest.bullets(
        (f"{_capital(rest.condition(entry.when))}: " if entry.when else "")
        + rest.text(entry.text)
        + (f" (over the {entry.over}; {rest.source(entry.source)})" if entry.over else f" ({rest.source(entry.source)})")
        for entry in entries
    )


def _capital(condition: str) -> str:
    return f"Where {condition}"


def _semantics(entry: InstructionSet) -> str:
    header = ("Where", "In words", "Products", "Sums", "Rounding", "Overflow", "Ignored low bits", "Unspecified", "Source")
    cells = (
        (
            rest.condition(one.when) or "always",
            rest.text(one.text),
            rest.text(one.multiply),
            rest.text(one.accumulate),
            rest.text(f"to {one.rounds}" if one.rounds else ""),
            rest.text({"wrap": "wraps", "saturate": "is clamped"}.get(one.overflow, one.overflow)),
            str(one.truncates or ""),
            rest.text(", ".join(one.unspecified)),
            rest.source(one.source),
        )
        for one in entry.semantics
    )
    return rest.table(*rest.dense(header, cells))


def _accumulation(entry: InstructionSet) -> str:
    """How chips were seen to sum."""
    found: dict[Accumulation, list[Semantics]] = {}
    for one in entry.semantics:
        for seen in one.observed:
            found.setdefault(seen, []).append(one)
    cells = (
        (
            rest.text(seen.chip),
            rest.condition([part for one in where for part in one.when]) if all(one.when for one in where) else "always",
            rest.text(seen.text),
            str(seen.fraction_bits or ""),
            rest.source(seen.source),
        )
        for seen, where in found.items()
    )
    return rest.table(*rest.dense(("Chip", "Where", "In words", "Bits kept below the leading one of the largest term", "Source"), cells))


def errata_table(errata: Iterable[Erratum], *, labelled: bool = False) -> str:
    """Errata as a table; on the page of all errata each is a target of references and refers to what tools answered."""
    return rest.table(
        ("Section", "The manual says", "What holds", "How that is known"),
        (
            (
                (f".. _{rest.label('erratum', erratum.id)}:\n\n" if labelled else "")
                + f"{rest.source(erratum.section)}\n\n{rest.code(erratum.id)}",
                rest.text(erratum.says),
                rest.text(erratum.holds),
                rest.text(erratum.known)
                + (f"\n\n{rest.link('Asked and answered', _answers_label(erratum))}" if labelled and erratum.seen else ""),
            )
            for erratum in errata
        ),
        kind="errata",
    )


def answers(errata: Iterable[Erratum]) -> list[dict[str, Any]]:
    """What tools were asked about each erratum, and below each question who answered what."""
    return [
        {
            "label": _answers_label(erratum),
            "link": rest.link(erratum.id, rest.label("erratum", erratum.id)),
            "lines": [line for asked, seen in itertools.groupby(erratum.seen, key=_asked) for line in (asked, *map(_answered, seen))],
        }
        for erratum in errata
        if erratum.seen
    ]


def _answers_label(erratum: Erratum) -> str:
    return rest.label("answers", erratum.id)


def _asked(one: Sighting) -> str:
    return one.asked or (f"example {one.example}" if one.example else "a module without instructions")


def _answered(one: Sighting) -> str:
    where = ", ".join(filter(None, (one.tool, one.target, one.ptx and f"PTX ISA {one.ptx}")))
    compiled = f" compiled for {one.compiled_for}" if one.compiled_for else ""
    database = f" [the database {one.database} it]" if one.database else ""
    return f"  {where}{compiled}: {one.answer}{database}"

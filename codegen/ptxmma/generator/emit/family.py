"""What the page of an instruction family says, as data for its template.

Everything is derived from the model; which sections a family has follows from what the spec says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ptxmma import layouts, requirements
from ptxmma.generator.emit import mathematics, pictures, rest
from ptxmma.generator.emit.boxes import boxes
from ptxmma.generator.emit.expressions import cases_to_latex, gather, to_latex
from ptxmma.generator.emit.gallery import Gallery
from ptxmma.instructions import Catalog, Instruction, operand_names
from ptxmma.layouts import Plan
from ptxmma.model import Cases, Erratum, Form, InstructionSet, Layout, Spec, Statement, matches
from ptxmma.operands import Operand
from ptxmma.variants import SHAPE, Variant, placeholders, shape_token, syntax_parts


class Row(NamedTuple):
    """Variants of one form that need the same: every combination of ``values``, without what is copied from another qualifier."""

    form: Form
    values: dict[str, tuple[str, ...]]
    members: list[Instruction]
    accepted: dict[str, str]


def page(catalog: Catalog, gallery: Gallery, family: str) -> dict[str, Any]:
    """The data of a family's page."""
    spec = catalog.database.spec
    entries = [entry for entry in spec.instructions if entry.family == family]
    return {
        "title": rest.text(family),
        "label": rest.label("family", family),
        "keywords": ", ".join(dict.fromkeys(_every_shape(catalog, entries))),
        "instructions": [_instruction(catalog, gallery, entry, spec) for entry in entries],
        "protocol": spec.protocol is not None and any(entry.asynchronous for entry in entries),
        "errata": errata_table(erratum for erratum in spec.errata if erratum.family == family),
    }


def _every_shape(catalog: Catalog, entries: Iterable[InstructionSet]) -> Iterator[str]:
    """The shapes that the page abbreviates: the search should find them."""
    for entry in entries:
        for instruction in catalog.of(entry.name):
            if instruction.variant.ranges_over_n:
                yield str(instruction.variant.facts[SHAPE])


def _instruction(catalog: Catalog, gallery: Gallery, entry: InstructionSet, spec: Spec) -> dict[str, Any]:
    forms = rows(catalog, entry)
    uses = _uses(catalog, gallery, entry)
    return {
        "name": rest.text(entry.name),
        "label": rest.label("instruction", entry.name),
        "summary": _summary(spec, entry, forms),
        "syntax": syntax(entry),
        "qualifiers": _qualifiers(entry),
        "forms": _forms(spec, entry, forms),
        "usual": _usual(entry),
        "matrix": matrix(spec, {needs(spec, row.accepted): row.accepted for row in forms}, "Forms that need"),
        "absent": rest.codes(target.name for target in spec.targets if not any(target.name in row.accepted for row in forms)),
        "operands": _operands(catalog, entry),
        "registers": _registers(uses),
        "layouts": _layouts(spec, uses),
        "sparsity": entry.sparse and bool(spec.granularities),
        "block_scaling": any(kind.kind == "scale-data" for kind in entry.operand_kinds.values()),
        "descriptors": spec.shared_memory is not None and any(kind.kind == "descriptor" for kind in entry.operand_kinds.values()),
        "semantics": _semantics(entry),
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
    return f"{rest.text(entry.title)}. {who}. There {'are' if count > 1 else 'is'} {many}, {since} (PTX ISA {rest.source(entry.source)})."


def _first(accepted: dict[str, str]) -> tuple[int, ...]:
    return min(map(requirements.version_key, accepted.values()), default=())


# --- syntax and forms -------------------------------------------------------------------------------------------------------


def syntax(entry: InstructionSet) -> list[str]:
    """The syntax line with each list of operands, as the manual prints it."""
    opcode = "".join(
        literal.removesuffix("{") + ("" if not name else f"{{.{name}}}" if optional else f".{name}")
        for literal, name, optional in _parts(entry)
    )
    lists = [(name, text) for name, texts in entry.operands.items() for text in texts]
    if not lists:
        return [f"{opcode};"]
    named = len(entry.operands) > 1
    return [f"{opcode}  {text};" + (f"  // {name}" if named else "") for name, text in lists]


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
    found: list[Row] = []
    members: dict[int, list[Instruction]] = {}
    for instruction in catalog.of(entry.name):
        members.setdefault(id(instruction.variant.form), []).append(instruction)
    for form in entry.forms:
        free = [name for name in placeholders(entry.syntax) if name == SHAPE or _is_free(form, name)]
        alike: dict[tuple[tuple[str, str], ...], list[Instruction]] = {}
        for instruction in members.get(id(form), ()):
            alike.setdefault(tuple(instruction.accepted_by().items()), []).append(instruction)
        for accepted, group in alike.items():
            spans = _spans(group)
            points = (
                (tuple(spans[_span_key(one.variant)] if name == SHAPE else str(one.variant.facts[name]) for name in free), one)
                for one in group
            )
            found += [Row(form, dict(zip(free, values, strict=True)), held, dict(accepted)) for values, held in boxes(points)]
    return found


def _is_free(form: Form, name: str) -> bool:
    """Whether a form has a qualifier that is not copied from another one."""
    return name in form.qualifiers and not form.qualifiers[name][0].startswith("=")


def _span_key(variant: Variant) -> tuple[object, ...]:
    return layouts.key(variant)


def _spans(group: Iterable[Instruction]) -> dict[tuple[object, ...], str]:
    """The shape of each instruction; those that differ in n only share ``m64nNk16 (N = 8..256 step 8)``."""
    sizes: dict[tuple[object, ...], list[int]] = {}
    shapes: dict[tuple[object, ...], Variant] = {}
    for instruction in group:
        key = _span_key(instruction.variant)
        shapes.setdefault(key, instruction.variant)
        sizes.setdefault(key, []).append(int(instruction.variant.facts.get("n", 0)))
    return {
        key: f"{_shape(variant)} (N = {rest.numbers(sizes[key])})" if variant.ranges_over_n else _shape(variant)
        for key, variant in shapes.items()
    }


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
    hidden = [name for name in placeholders(entry.syntax) if _hidden(entry, name)]
    return " and ".join(f"{rest.code('.' + name)} is {rest.code('.' + entry.qualifiers[name].usual)}" for name in hidden)


def _forms(spec: Spec, entry: InstructionSet, found: Sequence[Row]) -> str:
    """The table of forms: shapes, types, what else they have, what they need."""
    types = list(dict.fromkeys(kind.type for kind in entry.operand_kinds.values() if kind.type))
    types = [name for name in placeholders(entry.syntax) if name in types]
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
            needs(spec, row.accepted),
            "" if row.form.documented else f"not in the manual ({rest.source(row.form.source)})",
        ]

    header = ["Shape" if any(form.shapes for form in entry.forms) else "Instruction", *(rest.code(f".{name}") for name in types)]
    header += ["Modifiers", "Operands", "Needs", "Remark"]
    return rest.table(*rest.dense(header, map(cells, found)), kind="forms")


def _shapes(values: Iterable[str]) -> str:
    """Shapes that share a range of n name it once."""
    spans: dict[str, list[str]] = {}
    for value in values:
        token, _, span = value.partition(" ")
        if token:
            spans.setdefault(span.strip("()"), []).append(token)
    return "; ".join(rest.codes(tokens) + (f", {rest.text(span)}" if span else "") for span, tokens in spans.items())


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


def _operands(catalog: Catalog, entry: InstructionSet) -> str:
    described: dict[str, list[Operand]] = {
        name: [] for texts in entry.operands.values() for text in texts for name in operand_names(text)
    }
    for instruction in _representatives(catalog, entry):
        for form in instruction.forms:
            for operand in form.operands:
                described[operand.name].append(operand)

    def cells(name: str, seen: Sequence[Operand]) -> tuple[str, ...]:
        kind = entry.operand_kinds[name]
        elements = dict.fromkeys(operand.element_type for operand in seen if operand.element_type)
        immediates = dict.fromkeys(rest.numbers(operand.immediates) for operand in seen if operand.immediates)
        registers = dict.fromkeys(operand.register_types[0] for operand in seen if operand.register_types)
        return (
            rest.code(name),
            rest.text(kind.title),
            kind.kind.replace("-", " "),
            kind.access,
            rest.code(f".{kind.type}") if kind.type else rest.codes(elements),
            rest.codes(registers),
            rest.codes(dict.fromkeys(operand.constraint for operand in seen if operand.constraint)),
            " or ".join(map(rest.text, immediates)) + (" (depends on the form)" if len(immediates) > 1 else ""),
            "" if kind.default is None else str(kind.default),
            f"the {kind.uniform}" if kind.uniform else "",
        )

    header = ("Operand", "Meaning", "Kind", "Access", "Type", "Registers", "Constraint", "Immediates", "Default", "One value over")
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


def _uses(catalog: Catalog, gallery: Gallery, entry: InstructionSet) -> list[_Use]:
    """Every register operand with a layout, in the order of the operand lists."""
    spec = catalog.database.spec
    found: dict[tuple[str, str, str, str], _Use] = {}
    for instruction in _representatives(catalog, entry):
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
                endless = gallery.endless(layout)
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
    return over if ratio.numerator == 1 else f"{ratio.numerator} {rest.TIMES} {over}"


def _registers(uses: Sequence[_Use]) -> str:
    """The table of layouts: which operand of which shapes and types has which picture."""
    alike: dict[tuple[object, ...], dict[str, list[_Use]]] = {}
    for use in uses:
        key = (use.picture, use.elements, use.registers, use.operand.register_types)
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
                    rest.codes(use.operand.register_types),
                )
                lines.setdefault(cells, []).append(name)
    header = ("Operand", "Shape", "Type", "Layout", "Elements", "Registers", "Register types")
    return rest.table(*rest.dense(header, ((rest.codes(names), *cells) for cells, names in lines.items())))


def _layout_label(use: _Use) -> str:
    return rest.label("layout", use.instruction, use.picture)


def _layouts(spec: Spec, uses: Sequence[_Use]) -> list[dict[str, Any]]:
    """A section for each picture."""
    found: dict[str, list[_Use]] = {}
    for use in uses:
        found.setdefault(use.picture, []).append(use)
    return [_layout(spec, picture, group) for picture, group in found.items()]


def _layout(spec: Spec, picture: str, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    section = {"fragment": _fragment_section, "metadata": _metadata_section, "scale": _scale_section}[use.layout.kind](spec, group)
    used = boxes(((one.shape, one.element), one) for one in _unique(group))
    return {
        "label": _layout_label(use),
        "picture": picture,
        "of": "; ".join(rest.codes(shapes) + (f" with {rest.codes(elements)}" if any(elements) else "") for (shapes, elements), _ in used),
        "names": rest.codes(dict.fromkeys(one.layout.name for one in group)),
        "code": [f"{output} = {gather(bit_map, output)};" for bit_map in _both_ways(use.layout) for output in bit_map.outputs],
        "warps": use.layout.threads > layouts.THREADS["warp"],
        **section,
    }


def _unique(group: Iterable[_Use]) -> list[_Use]:
    """One use for each shape and type, whichever operand it is."""
    return list({(use.shape, use.element): use for use in group}.values())


def _both_ways(layout: Layout) -> tuple[Any, ...]:
    return (layout.map, layout.map.inverse()) if layout.kind == "fragment" else (layout.map,)


def _fragment_section(spec: Spec, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    entry = spec.fragments[use.layout.entry]
    cases = {"row": entry.row, "col": entry.col} | ({"computation": entry.computation} if entry.computation else {})
    operands = " and ".join(rest.code(name) for name in use.layout.operands)
    each = use.operand.elements_per_register
    label = f", {rest.text(entry.label)}" if entry.label else ""
    return {
        "title": f"{operands}: {pictures.size(use.layout, 'N' in use.elements)}{label}, {each} element{'s' * (each > 1)} in a register",
        "alt": f"Layout of {' and '.join(use.layout.operands)}",
        "math": _math(entry.let, cases, use),
        "text": "",
        "sources": _sources(entry.source, group, spec),
    }


def _metadata_section(spec: Spec, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    entry = spec.metadata[use.layout.entry]
    return {
        "title": f"{rest.code(use.operand.name)}: {use.layout.rows} rows {rest.TIMES} {use.layout.cols} chunks",
        "alt": "Layout of the metadata",
        "math": _math(entry.let, {"lane": entry.lane, "bit": entry.bit}, use),
        "text": f"Contributing threads: {rest.text(entry.contributors)}.",
        "sources": rest.source(entry.source),
    }


def _scale_section(spec: Spec, group: Sequence[_Use]) -> dict[str, Any]:
    use = group[0]
    entry = spec.scales[use.layout.entry]
    return {
        "title": f"{rest.code(use.operand.name)}: {use.layout.rows} {rest.TIMES} {use.layout.cols} scale factors",
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
    header = ("Where", "In words", "Products", "Sums", "Overflow", "Ignored low bits", "Unspecified", "Source")
    cells = (
        (
            rest.condition(one.when) or "always",
            rest.text(one.text),
            rest.text(one.multiply),
            rest.text(one.accumulate),
            rest.text({"wrap": "wraps", "saturate": "is clamped"}.get(one.overflow, one.overflow)),
            str(one.truncates or ""),
            rest.text(", ".join(one.unspecified)),
            rest.source(one.source),
        )
        for one in entry.semantics
    )
    return rest.table(*rest.dense(header, cells))


def errata_table(errata: Iterable[Erratum], *, labelled: bool = False) -> str:
    """Errata as a table; on the page of all errata each is a target of references."""
    return rest.table(
        ("Section", "The manual says", "What holds", "How that is known"),
        (
            (
                (f".. _{rest.label('erratum', erratum.id)}:\n\n" if labelled else "") + rest.source(erratum.section),
                rest.text(erratum.says),
                rest.text(erratum.holds),
                rest.text(erratum.known),
            )
            for erratum in errata
        ),
        kind="errata",
    )

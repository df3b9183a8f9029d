"""Products of ``tcgen05.mma`` in C and C++: the rules for their shapes and types, their instruction descriptors, and where D lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

from ptxmma.catalog import product_types
from ptxmma.catalog.chosen_product import argument_of
from ptxmma.catalog.cplusplus import enumerator, identifier
from ptxmma.catalog.instructions import Catalog, OperandForm
from ptxmma.catalog.product_rules import TYPES
from ptxmma.catalog.product_types import QUALIFIERS
from ptxmma.catalog.requirements import targets_of
from ptxmma.generator.emit import Output, c_text, tcgen05_tiles
from ptxmma.generator.emit.c_conditions import Fact, all_of, among, any_of
from ptxmma.generator.emit.cuda.functions import Guards
from ptxmma.generator.emit.tcgen05_facts import instruction_formats, known_facts, multiplies, open_fields
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import COORDINATES, Condition, DescriptorField, Range, Spec, formula

_FOLDER = "generated/include/ptxmma"
#: So many options a call may have in passes that know it by its name alone.
_OPTIONS = 6
_SOURCES = ("spec/tensor_products.yaml", "spec/tensor_memory.yaml", "spec/descriptors.yaml")


class _Choice(NamedTuple):
    """Values that are legal under a condition, both in C."""

    condition: str
    legal: str
    source: str


class _Need(NamedTuple):
    """A feature of some targets: products that need it and passes that have it, both in C, and the message for the user."""

    condition: str
    passes: str
    text: str


def emit(catalog: Catalog) -> Iterator[Output]:
    """``tcgen05_products.h`` and ``cuda/tcgen05_product.cuh``, where the spec has such products in shared and tensor memory."""
    spec = catalog.database.spec
    if spec.tensor_products is None or not spec.tensor_memories or spec.shared_memory is None:
        return
    facts = known_facts()
    values = {"c": c_text, "spec": spec, "write": {name: write for name, (_, write) in facts.items()}, "tag": identifier}
    values |= {
        "enums": {name: values for name, values in product_types.enumerators(catalog, multiplies(catalog)).items() if name != "kind"},
        "opcodes": _opcodes(catalog, facts),
        "rules": _rules(spec, facts),
        "needs": _needs(spec, facts),
        "legal": _legal(spec, facts),
    }
    sparse = dict.fromkeys(enumerator(entry.variant.instruction.name) for entry in multiplies(catalog) if entry.sparse)
    values |= {"sparse": " || ".join(f"p.opcode == {opcode}" for opcode in sparse)}
    values |= {"scaled": any_of(_scaled(spec), {**facts, "kind": ("Kind", facts["kind"][1])})}
    values |= {"layouts": _layouts(spec, facts), "formats": _formats(spec, facts)}
    values |= {"choices": {field.name: field for format in instruction_formats(spec) for field in open_fields(format)}}
    counts = [sum(each.kind not in ("immediate", "instruction-descriptor") for each in form.operands) for form in _forms(catalog)]
    values |= {"calls": {"least": min(counts), "most": max(counts) + _OPTIONS}}
    values |= {"factors": _factors(spec, facts), "scale_ids": _scale_ids(spec)}
    values |= {"ratio": _ratio(spec), **tcgen05_tiles.values(spec, facts)}
    head = banner("//", catalog, _SOURCES)
    yield Output(f"{_FOLDER}/tcgen05_products.h", head + render("c/tcgen05_products.h.jinja", **values))
    yield Output(f"{_FOLDER}/{product_types.HEADER}", render("cuda/tcgen05_product.cuh.jinja", banner=head, **values))


def _forms(catalog: Catalog) -> list[OperandForm]:
    return [form for entry in multiplies(catalog) for form in entry.forms]


# --- rules ------------------------------------------------------------------------------------------------------------------


def _opcodes(catalog: Catalog, facts: dict[str, Fact]) -> list[str]:
    """The opcodes there are, as conditions: opcodes of one name with the same qualifiers together."""
    sets: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for entry in multiplies(catalog):
        own = sets.setdefault((entry.variant.instruction.name, entry.qualifiers["kind"]), {name: {} for name in QUALIFIERS})
        for qualifier in QUALIFIERS:
            own[qualifier][entry.qualifiers.get(qualifier, "")] = None
    together: dict[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], list[str]] = {}
    for (name, kind), choices in sets.items():
        key = (name, tuple((qualifier, tuple(values)) for qualifier, values in choices.items()))
        together.setdefault(key, []).append(kind)
    rows: list[Condition] = [{"name": (name,), "kind": tuple(kinds), **dict(choices)} for (name, choices), kinds in together.items()]
    return [all_of(row, facts) for row in rows]


def _rules(spec: Spec, facts: dict[str, Fact]) -> dict[str, list[_Choice]]:
    """The lists of rules."""
    products = spec.tensor_products
    assert products is not None
    types = [
        _Choice(any_of(row.of, facts), " && ".join(f"({among(*facts[name], getattr(row, name))})" for name in TYPES), row.source)
        for row in products.types
    ]
    shapes = [
        _Choice(any_of(row.of, facts), f"({among(*facts['m'], row.m)}) && ({_spans('p.n', row.n)})", row.source) for row in products.shapes
    ]
    limits = [_Choice(any_of(row.of, facts), _spans("p.n", row.n), row.source) for row in products.limits if row.n]
    limits += [_Choice(f"p.{side}_majorness == PTXMMA_MAJORNESS_MN", text, "") for side, text in _transposed(spec, facts).items()]
    depths = [_Choice(any_of(row.of, facts), str(row.k), row.source) for row in products.depths]
    scales = [_Choice(any_of(row.of, facts), among(*facts["stype"], row.stype), row.source) for row in products.scales]
    return {"types": types, "depths": depths, "shapes": shapes, "limits": limits, "scales": scales}


def _legal(spec: Spec, facts: dict[str, Fact]) -> dict[str, dict[str, str]]:
    """The messages about types and sizes that are not legal, each with the condition in C under which they are the legal ones."""
    products = spec.tensor_products
    assert products is not None
    types = ((row.of, ", ".join(f"{name[0].upper()} {' or '.join(getattr(row, name))}" for name in TYPES)) for row in products.types)
    sizes = ((row.of, f"M {' or '.join(map(str, row.m))} with N {' or '.join(map(_multiples, row.n))}") for row in products.shapes)
    legal: dict[str, dict[str, str]] = {}
    for name, what, rows in (("types", "types of this kind", types), ("sizes", "M and N with this CTA group and K", sizes)):
        choices: dict[str, list[str]] = {}
        for of, text in rows:
            choices.setdefault(any_of(of, facts), []).append(text)
        conditions: dict[str, list[str]] = {}
        for condition, texts in choices.items():
            conditions.setdefault(f"{what}: {'; or '.join(texts)}", []).append(condition)
        legal[name] = {text: each[0] if len(each) == 1 else " || ".join(f"({one})" for one in each) for text, each in conditions.items()}
    return legal


def _scaled(spec: Spec) -> list[Condition]:
    """The kinds with scale factors, as one condition."""
    assert spec.tensor_products is not None
    kinds = dict.fromkeys(str(kind) for row in spec.tensor_products.scales for of in row.of for kind in of["kind"])
    return [{"kind": tuple(kinds)}]


def _multiples(span: Range) -> str:
    return f"{span.first} to {span.last} in steps of {span.step}" if span.first < span.last else str(span.first)


def _needs(spec: Spec, facts: dict[str, Fact]) -> list[_Need]:
    """The depths and scale factors that only some targets have; a pass for the chip of such a target may lack its special features."""
    products = spec.tensor_products
    assert products is not None
    chosen = [(row, f"p.k == {row.k}", f"K = {row.k} of this kind needs") for row in products.depths] + [
        (row, among(*facts["stype"], row.stype), f"{' or '.join(row.stype)} with blocks of {row.block} needs") for row in products.scales
    ]
    needs = []
    for row, value, text in chosen:
        if row.targets:
            taking = targets_of(spec).including(row.targets)
            plain = [target for target in spec.targets if not target.suffix and target.number in {each.number for each in taking}]
            passes = Guards(spec).passes(target.name for target in (*taking, *plain))
            needs.append(_Need(f"({any_of(row.of, facts)}) && ({value})", passes, f"{text} {' or '.join(row.targets)}"))
    return needs


def _transposed(spec: Spec, facts: dict[str, Fact]) -> dict[str, str]:
    """Whether A and B can be MN-major, as the formats of descriptors say."""
    texts: dict[str, list[str]] = {"a": [], "b": []}
    for format in instruction_formats(spec):
        for side, legal in texts.items():
            cases = [case for field in format.fields if field.name == f"{side}_majorness" for case in field.cases if "MN" in case.values]
            whens = [f"({any_of(case.when, facts)})" for case in cases]
            if whens:
                legal.append(f"(({among(*facts['kind'], format.kinds)}) && ({' || '.join(whens)}))")
    return {side: " || ".join(legal) for side, legal in texts.items()}


def _spans(expression: str, spans: tuple[Range, ...]) -> str:
    texts = []
    for span in spans:
        low = f"{expression} >= {span.first} && {expression} <= {span.last}" if span.first < span.last else f"{expression} == {span.first}"
        step = f" && ({expression} - {span.first}) % {span.step} == 0" if span.first < span.last else ""
        texts.append(low + step)
    return " || ".join(f"({text})" for text in texts) if len(texts) > 1 else texts[0]


# --- descriptors ------------------------------------------------------------------------------------------------------------


def _formats(spec: Spec, facts: dict[str, Fact]) -> list[dict[str, Any]]:
    """The instruction descriptors, each with the fields that a product says, in C, and those that it leaves open."""
    products = spec.tensor_products
    assert products is not None
    legal = {name: {value for row in products.types for value in getattr(row, name)} for name in TYPES}
    legal |= {"stype": {value for row in products.scales for value in row.stype}, "k": {str(row.k) for row in products.depths}}
    every = []
    for format in instruction_formats(spec):
        named = [(field, argument_of(field.name) or field.name) for field in format.fields]
        fields = {field.name: _stored(field, name, facts, legal.get(name)) for field, name in named if name in facts}
        kinds = among(*facts["kind"], format.kinds)
        every.append({"name": f"ptxmma_{format.name}", "kinds": kinds, "fields": fields, "open": list(open_fields(format))})
    return every


def _stored(field: DescriptorField, name: str, facts: dict[str, Fact], legal: Set[str] | None) -> str:
    """The C expression of a field's content, for the values that products have; numbers that it holds as they are stay so."""
    expression, write = facts[name]
    cases = [(value, stored, case.when) for case in field.cases for value, stored in case.values.items()]
    pairs = [(value, stored, when) for value, stored, when in cases if legal is None or value in legal]
    if not pairs:
        return expression
    meanings: dict[str, set[int]] = {}
    for value, stored, _ in pairs:
        meanings.setdefault(value, set()).add(stored)
    chosen = {}
    for value, stored, when in pairs:
        own = f"{expression} == {write(value)}"
        if stored:
            chosen[own if len(meanings[value]) == 1 else f"{own} && ({any_of(when, facts)})"] = stored
    return "".join(f"{condition} ? {stored}u : " for condition, stored in chosen.items()) + "0u"


# --- memory -----------------------------------------------------------------------------------------------------------------


def _layouts(spec: Spec, facts: dict[str, Fact]) -> list[dict[str, Any]]:
    """Where D lies: a condition for each layout, its coordinates and the way back in C."""
    every = []
    for memory, layout in ((each, layout) for each in spec.tensor_memories for layout in each.layouts):
        if layout.operand != "tensor-accumulator":
            continue
        stem, given = f"ptxmma_{memory.name}_{layout.name}", [name for name in COORDINATES if name in layout.at]
        there, back = (_arguments(texts.values(), names) for texts, names in ((layout.at, layout.axes), (layout.back, given)))
        places = [f"{stem}_{name}({there})" if name in layout.at else "0" for name in COORDINATES if name != "bit"]
        axes = {axis: f"{stem}_{axis}({back})" for axis in layout.back}
        every.append({"layout": layout, "condition": any_of(layout.of, facts), "places": places, "axes": axes})
    return every


def _arguments(formulas: Iterable[str], coordinates: Iterable[str]) -> str:
    """The arguments of a function of tensor memory: coordinates, then what its formulas read of the product."""
    given = list(coordinates)
    read = {name for text in formulas for name in formula.names(formula.parse(text))} - set(given)
    return ", ".join([*given, *(f"p.{name}" for name in sorted(read))])


def _factors(spec: Spec, facts: dict[str, Fact]) -> dict[int, str]:
    """For each number of elements along K that share a scale factor, which products have it."""
    assert spec.tensor_products is not None
    blocks: dict[int, list[Condition]] = {}
    for row in spec.tensor_products.scales:
        blocks.setdefault(row.block, []).extend(row.of)
    return {block: any_of(conditions, facts) for block, conditions in blocks.items()}


def _scale_ids(spec: Spec) -> dict[str, str]:
    """For each number of scale factors that an instruction reads of a line, where they may begin in a cell: both as conditions in C."""
    ids: dict[tuple[int, ...], dict[int, None]] = {}
    for layout in spec.tensor_layouts:
        for selection in layout.selections if layout.operand == "tensor-scales" else ():
            ids.setdefault(selection.values, {}).update(dict.fromkeys(int(count) for when in selection.when for count in when["blocks"]))
    return {among("factors", str, sorted(counts)): among("id", str, values) for values, counts in ids.items()}


def _ratio(spec: Spec) -> int:
    """The number of elements along K of a sparse A for each that is kept: the same for all products, or a C function is needed here."""
    patterns = [entry for entry in spec.granularities if any("tcgen05.mma.sp" in map(str, when.get("family", ())) for when in entry.of)]
    (ratio,) = {entry.chunk // entry.kept for entry in patterns}
    return ratio

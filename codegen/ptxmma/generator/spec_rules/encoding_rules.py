"""Encodings: whatever the spec lets a product have, a descriptor of its own family can say."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.descriptors.bits import Value
from ptxmma.catalog.descriptors.chosen_product import argument_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.lookup import SELECTED
from ptxmma.catalog.descriptors.shared_formats import reads, swizzle_encoding
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.catalog.variants import Variant, expand
from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext, listed
from ptxmma.model import DescriptorFormat, InstructionSet, TensorProducts, matches, operand_names
from ptxmma.model.formula import FormulaError

#: The word of formats for what an operand of a kind describes.
DESCRIBES = {"descriptor": "matrix", "shared-descriptor": "matrix", "column-mask": "columns", "instruction-descriptor": "instruction"}
#: Bits of a register of a mask.
_WORD = 32


class _Allowed(NamedTuple):
    """The values of a product's argument that a rule allows.

    Attributes:
        name: the argument: ``"n"``.
        values: its values.
        rule: the place of the rule.
        target: the target that the rule is for; None for any.
    """

    name: str
    values: tuple[Value, ...]
    rule: Place
    target: str | None = None


#: Of each argument, its values with a rule that allows them.
_Said = dict[str, dict[tuple[Value, ...], _Allowed]]


def problems(context: RuleContext) -> Iterator[Problem]:
    """Descriptors that are missing, and values of products, swizzles, masks and addresses that have no encoding."""
    for index, entry in enumerate(context.spec.instructions):
        yield from _formats(context, index, entry)
        if entry.operation == OPERATION and context.spec.tensor_products is not None:
            yield from _products(context, index, entry, context.spec.tensor_products)
        yield from _lanes(context, index, entry)
    yield from _swizzles(context)


def _formats(context: RuleContext, index: int, entry: InstructionSet) -> Iterator[Problem]:
    """Each operand that is a descriptor has a format of the instruction's family."""
    for name, operand in entry.operand_kinds.items():
        describes = DESCRIBES.get(operand.kind)
        if describes and not _read(context, entry, describes):
            message = f"{name!r} is a descriptor, but descriptors has no format of the family {entry.family!r} that describes {describes!r}"
            yield Problem(context.at("instructions", index, "operand_kinds", name), message)


def _read(context: RuleContext, entry: InstructionSet, describes: str) -> dict[int, DescriptorFormat]:
    """The formats that an instruction reads, by their numbers."""
    formats = enumerate(context.spec.descriptors)
    return {number: each for number, each in formats if each.describes == describes and reads(entry.family, each.family)}


# --- products ---------------------------------------------------------------------------------------------------------------


def _products(context: RuleContext, index: int, entry: InstructionSet, rules: TensorProducts) -> Iterator[Problem]:
    """Every product of an instruction has an instruction descriptor, and its columns fall into the parts of its mask."""
    formats, seen = _read(context, entry, "instruction"), set[object]()
    tested = {number: _tested(each) for number, each in formats.items()}
    qualifier = next((each.qualifier for each in formats.values()), "")
    for variant in expand(entry):
        kind = str(variant.facts.get(qualifier, ""))
        number = next((number for number, each in formats.items() if kind in (each.kinds or (kind,))), None)
        if number is None:
            here, message = context.at("instructions", index), f"no instruction descriptor of the family {entry.family!r} is for {kind!r}"
            yield from context.once(here, message) if formats else ()
            continue
        masks, said = _masks(context, entry, variant), _Said()
        for rows in product_rules.rows(rules, variant.facts):
            known: dict[str, Value] = {**rows.types, "k": rows.depth.k, "sparse": int(entry.sparse)}
            for allowed in (*_allowed(rules, variant, rows), *_parts(context, rules, variant, rows)):
                said.setdefault(allowed.name, {}).setdefault(allowed.values, allowed)
                key = (number, kind, allowed, *map(known.get, tested[number].get(allowed.name, ())))
                if key not in seen:
                    seen.add(key)
                    yield from _encoded(context, number, kind, allowed, known)
            yield from _complete(context, number, variant, rows)
            shape: Place = ("tensor_products", "shapes", rules.shapes.index(rows.shape))
            if masks and (shape, *masks) not in seen:
                seen.add((shape, *masks))
                yield from _masked(context, masks, itertools.product(rows.shape.m, product_rules.numbers(rows.shape.n)), shape)
        yield from _unsaid(context, number, variant, said)


def _allowed(rules: TensorProducts, variant: Variant, rows: product_rules.Rows) -> Iterator[_Allowed]:
    """The values that some rules allow, rule by rule."""
    place: Place = ("tensor_products", "types", rules.types.index(rows.row))
    yield from (_Allowed(name, (value,), place) for name, value in rows.types.items())
    place = ("tensor_products", "depths", rules.depths.index(rows.depth))
    yield from (_Allowed("k", (rows.depth.k,), place, target) for target in rows.depth.targets or (None,))
    place = ("tensor_products", "shapes", rules.shapes.index(rows.shape))
    yield _Allowed("m", rows.shape.m, place)
    yield _Allowed("n", tuple(product_rules.numbers(rows.shape.n)), place)
    for option in rules.fitting.options({**variant.facts, **rows.types, "k": rows.depth.k}):
        place = ("tensor_products", "options", rules.options.index(option))
        yield from (_Allowed(option.field, (option.value,), place, target) for target in option.targets or (None,))
    for scale in rows.scales:
        place = ("tensor_products", "scales", rules.scales.index(scale))
        yield from (_Allowed("stype", scale.stype, place, target) for target in scale.targets or (None,))


def _parts(context: RuleContext, rules: TensorProducts, variant: Variant, rows: product_rules.Rows) -> Iterator[_Allowed]:
    """The parts of operands in tensor memory, and the majornesses of matrices in shared memory, that these products may have."""
    spec = context.spec
    described, lists = list(resolution.described(variant)), variant.instruction.operands.get(variant.form.operands, ())
    for kind, matrix in described:
        field = SELECTED.get(kind, "").format(of=matrix)
        every: list[dict[str, str | int]] = []
        for m in rows.shape.m if field else ():
            sized: dict[str, str | int] = {**rows.types, "k": rows.depth.k, "m": m, "n": rows.shape.n[0].first}
            every += (sized | product_rules.values_of(each) for each in product_rules.optional(rules, {**variant.facts, **sized}))
        for values, block in itertools.product(every, [scale.block for scale in rows.scales] or [0]):
            placed = None
            with contextlib.suppress(FormulaError):  # the proof of the layout reports it
                placed = resolution.places(spec, resolution.Product(variant, product_rules.Choice(values, block, ())), kind, matrix)
            for number, selection in enumerate(placed.layout.selections) if placed else ():
                if placed and matches(selection.when, placed.numbers):
                    space, layout = spec.spaces.index(placed.memory), placed.memory.layouts.index(placed.layout)
                    place: Place = ("spaces", space, "layouts", layout, "selections", number, "values")
                    yield _Allowed(field, selection.values, place)
    kinds = [variant.instruction.operand_kinds[name] for text in lists for name in operand_names(text)]
    for side in dict.fromkeys(kind.of for kind in kinds if kind.kind == "shared-descriptor" and spec.shared_memory is not None):
        element = rows.types[f"{side}type"]
        section = "padded" if layouts.container(spec, element, {**variant.facts, **rows.types}) else "majorness"
        for number, entry in enumerate(getattr(spec.shared_memory, section)):
            if element in entry.elements and reads(variant.instruction.family, entry.family):
                yield _Allowed(f"{side}_majorness", (entry.majorness,), ("shared_memory", section, number, "elements"))


def _unsaid(context: RuleContext, number: int, variant: Variant, said: _Said) -> Iterator[Problem]:
    """Products of one opcode that differ have instruction descriptors that differ."""
    format = context.spec.descriptors[number]
    fields = {_argument(field.name) for field in format.fields}
    for name, rules in said.items():
        values = list(dict.fromkeys(str(value) for allowed in rules.values() for value in allowed.values))
        if name not in fields and len(values) > 1:
            here, there = context.at(*list(rules.values())[-1].rule), context.at("descriptors", number, "fields")
            text = f"an instruction descriptor has no field that says {name}, of which {variant.canonical} has {listed(values[:4])}"
            yield from context.once(*clash(text, here, there))


def _tested(format: DescriptorFormat) -> dict[str, list[str]]:
    """The other values on which the encoding of each argument depends."""
    tested: dict[str, set[str]] = {}
    for field in format.fields:
        names = (name for case in field.cases for when in case.when for name in when)
        tested.setdefault(_argument(field.name), set()).update(names)
    return {argument: sorted(names) for argument, names in tested.items()}


def _encoded(context: RuleContext, number: int, kind: str, allowed: _Allowed, others: Mapping[str, Value]) -> Iterator[Problem]:
    """The values of a rule have encodings, where a field of the format says them."""
    codec = Codec(context.spec, context.spec.descriptors[number], kind, allowed.target)
    for index, field in enumerate(codec.format.fields):
        for value in allowed.values if _argument(field.name) == allowed.name else ():
            try:
                codec.stored(field.name, value, **others)
            except ValueError as error:
                here, there = context.at(*allowed.rule), context.at("descriptors", number, "fields", index)
                yield from context.once(*clash(f"an instruction descriptor cannot say what this rule allows: {error}", here, there))


def _complete(context: RuleContext, number: int, variant: Variant, rows: product_rules.Rows) -> Iterator[Problem]:
    """A product says every field of its descriptor that has no default."""
    format = context.spec.descriptors[number]
    said: dict[str, Value] = {**rows.types, "k": rows.depth.k, "m": rows.shape.m[0], "n": rows.shape.n[0].first}
    said |= {"sparse": int(variant.instruction.sparse), **({"stype": rows.scales[0].stype[0]} if rows.scales else {})}
    left = [field for field in format.fields if field.fixed is None and field.default is None and _argument(field.name) not in said]
    if left:
        codec = Codec(context.spec, format, str(variant.facts.get(format.qualifier, "")))
        given = {field.name: said[argument] for field in codec.parameters if (argument := _argument(field.name)) in said}
        try:
            codec.encode(**given)
        except TypeError as error:
            here = context.at("descriptors", number, "fields", format.fields.index(left[0]))
            yield from context.once(
                here, f"{variant.canonical} does not say this field: {error}; give it a default, or a format of its own"
            )
        except ValueError:
            pass  # reported value by value


def _argument(field: str) -> str:
    return argument_of(field) or field


def _masks(context: RuleContext, entry: InstructionSet, variant: Variant) -> list[int]:
    """The numbers of the masks of columns that an opcode takes."""
    names = {name for text in entry.operands.get(variant.form.operands, ()) for name in operand_names(text)}
    takes = any(entry.operand_kinds[name].kind == "column-mask" for name in names)
    read = [each.name for each in _read(context, entry, "columns").values()] if takes else []
    return [number for number, mask in enumerate(context.spec.column_masks) if mask.descriptor in read]


def _masked(context: RuleContext, masks: Iterable[int], sizes: Iterable[tuple[int, int]], shape: Place) -> Iterator[Problem]:
    """The columns of products with a mask fall into the parts of the mask."""
    for number, (m, n) in itertools.product(masks, sizes):
        parts = context.spec.column_masks[number].parts
        if n % parts.get(str(m), n + 1):
            why = (
                f"N = {n} is not a multiple of {parts[str(m)]}" if str(m) in parts else f"it has parts for M of {listed(parts)}, not of {m}"
            )
            here, there = context.at(*shape), context.at("column_masks", number, "parts")
            yield from context.once(*clash(f"a mask of columns cannot say what this rule allows: {why}", here, there))


# --- memory -----------------------------------------------------------------------------------------------------------------


def _swizzles(context: RuleContext) -> Iterator[Problem]:
    """The matrix descriptors of a family have every swizzle mode with which it reads a matrix."""
    memory, formats = context.spec.shared_memory, list(enumerate(context.spec.descriptors))
    for name in ("majorness", "padded") if memory is not None else ():
        for index, entry in enumerate(getattr(memory, name)):
            for number in [number for number, each in formats if each.describes == "matrix" and reads(entry.family, each.family)][:1]:
                encoded = swizzle_encoding(context.spec, entry.family)
                here, there = context.at("shared_memory", name, index, "swizzles"), context.at("descriptors", number, "fields")
                for swizzle in (swizzle for swizzle in entry.swizzles if swizzle not in encoded):
                    text = f"matrix descriptors of {entry.family!r} cannot say swizzle {swizzle!r}; they have {listed(encoded)}"
                    yield clash(text, here, there)


def _lanes(context: RuleContext, index: int, entry: InstructionSet) -> Iterator[Problem]:
    """A mask of lanes has a bit for each lane of every CTA that holds D."""
    masks = {name: operand for name, operand in entry.operand_kinds.items() if operand.kind == "lane-mask"}
    for variant in expand(entry) if masks else ():
        memory = context.spec.tensor_memory_of(variant.facts)
        lanes = memory.most("lane") * variant.extents.get("ctas", 1) if memory else 0
        for name, operand in masks.items():
            bits = lanes
            with contextlib.suppress(FormulaError):  # the description of the operand reports it
                bits = _WORD * layouts.size(operand.count, {**variant.extents})
            if bits < lanes:
                text = f"{name!r} of {variant.canonical} has {bits} bits; D lies in {lanes} lanes"
                yield from context.once(context.at("instructions", index, "operand_kinds", name, "count"), text)
